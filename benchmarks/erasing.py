"""Erasing rows at their source: Parquet files, a Delta and an Iceberg table, and by a vault.

    python benchmarks/erasing.py [--rows N] [--people 1,50] [--folder FOLDER]

Makes a log of N rows (10⁷ by default) of four columns in ten files, twenty rows per person, scattered, so
that the rows of a few people are in nearly all files. For each kind and number of people, in a process of
its own: `plan`, `apply` and `purge` at once, by the clock and by processor time, and the most memory. Beside
them stands what DuckDB takes to write all files again without these rows, which checks nothing; ratios are of
processor time in the same run. `vault` is `Vault.erase_at_sources` of a vault that has counted the Parquet
files: people are recognised by keyed digest, and everything is counted before and after.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.lakes import machine

KINDS = ("duckdb", "parquet", "delta", "iceberg", "vault")
PARTS = 10
MAKE = """
import duckdb, sys
rows, parts, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
database = duckdb.connect()
for part in range(parts):
    first, last = part * rows // parts, (part + 1) * rows // parts
    database.execute(f'''COPY (
        SELECT printf('user-%09d', hash(i) % {max(rows // 20, 1)}) AS "user",
            'arm-' || (hash(i + 7) % 100) AS action,
            CAST(hash(i + 13) % 1000003 AS DOUBLE) / 1000003 AS reward, i AS time
        FROM range({first}, {last}) t(i)) TO '{folder}/part-{part}.parquet' (FORMAT parquet)''')
"""
MEASURE = """
import json, os, resource, sys, time
from contextlib import contextmanager
from pathlib import Path
given = json.loads(sys.argv[1])
kind, log, names = given["kind"], Path(given["log"]), given["names"]
times = {}

@contextmanager
def timed(name):
    clock, processor = time.perf_counter(), time.process_time()
    yield
    times[name] = time.perf_counter() - clock, time.process_time() - processor

def by_duckdb():
    import duckdb
    database = duckdb.connect()
    database.execute("SET enable_progress_bar = false")
    for path in sorted(log.glob("*.parquet")):
        database.execute(
            f'COPY (SELECT * FROM \\'{path}\\' WHERE "user" NOT IN (SELECT unnest($names)))'
            f" TO '{path}.new' (FORMAT parquet)", {"names": names})

def make_table():
    import pyarrow.parquet
    if kind == "parquet":
        return
    parts = (pyarrow.parquet.read_table(path) for path in sorted(log.glob("*.parquet")))
    if kind == "delta":
        import deltalake
        for part in parts:
            deltalake.write_deltalake(str(log / "table"), part, mode="append")
        return
    from pyiceberg.catalog import load_catalog
    catalog = load_catalog("lake")
    catalog.create_namespace("logs")
    table = None
    for part in parts:
        table = table or catalog.create_table("logs.clicks", schema=part.schema)
        table.append(part)

def by_eraser(name):
    from armnesia.logs import open_source
    from armnesia.logs.erasing import People, open_eraser
    people = People.named(names)
    def eraser():
        return open_eraser(open_source(name, action="action", reward="reward", whole_rows=False))
    with timed("plan"):
        plan = eraser().plan(people)
    with timed("apply"):
        eraser().apply(plan, people)
    with timed("purge"):
        outcome = eraser().purge(plan, people, ignore_retention=True)
    assert outcome.state == "purged", outcome

def by_vault():
    from armnesia.vault import Configuration, Vault
    arms = tuple(f"arm-{arm}" for arm in range(100))
    configuration = Configuration(actions=arms, mode="external", may_erase_at_source=True)
    with Vault.create(f"sqlite:///{log}/vault.db", configuration) as vault:
        with timed("ingest"):
            vault.ingest(str(log / "*.parquet"), user="user")
        with timed("forget"):
            vault.forget(users=names)
        with timed("erase"):
            assert vault.erase_at_sources().sources[0].state == "purged"

if kind == "duckdb":
    with timed("write"):
        by_duckdb()
elif kind == "vault":
    by_vault()
elif os.fork() == 0:  # the lake is made in a process of its own, whose memory does not count
    make_table()
    os._exit(0)
else:
    _, status = os.wait()
    assert status == 0
    by_eraser({"parquet": str(log / "*.parquet"), "delta": f"delta:{log / 'table'}",
        "iceberg": "iceberg:lake.logs.clicks"}[kind])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"times": times, "peak": peak}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--people", default="1,50")
    parser.add_argument("--folder", type=Path, default=None)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        made = Path(folder) / "made"
        made.mkdir()
        subprocess.run([sys.executable, "-c", MAKE, str(given.rows), str(PARTS), made], check=True)
        size = sum(path.stat().st_size for path in made.iterdir()) / 1e6
        print(f"{machine()}\n{given.rows:,} rows in {PARTS} files, {size:,.0f} MB\n")
        print("| | people | step | s | processor s | x DuckDB's writing | most memory |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for number in map(int, given.people.split(",")):
            measure(made, Path(folder) / "log", number, given.rows)


def measure(made: Path, log: Path, number: int, rows: int) -> None:
    """Print a row for each step of each kind."""
    names = [f"user-{17 * person % max(rows // 20, 1):09d}" for person in range(number)]
    bare = 0.0
    for kind in KINDS:
        shutil.copytree(made, log)
        found = run(kind, log, names)
        shutil.rmtree(log)
        for step, (clock, processor) in found["times"].items():
            bare = bare or processor
            print(
                f"| {kind} | {number} | {step} | {clock:.2f} | {processor:.2f} | {processor / bare:.2f}"
                f" | {found['peak']:,.0f} MB |",
                flush=True,
            )


def run(kind: str, log: Path, names: list[str]) -> dict[str, Any]:
    """Measure in a process of its own."""
    catalog = {
        "PYICEBERG_CATALOG__LAKE__TYPE": "sql",
        "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{log}/catalog.db",
        "PYICEBERG_CATALOG__LAKE__WAREHOUSE": f"file://{log}/warehouse",
    }
    given = json.dumps({"kind": kind, "log": str(log), "names": names})
    ended = subprocess.run(
        [sys.executable, "-c", MEASURE, given],
        env={**os.environ, **catalog},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(ended.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
