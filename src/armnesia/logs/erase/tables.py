"""Erasing rows of a database's table: one transaction deletes them, and is rolled back if others changed."""

import os
import sqlite3
import urllib.parse
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import datetime
from hashlib import blake2b
from typing import Any

from armnesia.core.errors import InvalidLogError, MissingExtraError, UnsupportedError
from armnesia.core.files import may_write
from armnesia.logs.databases import PostgresSource, SQLiteSource
from armnesia.logs.erase.eraser import Eraser, not_erased, of_each_role, stored_values
from armnesia.logs.sql import Column, quoted
from armnesia.logs.statements import Chosen
from armnesia.logs.values import label_text

_OTHER_TABLES = "other tables of the database that name people, and definitions that do, are not looked at"


class TableEraser(Eraser):
    """A table of a database."""

    _name: str
    """Of the table, in SQL."""

    def refused(self, reason: str) -> UnsupportedError:
        """Refuse the table."""
        return UnsupportedError(f"rows of {self.source.location!r} cannot be erased: {reason}")

    def deleted(self, people: Chosen) -> int:
        """Delete by users and by ids in one transaction."""
        with self.source.connection() as reading:
            columns = self.source.scan(reading).columns
        given, expected = [], self.find(people)
        for role, each in of_each_role(people):
            name = self.source.columns.named()[role]
            given.append((name, columns[name], stored_values(self.source, role, each, self._written)))
        number = 0
        with self._transaction() as connection:
            for name, column, values in given:
                is_chosen = self._among(connection, name, column, values)
                others = self._checksum(connection, f"NOT coalesce({is_chosen}, false)")
                number += connection.execute(f"DELETE FROM {self._name} WHERE {is_chosen}").rowcount
                self._run_triggers(connection)
                if self._checksum(connection, "true") != others:
                    raise not_erased(
                        self.source.location,
                        "a trigger, rule or foreign key of the table changes other rows, or keeps these;"
                        " nothing was changed",
                    )
            if number != expected:  # the database compares values by itself
                raise not_erased(
                    self.source.location,
                    "other rows were found than would be deleted, or some came in meanwhile; nothing was"
                    " changed; erase again",
                )
        return number

    @staticmethod
    def _run_triggers(connection: Any) -> None:
        """Let triggers run now that would run when the transaction is committed."""

    @staticmethod
    @abstractmethod
    def _written(column: Column) -> str:
        """A stored value as `_among` takes it."""

    @abstractmethod
    def _transaction(self) -> AbstractContextManager[Any]:
        """Connect, and commit at the end what was done, unless something was raised."""

    @abstractmethod
    def _among(self, connection: Any, name: str, column: Column, values: Sequence[Any]) -> str:
        """Whether a row has one of these values, in SQL; no statement has them."""

    @abstractmethod
    def _checksum(self, connection: Any, condition: str) -> tuple[int, int]:
        """The number of rows, and a sum over them that another value in any column changes."""


