"""Tables that change while people are looked up there: what is read must be what was counted."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import VaultError
from armnesia.logs.tables.source import TableSource
from armnesia.logs.tables.sqlite import SqliteSource
from armnesia.vault import Configuration, Vault
from tests.databases import fresh_place

NAMED: dict[str, Any] = {"table": "log", "user": "who", "id": "id", "ordered_by": "n"}
ROWS = [(n, "AB"[n % 2], n % 3 == 0, f"u{n % 7}", f"r{n}") for n in range(21)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE log (n INTEGER, action TEXT, reward REAL, who TEXT, id TEXT)")
        database.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?)", ROWS)
    return path


@pytest.fixture
def vault(path: Path, tmp_path: Path) -> Vault:
    vault = fresh_place("sqlite", tmp_path).create(Configuration(actions=("A", "B"), mode="external"))
    assert vault.ingest(f"sqlite:///{path}", **NAMED).added == len(ROWS)
    return vault


def changing(path: Path, sql: str, read: Callable[..., Any]) -> Callable[..., Any]:
    """A reading before which another program changes the table."""

    def changed(self: SqliteSource, *arguments: Any, **options: Any) -> Any:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(sql)
        return read(self, *arguments, **options)

    return changed


@pytest.mark.parametrize("request_", [{"users": ["u3"]}, {"records": ["r3"]}], ids=["user", "record"])
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM log WHERE who = 'u3'",
        "DELETE FROM log WHERE who = 'u3' AND n < 10",
        "INSERT INTO log VALUES (3, 'A', 1.0, 'u3', 'r3')",
        "DELETE FROM log",
    ],
)
def test_rows_that_come_or_go_meanwhile_are_noticed(
    vault: Vault, path: Path, monkeypatch: pytest.MonkeyPatch, request_: Any, sql: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(SqliteSource, "found_rows", changing(path, sql, SqliteSource.found_rows))
        with pytest.raises(VaultError, match="has changed since it was counted"):
            vault.forget(**request_)
    assert vault.n_records == len(ROWS)
    vault.ingest(f"sqlite:///{path}", **NAMED)
    assert vault.verify().holds
    vault.close()


def test_rows_that_go_while_names_are_confirmed_are_noticed(
    vault: Vault, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "DELETE FROM log WHERE who = 'u4'"
    monkeypatch.setattr(SqliteSource, "labels_like", changing(path, sql, SqliteSource.labels_like))
    with pytest.raises(VaultError, match="has changed since it was counted"):
        vault.forget(users=["u9"])
    vault.close()


def test_later_rows_disturb_no_request(vault: Vault, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "INSERT INTO log VALUES (99, 'A', 1.0, 'u3', 'r99')"
    monkeypatch.setattr(SqliteSource, "found_rows", changing(path, sql, SqliteSource.found_rows))
    assert vault.forget(users=["u3"]).records == 3
    vault.close()


def test_one_statement_tells_what_has_changed(vault: Vault, path: Path) -> None:
    statements: list[str] = []
    read = SqliteSource._pieces

    def noted(self: TableSource, sql: str, *arguments: Any, **options: Any) -> Any:
        statements.append(sql)
        return read(self, sql, *arguments, **options)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SqliteSource, "_pieces", noted)
        assert vault.forget(users=["u3"]).records == 3
    assert len(statements) == 3, "before, the look-up, and after"
    vault.close()
