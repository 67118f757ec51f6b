"""Erasing rows of a table in an SQLite file: by one transaction; a purge writes the file again."""

import os
import sqlite3
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from hashlib import blake2b
from typing import Any

from armnesia.core.errors import InvalidLogError, UnsupportedError
from armnesia.core.files import may_write
from armnesia.logs.columns import quoted
from armnesia.logs.erasing.eraser import OTHER_COLUMNS, not_applied
from armnesia.logs.erasing.names_in_texts import named_in
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.plan import Erasure, ErasurePlan, SourceState
from armnesia.logs.erasing.sqlite_rowids import drop_empty_indexes, vacuum_with_rowids
from armnesia.logs.erasing.table_eraser import NAMED_BY_DEFINITION, TableEraser
from armnesia.logs.limits import CHUNK
from armnesia.logs.rows import Selection
from armnesia.logs.tables.source import table_parts
from armnesia.logs.tables.sqlite import SqliteSource
from armnesia.logs.values import label_text

_FUNCTION = "armnesia_is_erased"
_DIGEST_BYTES = 8
_SAMPLES = ("sqlite_stat3", "sqlite_stat4")
"""Tables of the planner with values of columns."""
_DEFINITIONS = """
    SELECT sql FROM main.sqlite_master
    WHERE (tbl_name = ? COLLATE NOCASE OR type IN ('view', 'trigger')) AND sql IS NOT NULL
"""
"""The table and its indexes, and all views and triggers, as they were created."""
_UNUSED = "unused space of the database file, and its write-ahead log, may hold the rows until it is purged"
_RENUMBERED = (
    "unused space of the database file may hold the rows: this version of SQLite would give the rows of"
    " tables without INTEGER PRIMARY KEY other rowids if it were purged"
)
_COPIES = (
    "other tables that hold names, and copies of the database file, remain",
    "the file system may keep blocks of the old file until they are overwritten",
    OTHER_COLUMNS,
)


class SqliteEraser(TableEraser[sqlite3.Connection]):
    """A table in an SQLite file, which is not opened read-only."""

    _kind = "sqlite"
    _remains = (_UNUSED, *_COPIES)

    def __init__(self, source: SqliteSource) -> None:
        super().__init__(source)
        self._source = source
        self._table_name = table_parts(str(source.description["table"]))[-1]
        self._table_in_file = f"main.{quoted(self._table_name)}"
        with self._connected() as connection:
            _check_table(connection, self._table_name, self._location)

    def check_rewritable(self) -> None:
        """Refuse a file that may not be written to, or a folder, where SQLite puts a journal beside it."""
        path = os.path.realpath(self._source.path)
        for place in (path, os.path.dirname(path)):
            if not may_write(place):
                raise UnsupportedError(
                    f"rows of {self._location!r} cannot be erased: this user may not write to {place!r}"
                )

    def purge(self, plan: ErasurePlan, people: People, *, ignore_retention: bool = False) -> Erasure:
        """Write the whole database again, without unused space."""
        plan.check(self._kind, self._location)
        with self._connected() as connection:
            if self._names(connection, people):
                raise not_applied()
            _clear_samples(connection)  # rows may have been deleted by others, without them
            # VACUUM copies indexes as they are: one that is damaged may name people who have no rows.
            connection.execute(f"REINDEX {self._table_in_file}")
            if not vacuum_with_rowids(connection):
                return Erasure(SourceState.LOGICALLY_DELETED, remains=(_RENUMBERED, *_COPIES))
            ((busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            definitions = connection.execute(_DEFINITIONS, (self._table_name,)).fetchall()
        held = (
            ["the write-ahead log of the database holds the rows until others stop reading it"]
            if busy
            else []
        )
        if named_in((text for (text,) in definitions), people):
            held.append(NAMED_BY_DEFINITION)
        state = SourceState.LOGICALLY_DELETED if held else SourceState.PURGED
        return Erasure(state, remains=(*held, *_COPIES))

    def _names(self, connection: sqlite3.Connection, people: People) -> frozenset[str]:
        """The names of people as they are spelled in the table."""
        name = people.check_column(self._source)
        condition, parameters = f"{quoted(name)} IS NOT NULL", tuple[Any, ...]()
        if people.selection is not None:
            condition, parameters = self._source.condition(people.selection)
        # By bytes and type: values that the column's collation, or SQLite, takes for equal may be two names.
        sql = f"SELECT DISTINCT {self._source.told_apart(name)} FROM {self._read} WHERE {condition}"
        self._source.check_indexes(connection, sql, parameters)
        return people.among_all(_labels(connection.execute(sql, parameters)))

    def _delete(self, connection: sqlite3.Connection, people: People, names: frozenset[str]) -> None:
        """Delete rows with these names; what a name is, Python decides."""
        column = quoted(people.check_column(self._source))
        connection.create_function(_FUNCTION, 1, lambda value: label_text(value) in names, deterministic=True)
        narrowed, parameters = self._source.condition(Selection(people.role, names))
        condition = f"({narrowed}) AND {_FUNCTION}({column})"
        self._delete_checked(connection, condition, parameters)
        _clear_samples(connection)

    def _checksum(
        self, connection: sqlite3.Connection, condition: str, parameters: Sequence[Any]
    ) -> tuple[int, int]:
        sql = f"SELECT * FROM {self._read} WHERE {condition}"
        self._source.check_indexes(connection, sql, tuple(parameters))
        count = total = 0
        read_as = connection.text_factory
        connection.text_factory = _any_text
        try:
            # Written out, a value of another type is another text: SQLite keeps 1, 1.0 and '1' apart.
            for row in connection.execute(sql, tuple(parameters)):
                total += int.from_bytes(blake2b(repr(row).encode(), digest_size=_DIGEST_BYTES).digest())
                count += 1
        finally:
            connection.text_factory = read_as
        return count, total

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._connected() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("BEGIN IMMEDIATE")
            drop_empty_indexes(connection)
            yield connection
            connection.execute("COMMIT")

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


def _clear_samples(connection: sqlite3.Connection) -> None:
    for samples in _SAMPLES:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (samples,)).fetchone():
            connection.execute(f"DELETE FROM {samples}")  # ANALYZE takes new ones


def _any_text(text: bytes) -> str:
    """Text that may not be UTF-8, which SQLite takes as well."""
    return text.decode(errors="surrogateescape")


def _labels(cursor: sqlite3.Cursor) -> Iterator[list[str]]:
    while rows := cursor.fetchmany(CHUNK):
        yield [text for value, *_ in rows if (text := label_text(value)) is not None]


def _check_table(connection: sqlite3.Connection, name: str, location: str) -> None:
    """Refuse views and virtual tables."""
    found = connection.execute(
        "SELECT type, sql FROM sqlite_master WHERE name = ? COLLATE NOCASE AND type IN ('table', 'view')",
        (name,),
    ).fetchall()
    if [kind for kind, _ in found] != ["table"] or str(found[0][1]).upper().startswith("CREATE VIRTUAL"):
        raise UnsupportedError(
            f"rows of {location!r} cannot be erased: it must be a table; it is a view or a virtual table"
        )
