"""Decisions in the tables of a database, streamed by its own cursor: SQLite and PostgreSQL."""

import os
import sqlite3
import urllib.parse
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.logs import rules
from armnesia.logs.frame_source import of_user, raw_rows_of
from armnesia.logs.source import Columns, RawRows, Source
from armnesia.logs.urls import may_hold_password, shown
from armnesia.logs.values import heading


class TableSource(Source):
    """A table or view. What the two databases have in common: quoting, columns, chunks."""

    def __init__(self, location: str, table: str, columns: Columns) -> None:
        self.columns = columns
        self._location = location
        self._table = table
        self._quoted = ".".join(map(quoted, _parts(table)))
        available = self._available()
        for role, name in columns.named().items():
            if name not in available:
                raise rules.missing_column(role, name, available)
        others = [name for name in available if name != columns.reward]
        self._others = sorted(others) if columns.id is None else None
        self.heading = heading(columns.reward, others) if columns.id is None else None
        self._read = [columns.reward, *others] if columns.id is None else list(columns.named().values())

    @property
    def description(self) -> Mapping[str, Any]:
        """The address, without a password, and the table."""
        return {
            "kind": "table",
            "location": self._location,
            "table": self._table,
            "columns": vars(self.columns),
        }

    def n_rows(self) -> int:
        """Ask the database."""
        ((number,),) = next(self._chunks(f"SELECT count(*) FROM {self._quoted}", (), 1))
        return int(number)

    def action_labels(self) -> Iterable[Any]:
        """Ask the database for the different actions."""
        action = self._selected(self.columns.action)
        for chunk in self._chunks(f"SELECT DISTINCT {action} FROM {self._quoted} ORDER BY 1", (), 1000):
            yield from (label for (label,) in chunk)

    def raw_rows(self, chunk: int, user: str | None) -> Iterator[RawRows]:
        """Stream the rows as the database hands them out, of one moment, numbered as they come."""
        sql = f"SELECT {', '.join(map(self._selected, self._read))} FROM {self._quoted}"
        condition, parameters = ("", ()) if user is None else self._condition(user)
        first = 0
        for rows in self._chunks(sql + condition, parameters, chunk):
            values = dict(zip(self._read, map(list, zip(*rows, strict=True)), strict=True))
            raw = raw_rows_of(values, self.columns, first, self._others)
            first += len(rows)
            raw = raw if user is None else of_user(raw, user)
            if raw.positions:
                yield raw

    def _selected(self, name: str) -> str:
        """A column in SQL, by whose values rows are known."""
        return quoted(name)

    @abstractmethod
    def _available(self) -> list[str]:
        """The names of the table's columns."""

    @abstractmethod
    def _chunks(self, sql: str, parameters: tuple[Any, ...], size: int) -> Iterator[list[tuple[Any, ...]]]:
        """Run a query, and hand out its rows in chunks."""

    @abstractmethod
    def _condition(self, user: str) -> tuple[str, tuple[Any, ...]]:
        """A condition that every row of the user fulfils, and that an index on the column can answer."""


class SqliteSource(TableSource):
    """A table in an SQLite file, which is opened for reading only."""

    def __init__(self, url: str, table: str, columns: Columns) -> None:
        path = url.removeprefix("sqlite:///")
        if path == url or not path or may_hold_password(path):
            raise InvalidInputError(
                f"the address of an SQLite source must be sqlite:///FILE; got {shown(url)!r}"
            )
        self._path = os.path.abspath(path)
        super().__init__(f"sqlite:///{self._path}", table, columns)

    def _available(self) -> list[str]:
        with self._connected() as connection:
            try:
                cursor = connection.execute(f"SELECT * FROM {self._quoted} LIMIT 0")
            except sqlite3.OperationalError as error:
                if "no such table" in str(error) or "unknown database" in str(error):
                    raise no_table(self._table, self._path) from None
                raise
            return [name for name, *_ in cursor.description]

    def _chunks(self, sql: str, parameters: tuple[Any, ...], size: int) -> Iterator[list[tuple[Any, ...]]]:
        with self._connected() as connection:
            cursor = connection.execute(sql, parameters)
            while rows := cursor.fetchmany(size):
                yield rows

    def _condition(self, user: str) -> tuple[str, tuple[Any, ...]]:
        # A column may hold text, numbers and bytes side by side; a comparison knows of one kind only.
        column = quoted(str(self.columns.user))
        alternatives: list[Any] = [user]
        try:
            alternatives.append(float(user))
            alternatives.append(_sqlite_integer(int(user)))
        except ValueError:
            pass
        conditions = [f"{column} = ?" for _ in alternatives]
        return f" WHERE {' OR '.join(conditions)} OR {column} >= x''", tuple(alternatives)

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if not os.path.isfile(self._path):
            raise InvalidLogError(f"source {self._path!r} is no file; give the path of an SQLite database")
        connection = None
        try:
            address = f"file:{urllib.parse.quote(self._path)}?mode=ro"
            connection = sqlite3.connect(address, uri=True, isolation_level=None)
            yield connection
        except sqlite3.Error as error:
            # Not in SQLite's words where they quote a value: a row of a log is personal data.
            reason = "it holds text that is not UTF-8" if "decode" in str(error) else str(error)
            raise InvalidLogError(f"source {self._path!r} cannot be read as SQLite: {reason}") from None
        finally:
            if connection is not None:
                connection.close()


def quoted(name: str) -> str:
    """Quote an identifier for SQL.

    >>> print(quoted('my "own" table'))
    "my ""own"" table"
    """
    return '"' + name.replace('"', '""') + '"'


def no_table(table: str, location: str) -> InvalidLogError:
    """Refuse a table that the database does not have."""
    return InvalidLogError(
        f"source {location!r} has no table {table!r}; give the name of one, or schema.table"
    )


def _sqlite_integer(number: int) -> int | None:
    return number if -(2**63) <= number < 2**63 else None


def _parts(table: str) -> list[str]:
    parts = table.split(".", 1)
    if not all(parts):
        raise InvalidInputError(f"table must be a name or schema.table; got {table!r}")
    return parts
