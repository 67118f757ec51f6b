"""PostgreSQL: the same tables in a schema of their own; every writer first locks the vault's one row.

With one lock there is no deadlock, and a decision, its statistics and its ledger entry always belong
together. The ledger is a chain, so deletions are serial anyway.
"""

import re
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from armnesia.core.errors import MissingExtraError
from armnesia.core.urls import DEFAULT_SCHEMA, without_password, without_schema
from armnesia.vault.storage.database import (
    EVERY_ROW,
    IN_USE,
    CompactionCost,
    Database,
    Dialect,
    Row,
    SearchOutcome,
    Session,
    Statement,
    database_error,
)
from armnesia.vault.storage.digest_arrays import Columns, DigestArray, is_given, packed
from armnesia.vault.storage.postgres_catalogue import index_problems, schema_problems, schema_query
from armnesia.vault.storage.schema import (
    OWNER_INDEX,
    Table,
)
from armnesia.vault.storage.tables import has_digest_by_scan

_CHUNK = 10_000
_PATH_OF_CATALOGUE = "SET search_path = pg_catalog, pg_temp"
_NO_INDEXES = {
    **{
        f"enable_{way}": "off"
        for way in ("indexscan", "indexonlyscan", "bitmapscan", "nestloop", "mergejoin")
    },
    **{f"enable_{way}": "on" for way in ("seqscan", "hashjoin")},
    # The digests of a batch fit; otherwise the server would write every row that it reads to a file.
    "work_mem": "'64MB'",
}
_FULL_SCANS = "; ".join(f"SET LOCAL {name} = {value}" for name, value in _NO_INDEXES.items())
"""For queries that may use no index: each table is read once."""
_WHOLE_TABLE_JOINS = ("enable_hashjoin", "enable_mergejoin")
_REWRITTEN = (
    *("record", "owner", "suppressed", "request", "arm", "decision", "decision_node", "vault"),
    "subject_request",
)
"""The tables, of all versions, with personal data, and with statistics that deletions change."""
_OLDER_VIEWS = """SELECT count(*) FROM (
    SELECT greatest(age(backend_xid), CASE WHEN datname IS NULL OR datname = current_database()
        THEN age(backend_xmin) END) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
    UNION ALL SELECT age(transaction) FROM pg_prepared_xacts
    UNION ALL SELECT age(xmin) FROM pg_replication_slots) AS view (age)
    WHERE age > age(?::xid)"""
"""How many transactions, prepared transactions and standbys keep VACUUM FULL from removing deleted rows.

What a transaction sees counts in its own database only. But the snapshot of VACUUM FULL itself begins at the
oldest transaction that writes, in any database of the server, and it keeps what its own snapshot sees.
"""
_FILES = """SELECT relname, pg_relation_filenode(oid) FROM pg_class
    WHERE relnamespace = ?::regnamespace AND relname = ANY (?)"""
"""These tables, as far as there are such, each with the number of its file."""
_STATISTICS = "pg_statistic"
_COPYING = "copy_table_data"
"""The function of the server that says, under VACUUM FULL, how many deleted rows it has copied as well."""
_SAMPLED = """SELECT relname, attname, format_type(atttypid, atttypmod)
    FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
    WHERE relnamespace = ?::regnamespace AND relname = ANY (?)
    AND attnum > 0 AND NOT attisdropped AND attstattarget IS DISTINCT FROM 0"""
"""The columns of these tables that the planner samples."""
_SIZE = """SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class
    WHERE relnamespace = ?::regnamespace AND relname = ANY (?)"""
_TRIAL = (
    "DROP TABLE IF EXISTS pg_temp.trial",
    "CREATE TEMPORARY TABLE trial (identity BYTEA NOT NULL PRIMARY KEY, owner BYTEA, arm INTEGER,"
    " units BIGINT)",
    "CREATE INDEX trial_owner ON trial (owner)",
    "INSERT INTO trial SELECT decode(md5('i' || n), 'hex'), decode(md5('o' || n), 'hex'), n %% 5, n"
    " FROM generate_series(1, 40000) AS n",
)
"""Made-up rows, to see how fast the server rewrites a table."""
_OPTIONS = {
    "synchronous_commit": "on",
    # The planner has no statistics of rows per person, and would otherwise scan the whole table.
    "enable_seqscan": "off",
    "jit": "off",  # older servers would start it for every full scan
}


