"""The peak memory of every command that reads a log or a vault, each in a process of its own.

    python benchmarks/memory.py [--rows N] [--entries N] [--full] [--only TEXT]

`--full` stands for 10⁷ rows and 10⁵ ledger entries, and takes hours; the default takes a few minutes. Every
user has ten rows, scattered over the log. The log is a CSV file, a Parquet file with row groups of the usual
size, a Parquet file with a single row group, and a table of SQLite. Peak memory is the largest resident set
of the process (`ru_maxrss`), which includes Python with all libraries, about 90 MB. This program itself stays
small: the system would count its memory to its children.
"""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LIMIT = 600
"""The most megabytes that a command should take."""

WRITE_LOGS = """
import duckdb, sqlite3, sys
rows = int(sys.argv[1])
log = f'''SELECT i AS id, 'user-' || ((i * 7919) % {rows // 10}) AS who,
    chr(65 + (hash(i) % 5)::INTEGER) AS arm,
    (hash(i + 1) % 100 < 2 * (1 + hash(i) % 5))::INTEGER AS click FROM range({rows}) t(i)'''
duckdb.sql(f"COPY ({log}) TO 'log.csv'")
duckdb.sql(f"COPY ({log}) TO 'log.parquet' (FORMAT parquet)")
duckdb.sql(f"COPY ({log}) TO 'one.parquet' (FORMAT parquet, ROW_GROUP_SIZE {rows})")
file = sqlite3.connect("log.db")
with file:
    file.execute("CREATE TABLE log (id INTEGER, who TEXT, arm TEXT, click INTEGER)")
    result = duckdb.sql(log)
    while some := result.fetchmany(10_000):
        file.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", some)
file.close()
"""
READ_LOG = """
import sys
from armnesia import read_log
table = "log" if "://" in sys.argv[1] else None
log = read_log(sys.argv[1], table=table, action="arm", reward="click", user="who", actions=list("ABCDE"))
assert log.request(user="user-1").counts.sum() == 10
"""
FORGET_MANY = """
import sys
from armnesia.vault import Vault
with Vault.open("sqlite:///vault.db") as vault:
    for number in range(int(sys.argv[1])):
        vault.forget(users=[f"user-{2 + number}"])
"""
MAIN = "from armnesia.cli.main import main; main()"
COLUMNS = ("--action-column", "arm", "--reward-column", "click")
DECLARED = (*COLUMNS, "--actions", "A,B,C,D,E")
USER = ("--user-column", "who")
BUDGET = ("--epsilon", "1", "--delta", "1e-5")


class Runs:
    """Runs programs, and prints the peak memory of each."""

    def __init__(self, only: str | None) -> None:
        self._only = only
        self.over = 0

    def program(self, name: str, code: str, *arguments: str, shown: bool = True) -> None:
        """Run Python code; print its peak memory, unless it only prepares something."""
        command = [sys.executable, "-c", code, *arguments]
        start = time.perf_counter()
        with open("output", "wb") as output:
            pid = os.posix_spawn(
                sys.executable,
                command,
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, output.fileno(), number) for number in (1, 2)],
            )
            _, status, usage = os.wait4(pid, 0)
        seconds = time.perf_counter() - start
        if os.waitstatus_to_exitcode(status) != 0:
            sys.exit(f"{name} failed: {Path('output').read_text(errors='replace')[-2000:]}")
        peak = usage.ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)
        if shown and (self._only is None or self._only in name):
            self.over += peak > LIMIT
            print(f"{name:52} {peak:8,.0f} MB {seconds:9.1f} s{'   OVER' * (peak > LIMIT)}", flush=True)

    def command(self, *arguments: str, name: str | None = None, shown: bool = True) -> None:
        """Run a command of armnesia."""
        self.program(name or " ".join(arguments[:2]), MAIN, *arguments, shown=shown)


def measure_logs(runs: Runs) -> None:
    """The commands on a log."""
    for source in ("log.csv", "log.parquet", "one.parquet", "sqlite:///log.db"):
        runs.program(f"read_log {source}", READ_LOG, source)
    for source in ("log.csv", "log.parquet", "one.parquet"):
        runs.command("decide", source, *DECLARED)
    runs.command("decide", "sqlite:///log.db", "--table", "log", *DECLARED)
    for name in ("unlearn", "audit"):
        some = ("--user", "user-1", "--unlearner", "tilt")
        runs.command(name, "log.csv", *DECLARED, *USER, *some, *BUDGET)
    runs.command("compare", "log.csv", *DECLARED, *USER, "--user", "user-1", *BUDGET)


