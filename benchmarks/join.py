"""Joining exposures with a metric: the time beside that of the bare query, in the same run.

    python benchmarks/join.py [--rows N] [--people N] [--beside FOLDER]

Exposures and metric have N rows each (10⁷ by default), in Parquet. A person sees two of ten experiments, and
one in 200 exposures is of another variant. The bare query is what one would write by hand in DuckDB: first
exposures, people with one variant, sums in the window. It counts nothing, checks nothing and makes no ids.
`--beside` names the folder src of another version, which is measured too. Peak memory is the largest
resident set of each process.
"""

import argparse
import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path

MAKE = """
import duckdb, sys
rows, people = int(sys.argv[1]), int(sys.argv[2])
month = 30 * 86_400_000_000
exposures = f'''
    SELECT 'experiment-' || ((person + which) % 10) AS experiment, 'user-' || person AS "user",
        chr(65 + ((hash(person * 10 + which) % 3) + (hash(i * 7) % 200 = 0)::INTEGER)::INTEGER) AS action,
        TIMESTAMP '2026-01-01' + to_microseconds((hash(i * 11) % {month})::BIGINT) AS time
    FROM (SELECT i, (hash(i) % {people})::BIGINT AS person, (hash(i * 3 + 1) % 2)::BIGINT AS which
        FROM range({rows}) t(i))'''
metric = f'''
    SELECT 'user-' || (hash(i * 13) % {people + people // 4}) AS "user",
        TIMESTAMP '2026-01-01' + to_microseconds((hash(i * 17) % {month * 3 // 2})::BIGINT) AS time,
        (hash(i * 19) % 10000) / 100 AS value
    FROM range({rows}) t(i)'''
duckdb.execute("SET enable_progress_bar = false")
duckdb.sql(f"COPY ({exposures}) TO 'exposures.parquet'")
duckdb.sql(f"COPY ({metric}) TO 'metric.parquet'")
"""
BARE = """
import duckdb
database = duckdb.connect(config={"temp_directory": "spilled"})
database.execute("SET preserve_insertion_order = false")
database.execute("SET enable_progress_bar = false")
database.execute('''
    COPY (
        WITH people AS (
            SELECT experiment, "user", min(time) AS first, min(action) AS action
            FROM 'exposures.parquet' GROUP BY ALL HAVING min(action) = max(action)
        )
        SELECT experiment, action, people."user", first, coalesce(sum(value), 0) AS reward
        FROM people LEFT JOIN 'metric.parquet' AS metric
        ON metric."user" = people."user" AND time >= first AND time < first + INTERVAL 14 DAY
        GROUP BY ALL
    ) TO 'bare.parquet' ''')
print(database.execute("SELECT count(*), sum(reward) FROM 'bare.parquet'").fetchall())
"""
OURS = """
import duckdb
from armnesia import join_metrics
done = join_metrics("exposures.parquet", "metric.parquet", window="14d", out="log.parquet", replace=True)
print(duckdb.sql("SELECT count(*), sum(reward) FROM 'log.parquet'").fetchall())
"""


def run(name: str, code: str, *arguments: str, path: str | None = None) -> tuple[float, str]:
    """Run Python code in a process of its own; print its time and peak memory."""
    start = time.perf_counter()
    with open("output", "wb") as output:
        actions = [(os.POSIX_SPAWN_DUP2, output.fileno(), number) for number in (1, 2)]
        command = [sys.executable, "-c", code, *arguments]
        environment = os.environ if path is None else {**os.environ, "PYTHONPATH": path}
        pid = os.posix_spawn(sys.executable, command, environment, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - start
    printed = Path("output").read_text(errors="replace").strip()
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{name} failed: {printed[-2000:]}")
    peak = usage.ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)
    cpu = usage.ru_utime + usage.ru_stime
    print(f"{name:28} {seconds:8.1f} s {cpu:8.1f} s of CPU {peak:8,.0f} MB   {printed}", flush=True)
    return cpu, printed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--people", type=int, help="by default a fifth of the rows")
    parser.add_argument("--beside", metavar="FOLDER", help="the folder src of another version")
    given = parser.parse_args()
    people = given.people or given.rows // 5
    beside = given.beside and os.path.abspath(given.beside)
    print(f"{given.rows:,} exposures and metric rows, {people:,} people", flush=True)
    with tempfile.TemporaryDirectory(prefix="armnesia-join-") as folder, contextlib.chdir(folder):
        run("make the tables", MAKE, str(given.rows), str(people))
        bare, _ = run("the bare query", BARE)
        ours, _ = run("join_metrics", OURS)
        if beside:
            run("join_metrics of the other", OURS, path=beside)
            run("join_metrics again", OURS)
            run("join_metrics of the other", OURS, path=beside)
        again, _ = run("the bare query again", BARE)
    print(f"join_metrics takes {ours / ((bare + again) / 2):.2f} times the CPU time of the bare query")


if __name__ == "__main__":
    main()