_ENCODING = "UTF8"


@lru_cache(maxsize=256)
def _translated(sql: str) -> str:
    """Write parameters as psycopg does; statements contain no other question mark and no percent sign."""
    return sql.replace("?", "%s")


def _half_of_xor(first_byte: int) -> str:
    """Eight bytes of the exclusive or of two digests: PostgreSQL has it for integers only."""
    halves = (f"('x' || encode(substring({{{n}}} FROM {first_byte} FOR 8), 'hex'))" for n in (0, 1))
    return f"int8send({' # '.join(f'{half}::bit(64)::bigint' for half in halves)})"


DIALECT = Dialect(
    blob="BYTEA",
    xor_of_digests=f"{_half_of_xor(1)} || {_half_of_xor(9)}",
    drop_record_indexes=(
        f"DROP INDEX {OWNER_INDEX.name}",
        "ALTER TABLE record DROP CONSTRAINT record_pkey",
    ),
    create_record_indexes=("ALTER TABLE record ADD PRIMARY KEY (identity)", OWNER_INDEX.statement),
    rows_scanned_per_lookup=100,
    rebuild_indexes="REINDEX TABLE {}",
    rebuild_decision_indexes="REINDEX TABLE {}",
)


def connect(url: str, *, create: bool, timeout: float) -> "PostgresDatabase":
    """Connect to the address `postgresql://…`; the database itself must exist."""
    return PostgresDatabase(url, timeout=timeout)


def default_keys_path(url: str) -> Path:
    """In the working folder, named after the database."""
    database = url.partition("://")[2].partition("?")[0].partition("/")[2]  # never what may precede an "@"
    return Path(f"armnesia-{database or 'postgres'}.keys")