def measure_vault(runs: Runs, entries: int) -> None:
    """The commands on a vault that keeps the rows."""
    runs.command("init", "--actions", "A,B,C,D,E", name="init")
    ids = ("--id-column", "id")
    runs.command("ingest", "log.parquet", *COLUMNS, *USER, *ids, name="ingest log.parquet, with ids")
    runs.command("ingest", "log.csv", *COLUMNS, *USER, *ids, name="ingest log.csv, all rows known")
    runs.command("backup", "old.db", name="backup")
    runs.command("forget", "--user", "user-1", name="forget one user")
    users = [f"--user=user-{entries + 10 + number}" for number in range(500)]
    runs.command("forget", *users, name="forget 500 users")
    runs.program(f"forget, {entries:,} times in one process", FORGET_MANY, str(entries))
    runs.command("decide", name="decide, from the vault")
    runs.command("status", name="status")
    runs.command("forget", "--user", "user-0", "--dry-run", name="forget --dry-run")
    runs.command("readmit", "--user", "user-1", name="readmit")
    runs.command("policy", "--max-epsilon", "5", name="policy")
    runs.command("ledger", name="ledger")
    runs.command("ledger", "--export", "ledger.jsonl", name="ledger --export")
    runs.command("verify", name="verify")
    runs.command("export", "audit.json", name="export")
    runs.command("export", "restore.json", "--for-restore", name="export --for-restore")
    runs.command("certificate", "show", "--sequence", "3", "--out", "c.json", name="certificate show")
    runs.command("public-key", name="public-key")
    runs.command("rebuild", name="rebuild")
    runs.command("rotate-key", name="rotate-key")
    runs.command("compact", name="compact")
    runs.command("export", "last.json", "--for-restore", name="export before a restore", shown=False)
    for file in ("vault.db-wal", "vault.db-shm"):
        Path(file).unlink(missing_ok=True)
    shutil.move("old.db", "vault.db")
    runs.command("restore", "last.json", name="restore")


def measure_content(runs: Runs) -> None:
    """An ingest of rows without ids, and of rows that stay at their source."""
    other = ("--url", "sqlite:///content.db")
    runs.command("init", "--actions", "A,B,C,D,E", *other, shown=False)
    runs.command("ingest", "one.parquet", *COLUMNS, *USER, *other, name="ingest one.parquet, without ids")
    external = ("--url", "sqlite:///external.db")
    runs.command("init", "--actions", "A,B,C,D,E", "--external", *external, shown=False)
    ids = ("--id-column", "id")
    runs.command("ingest", "log.parquet", *COLUMNS, *USER, *ids, *external, name="ingest, external")
    runs.command("forget", "--user", "user-1", *external, name="forget, external")
    runs.command("verify", *external, name="verify, external")
    runs.command("rebuild", *external, name="rebuild, external")


@contextlib.contextmanager
def scratch_folder() -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="armnesia-memory-") as folder, contextlib.chdir(folder):
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--entries", type=int, default=1_000, help="how many entries the ledger gets")
    parser.add_argument("--full", action="store_true", help="10⁷ rows and 10⁵ entries")
    parser.add_argument("--only", metavar="TEXT", help="print only the commands whose name contains this")
    given = parser.parse_args()
    rows, entries = (10_000_000, 100_000) if given.full else (given.rows, given.entries)
    if rows < 10 * (entries + 600):
        parser.error("each entry forgets a user of ten rows: give at least 10 * (entries + 600) rows")
    runs = Runs(given.only)
    print(f"{rows:,} rows, {entries:,} ledger entries; more than {LIMIT} MB are marked", flush=True)
    with scratch_folder():
        runs.program("write the logs", WRITE_LOGS, str(rows), shown=False)
        measure_logs(runs)
        measure_vault(runs, entries)
        measure_content(runs)
    print(f"{runs.over} of the measured commands took more than {LIMIT} MB")


if __name__ == "__main__":
    main()