class SQLiteEraser(TableEraser):
    """A table in an SQLite file."""

    remains = (
        "unused space of the file may hold rows that were moved or deleted before, until it is written again"
        " (VACUUM), and samples of the planner (sqlite_stat4) may name people until the next ANALYZE",
        _OTHER_TABLES,
        *Eraser.remains,
    )

    def __init__(self, source: SQLiteSource) -> None:
        super().__init__(source)
        self._path, self._name = source.path, f"main.{quoted(str(source.table))}"

    def check(self) -> None:
        """Refuse what is no plain table, and files that this user may not change."""
        super().check()
        for place in (self._path, os.path.dirname(os.path.realpath(self._path))):
            if not may_write(place):
                raise self.refused(f"this user may not write to {place!r}")
        with self._connected() as connection:
            sql = "SELECT type, rootpage FROM main.sqlite_schema WHERE name = ? AND type IN ('table', 'view')"
            ((kind, page),) = connection.execute(sql, (self.source.table,)).fetchall()
        if kind != "table" or not page:
            raise self.refused("it must be a table; it is a view or a virtual table")

    def purge(self, *, ignore_retention: bool = False) -> datetime | None:
        """Empty the write-ahead log, if the file has one."""
        with self._connected() as connection:
            ((busy, *_),) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        if busy:
            raise InvalidLogError(
                f"the write-ahead log of {self.source.location!r} still holds deleted rows, because others"
                " read it: purge again when they have ended"
            )
        return None

    @staticmethod
    def _written(column: Column) -> str:
        return column.text()

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
        address = f"file:{urllib.parse.quote(self._path)}?mode=rw"
        try:
            with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
                connection.text_factory = lambda text: text.decode(errors="surrogateescape")
                yield connection
        except sqlite3.Error as error:  # whose message may quote a value
            reason = getattr(error, "sqlite_errorname", type(error).__name__)
            raise not_erased(self.source.location, f"SQLite failed ({reason}); erase again") from None

    def _among(self, connection: sqlite3.Connection, name: str, column: Column, values: Sequence[Any]) -> str:
        # By the text of each value: a column may hold 7, '7' and 7.0, and a collation takes texts for equal.
        chosen = frozenset(values)
        connection.create_function("armnesia_is_chosen", 1, lambda value: label_text(value) in chosen)
        return f"armnesia_is_chosen({quoted(name)})"

    def _checksum(self, connection: sqlite3.Connection, condition: str) -> tuple[int, int]:
        number = total = 0
        for row in connection.execute(f"SELECT * FROM {self._name} WHERE {condition}"):
            digest = blake2b(repr(row).encode(), digest_size=8).digest()  # 1, 1.0 and '1' are written apart
            number, total = number + 1, total + int.from_bytes(digest, "big")
        return number, total


class PostgresEraser(TableEraser):
    """A table on a PostgreSQL server; names reach it by COPY, which no log of statements has."""

    remains = (
        "the write-ahead log of the server, its archive and replicas hold the rows until they are recycled",
        "samples of the planner may name people until VACUUM FULL pg_statistic",
        _OTHER_TABLES,
        *Eraser.remains,
    )

    def __init__(self, source: PostgresSource) -> None:
        super().__init__(source)
        self._url, self._name = source.url, ".".join(map(quoted, str(source.table).split(".")))

    def check(self) -> None:
        """Refuse what is no table, bounds of partitions that name people, and missing rights."""
        super().check()
        columns = [name for role, name in self.source.columns.named().items() if role in ("user", "id")]
        with self._transaction() as connection:
            found = connection.execute(_REFUSED, {"table": self._name, "columns": columns}).fetchone()
        for is_so, reason in zip(found, _REASONS, strict=True):
            if is_so:
                raise self.refused(reason)

    def purge(self, *, ignore_retention: bool = False) -> datetime | None:
        """Write the table and its parts again, without the space of deleted rows."""
        with self._connected() as connection:
            connection.autocommit = True
            ((now,),) = connection.execute("SELECT pg_current_xact_id()::xid::text").fetchall()
            before = connection.execute(_PARTS, (self._name,)).fetchall()
            for _, name in before:
                connection.execute(f"VACUUM (FULL) {name}")
            connection.execute(f"ANALYZE {self._name}")
            after = connection.execute(_PARTS, (self._name,)).fetchall()
            ((viewers,),) = connection.execute(_OLDER_VIEWS, (now,)).fetchall()
        reason = None
        if set(before) & set(after):
            reason = "it, or a part of it, was not written again, which its owner can do (VACUUM FULL)"
        elif viewers:
            reason = "other transactions may still see them; purge again when they have ended"
        if reason is not None:
            raise InvalidLogError(f"files of {self.source.location!r} still hold deleted rows: {reason}")
        return None

    @staticmethod
    def _written(column: Column) -> str:
        return column.sql if column.type == "BLOB" else f"CAST({column.sql} AS VARCHAR)"

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        import psycopg  # noqa: PLC0415 (an extra)

        with self._connected() as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            with connection.transaction():
                yield connection

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        try:
            import psycopg  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise MissingExtraError.naming("Erasing rows of PostgreSQL tables", "erase") from error
        try:
            with closing(psycopg.connect(self._url, client_encoding="utf8")) as connection:
                yield connection
        except psycopg.Error as error:  # whose message may quote a value
            reason = f"PostgreSQL failed ({error.sqlstate or type(error).__name__})"
            if isinstance(error, psycopg.errors.SerializationFailure):
                reason = "another writer was faster; erase again"
            raise not_erased(self.source.location, reason) from None

    @staticmethod
    def _run_triggers(connection: Any) -> None:
        for _ in range(3):  # a trigger may defer again what its own changes set off
            connection.execute("SET CONSTRAINTS ALL IMMEDIATE")

    def _among(self, connection: Any, name: str, column: Column, values: Sequence[Any]) -> str:
        kept = quoted(name)
        if column.type == "VARCHAR":  # by bytes: a collation may take two names for equal
            kept += '::text COLLATE "C"'
        connection.execute("DROP TABLE IF EXISTS pg_temp.armnesia_names")
        connection.execute(
            f"CREATE TEMPORARY TABLE armnesia_names ON COMMIT DROP AS SELECT {kept} AS name"
            f" FROM {self._name} WITH NO DATA"
        )
        with connection.cursor() as cursor, cursor.copy("COPY pg_temp.armnesia_names FROM STDIN") as copy:
            for value in values:
                copy.write_row((value,))
        return f"{kept} IN (SELECT name FROM pg_temp.armnesia_names)"

    def _checksum(self, connection: Any, condition: str) -> tuple[int, int]:
        hashed = 'hashtextextended((log.*)::text COLLATE "C", 0)::numeric'
        sql = f"SELECT count(*), coalesce(sum({hashed}), 0) FROM {self._name} AS log WHERE {condition}"
        number, total = connection.execute(sql).fetchone()
        return int(number), int(total)