@dataclass(frozen=True)
class PostgresSession:
    """A transaction on PostgreSQL."""

    _connection: Any
    dialect: Dialect = DIALECT
    _pipelines: list[AbstractContextManager[Any]] = field(default_factory=list)
    """The pipeline of statements that were sent and whose results are not awaited yet, if there is one."""

    def await_sent(self) -> None:
        """Wait for the statements that were sent; the first that failed raises its error."""
        if self._pipelines:
            self._pipelines.pop().__exit__(None, None, None)

    def send(self, sql: str, *parameters: Any) -> Callable[[], list[Row]]:
        """Send a query without waiting; the returned function waits for its rows, and for all sent since."""
        cursor = self._cursor_of_pipeline()
        cursor.execute(_translated(sql), parameters or None)

        def awaited_rows() -> list[Row]:
            self.await_sent()
            rows: list[Row] = cursor.fetchall()
            return rows

        return awaited_rows

    def _cursor_of_pipeline(self) -> Any:
        if not self._pipelines:
            self._pipelines.append(self._connection.pipeline())
            self._pipelines[0].__enter__()
        return self._connection.cursor()

    def query(self, sql: str, *parameters: Any) -> list[Row]:
        """Run a statement and fetch all its rows."""
        self.await_sent()
        rows: list[Row] = self._connection.execute(_translated(sql), parameters).fetchall()
        return rows

    def execute(self, sql: str, *parameters: Any) -> int:
        """Run a statement; return how many rows it changed."""
        self.await_sent()
        return int(self._connection.execute(_translated(sql), parameters or None).rowcount)

    def execute_together(self, statements: Iterable[Statement]) -> None:
        """Send all statements; their results are awaited before the next statement or the commit."""
        cursor = self._cursor_of_pipeline()
        for sql, same in groupby(statements, key=itemgetter(0)):
            each = [parameters for _, parameters in same]
            if len(each) == 1:
                cursor.execute(_translated(sql), each[0])
            else:  # the text is prepared once
                cursor.executemany(_translated(sql), each)

    def stream(self, sql: str, *parameters: Any) -> Iterator[Row]:
        """Run a query through a cursor on the server."""
        self.await_sent()
        with self._connection.cursor(name="armnesia_stream") as cursor:
            cursor.itersize = _CHUNK
            cursor.execute(_translated(sql), parameters)
            yield from cursor

    def load(self, table: str, columns: str, rows: Iterable[Row]) -> None:
        """Insert many rows by COPY."""
        self.await_sent()
        copying = f"COPY {table} ({columns}) FROM STDIN"
        with self._connection.cursor() as cursor, cursor.copy(copying) as copy:
            for row in rows:
                copy.write_row(row)

    def load_columns(
        self, table: str, columns: Columns, *, nullable: str = "", is_empty: bool = True
    ) -> None:
        """Insert many rows by COPY in its binary form."""
        self.await_sent()
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

    def merge_columns(self, table: Table, columns: Columns, on_conflict: str) -> None:
        """By way of a temporary table, into which the rows are copied."""
        incoming = table._replace(name="incoming").statement(self.dialect.blob)
        self.execute(incoming.replace("CREATE TABLE", "CREATE TEMPORARY TABLE", 1))
        self.load_columns("incoming", columns)
        names = ", ".join(columns)
        self.execute(
            f"INSERT INTO {table.name} ({names}) SELECT {names} FROM incoming ON CONFLICT {on_conflict}"
        )
        self.execute("DROP TABLE incoming")  # it is a file, which would outlive the batch

    def identities_of(self, owners: DigestArray) -> Iterator[DigestArray]:
        """In one query."""
        asked, parameters = self.digest_set(owners)
        found = self.query(f"SELECT identity FROM record WHERE owner IN {asked}", *parameters)
        yield packed([bytes(identity) for (identity,) in found])

    def digest_set(self, digests: DigestArray) -> tuple[str, tuple[Any, ...]]:
        """Cut a blob into digests, which the planner counts."""
        size = digests.itemsize
        digest = f"substring(?::bytea FROM n * {size} + 1 FOR {size}) AS digest"
        return f"(SELECT {digest} FROM generate_series(0, ?) AS n)", (digests.tobytes(), len(digests) - 1)

    @contextmanager
    def without_indexes(self) -> Iterator[str]:
        """PostgreSQL takes settings; the savepoint brings back those that were there before."""
        self.await_sent()
        self._connection.execute(f"SAVEPOINT with_indexes; {_FULL_SCANS}")
        yield ""
        self._connection.execute("ROLLBACK TO SAVEPOINT with_indexes; RELEASE SAVEPOINT with_indexes")


