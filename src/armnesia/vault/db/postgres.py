"""PostgreSQL: the same tables in a schema of their own; every writer first locks the table `vault`.

With one lock there is no deadlock, and a decision, its statistics and its ledger entry always belong
together. Readers are not locked out.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from armnesia.core.errors import ArmnesiaError, DatabaseError, MissingExtraError
from armnesia.core.urls import DEFAULT_SCHEMA, without_password, without_schema
from armnesia.vault.db.database import (
    DAMAGED,
    FULL,
    IN_USE,
    Database,
    Refusal,
    Row,
    Session,
    Statement,
    database_error,
    kept_by,
)
from armnesia.vault.db.digest_arrays import Columns, is_given
from armnesia.vault.db.schema import OWNER_INDEX, SHORT

_CHUNK = 10_000
_OPTIONS = {
    "synchronous_commit": "on",
    # The planner has no statistics of rows per person, and would otherwise scan whole tables.
    **dict.fromkeys(("enable_seqscan", "enable_hashjoin", "enable_mergejoin"), "off"),
    "jit": "off",  # older servers would start it for every full scan
}
_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END = b"\xff\xff"
_NULL = -1

_TABLES = """SELECT relname, pg_relation_filenode(oid) FROM pg_class
    WHERE relnamespace = ?::regnamespace AND relkind = 'r'"""
"""The tables of a schema, each with the number of its file."""
_OLDER_VIEWS = """SELECT 1 FROM (
    SELECT greatest(age(backend_xid), CASE WHEN datname IS NULL OR datname = current_database()
        THEN age(backend_xmin) END) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
    UNION ALL SELECT age(transaction) FROM pg_prepared_xacts
    UNION ALL SELECT age(xmin) FROM pg_replication_slots) AS view (age)
    WHERE age > age(?::xid)"""
"""Whether transactions, prepared transactions or standbys keep VACUUM FULL from removing deleted rows.

What a transaction sees counts in its own database only. But the snapshot of VACUUM FULL itself begins at the
oldest transaction that writes, in any database of the server, and it keeps what its own snapshot sees.
"""
_SCHEMA = """
WITH own AS (SELECT * FROM pg_class WHERE relnamespace = ?::regnamespace AND relkind NOT IN ('i', 't'))
SELECT 'table ' || relname, concat_ws(' ', relkind, relrowsecurity, relpersistence = 'u') FROM own
UNION ALL SELECT concat('column ', relname, '.', attname), concat_ws(' ', format_type(atttypid, atttypmod),
        attcollation, attnotnull, attstattarget, pg_get_expr(adbin, adrelid))
    FROM own JOIN pg_attribute ON attrelid = own.oid
    LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum WHERE attnum > 0 AND NOT attisdropped
UNION ALL SELECT 'index ' || indexrelid::regclass,
        concat_ws(' ', split_part(pg_get_indexdef(indexrelid), ' USING ', 2), indisunique, indisvalid)
    FROM own JOIN pg_index ON indrelid = own.oid
UNION ALL SELECT 'constraint ' || conname, pg_get_constraintdef(pg_constraint.oid)
    FROM own JOIN pg_constraint ON conrelid = own.oid
