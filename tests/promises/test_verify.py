"""Promise 5: `verify` recomputes everything from the rows, and notices whatever something else changed."""

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.promises.driver import Driven, driven
from tests.promises.test_histories import PEOPLE, rows_of


def _filled(vault: Driven) -> Driven:
    vault.add(rows_of(1, 24))
    vault.forget(PEOPLE[0], PEOPLE[1])
    vault.token("reader")
    assert vault.problems() == []
    return vault


def _other(value: Any) -> Any:
    """Another value of the same kind, a bit away."""
    if value is None:
        return 1
    if isinstance(value, int):
        return value ^ 1
    one, two = (b"\x01", b"\x02") if isinstance(value, bytes) else ("7", "8")
    return value[:-2] + (two if value[-2:-1] == one else one) + value[-1:]


BYTES = ("said", "case_digest")
USES_OF_TOKENS = {("token", "last_used"), ("token", "uses")}
"""When a token was used last is no promise."""


@pytest.fixture
def tampered(database: str, tmp_path: Path) -> Driven:
    return _filled(driven(database, tmp_path))


def _first(vault: Driven, table: str, column: str) -> list[Any]:
    with vault.database() as database:
        found = database.rows(f"SELECT {column} FROM {table} ORDER BY 1 LIMIT 1")
    return [bytes(value) if isinstance(value, memoryview) else value for (value,) in found]


def _tables(vault: Driven) -> dict[str, list[str]]:
    """The columns of each table that has rows."""
    with vault.database() as database:
        every = {table: database.columns(table) for table in database.tables()}
    return {table: columns for table, columns in every.items() if _first(vault, table, columns[0])}


def _unnoticed(vault: Driven, changes: list[tuple[str, str, Any]]) -> list[str]:
    """Which changes, each of one row by plain SQL, `verify` does not notice."""
    copy, unnoticed = vault.copy_of_database(), []
    for sql, *values in changes:
        try:
            with vault.database() as database:
                assert database.change(sql, *values) > 0
        except (sqlite3.IntegrityError, psycopg.IntegrityError):  # two rows of one key
            continue
        if not vault.problems():
            unnoticed.append(sql)
        vault.put_back(copy)
    assert vault.problems() == []
    return unnoticed


def test_a_change_of_any_column_of_any_table_is_noticed(tampered: Driven, database: str) -> None:
    cells = [
        (table, column)
        for table, columns in _tables(tampered).items()
        for column in (columns if database == "sqlite" else {columns[0], columns[-1]})
        if (table, column) not in USES_OF_TOKENS
    ]
    assert len(cells) > (25 if database == "sqlite" else 10)
    changes = []
    for table, column in cells:
        (value,) = _first(tampered, table, column)
        same = f"{column} IS NULL" if value is None else f"{column} = ?"
        was = () if value is None else (value,)
        other = b"7" if value is None and column in BYTES else _other(value)
        changes.append((f"UPDATE {table} SET {column} = ? WHERE {same}", other, *was))
    assert _unnoticed(tampered, changes) == []


def _missing_and_added(vault: Driven, tables: dict[str, list[str]]) -> list[Any]:
    """Of each table the first row away, and the first row once more, with another first column."""
    changes: list[Any] = []
    for table, (key, *others) in tables.items():
        (value,) = _first(vault, table, key)
        changes.append((f"DELETE FROM {table} WHERE {key} = ?", value))
        columns = ", ".join(others)
        insert = f"INSERT INTO {table} ({key}, {columns}) SELECT ?, {columns} FROM {table} WHERE {key} = ?"
        changes.append((insert, _other(value), value))
    return changes


def test_a_missing_or_added_row_of_any_table_is_noticed(tampered: Driven) -> None:
    tables = _tables(tampered)
    assert len(tables) >= 6
    assert _unnoticed(tampered, _missing_and_added(tampered, tables)) == []


def test_a_row_of_a_forgotten_person_that_is_put_back_is_noticed(vault: Driven) -> None:
    vault.add(rows_of(1, 24))
    with vault.database() as database:
        before = {table: database.rows(f"SELECT * FROM {table}") for table in database.tables()}
    vault.forget(PEOPLE[0])
    with vault.database() as database:
        for table, rows in before.items():
            now = set(database.rows(f"SELECT * FROM {table}"))
            lost = [row for row in rows if row not in now]
            if table == "record":
                marks = ", ".join("?" * len(lost[0]))
                assert database.change(f"INSERT INTO {table} VALUES ({marks})", *lost[0]) == 1
    assert vault.problems() != []


def test_damage_that_the_database_itself_finds_is_noticed(tmp_path: Path) -> None:
    vault = _filled(driven("sqlite", tmp_path))
    content = bytearray(vault.place.path.read_bytes())
    for page in range(1, len(content) // 4096):
        content[4096 * page + 8 : 4096 * page + 40] = bytes(32)
    vault.place.path.write_bytes(content)
    assert vault.problems() != []


def test_other_keys_do_not_open_the_vault(tampered: Driven, tmp_path: Path) -> None:
    other = driven("sqlite", tmp_path)
    tampered.place.keys.write_bytes(other.place.keys.read_bytes())
    assert tampered.problems() != []