_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_END = b"\xff\xff"
_NULL = -1


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

    backup_hint: ClassVar[str] = ", such as pg_dump"
    erases_at_once: ClassVar[bool] = False
    erasure_steps: ClassVar[str] = "armnesia compact, then armnesia finish"
    search_covers: ClassVar[str] = EVERY_ROW
    erasure_covers: ClassVar[str] = (
        "the tables' files after `armnesia compact`; not the server's write-ahead log before it is recycled"
    )

    def __init__(self, url: str, *, timeout: float) -> None:
        try:
            import psycopg  # noqa: PLC0415 (an extra)
        except ImportError as error:
            raise MissingExtraError.naming("A vault on PostgreSQL", "vault") from error
        self._psycopg = psycopg
        self._timeout = timeout
        address, self.schema = without_schema(url)
        self.location = without_password(address)
        if self.schema != DEFAULT_SCHEMA:
            self.location += f"{'&' if '?' in self.location else '?'}schema={self.schema}"
        milliseconds = max(1, int(timeout * 1000))  # 0 would mean to wait forever
        # Temporary tables last: none may stand in for a table of the vault.
        self._search_path = f"{self.schema},pg_temp"
        settings = {"search_path": self._search_path, "lock_timeout": milliseconds, **_OPTIONS}
        options = " ".join(f"-c {name}={value}" for name, value in settings.items())
        with self._translating_errors():
            self._connection = psycopg.connect(
                address,
                autocommit=True,
                options=options,
                connect_timeout=max(2, int(timeout)),
                client_encoding=_ENCODING,
            )
        encoding = self._connection.info.parameter_status("server_encoding")
        if encoding != _ENCODING:
            self._connection.close()
            raise database_error(
                self.location,
                f"cannot be used: its database has the encoding {encoding}, which cannot hold all texts of a"
                f" vault: create the database with the encoding {_ENCODING}",
            )
        self._has_vault = False

    def has_vault(self) -> bool:
        """Whether the schema contains a vault."""
        with self._translating_errors():
            ((found,),) = self._query_catalogue("SELECT to_regclass(?)", f"{self.schema}.vault")
        self._has_vault = found is not None
        return self._has_vault

    def vault_created(self) -> None:
        """From here on writers lock its row."""
        self._has_vault = True

    @contextmanager
    def reading(self) -> Iterator[PostgresSession]:
        """Take one snapshot for all queries of the transaction."""
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", writes=False) as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[PostgresSession]:
        """Lock the vault's row first; later reads see what the last writer committed."""
        # Without a condition: an index that does not find the row would let this lock nothing.
        lock = "SELECT one FROM vault FOR UPDATE"
        schema = f"CREATE SCHEMA IF NOT EXISTS {self.schema}"
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED"  # whatever the server's default is
        first = f"{begin}; {lock if self._has_vault else schema}"
        with self._transaction(first, writes=True, locks=self._has_vault) as session:
            yield session
            if not self._has_vault:  # this transaction created the tables
                self._stop_sampling()

    @contextmanager
    def bulk_loading(self) -> Iterator[None]:
        """Look new rows up one by one in the index; otherwise each chunk would read the whole table."""
        with self._translating_errors():
            for setting in _WHOLE_TABLE_JOINS:
                self._connection.execute(f"SET {setting} = off")
        try:
            yield
        finally:
            with suppress(self._psycopg.Error):  # if the connection is lost, the settings are
                for setting in _WHOLE_TABLE_JOINS:
                    self._connection.execute(f"RESET {setting}")

    def schema_problems(self, session: Session, tables: tuple[Table, ...]) -> list[str]:
        """Compare the catalogue with the tables of armnesia."""
        sql, parameters = schema_query(self.schema, tables)
        return list(schema_problems(self._query_catalogue(sql, *parameters), tables))

    def begin_schema_check(self, session: Session, tables: tuple[Table, ...]) -> Callable[[], list[str]]:
        """Send the query of `schema_problems`; its rows are awaited later."""
        assert isinstance(session, PostgresSession)
        sql, parameters = schema_query(self.schema, tables)
        session.send(_PATH_OF_CATALOGUE)
        rows = session.send(sql, *parameters)
        session.send(f"SET search_path = {self._search_path}")
        return lambda: list(schema_problems(rows(), tables))

    def integrity_problems(self, session: Session) -> list[str]:
        """Check the indexes against their tables, by `amcheck` where it may be used, else by queries."""
        return list(index_problems(self._query_catalogue, session, self.schema))

    def _query_catalogue(self, sql: str, *parameters: Any) -> list[Row]:
        """Run a query that finds names of `pg_catalog` only, in one round trip.

        A function of the vault's schema with just the right types would be preferred to PostgreSQL's own,
        also where `pg_catalog` is searched first.
        """
        with self._connection.pipeline():
            self._connection.execute(_PATH_OF_CATALOGUE)
            found = self._connection.execute(_translated(sql), parameters or None)
            self._connection.execute(f"SET search_path = {self._search_path}")
        rows: list[Row] = found.fetchall()
        return rows

    def search_for(self, digests: Collection[bytes], listed: Mapping[bytes, str]) -> SearchOutcome:
        """Read all rows of the tables of records and tallies; the files are the server's."""
        with self.reading() as session:
            return SearchOutcome(has_digest_by_scan(session, packed(list(digests))))

    def erase(self, *, wait: bool = False) -> bool:
        """Deleted rows stay in the heap until VACUUM FULL, which is too slow to run at once."""
        self.erasure_obstacle = "PostgreSQL keeps deleted rows in its files until armnesia compact is run"
        return False

    def compact(self) -> bool:
        """Rewrite the tables with personal data, and request a checkpoint where that is allowed.

        The statistics are among them: their values before a deletion reveal what was deleted. A transaction
        that began in between, such as one of the server's own, may have kept some: so it is tried again, for
        as long as one would be waited for.
        """
        with self._translating_errors():
            patience = time.monotonic() + self._timeout
            self.erasure_obstacle = self._rewrite()
            while self.erasure_obstacle == _SEEN and time.monotonic() < patience:
                self.erasure_obstacle = self._rewrite()
            if self.erasure_obstacle:
                return False
            # Without the privilege the server does it by itself within checkpoint_timeout.
            with suppress(self._psycopg.errors.InsufficientPrivilege):
                self._connection.execute("CHECKPOINT")
        return True

    def _rewrite(self) -> str:
        """Rewrite the tables; return why deleted rows are still in their files, if they are."""
        if not (self._wait_for_older_snapshots() and self._drop_samples()):
            return _SEEN
        for table, _ in self._files(self.schema, _REWRITTEN):
            is_rewritten, kept = self._vacuum(self.schema, table)
            if not is_rewritten:
                return f"the server did not rewrite the table {table!r}, which only its owner may"
            if kept:
                return _SEEN
        return ""

    def _vacuum(self, schema: str, table: str) -> tuple[bool, int]:
        """Rewrite a table; return whether the server did, and how many deleted rows it has kept.

        Where the role may not, the server only warns. How many rows it keeps is a message.
        """
        kept: list[int] = []
        before = self._files(schema, (table,))

        def note(message: Any) -> None:
            number = re.search(r"\d+", message.message_detail or "")  # in words of any language
            if message.source_function == _COPYING and number:
                kept.append(int(number[0]))

        self._connection.add_notice_handler(note)
        try:
            self._connection.execute(f"VACUUM (FULL, ANALYZE, VERBOSE) {schema}.{table}")
        finally:
            self._connection.remove_notice_handler(note)
        return self._files(schema, (table,)) != before, sum(kept)

    def _files(self, schema: str, tables: Iterable[str]) -> list[Row]:
        return self._query_catalogue(_FILES, schema, list(tables))

    def compaction_cost(self) -> CompactionCost:
        """Each table is locked while it is rewritten, for readers too."""
        execute = self._connection.execute
        with self._translating_errors():
            ((size,),) = self._query_catalogue(_SIZE, self.schema, list(_REWRITTEN))
        try:
            for statement in _TRIAL:
                execute(statement, ())
            ((trial,),) = execute("SELECT pg_total_relation_size('pg_temp.trial')").fetchall()
            start = time.perf_counter()
            execute("VACUUM (FULL, ANALYZE) pg_temp.trial")
            seconds = time.perf_counter() - start
            execute(_TRIAL[0])
        except self._psycopg.Error:
            return CompactionCost(size, None, "readers and writers")
        return CompactionCost(size, size / trial * seconds, "readers and writers")

    def _drop_samples(self) -> bool:
        """Drop the planner's samples of the vault; return whether their bytes left the files too."""
        sampled = self._stop_sampling()
        if not sampled:
            return True
        if self._wait_for_older_snapshots():
            is_rewritten, kept = self._vacuum("pg_catalog", _STATISTICS)
            if not is_rewritten:
                warnings.warn(
                    f"the server's samples of the vault {self.location!r} are still in the file of"
                    f" {_STATISTICS}, which this user may not rewrite: let the owner of the database run"
                    f" VACUUM FULL {_STATISTICS}",
                    stacklevel=2,
                )
            if not kept:
                return True
        for table, columns in sampled.items():  # so that the next compact tries again
            self._alter(table, [f"{column} SET STATISTICS -1" for column in columns])
        return False

    def _stop_sampling(self) -> dict[str, list[str]]:
        """Keep the planner from sampling these tables; return the columns that it had sampled.

        Its samples, such as the digest of the person with most rows, are kept in a system table whose file
        retains old ones.
        """
        sampled: dict[str, list[str]] = {}
        actions: dict[str, list[str]] = {}
        for table, column, type_ in self._query_catalogue(_SAMPLED, self.schema, list(_REWRITTEN)):
            sampled.setdefault(table, []).append(column)
            # The type stays the same; setting it makes the server drop its samples.
            actions.setdefault(table, []).extend([f"{column} SET STATISTICS 0", f"{column} TYPE {type_}"])
        for table, some in actions.items():
            self._alter(table, some)
        return sampled

    def _alter(self, table: str, actions: list[str]) -> None:
        altering = ", ".join(f"ALTER COLUMN {action}" for action in actions)
        self._connection.execute(f"ALTER TABLE {table} {altering}")

    def _wait_for_older_snapshots(self) -> bool:
        """Wait until no transaction sees deleted rows: VACUUM keeps rows that one can still see."""
        ((now,),) = self._query_catalogue("SELECT pg_current_xact_id()::xid::text")
        patience = time.monotonic() + self._timeout
        while self._query_catalogue(_OLDER_VIEWS, now) != [(0,)]:
            if time.monotonic() > patience:
                return False
            time.sleep(0.05)
        return True

    def close(self) -> None:
        """Close the connection."""
        self.is_closed = True
        self._connection.close()

    @contextmanager
    def _transaction(self, begin: str, *, writes: bool, locks: bool = False) -> Iterator[PostgresSession]:
        with self._translating_errors():
            session = PostgresSession(self._connection)
            try:
                begun = self._connection.execute(begin)
                if locks and begun.nextset() and begun.rowcount != 1:  # a damaged vault has not the one row
                    self._connection.execute("LOCK TABLE vault IN SHARE ROW EXCLUSIVE MODE")
                yield session
                session.await_sent()  # so that an error of the commit is its own
                self._commit(writes)
            except BaseException:
                with suppress(self._psycopg.Error):
                    session.await_sent()
                with suppress(self._psycopg.Error):  # if the connection is lost, so is the transaction
                    self._connection.execute("ROLLBACK")
                raise

    def _commit(self, writes: bool) -> None:
        try:
            self._connection.execute("COMMIT")
        except self._psycopg.Error as error:
            if writes and _is_lost(error):
                raise database_error(self.location, _NOT_KNOWN) from None
            raise

    @contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Turn errors into one sentence. The server's text may quote a row, so only its code is shown."""
        self.refuse_closed()
        try:
            yield
        except self._psycopg.Error as error:
            raise database_error(self.location, _meaning(error)) from None


