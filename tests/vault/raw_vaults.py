"""Vaults as somebody sees them who goes past armnesia: their tables by plain SQL, their files as bytes."""

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg

from armnesia.vault import Configuration, UserType, Vault
from armnesia.vault.db.opening import open_database
from armnesia.vault.db.postgres import PostgresDatabase
from armnesia.vault.db.sqlite import SqliteDatabase
from tests.databases import Place, postgres_url

TABLES = (
    "vault",
    "decision",
    "record",
    "source",
    "suppressed",
    "entry",
    "people",
    "token",
    "subject_request",
)
LOG: dict[str, list[Any]] = {
    "action": ["A", "A", "B", "A", "B", "B"],
    "reward": [1.0, 0.5, 0.25, 0.75, 1.0, 0.0],
    "who": ["ann", "bob", "ann", "cem", "dan", "dan"],
    "id": ["r1", "r2", "r3", "r4", "r5", "r6"],
}
COLUMNS = {"action": "action", "reward": "reward", "user": "who", "id": "id"}


def filled(place: Place, configuration: Configuration | None = None) -> Vault:
    """A new vault that holds `LOG`; commits do not wait for the disk."""
    declared = configuration or Configuration(actions=("A", "B"), user_type=UserType.TEXT)
    vault = place.create(replace(declared, columns=COLUMNS))
    database = vault.database
    if isinstance(database, SqliteDatabase):
        database._connection.execute("PRAGMA synchronous = OFF")
    elif isinstance(database, PostgresDatabase):
        database._connection.execute("SET synchronous_commit = off")
    assert vault.ingest(LOG, user="who", id="id").added == 6
    return vault


def change(vault: Vault, sql: str, *parameters: Any) -> int:
    """Change a table by plain SQL; how many rows it was."""
    with vault.database.writing() as session:
        return session.execute(sql, *parameters)


def values(vault: Vault, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Look into a table by plain SQL."""
    with vault.database.reading() as session:
        return [
            tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
            for row in session.query(sql, *parameters)
        ]


def copy_to(vault: Vault, place: Place, other: Place) -> None:
    """The same vault at another place: the same keys, rows and head."""
    other.create(vault.configuration).close()
    held = dumped(vault)
    with closing(open_database(other.url)) as database, database.writing() as session:
        for table in reversed(held):
            session.execute(f"DELETE FROM {table}")
        for table, rows in held.items():
            marks = ", ".join("?" * (len(rows[0]) if rows else 0))
            for row in rows:
                session.execute(f"INSERT INTO {table} VALUES ({marks})", *row)
    for suffix in ("", ".journal"):
        shutil.copy(f"{place.keys}{suffix}", f"{other.keys}{suffix}")


def arms(vault: Vault) -> list[tuple[int, int, int]]:
    """(count, sum of units, deleted) of each arm of the one decision."""
    ((text,),) = values(vault, "SELECT statistics FROM decision")
    return arms_in(text)


def arms_in(text: str) -> list[tuple[int, int, int]]:
    """(count, sum of units, deleted) of each arm, from the text of statistics."""
    lists = json.loads(text)
    deleted = lists.get("deleted", [0] * len(lists["counts"]))
    return list(zip(lists["counts"], lists["units"], deleted, strict=True))


def change_statistics(vault: Vault, name: str, arm: int, by: int) -> None:
    """Change one of the numbers "counts", "units" and "deleted" of an arm, as canonical JSON."""
    ((text,),) = values(vault, "SELECT statistics FROM decision")
    lists = json.loads(text)
    lists[name][arm] += by
    changed = json.dumps(lists, sort_keys=True, separators=(",", ":"))
    assert change(vault, "UPDATE decision SET statistics = ?", changed) == 1


def journal_of(place: Place) -> Path:
    """The file of a vault's journal."""
    return place.keys.with_name(f"{place.keys.name}.journal")


def dumped(vault: Vault) -> dict[str, list[tuple[Any, ...]]]:
    """All tables, each in an order of its own."""
    return {table: sorted(values(vault, f"SELECT * FROM {table}"), key=repr) for table in TABLES}


def empty_tree(place: Place, name: str) -> None:
    """Make the root page of a table or an index of an SQLite vault one without entries, and nothing else."""
    with closing(sqlite3.connect(place.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,))
        ((size,),) = connection.execute("PRAGMA page_size")
    leaf = {2: 10, 5: 13}  # the kinds of pages: of an index, of a table
    data = bytearray(place.path.read_bytes())
    start = (page - 1) * size
    data[start] = leaf.get(data[start], data[start])
    data[start + 3 : start + 5] = bytes(2)
    place.path.write_bytes(data)


class Snapshot:
    """A vault's database as it is now, to be put back later, as from a backup."""

    def __init__(self, place: Place, vault: Vault, folder: Path) -> None:
        self.place = place
        if isinstance(vault.database, SqliteDatabase):
            self.file = folder / "backup.db"
            vault.back_up(self.file)
        else:
            self.tables = dumped(vault)
            self.schema = vault.database.schema  # type: ignore[attr-defined]

    def put_back(self) -> None:
        """As an operator would: the database is exchanged, the keys and the journal stay."""
        if self.place.url.startswith("sqlite"):
            path = self.place.path
            for leftover in (f"{path}-wal", f"{path}-shm"):
                Path(leftover).unlink(missing_ok=True)
            path.write_bytes(self.file.read_bytes())
            return
        with closing(psycopg.connect(postgres_url())) as connection, connection.transaction():
            for table, rows in self.tables.items():
                connection.execute(f"DELETE FROM {self.schema}.{table}")
                for row in rows:
                    marks = ", ".join(["%s"] * len(row))
                    connection.execute(f"INSERT INTO {self.schema}.{table} VALUES ({marks})", row)


@contextmanager
def reader_of(place: Place) -> Iterator[None]:
    """Somebody who reads the database all the while, and so needs what is deleted meanwhile."""
    if place.url.startswith("sqlite"):
        with closing(sqlite3.connect(place.path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM record").fetchone()
            yield
    else:
        with closing(psycopg.connect(postgres_url())) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            assert connection.execute("SELECT count(*) FROM pg_class").fetchone()
            yield


def raising(error: Exception) -> Callable[..., None]:
    """A function that fails."""

    def fail(*_: object, **__: object) -> None:
        raise error

    return fail
