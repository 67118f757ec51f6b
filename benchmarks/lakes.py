"""Logs in Parquet files beside the bare engine: every number is a ratio of one run.

    python benchmarks/lakes.py [--rows N] [--users integer|text|both] [--rounds N] [--folder FOLDER]

Makes a log of N rows (10⁷ by default) and 100 arms, twenty rows per person, scattered; 10⁸ rows need 5 GB of
disk and a few minutes. `layout_log` sorts it by person. Then, in one process each:

- `read_log` and its statistics beside the bare query: the same fixed-point rounding, the same grouping, and
  nothing checked;
- `log.request` of 1, 2 and 500 people beside the bare look-up in the column's own type, in the scattered and
  in the sorted file;
- an external vault of the log: the first ingest beside the bare group-by, and its size; a request of 1, 2 and
  500 people, each forgotten once, beside the bare look-up, in both files; a person who is in no row; and
  `verify`, without anybody forgotten and with them;
- the same group-by and look-up of one person by Polars, Spark (`local[2]`, if it is installed) and, up to 10⁷
  rows, pandas, in floats, and by `read_log` on Spark, each as a ratio to the bare query.

The two sides take turns in the same process (`--rounds`), and the ratio is that of their medians; by
processor time as well, because other work on the machine changes the time of the clock. Peak memory is that
of a process that does one of them once; beside it stands the part above what the imports take.
"""

import argparse
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_ROWS_OF_PANDAS = 10_000_000
LIBRARIES = ("armnesia", "numpy", "scipy", "duckdb", "polars", "pandas", "pyarrow", "pyspark", "psycopg")

