"""Erasing rows of a database's table: one transaction deletes them, and is rolled back if others changed."""

import sqlite3
import urllib.parse
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from hashlib import blake2b
from typing import Any

from armnesia.core.errors import InvalidLogError, MissingExtraError, UnsupportedError
from armnesia.logs.databases import PostgresSource, SQLiteSource, is_read
from armnesia.logs.erase.eraser import Eraser, not_erased, stored_values
from armnesia.logs.sql import Column, quoted
from armnesia.logs.statements import Chosen
from armnesia.logs.values import label_text

_OTHER_TABLES = "other tables of the database that name people, and definitions that do, are not looked at"


class TableEraser(Eraser):
    """A table of a database."""

    def check(self) -> None:
        """Refuse a view, which may hide rows, and what does not store its own rows."""
        super().check()
        if not self._is_table():
            raise UnsupportedError(
                f"rows of {self.source.location!r} cannot be erased: it must be a table; it is a view, or its"
                " rows are elsewhere"
            )

    def deleted(self, people: Chosen) -> int:
        """Delete in one transaction, which is rolled back if other rows are not the same."""
        with self.source.connection() as reading:
            columns = self.source.scan(reading).columns
        given, expected = [], self.find(people)
        for role in people.by_role():
            column = columns[self.source.columns.named()[role]]
            given.append((role, column, stored_values(self.source, role, people, _written)))
        with self._transaction() as connection:
            is_chosen = " OR ".join(self._among(connection, *each) for each in given)
            others = self._checksum(connection, f"NOT coalesce({is_chosen}, false)")
            number = int(connection.execute(f"DELETE FROM {self._name} WHERE {is_chosen}").rowcount)
            reason = None
            if self._checksum(connection, "true") != others:
                reason = "a trigger, rule or foreign key of the table changes other rows, or keeps these"
            elif number != expected:  # the database compares values by itself
                reason = "other rows were found than would be deleted, or some came in meanwhile; erase again"
            if reason is not None:
                raise not_erased(self.source.location, f"{reason}; nothing was changed")
        return number

    def _quoted(self, role: str) -> str:
        return quoted(self.source.columns.named()[role])

    @property
    @abstractmethod
    def _name(self) -> str:
        """Of the table, in SQL."""

    @abstractmethod
    def _is_table(self) -> bool:
        """Whether it has rows of its own."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Any]:
        """Connect, and commit at the end what was done, unless something was raised."""

    @abstractmethod
    def _among(self, connection: Any, role: str, column: Column, values: Sequence[Any]) -> str:
        """Whether a row has one of these values, in SQL; no statement has them."""

    @abstractmethod
    def _checksum(self, connection: Any, condition: str) -> tuple[int, int]:
        """The number of rows, and a sum over them that another value in any column changes."""


def _written(column: Column) -> str:
    """A stored value, by which the database finds it again."""
    return column.sql if column.type == "BLOB" else column.text()


class SQLiteEraser(TableEraser):
    """A table in an SQLite file."""

    source: SQLiteSource
    remains = (
        "unused space of the file may hold rows that were moved or deleted before, until it is written again"
        " (VACUUM), and samples of the planner (sqlite_stat4) may name people until the next ANALYZE",
        _OTHER_TABLES,
        *Eraser.remains,
    )

    @property
    def _name(self) -> str:
        return f"main.{quoted(str(self.source.table))}"

    def purge(self, *, ignore_retention: bool = False) -> bool:
        """Empty the write-ahead log, if the file has one."""
        with self._connected() as connection:
            ((busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            raise InvalidLogError(
                f"the write-ahead log of {self.source.location!r} still holds deleted rows, because others"
                " read it: purge again when they have ended"
            )
        return True

    def _is_table(self) -> bool:
        with self._connected() as connection:  # a virtual table has no page
            sql = "SELECT 1 FROM main.sqlite_schema WHERE name = ? AND type = 'table' AND rootpage > 0"
            return connection.execute(sql, (self.source.table,)).fetchone() is not None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._connected() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if is_read(self.source.path):  # which would lose its locks where this connection is closed
            raise not_erased(self.source.location, "this process reads it; erase again")
        address = f"file:{urllib.parse.quote(self.source.path)}?mode=rw"
        try:
            with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
                connection.text_factory = lambda text: text.decode(errors="surrogateescape")
                yield connection
        except sqlite3.Error as error:  # whose message may quote a value
            name = getattr(error, "sqlite_errorname", type(error).__name__)
            reason = f"SQLite failed ({name}); erase again"
            if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                reason = "another process is writing to it; run armnesia erase later"
            raise not_erased(self.source.location, reason) from None

    def _among(self, connection: sqlite3.Connection, role: str, column: Column, values: Sequence[Any]) -> str:
        # By the text of each value: a column may hold 7, '7' and 7.0, and a collation takes texts for equal.
        chosen, function = frozenset(values), f"armnesia_is_chosen_{role}"
        connection.create_function(function, 1, lambda value: label_text(value) in chosen)
        return f"{function}({self._quoted(role)})"

    def _checksum(self, connection: sqlite3.Connection, condition: str) -> tuple[int, int]:
        number = total = 0
        for row in connection.execute(f"SELECT * FROM {self._name} WHERE {condition}"):
            digest = blake2b(repr(row).encode(), digest_size=8).digest()  # 1, 1.0 and '1' are written apart
            number, total = number + 1, total + int.from_bytes(digest, "big")
        return number, total


class PostgresEraser(TableEraser):
    """A table on a PostgreSQL server; names reach it by COPY, which no log of statements has."""

    source: PostgresSource
    remains = (
        "the write-ahead log of the server, its archive and replicas hold the rows until they are recycled",
        "files of the table and its indexes hold deleted rows until VACUUM lets others take their space",
        "bounds of partitions may name people, and samples of the planner until VACUUM FULL pg_statistic",
        _OTHER_TABLES,
        *Eraser.remains,
    )

    @property
    def _name(self) -> str:
        return ".".join(map(quoted, str(self.source.table).split(".")))

    def _is_table(self) -> bool:
        with self._connected() as connection:
            sql = "SELECT relkind IN ('r', 'p') FROM pg_class WHERE oid = %s::regclass"
            return bool(connection.execute(sql, (self._name,)).fetchone()[0])

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        import psycopg  # noqa: PLC0415 (an extra)

        with self._connected() as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            with connection.transaction():
                # Policies that would hide rows from this role are an error then.
                connection.execute("SET LOCAL row_security = off")
                yield connection

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        with MissingExtraError.unless_installed("Erasing rows of PostgreSQL tables", "erase"):
            import psycopg  # noqa: PLC0415 (an extra)
        try:
            with closing(psycopg.connect(self.source.url, client_encoding="utf8")) as connection:
                yield connection
        except psycopg.Error as error:  # whose message may quote a value
            reason = f"PostgreSQL failed ({error.sqlstate or type(error).__name__})"
            raise not_erased(self.source.location, f"{reason}; erase again") from None

    def _among(self, connection: Any, role: str, column: Column, values: Sequence[Any]) -> str:
        kept, table = self._quoted(role), f"armnesia_chosen_{role}"
        if column.type == "VARCHAR":  # by bytes: a collation may take two names for equal
            kept += '::text COLLATE "C"'
        connection.execute(
            f"CREATE TEMPORARY TABLE {table} ON COMMIT DROP AS SELECT {kept} AS name"
            f" FROM {self._name} WITH NO DATA"
        )
        with connection.cursor() as cursor, cursor.copy(f"COPY pg_temp.{table} FROM STDIN") as copy:
            for value in values:
                copy.write_row((value,))
        return f"{kept} IN (SELECT name FROM pg_temp.{table})"

    def _checksum(self, connection: Any, condition: str) -> tuple[int, int]:
        connection.execute("SET CONSTRAINTS ALL IMMEDIATE")  # deferred triggers run now
        hashed = 'hashtextextended((log.*)::text COLLATE "C", 0)::numeric'
        sql = f"SELECT count(*), coalesce(sum({hashed}), 0) FROM {self._name} AS log WHERE {condition}"
        number, total = connection.execute(sql).fetchone()
        return int(number), int(total)