_SEEN = "another transaction can still see deleted rows"
_NOT_KNOWN = (
    "lost its connection during the commit; whether the change was stored is unknown: run the same command"
    " again (the same request twice has one answer)"
)
_NOT_REACHED = "cannot be reached; nothing was changed (is the server up, is the address right?)"
_MAY_NOT = "cannot be opened: this user may not (no permission, or a wrong password)"
_MEANINGS = {
    "55P03": IN_USE,
    "42501": _MAY_NOT,
    "42P01": "is damaged: one of its tables is missing (SQLSTATE 42P01); nothing was changed: restore a"
    " backup",
    "23505": "is damaged: rows are in it twice (SQLSTATE 23505), which armnesia cannot repair; nothing was"
    " changed: restore a backup",
    **dict.fromkeys(
        ("XX001", "XX002"),
        "is damaged: a table or an index cannot be read; nothing was changed: run armnesia rebuild, which"
        " makes its indexes again, and restore a backup if that is refused",
    ),
    "53100": "cannot grow: the disk is full; nothing was changed",
    **dict.fromkeys(("57P01", "57P02", "57P03"), _NOT_REACHED),  # the server is stopping or starting
}
_NOT_CONNECTED = {
    "URI query parameter": "cannot be opened: its address has an option that PostgreSQL does not know",
    "does not exist": "cannot be opened: there is no such database, or no such user",
    "authentication failed": _MAY_NOT,
}


def _is_lost(error: Any) -> bool:
    """Whether the connection ended with this error."""
    return error.sqlstate is None or error.diag.severity_nonlocalized in ("FATAL", "PANIC")


def _meaning(error: Any) -> str:
    code = getattr(error, "sqlstate", None)
    if code is not None:
        return _MEANINGS.get(code, f"refused (SQLSTATE {code}); nothing was changed")
    # A failed connection has no code; its text comes from the handshake and quotes no row.
    known = (meaning for words, meaning in _NOT_CONNECTED.items() if words in str(error))
    return next(known, _NOT_REACHED)