MAKE = """
import duckdb, sys
rows, users, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
user = f"CAST(hash(i) % {max(rows // 20, 1)} AS BIGINT)"
user = user if users == "integer" else f"printf('user-%09d', {user})"
database = duckdb.connect()
database.execute("SET preserve_insertion_order = false")
database.execute("SET enable_progress_bar = false")
database.execute(f'''COPY (
    SELECT {user} AS user_id, 'arm-' || (hash(i + 7) % 100) AS action,
        CAST(hash(i + 13) % 1000003 AS DOUBLE) / 1000003 AS reward
    FROM range({rows}) t(i)) TO '{out}' (FORMAT parquet)''')
"""
LAYOUT = """
import sys
from armnesia import layout_log
done = layout_log(sys.argv[1], sys.argv[2], user="user_id")
print(f"{done.row_groups} row groups, {done.bytes / 1e6:,.0f} MB")
"""
# What all measured processes begin with: the same imports, so that memory can be compared.
BEGIN = """
import json, re, resource, statistics, sys, time
import duckdb
import armnesia.logs
given = json.loads(sys.argv[1])
path, names, users = given["path"], [f"arm-{arm}" for arm in range(100)], given["users"]

UNITS = ("CASE WHEN reward BETWEEN $low AND $high"
    " THEN CAST(round_even((reward - $low) / ($high - $low) * 1000000000::DOUBLE, 0) AS BIGINT) END")
TALLY = f"count(*), sum({UNITS}), count({UNITS})"
RANGE = {"low": 0.0, "high": 1.0}
# Without a cache of file contents: the other side has none.
database = duckdb.connect(config={"enable_external_file_cache": "false"})
database.execute("SET enable_progress_bar = false")

def bare_group_by():
    sql = f"SELECT action, {TALLY} FROM read_parquet($path) GROUP BY action"
    return {arm: sums for arm, *sums in database.execute(sql, {"path": path, **RANGE}).fetchall()}

def bare_look_up():
    type_ = "BIGINT" if isinstance(users[0], int) else "VARCHAR"
    one = len(users) == 1
    chosen = f"= CAST($users AS {type_})" if one else f"IN (SELECT unnest(CAST($users AS {type_}[])))"
    sql = f"SELECT action, {TALLY} FROM read_parquet($path) WHERE user_id {chosen} GROUP BY action"
    parameters = {"path": path, "users": users[0] if one else users, **RANGE}
    return {arm: sums for arm, *sums in database.execute(sql, parameters).fetchall()}

def read():
    return armnesia.logs.read_log(path, user="user_id", actions=names)

def sums_of(records):
    return {arm: [int(n), int(units), int(n)]
        for arm, n, units in zip(names, records.counts, records.sums, strict=True) if n}

def peak_memory():
    with open("/proc/self/status") as status:
        return int(re.search(r"VmHWM:\\s+(\\d+) kB", status.read())[1]) / 1024
"""
COMPARE = (
    BEGIN
    + """
if given["what"] == "read":
    bare, ours = bare_group_by, lambda: sums_of(read().statistics())
else:
    log = read()
    bare, ours = bare_look_up, lambda: sums_of(log.request(users=users).records)
expected = bare()
assert ours() == expected, "the two sides differ"
times = {"bare": [], "ours": []}
for _ in range(given["rounds"]):
    for side, run in (("bare", bare), ("ours", ours)):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        times[side].append((time.perf_counter() - wall, time.process_time() - cpu))
print(json.dumps({side: [statistics.median(each) for each in zip(*taken)] for side, taken in times.items()}))
"""
)
ONCE = (
    BEGIN
    + """
import numpy
bare, what = given["side"] == "bare", given["what"]
before = peak_memory()
if what == "request" and not bare:
    # The log was read before, in whatever memory that took: here only the request counts.
    from armnesia.core.statistics import ArmStatistics
    from armnesia.logs.columns import Columns
    from armnesia.logs.files.log import FileLog
    from armnesia.logs.files.source import FileSource
    columns = Columns("action", "reward", "user_id", None)
    source = FileSource(path, columns, table=None, whole_rows=False)
    zeros = numpy.zeros(100, int)
    log = FileLog(tuple(names), (0.0, 1.0), True, source, ArmStatistics(tuple(names), zeros, zeros))
if what == "read":
    bare_group_by() if bare else read().statistics()
else:
    bare_look_up() if bare else log.request(users=users)
print(json.dumps({"before": before, "peak": peak_memory()}))
"""
)
EXTERNAL = (
    BEGIN
    + """
import os, tempfile
from armnesia.vault import Configuration, Vault
folder = tempfile.mkdtemp(dir=".")
actions = Configuration(actions=tuple(names), mode="external")

def timed(run):
    wall, cpu = time.perf_counter(), time.process_time()
    found = run()
    return found, time.perf_counter() - wall, time.process_time() - cpu

def median(run):
    taken = [timed(run)[1:] for _ in range(given["rounds"])]
    return [statistics.median(each) for each in zip(*taken)]

report = {}
everyone = users
bare_group_by()
report["ingest"] = [median(bare_group_by)]
vault = Vault.create(f"sqlite:///{folder}/vault.db", actions)
done, *ours = timed(lambda: vault.ingest(path, user="user_id"))
assert done.added == given["rows"]
report["ingest"].append(ours)
report["size"] = sum(each.stat().st_size for each in os.scandir(folder))
report["verify"] = [report["ingest"][0], timed(vault.verify)[1:]]
first = 0
for number in (1, 2, 500):
    users = everyone[first : first + number]
    first += number
    bare = bare_look_up()
    report[f"forget {number}"] = [median(bare_look_up)]
    done, *ours = timed(lambda: vault.forget(users=users))
    assert {arm: n for arm, n in done.counts.items() if n} == {arm: sums[0] for arm, sums in bare.items()}
    report[f"forget {number}"].append(ours)
nobody = -1 if isinstance(everyone[0], int) else "nobody"
report["forget nobody"] = [report["ingest"][0], timed(lambda: vault.forget(users=[nobody]))[1:]]
found, *ours = timed(vault.verify)
assert found.holds, found.problems
report["verify with forgotten people"] = [report["ingest"][0], ours]
vault.close()
print(json.dumps(report))
"""
)
OTHERS = (
    BEGIN
    + """
import os
users = given["users"][:1]
user, library = users[0], given["library"]
if "spark" in library:
    os.environ["SPARK_MASTER"] = "local[2]"
    from armnesia.logs.tables.spark_session import spark_session
    spark = spark_session()
if library == "polars":
    import polars
    def run(lookup):
        log = polars.scan_parquet(path)
        log = log.filter(polars.col("user_id") == user) if lookup else log
        return log.group_by("action").agg(polars.len(), polars.col("reward").sum()).collect()
elif library == "pandas":
    import pandas
    def run(lookup):
        chosen = [("user_id", "==", user)] if lookup else None
        log = pandas.read_parquet(path, columns=["action", "reward"], filters=chosen)
        return log.groupby("action")["reward"].agg(["size", "sum"])
elif library == "spark":
    from pyspark.sql import functions
    def run(lookup):
        log = spark.read.parquet(path)
        log = log.filter(functions.col("user_id") == user) if lookup else log
        return log.groupBy("action").agg(functions.count("*"), functions.sum("reward")).collect()
else:
    from armnesia.logs import read_log
    name = f"spark:parquet.`{os.path.abspath(path)}`"
    log = read_log(name, user="user_id", actions=names)
    def run(lookup):
        if lookup:
            return log.request(user=user)
        return read_log(name, user="user_id", actions=names).statistics()
for lookup, bare in ((False, bare_group_by), (True, bare_look_up)):
    run(lookup)
    taken = {"bare": [], "other": []}
    for _ in range(given["rounds"]):
        for side, call in (("bare", bare), ("other", lambda: run(lookup))):
            start = time.perf_counter()
            call()
            taken[side].append(time.perf_counter() - start)
    print(json.dumps([statistics.median(each) for each in taken.values()]))
"""
)