_TREE = """
WITH RECURSIVE above (oid) AS (
  SELECT %(table)s::regclass::oid UNION SELECT inhparent FROM pg_inherits JOIN above ON inhrelid = above.oid
), tree (oid) AS (
  SELECT oid FROM above UNION SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = tree.oid
)"""
"""A table, those that it is part of, and their parts."""
_REFUSED = f"""{_TREE}
SELECT relkind NOT IN ('r', 'p'),
  EXISTS (SELECT FROM pg_partitioned_table JOIN tree ON tree.oid = partrelid
    JOIN pg_attribute ON attrelid = partrelid AND attname = ANY (%(columns)s) AND NOT attisdropped
    WHERE partstrat <> 'h' AND (attnum = ANY (partattrs::int2[]) OR partexprs IS NOT NULL)),
  NOT has_table_privilege(%(table)s, 'DELETE'),
  NOT has_database_privilege(current_database(), 'TEMP'),
  row_security_active(%(table)s::regclass),
  current_setting('transaction_read_only')::boolean
FROM pg_class WHERE pg_class.oid = %(table)s::regclass"""
_REASONS = (
    "it must be a table; it is a view or a foreign table",
    "it is partitioned by people, or by an expression, so that bounds of partitions may name people;"
    " partition it by another column, or by hash",
    "this role may not delete its rows; GRANT DELETE on the table",
    "this role may not make temporary tables, by which names are handed over; GRANT TEMP on the database",
    "policies (row level security) would hide rows from this role; use the owner, or one with BYPASSRLS",
    "this role is set to read only (default_transaction_read_only)",
)
"""What is said where the values of `_REFUSED` are true."""
_PARTS = """
WITH RECURSIVE tree (oid) AS (
  SELECT %s::regclass::oid UNION SELECT inhrelid FROM pg_inherits JOIN tree ON inhparent = tree.oid
)
SELECT pg_relation_filenode(tree.oid)::int8, format('%%I.%%I', nspname, relname)
FROM tree JOIN pg_class ON pg_class.oid = tree.oid JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind <> 'p'"""
"""The files of a table, of its partitions and of those that inherit from it; VACUUM FULL makes new ones."""
_OLDER_VIEWS = """
SELECT count(*) FROM (
  SELECT greatest(age(backend_xid), CASE WHEN datname IS NULL OR datname = current_database()
    THEN age(backend_xmin) END) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
  UNION ALL SELECT age(transaction) FROM pg_prepared_xacts
  UNION ALL SELECT age(xmin) FROM pg_replication_slots) AS view (age)
WHERE age > age(%s::xid)"""
"""How many transactions, prepared ones and standbys can still see rows, so that VACUUM FULL keeps them."""
