"""Decisions in a table of a PostgreSQL server, streamed by a cursor on the server."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from armnesia.core.errors import InvalidLogError, MissingExtraError
from armnesia.logs.postgres_urls import without_password
from armnesia.logs.source import Columns
from armnesia.logs.table_source import TableSource, no_table, quoted

_TEXTS = {"text", "varchar", "bpchar", "name"}
_INTEGERS = {"int2", "int4", "int8"}
_READ_AS = {
    "bpchar": "text",  # CHAR(n) is filled up with blanks, which are no part of the value
    "float4": "float8",  # a short float is otherwise rounded to fewer digits than in a file
}


class PostgresSource(TableSource):
    """A table or view on a PostgreSQL server.

    The password is used and forgotten: it stands in no description and no message. Whoever opens the source
    again gives it as PostgreSQL's own tools take it: PGPASSWORD, ~/.pgpass or a service file.
    """

    def __init__(self, url: str, table: str, columns: Columns) -> None:
        try:
            import psycopg  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise MissingExtraError.naming("A table on PostgreSQL", "vault") from error
        self._psycopg = psycopg
        self._url = url
        self._shown = without_password(url)
        self._type_of: dict[str, str] = {}
        super().__init__(self._shown, table, columns)

    def _available(self) -> list[str]:
        with self._connected() as connection:
            try:
                cursor = connection.execute(f"SELECT * FROM {self._quoted} LIMIT 0")
            except (self._psycopg.errors.UndefinedTable, self._psycopg.errors.InvalidSchemaName):
                raise no_table(self._table, self._shown) from None
            types = connection.adapters.types
            for column in cursor.description:
                info = types.get(column.type_code)
                known = info is not None and info.oid == column.type_code  # and no array of them
                self._type_of[column.name] = info.name if known else ""
            return [column.name for column in cursor.description]

    def _selected(self, name: str) -> str:
        type_ = _READ_AS.get(self._type_of[name])
        return quoted(name) if type_ is None else f"{quoted(name)}::{type_}"

    def _chunks(self, sql: str, parameters: tuple[Any, ...], size: int) -> Iterator[list[tuple[Any, ...]]]:
        # Raw: parameters are $1, so that a percent sign in a name is a percent sign.
        raw_cursor = self._psycopg.RawServerCursor
        with self._connected() as connection, raw_cursor(connection, "armnesia_source") as cursor:
            cursor.execute(sql, parameters)
            while rows := cursor.fetchmany(size):
                yield rows

    def _condition(self, user: str) -> tuple[str, tuple[Any, ...]]:
        name = str(self.columns.user)
        column, type_ = quoted(name), self._type_of[name]
        whole = user.removeprefix("-").isdecimal()
        if type_ in _TEXTS and "\0" not in user:
            return f" WHERE {column} = $1", (user,)
        if type_ in _INTEGERS and whole and abs(int(user)) < 2**63:
            return f" WHERE {column} = $1::int8", (int(user),)
        if type_ == "uuid" and _is_uuid(user):
            return f" WHERE {column} = $1::uuid", (user,)
        if type_ in _TEXTS | _INTEGERS | {"uuid"}:
            return " WHERE false", ()  # no such value fits into the column
        return f" WHERE {column} IS NOT NULL", ()

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        try:
            with self._psycopg.connect(self._url, application_name="armnesia") as connection:
                connection.read_only = True
                connection.isolation_level = self._psycopg.IsolationLevel.REPEATABLE_READ
                yield connection
        except self._psycopg.Error as error:
            # Not in the server's words: they may quote a row, or pieces of a password that was misread.
            raise InvalidLogError(f"source {self._shown!r} {_meaning(error)}") from None


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _meaning(error: Any) -> str:
    match getattr(error, "sqlstate", None):
        case None if type(error).__name__ == "DataError":  # psycopg's own, of a date such as infinity
            return "cannot be read: it holds a value that Python has no type for"
        case None:
            return "cannot be reached: is the server up, are address and password right?"
        case "42501":
            return "cannot be read: this user may not"
        case "28000" | "28P01":
            return "cannot be opened: there is no such user, or the password is wrong"
        case "3D000":
            return "cannot be opened: there is no such database"
        case code:
            return f"cannot be read (SQLSTATE {code})"