def run(code: str, *arguments: str) -> tuple[str, float]:
    """Run Python code in a process of its own: what it prints, and its peak memory in megabytes."""
    with open("output", "wb") as output:
        actions = [(os.POSIX_SPAWN_DUP2, output.fileno(), number) for number in (1, 2)]
        command = [sys.executable, "-W", "ignore", "-c", code, *arguments]
        pid = os.posix_spawn(sys.executable, command, os.environ, file_actions=actions)
        _, status, usage = os.wait4(pid, 0)
    printed = Path("output").read_text(errors="replace").strip()
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"failed: {printed[-2000:]}")
    return printed, usage.ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


def compare(name: str, rounds: int, **given: Any) -> None:
    """Print the time and memory of both sides, and their ratios."""
    printed, _ = run(COMPARE, json.dumps({**given, "rounds": rounds}))
    times = json.loads(printed.splitlines()[-1])
    (bare, bare_cpu), (ours, ours_cpu) = times["bare"], times["ours"]
    line = (
        f"{name:42} {1e3 * bare:9.1f} ms {1e3 * ours:9.1f} ms   ×{ours / bare:.2f}"
        f"   of CPU {1e3 * bare_cpu:9.1f} {1e3 * ours_cpu:9.1f}   ×{ours_cpu / bare_cpu:.2f}"
    )
    if sys.platform == "linux":
        peaks = [json.loads(run(ONCE, json.dumps({**given, "side": side}))[0]) for side in ("bare", "ours")]
        whole = [peak["peak"] for peak in peaks]
        above = [peak["peak"] - peak["before"] for peak in peaks]
        line += f"   {whole[0]:6,.0f} MB {whole[1]:6,.0f} MB   ×{whole[1] / whole[0]:.2f}"
        line += f"   above imports {above[0]:6,.0f} {above[1]:6,.0f}"
    print(line, flush=True)


def measure_vault(path: str, order: str, rows: int, rounds: int, users: list[Any]) -> None:
    """Print what an external vault of the log takes, each operation once, beside the bare engine."""
    given = {"path": path, "rows": rows, "rounds": rounds, "users": users}
    report = json.loads(run(EXTERNAL, json.dumps(given))[0].splitlines()[-1])
    print(f"external vault, {order}: {report.pop('size') / 1e6:.2f} MB")
    for name, ((bare, bare_cpu), (ours, ours_cpu)) in report.items():
        print(
            f"  {name:40} {1e3 * bare:9.1f} ms {1e3 * ours:9.1f} ms   ×{ours / bare:.2f}"
            f"   of CPU {1e3 * bare_cpu:9.1f} {1e3 * ours_cpu:9.1f}   ×{ours_cpu / bare_cpu:.2f}",
            flush=True,
        )


