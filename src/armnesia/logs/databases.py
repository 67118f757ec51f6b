"""Decisions in tables of SQLite files and PostgreSQL servers.

A table has no version, so it is counted again each time. No name of a person is sent to a server: it sends
the columns that are read, and DuckDB looks for people in them.
"""

import os
import re
import sqlite3
import threading
import uuid
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.urls import without_password
from armnesia.logs.columns import Columns
from armnesia.logs.engine import Connection, Row, connected
from armnesia.logs.source import Scan, Source
from armnesia.logs.sql import ADDRESS, NUMERIC, Column, literal, qualified, quoted

_TYPES = {
    **{"bool": "BOOLEAN", "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "uuid": "UUID"},
    **{"float4": "FLOAT", "float8": "DOUBLE", "date": "DATE", "bytea": "BLOB"},
    **{"timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMP WITH TIME ZONE"},
}
"""Types of PostgreSQL that DuckDB reads as they are."""
_WRITTEN_AS = {"numeric": (NUMERIC, "{}::text"), "inet": (ADDRESS, "(to_json({}) #>> '{{}}')")}
"""Types that the server writes as text: DuckDB would read NaN and infinities as 0, and ids as floats.

A cast of an address to text would add a mask that nobody wrote.
"""
_TEXTS = {"S", "E", "I"}
"""Categories of types that the server writes as text: text, enums, networks."""


@dataclass(frozen=True, eq=False)
class TableSource(Source):
    """A table or view of a database."""

    option: ClassVar[str] = "table"
    kind: ClassVar[str]
    """How DuckDB calls this kind of databases."""

    @property
    @abstractmethod
    def _attached(self) -> str:
        """By which DuckDB attaches the database."""

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in whose statements the database shows one snapshot."""
        with connected(self.location) as connection:
            connection.load(f"{self.kind}_scanner")
            name = f"log_{uuid.uuid4().hex}"
            connection.rows(f"ATTACH {literal(self._attached)} AS {name} (TYPE {self.kind}, READ_ONLY)")
            try:
                connection.rows("BEGIN")
                connection.server = name
                yield connection
            finally:
                connection.end(f"DETACH {name}")

    def _query(self, connection: Connection, sql: str) -> str:
        """What the database selects itself, as a table in SQL."""
        return f"{self.kind}_query('{connection.server}', {literal(sql)})"

    def _selected(self, connection: Connection, written_as: Mapping[str, str], table: str) -> str:
        """The columns that are read, as the database writes them."""
        needed = set(self._named(written_as).values())
        selected = (written for name, written in written_as.items() if name in needed)
        return self._query(connection, f"SELECT {', '.join(selected)} FROM {table}")

    def _ask(self, connection: Connection, sql: str) -> list[Row]:
        return connection.rows(f"SELECT * FROM {self._query(connection, sql)}")

    def _no_table(self) -> InvalidLogError:
        return InvalidLogError(f"table {self.table!r} is not in {self.location!r}")

    @staticmethod
    def _name(table: str | None) -> str:
        if table is None:
            raise InvalidInputError(
                "a database needs the name of a table, such as table='clicks' (--table clicks); got none"
            )
        return table


@dataclass(frozen=True, eq=False)
class PostgresSource(TableSource):
    """A table on a PostgreSQL server."""

    url: str = ""
    kind: ClassVar[str] = "postgres"
    erased_by: ClassVar[tuple[str, ...]] = ("tables", "PostgresEraser")

    @classmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> "PostgresSource":
        """The table at the URL of a database."""
        return cls(without_password(location), columns, cls._name(option), url=location)

    @property
    def _attached(self) -> str:
        # Whatever the environment says: DuckDB takes the bytes of any encoding for UTF-8.
        return f"{self.url}{'&' if '?' in self.url else '?'}client_encoding=UTF8"

    def scan(self, connection: Connection) -> Scan:
        """The columns, in types that lose nothing."""
        where = ".".join(map(quoted, str(self.table).split(".")))
        found = self._ask(connection, _POSTGRES_COLUMNS.format(table=literal(where)))
        if not found:
            raise self._no_table()
        columns, written_as = {}, {}
        for at, (name, base, category, shown) in enumerate(found):
            type_, written = _TYPES.get(base), quoted(name)
            if base in _WRITTEN_AS:
                type_, cast = _WRITTEN_AS[base]
                written = cast.format(written)
            elif type_ is None and category in _TEXTS:
                type_, written = "VARCHAR", f"{written}::text"
            columns[name] = Column(f"c{at}", type_ or shown)
            written_as[name] = f"{written} AS c{at}"
        return Scan(self._selected(connection, written_as, where), columns)


_POSTGRES_COLUMNS = """
SELECT a.attname::text AS name,
  CASE WHEN coalesce(b.oid, t.oid) < 16384 THEN coalesce(b.typname, t.typname)::text END AS base,
  coalesce(b.typcategory, t.typcategory)::text AS category, format_type(a.atttypid, a.atttypmod) AS shown
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype
WHERE a.attrelid = to_regclass({table}) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
"""Name, type and its category, of a domain that of its base, and the type as messages show it.

From 16384 on types are of users, which may have the name of one of PostgreSQL's own.
"""


@dataclass(frozen=True, eq=False)
class SQLiteSource(TableSource):
    """A table in an SQLite file.

    A column of SQLite may hold values of any type. Where columns are declared, and hold what they are
    declared to hold, DuckDB reads them itself. Else SQLite writes each value as text, with its type, which
    takes five times as long.
    """

    path: str = ""
    stored: Mapping[str, Column] = field(default_factory=dict)
    """All columns, as DuckDB reads them; "" is the type of what it does not read as it is."""
    kind: ClassVar[str] = "sqlite"
    erased_by: ClassVar[tuple[str, ...]] = ("tables", "SQLiteEraser")

    @classmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> "SQLiteSource":
        """The table at sqlite:///FILE."""
        if not location.startswith("sqlite:///") or location == "sqlite:///":
            raise InvalidInputError(f"the URL of an SQLite file must be sqlite:///FILE; got {location!r}")
        # Without links: a vault knows a table by this name, and counts it once.
        path = os.path.realpath(os.path.expanduser(location.removeprefix("sqlite:///")))
        name = cls._name(option).removeprefix("main.")
        if not os.path.exists(path):
            raise InvalidLogError(f"source {location!r} cannot be read: there is no such file")
        return cls(f"sqlite:///{path}", columns, name, path=path)._described()

    def _described(self) -> "SQLiteSource":
        with self.connection() as connection:
            sql = "SELECT name, type FROM sqlite_schema WHERE type IN ('table', 'view')"
            tables: dict[str, str] = dict(row[:2] for row in self._ask(connection, sql))
            if self.table not in tables:
                raise self._no_table()
            named = literal(str(self.table))
            declared = self._ask(
                connection, f"SELECT name, upper(type) FROM pragma_table_xinfo({named}) WHERE hidden <> 1"
            )
            read: dict[str, str] = dict(
                row[:2] for row in connection.rows(f"DESCRIBE {self._own_table(connection)}")
            )
        is_view = tables[self.table] == "view"
        types = {name: _strict_type(type_, read.get(name, ""), is_view=is_view) for name, type_ in declared}
        return replace(self, stored={name: Column(qualified(name), types[name]) for name in types})

    @property
    def _attached(self) -> str:
        return self.path

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection to the file, which nothing else in this process may have open."""
        with _read_alone(self.path), super().connection() as connection:
            yield connection

    def scan(self, connection: Connection) -> Scan:
        """The columns as DuckDB reads them, if it can read all that are needed, or as SQLite writes them."""
        named = self._named(self.stored)
        needed = [self.stored[name].type for name in named.values() if name in self.stored]
        if all(needed):
            return Scan(self._own_table(connection), self.stored)
        columns, written_as = {}, {}
        for place, name in enumerate(self.stored):
            kind, text = f"k{place}", f"c{place}"
            number = Column(f"CAST({text} AS DOUBLE)", "DOUBLE").text()
            # The text of bytes as a label; as a reward they must be no number.
            bytes_ = "'bytes'" if name == self.columns.reward else Column(f"unhex({text})", "BLOB").text()
            label = f"CASE {kind} WHEN 'real' THEN {number} WHEN 'blob' THEN {bytes_} ELSE {text} END"
            columns[name] = Column(label, "VARCHAR")
            written_as[name] = _WRITTEN.format(column=quoted(name), kind=kind, text=text)
        return Scan(self._selected(connection, written_as, quoted(str(self.table))), columns)

    def _own_table(self, connection: Connection) -> str:
        return f"{connection.server}.main.{quoted(str(self.table))}"


_readings: Counter[str] = Counter()
"""How many readings have a file open in this process."""
_turn = threading.Lock()


@contextmanager
def _read_alone(path: str) -> Iterator[None]:
    """Refuse a file that this process has open.

    DuckDB brings an SQLite library of its own. Where that closes a file, the process loses all its locks on
    it, also those of Python's sqlite3: locks of POSIX belong to processes.
    """
    with _turn:
        if not _readings[path]:
            if _is_open(path):
                raise InvalidLogError(
                    f"source {path!r} is open in this process, which would lose the locks of sqlite3"
                    " on it: close it there first, or read it in another process"
                )
            if os.path.exists(f"{path}-journal"):  # a killed writer's, which only a writer can roll back
                with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as file:
                    file.execute("SELECT 1 FROM sqlite_schema")
        _readings[path] += 1
    try:
        yield
    finally:
        with _turn:
            _readings[path] -= 1


def _is_open(path: str) -> bool:
    """Whether this process has a file open; on Windows, where locks belong to handles, nothing tells."""
    status = os.stat(path)
    for each in os.listdir("/dev/fd") if os.path.isdir("/dev/fd") else ():
        with suppress(OSError):  # that by which the folder is listed
            if os.path.samestat(os.fstat(int(each)), status):
                return True
    return False


def is_read(path: str) -> bool:
    """Whether DuckDB has an SQLite file open in this process."""
    return _readings[path] > 0


_WRITTEN = (
    "typeof({column}) AS {kind}, CASE typeof({column}) WHEN 'real' THEN quote({column})"
    " WHEN 'blob' THEN hex({column}) ELSE CAST({column} AS TEXT) END AS {text}"
)
"""A value as text that loses nothing, and its type."""


_DECLARED = {"BIGINT": "INT", "VARCHAR": "CHAR|CLOB|TEXT", "DOUBLE": "REAL|FLOA|DOUB"}
"""What SQLite itself looks for in a declaration, by the type that DuckDB reads then."""


def _strict_type(declared: str, read: str, *, is_view: bool = False) -> str:
    """The type of a column whose values DuckDB reads as they are, or refuses; "" for others.

    A table has no integers in a column REAL, because SQLite makes floats of them; a view may have some.

    >>> _strict_type("VARCHAR(9)", "VARCHAR"), _strict_type("NUMERIC", "DOUBLE"), _strict_type("", "BLOB")
    ('VARCHAR', '', '')
    """
    is_strict = re.search(_DECLARED.get(read, "(?!)"), declared) and not (is_view and read == "DOUBLE")
    return read if is_strict else ""
