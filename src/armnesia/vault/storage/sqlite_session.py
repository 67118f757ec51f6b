"""A transaction on SQLite: statements, streams of rows, and rows that are loaded by columns."""

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakSet

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.vault.storage.database import Dialect, Row, Statement
from armnesia.vault.storage.digest_arrays import DIGEST, NO_DIGEST, Columns, DigestArray, is_given
from armnesia.vault.storage.schema import OWNER_INDEX, Table

DIALECT = Dialect(
    blob="BLOB",
    xor_of_digests="xor_of_digests({}, {})",  # a function of this module
    # Not the index of identities, which a first load fills in their order, many at a time.
    drop_record_indexes=(f"DROP INDEX {OWNER_INDEX.name}",),
    # Sorted in unnamed files, which have nothing but keyed digests: memory would grow with the rows.
    create_record_indexes=("PRAGMA temp_store = FILE", OWNER_INDEX.statement, "PRAGMA temp_store = MEMORY"),
)
_IDENTITIES_AT = (
    "SELECT CAST(group_concat(identity, '') AS BLOB) FROM json_each(?) AS place CROSS JOIN record"
    " WHERE record.rowid = place.value"  # not by IN, which would sort the places again
    f" AND typeof(identity) = 'blob' AND length(identity) = {DIGEST.itemsize}"
)
"""The identities of the records at these places as one value, without a Python object for each."""
_AT_ONCE, _FEW = 50_000, 5_000
"""Records, and owners, whose identities or places are one value."""


@dataclass(frozen=True)
class SqliteSession:
    """A transaction on SQLite."""

    _connection: sqlite3.Connection
    dialect: Dialect = DIALECT
    _streams: WeakSet[sqlite3.Cursor] = field(default_factory=WeakSet)

    def query(self, sql: str, *parameters: Any) -> list[Row]:
        """Run a statement and fetch all its rows."""
        return self._connection.execute(sql, parameters).fetchall()

    def execute(self, sql: str, *parameters: Any) -> int:
        """Run a statement; return how many rows it changed."""
        return self._connection.execute(sql, parameters).rowcount

    def execute_together(self, statements: Iterable[Statement]) -> None:
        """Run statements one after another: there are no round trips to save."""
        for sql, parameters in statements:
            self._connection.execute(sql, parameters)

    def stream(self, sql: str, *parameters: Any) -> Iterator[Row]:
        """Run a query and yield its rows one by one."""
        cursor = self._connection.execute(sql, parameters)
        self._streams.add(cursor)
        # `yield from` would close the cursor of a stream that is given up, even after its database.
        for row in cursor:  # noqa: UP028
            yield row

    def end_streams(self) -> None:
        """Stop reading what was given up: an exception keeps the streams that it passed through."""
        for cursor in list(self._streams):
            cursor.close()

    def load(self, table: str, columns: str, rows: Iterable[Row]) -> None:
        """Insert many rows."""
        marks = ", ".join("?" * len(columns.split(",")))
        self._connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", rows)

    def load_columns(
        self, table: str, columns: Columns, *, nullable: str = "", is_empty: bool = True
    ) -> None:
        """Hand over one blob per column, which one statement cuts into values.

        Into a table that has rows, insert one by one: a statement of many rows keeps a copy of every page
        that it changes, and random digests change nearly all pages of an index.
        """
        if not is_empty:
            self.load(table, ", ".join(columns), _rows(columns, nullable))
        else:
            self._load_at_once(table, columns, nullable=nullable)

    def merge_columns(self, table: Table, columns: Columns, on_conflict: str) -> None:
        """In one statement: the rows are in the order of the key, so that they change few pages together."""
        self._load_at_once(table.name, columns, on_conflict=f" WHERE true ON CONFLICT {on_conflict}")

    def _load_at_once(
        self, table: str, columns: Columns, *, nullable: str = "", on_conflict: str = ""
    ) -> None:
        length = len(next(iter(columns.values())))
        if not length:
            return
        cuts, blobs = [], []
        for place, (name, values) in enumerate(columns.items(), 2):
            is_number = values.dtype.kind == "i"
            cells = values.astype(f"S{_longest_number(values)}") if is_number else values
            cut = f"substr(?{place}, key * {cells.itemsize} + 1, {cells.itemsize})"
            cut = f"CAST({cut} AS INTEGER)" if is_number else cut
            cuts.append(f"nullif({cut}, zeroblob({cells.itemsize}))" if name == nullable else cut)
            blobs.append(cells.tobytes())
        # An error undoes the whole transaction in any case.
        self._connection.execute(
            f"INSERT OR ROLLBACK INTO {table} ({', '.join(columns)})"
            f" SELECT {', '.join(cuts)} FROM json_each(?1){on_conflict}",
            (_zeros(length), *blobs),
        )

    def digest_set(self, digests: DigestArray) -> tuple[str, tuple[Any, ...]]:
        """Cut a blob into digests."""
        size = digests.itemsize
        cut = f"(SELECT substr(?, key * {size} + 1, {size}) AS digest FROM json_each(?))"
        return cut, (digests.tobytes(), _zeros(len(digests)))

    def identities_of(self, owners: DigestArray) -> Iterator[DigestArray]:
        """First their places, then the records in the order of places: each page is read once.

        A place that the index has twice, or without a record, counts once, or not at all.
        """
        parts = [self._places_of(owners[at : at + _FEW]) for at in range(0, len(owners), _FEW)]
        places = np.concatenate(parts) if parts else np.empty(0, np.int64)
        places.sort()  # not by `unique`, which takes ten times as long
        places = places[np.diff(places, prepend=-1) != 0]
        for start in range(0, len(places), _AT_ONCE):
            some = str(places[start : start + _AT_ONCE].tolist())  # which is JSON
            ((joined,),) = self._connection.execute(_IDENTITIES_AT, (some,)).fetchall()
            yield np.frombuffer(joined or b"", DIGEST)

    def _places_of(self, owners: DigestArray) -> IntArray:
        """The places of the records of these owners, by their index."""
        asked, parameters = self.digest_set(owners)
        ((joined,),) = self.query(
            f"SELECT group_concat(record.rowid) FROM {asked} AS asked CROSS JOIN record"
            " WHERE owner = asked.digest",
            *parameters,
        )
        return np.fromstring(joined or "", np.int64, sep=",")

    @contextmanager
    def without_indexes(self) -> Iterator[str]:
        """SQLite takes a hint in the query."""
        yield " NOT INDEXED"


def xor_of_digests(one: object, other: object) -> bytes | None:
    """The exclusive or; NULL, which the tables do not take, if one of them is no digest."""
    if not (
        isinstance(one, bytes) and isinstance(other, bytes) and len(one) == len(other) == DIGEST.itemsize
    ):
        return None
    return (int.from_bytes(one) ^ int.from_bytes(other)).to_bytes(DIGEST.itemsize)


def _rows(columns: Columns, nullable: str = "") -> Iterator[Row]:
    """The same rows as Python values; those without a digest in the column `nullable` have None there."""
    lists = {name: values.tolist() for name, values in columns.items()}
    if nullable and not is_given(columns[nullable]).all():
        lists[nullable] = [None if value == NO_DIGEST else value for value in lists[nullable]]
    return zip(*lists.values(), strict=True)


def _longest_number(values: Any) -> int:
    """How many characters the longest of these integers has."""
    return max(len(str(values.min())), len(str(values.max())))


def _zeros(length: int) -> str:
    """A list in JSON: `json_each` counts its elements, as `generate_series` would, which may be missing."""
    return f"[{'0,' * (length - 1)}0]" if length else "[]"