UNION ALL SELECT 'trigger ' || tgname, '' FROM own JOIN pg_trigger ON tgrelid = own.oid WHERE NOT tgisinternal
UNION ALL SELECT 'rule ' || rulename, '' FROM own JOIN pg_rewrite ON ev_class = own.oid"""
"""Whatever is in a schema, by kind and name, with a description."""
_AMCHECK = """SELECT pg_proc.oid::regproc FROM pg_extension JOIN pg_depend ON refobjid = pg_extension.oid
    JOIN pg_proc ON pg_proc.oid = objid WHERE extname = 'amcheck' AND proname = 'bt_index_check'
    AND pronargs = 2 AND has_function_privilege(pg_proc.oid, 'EXECUTE')"""
"""The function of the extension `amcheck`, if it is installed and this user may use it."""
_CHECKED = """SELECT {}(indexrelid, true) FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
    WHERE relnamespace = ?::regnamespace"""


class PostgresSession(Session):
    """A transaction on PostgreSQL."""

    mark = "%s"
    types: ClassVar = {int: "BIGINT", SHORT: "INTEGER", str: "TEXT", bytes: "BYTEA"}
    reindex = "REINDEX TABLE"
    drop_record_indexes = (
        "DROP INDEX record_owner",
        "ALTER TABLE record DROP CONSTRAINT record_pkey",
    )
    create_record_indexes = ("ALTER TABLE record ADD PRIMARY KEY (identity)", OWNER_INDEX)
    # The planner would keep samples, such as the digest of the person with most rows, in its own table.
    for_columns = "ALTER {} SET STATISTICS 0"
    takes_lists = True

    def execute_together(self, statements: Iterable[Statement]) -> None:
        """Send all statements before the first result is awaited."""
        with self._connection.pipeline():
            super().execute_together(statements)

    def stream(self, sql: str, *parameters: Any) -> Iterator[Row]:
        """Run a query through a cursor on the server."""
        with self._connection.cursor(name="armnesia_stream") as cursor:
            cursor.itersize = _CHUNK
            cursor.execute(sql.replace("?", self.mark), parameters)
            yield from cursor

    def load(self, table: str, columns: Columns, *, nullable: str = "", is_empty: bool = True) -> None:
        """Insert many rows by COPY in its binary form."""
        given = np.ones(len(next(iter(columns.values()))), bool)
        if nullable:
            given = is_given(columns[nullable])
        copying = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor() as cursor, cursor.copy(copying) as copy:
            copy.write(_COPY_HEADER)
            for chosen, missing in ((given, ""), (~given, nullable)):
                some = {name: values[chosen] for name, values in columns.items()}
                copy.write(_copied_rows(some, missing))
            copy.write(_COPY_END)


def _copied_rows(columns: Columns, missing: str) -> bytes:
    """Rows as COPY reads them: the number of fields, then each with its length; NULL has no bytes."""
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for name, values in columns.items():
        fields.append((f"size of {name}", ">i4"))
        if name != missing:
            fields.append((name, f">i{values.itemsize}" if values.dtype.kind == "i" else values.dtype.str))
    rows = np.empty(len(next(iter(columns.values()))), np.dtype(fields))
    rows["fields"] = len(columns)
    for name, values in columns.items():
        rows[f"size of {name}"] = _NULL if name == missing else values.itemsize
        if name != missing:
            rows[name] = values
    return rows.tobytes()


class PostgresDatabase(Database):
    """A vault in a schema of a PostgreSQL database: `?schema=NAME` in the address, else `armnesia`."""

    address = "postgresql://USER@HOST/DATABASE"
    keys = "in the working folder, named after the database"
    session = PostgresSession
    begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

    backup_hint: ClassVar[str] = ", such as pg_dump"

    def __init__(self, url: str, *, create: bool, timeout: float) -> None:
        try:
            import psycopg  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise MissingExtraError.naming("A vault on PostgreSQL", "vault") from error
        self._errors = (psycopg.Error,)
        self._timeout = timeout
        address, self.schema = without_schema(url)
        self.location = without_password(address)
        if self.schema != DEFAULT_SCHEMA:
            self.location += f"{'&' if '?' in self.location else '?'}schema={self.schema}"
        settings = {
            "search_path": f"{self.schema},pg_temp",  # no temporary table may stand in for one of the vault
            "lock_timeout": max(1, int(timeout * 1000)),  # 0 would mean to wait forever
            **_OPTIONS,
        }
        self._connect = partial(
            psycopg.connect,
            address,
            autocommit=True,
            options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
            connect_timeout=max(2, int(timeout)),
            client_encoding="UTF8",
        )
        with self._translating_errors():
            self._connection = self._connect()
        self._has_vault = False

    @staticmethod
    def default_keys_path(url: str) -> Path:
        """In the working folder, named after the database."""
        database = (
            url.partition("://")[2].partition("?")[0].partition("/")[2]
        )  # never what may precede an "@"
        return Path(f"armnesia-{database or 'postgres'}.keys")

    def has_vault(self) -> bool:
        """Whether the schema contains a vault."""
        with self._translating_errors():
            ((found,),) = self._query("SELECT to_regclass(?)", f"{self.schema}.vault")
        self._has_vault = found is not None
        return self._has_vault

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """Lock the table `vault` first; later reads see what the last writer committed."""
        lock = "LOCK TABLE vault IN SHARE ROW EXCLUSIVE MODE"
        first = lock if self._has_vault else f"CREATE SCHEMA IF NOT EXISTS {self.schema}"
        # The level is named, whatever the server's default is.
        with self._transaction(f"BEGIN ISOLATION LEVEL READ COMMITTED; {first}", writes=True) as session:
            yield session
        self._has_vault = True

    def _query(self, sql: str, *parameters: Any) -> list[Row]:
        """Run a statement outside of transactions."""
        return PostgresSession(self._connection).query(sql, *parameters)

    def _schema(self, session: Session) -> dict[str, Any]:
        """What the catalogue says of the vault's schema."""
        return dict(session.query(_SCHEMA, self.schema))

    def _new_schema(self) -> dict[str, Any]:
        """The same of temporary tables, through a connection of their own."""
        with self._connect() as connection:
            connection.execute("SET search_path = pg_temp")
            session = PostgresSession(connection)
            session.create_tables()
            ((schema,),) = session.query("SELECT pg_my_temp_schema()::regnamespace::text")
            return dict(session.query(_SCHEMA, schema))

    def integrity_problems(self, session: Session) -> list[str]:
        """Compare the indexes with their tables by `amcheck`, which raises an error, where it may be used."""
        for (function,) in session.query(_AMCHECK):
            session.query(_CHECKED.format(function), self.schema)
        return []

    def compact(self) -> None:
        """Rewrite the tables, and request a checkpoint where that is allowed.

        Rows that another transaction still sees would be kept: so those that began earlier are waited for.
        """
        with self._translating_errors():
            ((now,),) = self._query("SELECT pg_current_xact_id()::xid::text")
            patience = time.monotonic() + self._timeout
            while self._query(_OLDER_VIEWS, now):
                if time.monotonic() > patience:
                    raise kept_by(self.location, "another transaction can still see deleted rows")
                time.sleep(0.05)
            before = self._query(_TABLES, self.schema)
            names = ", ".join(f"{self.schema}.{table}" for table, _ in before)
            self._connection.execute(f"VACUUM (FULL, ANALYZE) {names}")
            if same := set(before) & set(self._query(_TABLES, self.schema)):  # the server only warns
                why = f"the server did not rewrite the table {min(same)[0]!r}, which only its owner may"
                raise kept_by(self.location, why)
            # Without the privilege the server does it by itself within checkpoint_timeout.
            with suppress(*self._errors):
                self._connection.execute("CHECKPOINT")

    def _commit(self, writes: bool) -> None:
        try:
            super()._commit(writes)
        except self._errors as error:
            if writes and _is_lost(error):
                raise database_error(self.location, _NOT_KNOWN) from None
            raise

    def _translated(self, error: Any) -> ArmnesiaError:
        """The server's text may quote a row, so only its code is shown."""
        kind, meaning = _REFUSALS.get(error.sqlstate, _OTHER)
        return database_error(self.location, meaning.format(f"SQLSTATE {error.sqlstate}"), kind)


def _is_lost(error: Any) -> bool:
    """Whether the connection ended with this error."""
    return error.sqlstate is None or error.diag.severity_nonlocalized in ("FATAL", "PANIC")


_NOT_KNOWN = (
    "lost its connection during the commit; whether the change was stored is unknown: run the same command"
    " again (the same request twice has one answer)"
)
_NOT_REACHED: Refusal = (
    DatabaseError,
    "cannot be reached; nothing was changed: is the server up, and are database, user, password, rights and"
    " options right?",
)
_REFUSALS: dict[str | None, Refusal] = {
    "55P03": IN_USE,
    "53100": FULL,
    # A table is missing, rows are in it twice, or a page or an index cannot be read.
    **dict.fromkeys(("42P01", "23505", "XX001", "XX002"), DAMAGED),
    # Not allowed; the server is stopping or starting; or the connection failed, which has no code.
    **dict.fromkeys(("42501", "57P01", "57P02", "57P03", None), _NOT_REACHED),
}
_OTHER: Refusal = (DatabaseError, "refused ({}); nothing was changed")
