"""Decisions in tables of SQLite files and PostgreSQL servers.

A table has no version, so it is counted again each time. No name of a person is sent to a server: it sends
the columns that are read, and DuckDB looks for people in them.
"""

import os
import re
import sqlite3
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.identifiers import LARGEST_EXACT
from armnesia.core.messages import listed
from armnesia.core.urls import without_password
from armnesia.logs.columns import Columns
from armnesia.logs.engine import ChildConnection, Connection, connected
from armnesia.logs.source import Scan, Source
from armnesia.logs.sql import NUMERIC, Column, quoted

if TYPE_CHECKING:
    from armnesia.logs.erase.eraser import Eraser

_TYPES = {
    **{"bool": "BOOLEAN", "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "uuid": "UUID"},
    **{"float4": "FLOAT", "float8": "DOUBLE", "date": "DATE", "bytea": "BLOB", "time": "TIME"},
    **{"timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMP WITH TIME ZONE"},
}
"""Types of PostgreSQL that DuckDB reads as they are."""
_TEXTS = {"S", "E", "I"}
"""Categories of types that the server writes as text: text, enums, network addresses."""


@dataclass(frozen=True, eq=False)
class TableSource(Source):
    """A table or view of a database."""

    has_tables: ClassVar[bool] = True
    holds_still: ClassVar[bool] = False

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
    ordered: ClassVar[bool] = False

    @classmethod
    def at(cls, location: Any, columns: Columns, table: str | None) -> "PostgresSource":
        """The table at the URL of a database."""
        return cls(without_password(location), columns, cls._name(table), url=location)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in whose statements the server shows one snapshot."""
        with connected(self.location) as connection:
            connection.load("postgres_scanner")
            name = f"log_{uuid.uuid4().hex}"
            address = self.url.replace("'", "''")
            connection.rows(f"ATTACH '{address}' AS {name} (TYPE postgres, READ_ONLY)")
            try:
                connection.rows("BEGIN")
                connection.server = name
                yield connection
            finally:
                connection.end(f"DETACH {name}")

    def scan(self, connection: Connection) -> Scan:
        """The columns, in types that lose nothing."""
        server = connection.server
        where = ".".join(map(quoted, str(self.table).split(".")))

        def ask(sql: str) -> list[Any]:
            text = sql.replace("'", "''")
            return connection.rows(f"SELECT * FROM postgres_query('{server}', '{text}')")

        regclass = where.replace("'", "''")
        found = ask(_POSTGRES_COLUMNS.format(table=regclass))
        if not found:
            existing = [name for (name,) in ask(_POSTGRES_TABLES)]
            raise _no_table(self.location, str(self.table), existing)
        columns, at_server = {}, {}
        for at, (name, base, category, shown) in enumerate(found):
            type_, written = _TYPES.get(base), quoted(name)
            if base == "numeric":  # DuckDB would read NaN and infinities as 0, and ids as floats
                type_, written = NUMERIC, f"{written}::text"
            elif type_ is None and category in _TEXTS:
                type_, written = "VARCHAR", f"{written}::text"
            columns[name] = Column(f"c{at}", type_ or shown)
            at_server[f"c{at}"] = written
        table = f"postgres_query('{server}', 'SELECT * FROM {where.replace(chr(39), chr(39) * 2)}')"
        return Scan(table, columns, at_server=at_server)

    def eraser(self) -> "Eraser":
        """What deletes rows of the table."""
        from armnesia.logs.erase.tables import PostgresEraser  # noqa: PLC0415

        return PostgresEraser(self)


_POSTGRES_COLUMNS = """
SELECT a.attname::text AS name, coalesce(b.typname, t.typname)::text AS base,
  coalesce(b.typcategory, t.typcategory)::text AS category, format_type(a.atttypid, a.atttypmod) AS shown
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid LEFT JOIN pg_type b ON b.oid = t.typbasetype
WHERE a.attrelid = to_regclass('{table}') AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
"""Name, type and its category, of a domain that of its base, and the type as messages show it."""
_POSTGRES_TABLES = """
SELECT c.relname::text FROM pg_class c WHERE c.relkind IN ('r', 'v', 'm', 'p', 'f')
  AND c.relnamespace = ANY (SELECT n.oid FROM pg_namespace n WHERE n.nspname = ANY (current_schemas(false)))
ORDER BY 1
"""


@dataclass(frozen=True, eq=False)
class SQLiteSource(TableSource):
    """A table in an SQLite file."""

    path: str = ""
    checked: dict[str, Column] = field(default_factory=dict)
    """Columns whose declared type says little, once their values were looked at."""
    declared: dict[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, location: Any, columns: Columns, table: str | None) -> "SQLiteSource":
        """The table at sqlite:///FILE."""
        if not location.startswith("sqlite:///") or location == "sqlite:///":
            raise InvalidInputError(f"the URL of an SQLite file must be sqlite:///FILE; got {location!r}")
        path = os.path.abspath(os.path.expanduser(location.removeprefix("sqlite:///")))
        return cls(f"sqlite:///{path}", columns, cls._name(table), path=path)

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection of a child process; see `engine.py`."""
        connection = ChildConnection(self.location)
        connection.load("sqlite_scanner")
        yield connection

    def scan(self, connection: Connection) -> Scan:
        """The columns by their declared types."""
        tables = self._ask("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') ORDER BY name")
        if (self.table,) not in tables:
            raise _no_table(self.location, str(self.table), [name for (name,) in tables])
        named = f"sqlite_scan('{self.path.replace(chr(39), chr(39) * 2)}', '{str(self.table).replace(chr(39), chr(39) * 2)}')"
        types = {name: type_ for name, type_, *_ in connection.rows(f"DESCRIBE SELECT * FROM {named}")}
        # Generated columns are not read.
        every = self._ask("SELECT name, type FROM pragma_table_xinfo(?) WHERE hidden <> 1", str(self.table))
        columns = {name: Column(quoted(name), types.get(name, "a generated column")) for name, _ in every}
        self.declared.update(every)
        return Scan(named, columns)

    def typed(self, role: str, name: str, available: Mapping[str, Column]) -> Column:
        """A column whose values are as it is declared, or else read as text where that loses nothing."""
        if name in available and name not in self.checked:
            self.checked[name] = self._looked_at(name, available[name])
        return super().typed(role, name, {**available, **self.checked})

    def _looked_at(self, name: str, column: Column) -> Column:
        what, table = quoted(name), quoted(str(self.table))
        is_real = re.search("REAL|FLOA|DOUB", self.declared[name], re.IGNORECASE)
        if column.type in ("DATE", "TIMESTAMP"):
            raise self._refused(name, "which SQLite keeps as any text or number")
        if column.type == "DOUBLE" and not is_real:
            asked = f"typeof({what}) = 'integer' AND abs({what}) >= {LARGEST_EXACT}"
            if self._ask(f"SELECT 1 FROM {table} WHERE {asked} LIMIT 1"):
                raise self._refused(name, "and has integers that would be read as floats")
        if column.type == "BLOB":  # or not declared at all
            kinds = {kind for (kind,) in self._ask(f"SELECT DISTINCT typeof({what}) FROM {table}")}
            if kinds <= {"integer", "text", "null"}:
                return Column(f"decode({what})", "VARCHAR", is_text=True)
            if not kinds <= {"blob", "null"}:
                raise self._refused(name, "and has values of several types")
        return column

    def _refused(self, name: str, why: str) -> InvalidLogError:
        return InvalidLogError(
            f"column {name!r} of table {self.table!r} is declared {self.declared[name] or 'without a type'},"
            f" {why}: read a view that has CAST({quoted(name)} AS TEXT), or AS REAL for rewards"
        )

    def _ask(self, sql: str, *parameters: str) -> list[Any]:
        """Ask Python's SQLite, which shares its locks with the program."""
        try:
            with closing(sqlite3.connect(f"file:{_escaped(self.path)}?mode=ro", uri=True)) as file:
                return file.execute(sql, parameters).fetchall()
        except sqlite3.Error as error:
            reason = "there is no such file" if not os.path.exists(self.path) else _kind(error)
            raise InvalidLogError(f"source {self.location!r} cannot be read: {reason}") from None

    def eraser(self) -> "Eraser":
        """What deletes rows of the table."""
        from armnesia.logs.erase.tables import SQLiteEraser  # noqa: PLC0415

        return SQLiteEraser(self)


def _escaped(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _kind(error: sqlite3.Error) -> str:
    """What SQLite reports, by its own name: its sentence may quote a value."""
    name = str(getattr(error, "sqlite_errorname", "") or type(error).__name__)
    return {"SQLITE_NOTADB": "it is no SQLite database", "SQLITE_CORRUPT": "it is damaged"}.get(name, name)


def _no_table(location: str, table: str, existing: list[str]) -> InvalidLogError:
    return InvalidLogError(
        f"table {table!r} is not in {location!r}; it has {listed(existing, 20) if existing else 'no tables'}"
    )