def compare_others(rows: int, rounds: int, path: str, users: list[Any]) -> None:
    """Print how long other libraries take, in turns with the bare group-by and look-up."""
    has_spark = importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None
    left_out = {
        "pandas": rows > MOST_ROWS_OF_PANDAS and f"above {MOST_ROWS_OF_PANDAS:,} rows",
        "spark": not has_spark and "pyspark or Java is not installed",
        "armnesia on spark": not has_spark and "pyspark or Java is not installed",
    }
    for library in ("polars", "pandas", "spark", "armnesia on spark"):
        if left_out.get(library):
            print(f"{library:42} left out: {left_out[library]}")
            continue
        given = {"path": path, "users": users, "rounds": rounds, "library": library}
        printed, _ = run(OTHERS, json.dumps(given))
        (bare_group, group), (bare_look, look) = map(json.loads, printed.splitlines()[-2:])
        print(
            f"{library:42} group-by {1e3 * group:9.1f} ms   ×{group / bare_group:.2f},"
            f" one person {1e3 * look:9.1f} ms   ×{look / bare_look:.2f}",
            flush=True,
        )


def measure(users: str, rows: int, rounds: int) -> None:
    """All rows of the report for logs whose people are named by integers, or by text."""
    people = max(rows // 20, 1)
    some = [(7919 * number + people // 3) % people for number in range(min(500, people))]
    named = some if users == "integer" else [f"user-{user:09d}" for user in some]
    scattered, by_person = f"{users}.parquet", f"{users}-sorted.parquet"
    run(MAKE, str(rows), users, scattered)
    start = time.perf_counter()
    printed, memory = run(LAYOUT, scattered, by_person)
    seconds = time.perf_counter() - start
    print(f"\npeople named by {users}: {Path(scattered).stat().st_size / 1e6:,.0f} MB")
    print(f"layout_log: {seconds:.1f} s, {memory:,.0f} MB of memory, {printed}")
    columns = f"{'':42} {'bare':>12} {'armnesia':>12}"
    print(columns, flush=True)
    compare("read_log + statistics", rounds, what="read", path=scattered, users=named[:1])
    compare("read_log + statistics, sorted", rounds, what="read", path=by_person, users=named[:1])
    for number in (1, 2, 500):
        for path, order in ((scattered, "scattered"), (by_person, "sorted")):
            of = f"request of {number} {'person' if number == 1 else 'people'}, {order}"
            compare(of, rounds, what="request", path=path, users=named[:number])
    more = [(104_729 * number + people // 7) % people for number in range(min(503, people))]
    known = more if users == "integer" else [f"user-{user:09d}" for user in more]
    for path, order in ((scattered, "scattered"), (by_person, "sorted")):
        measure_vault(path, order, rows, rounds, known)
    compare_others(rows, rounds, scattered, named)


def machine() -> str:
    """Describe the machine and the versions."""
    cpu, memory = platform.processor() or platform.machine(), ""
    if sys.platform == "linux":
        model = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
        cpu = model[1] if model else platform.machine()
        found = re.search(r"MemTotal:\s+(\d+) kB", Path("/proc/meminfo").read_text())
        memory = f", {int(found[1]) / 1024**2:.0f} GiB" if found else ""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{cpu}, {os.cpu_count()} cores{memory}{load}\n{platform.platform()}, Python"
        f" {platform.python_version()}, {', '.join(_versions())}"
    )


def _versions() -> Iterator[str]:
    for name in LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            yield f"{name} {importlib.metadata.version(name)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--users", choices=["integer", "text", "both"], default="both")
    parser.add_argument("--rounds", type=int, default=5, help="how often the two sides take turns")
    parser.add_argument("--folder", help="where to make the files; by default a temporary folder")
    given = parser.parse_args()
    print(machine())
    print(f"{given.rows:,} rows, 100 arms, {max(given.rows // 20, 1):,} people; medians of {given.rounds}")
    with (
        tempfile.TemporaryDirectory(prefix="armnesia-lakes-", dir=given.folder) as folder,
        contextlib.chdir(folder),
    ):
        for users in ("integer", "text") if given.users == "both" else (given.users,):
            measure(users, given.rows, given.rounds)


if __name__ == "__main__":
    main()
