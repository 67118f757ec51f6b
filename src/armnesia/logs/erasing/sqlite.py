"""Erasing rows of a table in an SQLite file: by one transaction; a purge writes the file again."""

import sqlite3
import urllib.parse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from armnesia.core.errors import InvalidLogError, UnsupportedError
from armnesia.logs.columns import quoted
from armnesia.logs.erasing.eraser import not_applied, rows_changed, rows_left
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.plan import Erasure, ErasurePlan, SourceState
from armnesia.logs.limits import CHUNK
from armnesia.logs.manifests import source_name
from armnesia.logs.rows import Selection
from armnesia.logs.tables.sqlite import SqliteSource
from armnesia.logs.values import label_text

_KIND = "sqlite"
_FUNCTION = "armnesia_is_erased"
_SAMPLES = ("sqlite_stat3", "sqlite_stat4")
"""Tables of the planner with values of columns."""
_UNUSED = "unused space of the database file, and its write-ahead log, may hold the rows until it is purged"
_COPIES = (
    "other tables that hold names, and copies of the database file, remain",
    "the file system may keep blocks of the old file until they are overwritten",
)


class SqliteEraser:
    """A table in an SQLite file, which is not opened read-only."""

    def __init__(self, source: SqliteSource) -> None:
        self._source = source
        self._location = source_name(source.description)
        with self._connected() as connection:
            _check_table(connection, str(source.description["table"]), self._location)

    def plan(self, people: People) -> ErasurePlan | None:
        """Look for the rows; nothing is written."""
        with self._connected() as connection:
            return ErasurePlan.new(_KIND, self._location) if self._names(connection, people) else None

    def apply(self, plan: ErasurePlan, people: People) -> Erasure:
        """Delete the rows in one transaction."""
        plan.check(_KIND, self._location)
        with self._connected() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("BEGIN IMMEDIATE")
            names = self._names(connection, people)
            if names:
                self._delete(connection, people, names)
            if self._names(connection, people):
                raise rows_left(self._location)
            connection.execute("COMMIT")
        return Erasure(SourceState.LOGICALLY_DELETED, remains=(_UNUSED, *_COPIES))

    def empty_plan(self) -> ErasurePlan:
        """A plan that deletes no rows."""
        return ErasurePlan.new(_KIND, self._location)

    def discard(self, plan: ErasurePlan) -> None:
        """Nothing was prepared."""

    def undo(self, plan: ErasurePlan) -> None:
        """Nothing was prepared."""
        plan.check(_KIND, self._location)

    def purge(self, plan: ErasurePlan, people: People, *, ignore_retention: bool = False) -> Erasure:
        """Write the whole database again, without unused space."""
        plan.check(_KIND, self._location)
        with self._connected() as connection:
            if self._names(connection, people):
                raise not_applied()
            connection.execute("VACUUM")
            ((busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            reading = "the write-ahead log of the database holds the rows until others stop reading it"
            return Erasure(SourceState.LOGICALLY_DELETED, remains=(reading, *_COPIES))
        return Erasure(SourceState.PURGED, remains=_COPIES)

    def _names(self, connection: sqlite3.Connection, people: People) -> frozenset[str]:
        """The names of people as they are spelled in the table."""
        column = quoted(people.check_column(self._source))
        condition, parameters = f"{column} IS NOT NULL", tuple[Any, ...]()
        if people.selection is not None:
            condition, parameters = self._source.condition(people.selection)
        sql = f"SELECT DISTINCT {column} FROM {self._source.quoted_table} WHERE {condition}"
        return people.among_all(_labels(connection.execute(sql, parameters)))

    def _delete(self, connection: sqlite3.Connection, people: People, names: frozenset[str]) -> None:
        """Delete rows with these names; what a name is, Python decides."""
        table, column = self._source.quoted_table, quoted(people.check_column(self._source))
        connection.create_function(_FUNCTION, 1, lambda value: label_text(value) in names, deterministic=True)
        narrowed, parameters = self._source.condition(Selection(people.role, names))
        condition = f"({narrowed}) AND {_FUNCTION}({column})"
        (before,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        (wanted,) = connection.execute(
            f"SELECT count(*) FROM {table} WHERE {condition}", parameters
        ).fetchone()
        connection.execute(f"DELETE FROM {table} WHERE {condition}", parameters)
        (after,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        if after != before - wanted:
            raise rows_changed(self._location, "nothing was changed")
        for samples in _SAMPLES:
            if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (samples,)).fetchone():
                connection.execute(f"DELETE FROM {samples}")  # ANALYZE takes new ones

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        address = f"file:{urllib.parse.quote(self._source.path)}?mode=rw"
        try:
            with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
                yield connection
        except sqlite3.Error as error:
            # SQLite's own message may quote a value.
            raise InvalidLogError(
                f"rows of {self._location!r} cannot be erased: SQLite failed"
                f" ({getattr(error, 'sqlite_errorname', type(error).__name__)})"
            ) from None


def _labels(cursor: sqlite3.Cursor) -> Iterator[list[str]]:
    while rows := cursor.fetchmany(CHUNK):
        yield [text for (value,) in rows if (text := label_text(value)) is not None]


def _check_table(connection: sqlite3.Connection, table: str, location: str) -> None:
    """Refuse views and virtual tables."""
    name = table.rpartition(".")[2]
    found = connection.execute(
        "SELECT type, sql FROM sqlite_master WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view')",
        (name,),
    ).fetchall()
    if [kind for kind, _ in found] != ["table"] or str(found[0][1]).upper().startswith("CREATE VIRTUAL"):
        raise UnsupportedError(
            f"rows of {location!r} cannot be erased: it must be a table; it is a view or a virtual table"
        )
