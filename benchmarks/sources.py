"""Logs in files, lakes and databases: counted, looked up and erased from, beside DuckDB's own statements.

    python benchmarks/sources.py [--rows N] [--kinds parquet,delta,…] [--tasks count,…] [--before FOLDER]

Makes a log of N rows (10⁷ by default) and 100 arms, twenty rows per person, scattered, in each kind of
source. Sides take turns, each time in a process of its own that has read a tiny log before:

- `count`: `read_log` beside DuckDB's group-by with the same rounding, in which nothing is checked;
- `look-up`: `log.request` of one person beside DuckDB's look-up in the column's own type;
- `erase`: `armnesia erase --purge` of 200 people by a vault that has counted the log; beside it stands DuckDB
  writing the Parquet files again without these rows, which checks nothing.

`--before` is the folder `src` of another version of armnesia, which then is a third side. Times are medians
by the clock. Memory is that of the largest process of a side; a server is none of them. A line ends with the
goal, and the exit code is 1 if one is missed. Small logs miss some: every process takes its time to start.
The logs are made in a temporary folder inside of `--folder`, and removed: 10⁸ rows of Parquet need 2 GB.
ARMNESIA_TEST_POSTGRES names a server; without it the tests' own is started.
"""

import argparse
import contextlib
import glob
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measuring import machine, run

KINDS = ("parquet", "delta", "iceberg", "sqlite", "postgresql")
ERASED = ("parquet", "delta", "iceberg")
PARTS, TOGETHER = 10, 200
"""How many files a log has, and how many people are erased."""
MOST_MEMORY = 300
"""Megabytes, of reading."""
MAKE = """
import json, os, sqlite3, sys
import duckdb
given = json.loads(sys.argv[1])
kind, rows, folder, source = given["kind"], given["rows"], given["folder"], given["source"]
database = duckdb.connect()
database.execute("SET preserve_insertion_order = false")
database.execute("SET enable_progress_bar = false")

def part(number, parts):
    first, last = number * rows // parts, (number + 1) * rows // parts
    return f'''SELECT CAST(hash(i) % {max(rows // 20, 1)} AS BIGINT) AS user_id,
        'arm-' || (hash(i + 7) % 100) AS action, CAST(hash(i + 13) % 1000003 AS DOUBLE) / 1000003 AS reward
        FROM range({first}, {last}) t(i)'''

os.makedirs(folder)
if kind == "parquet":
    for number in range(given["parts"]):
        database.execute(f"COPY ({part(number, given['parts'])}) TO '{folder}/{number}.parquet'")
elif kind == "delta":
    import deltalake
    for number in range(given["parts"]):
        rows_of_part = database.sql(part(number, given["parts"])).to_arrow_table()
        deltalake.write_deltalake(folder, rows_of_part, mode="append")
elif kind == "iceberg":
    from pyiceberg.catalog import load_catalog
    catalog = load_catalog("bench")
    catalog.create_namespace_if_not_exists("logs")
    name = source.partition(".")[2]
    table = catalog.create_table(name, schema=database.sql(part(0, given["parts"])).to_arrow_table().schema)
    for number in range(given["parts"]):
        table.append(database.sql(part(number, given["parts"])).to_arrow_table())
    print(catalog.load_table(name).metadata_location)
elif kind == "sqlite":
    file = sqlite3.connect(f"{folder}/log.db")
    file.execute("CREATE TABLE log (user_id INTEGER, action TEXT, reward REAL)")
    found = database.execute(part(0, 1))
    while some := found.fetchmany(50_000):
        file.executemany("INSERT INTO log VALUES (?, ?, ?)", some)
    file.commit()
else:
    import psycopg
    with psycopg.connect(source, autocommit=True) as server:
        server.execute("DROP TABLE IF EXISTS bench_log")
        server.execute("CREATE TABLE bench_log (user_id bigint, action text, reward float8)")
        with server.cursor().copy("COPY bench_log FROM STDIN") as copy:
            found = database.execute(part(0, 1))
            while some := found.fetchmany(50_000):
                copy.write("".join(f"{user}\\t{action}\\t{reward!r}\\n" for user, action, reward in some))
        server.execute("VACUUM ANALYZE bench_log")
"""
ARMNESIA = """
import json, re, sys, time
from armnesia import read_log
given = json.loads(sys.argv[1])
names = [f"arm-{arm}" for arm in range(100)]
options = {"table": given["table"], "user": "user_id", "actions": names}
read_log(given["tiny"], actions=["A"])
if given["task"] == "look-up":
    log = read_log(given["source"], **options)
start = time.perf_counter()
if given["task"] == "look-up":
    found = [int(log.request(user=given["person"]).counts.sum())]
elif given["task"] == "count":
    found = [int(sum) for sum in read_log(given["source"], **options).statistics().sums]
else:
    from armnesia.cli.main import main
    try:
        main(["erase", "--purge", "--ignore-retention", "--url", given["vault"], "--json"])
    except SystemExit as stopped:
        assert not stopped.code
    found = "erased"
taken = time.perf_counter() - start
print()
print(json.dumps([taken, found]))
"""
BARE = """
import importlib, json, sys, time
from pathlib import Path
import duckdb
given = json.loads(sys.argv[1])
kind, source = given["kind"], given["source"]
database = duckdb.connect(config={"enable_external_file_cache": "false"})
database.execute("SET enable_progress_bar = false")

def load(name):
    module = importlib.import_module(f"duckdb_extension_{name}")
    path = next(Path(module.__path__[0]).rglob(f"{name}.duckdb_extension"))
    database.execute(f"LOAD '{path}'")

if kind == "parquet":
    table = f"read_parquet('{source}')"
elif kind == "delta":
    load("delta")
    table = f"delta_scan('{source.removeprefix('delta:')}')"
elif kind == "iceberg":
    load("avro"), load("iceberg")
    table = f"iceberg_scan('{given['metadata']}')"
elif kind == "sqlite":
    load("sqlite_scanner")
    database.execute(f"ATTACH '{source.removeprefix('sqlite:///')}' AS there (TYPE sqlite, READ_ONLY)")
    table = "there.log"
else:
    load("postgres_scanner")
    database.execute(f"ATTACH '{source}' AS there (TYPE postgres, READ_ONLY)")
    table = "there.bench_log"
UNITS = "CASE WHEN reward BETWEEN 0 AND 1 THEN CAST(round_even(reward * 1e9, 0) AS BIGINT) END"
tally = f"SELECT action, count(*), sum({UNITS}), count({UNITS}) FROM {table} {{}} GROUP BY action"
database.execute("SELECT 1 FROM read_parquet(?)", [given["tiny"]]).fetchall()
start = time.perf_counter()
if given["task"] == "look-up":
    of_person = tally.format(f"WHERE user_id = {given['person']}")
    found = [sum(n for _, n, *_ in database.execute(of_person).fetchall())]
elif given["task"] == "count":
    sums = {action: units for action, _, units, _ in database.execute(tally.format("")).fetchall()}
    found = [int(sums.get(f"arm-{arm}", 0)) for arm in range(100)]
else:
    people = ", ".join(map(str, given["people"]))
    for path in sorted(Path(given["folder"]).glob("*.parquet")):
        kept = f"FROM read_parquet('{path}') WHERE user_id NOT IN ({people})"
        database.execute(f"COPY ({kept}) TO '{path}.new'")
    found = "erased"
print(json.dumps([time.perf_counter() - start, found]))
"""
PREPARE = """
import json, os, sys
from armnesia.cli.main import main
given = json.loads(sys.argv[1])
def command(*words):
    try:
        main([*words, "--url", given["vault"], "--json"])
    except SystemExit as stopped:
        assert not stopped.code, words
with open("people.txt", "w") as file:
    file.write("\\n".join(map(str, given["people"])))
with open("arms.txt", "w") as file:
    file.write("\\n".join(f"arm-{arm}" for arm in range(100)))
command("init", "--actions-file", "arms.txt", "--external", "--may-erase-at-source")
command("ingest", given["source"], "--user-column", "user_id")
command("forget", "--file", "people.txt", "--exactly")
"""


LEFT = """
import duckdb, glob, json, sys
given = json.loads(sys.argv[1])
files = glob.glob(f"{given['place']}/**/*.parquet", recursive=True)
people = ", ".join(map(str, given["people"]))
sql = f"SELECT count(*) FROM read_parquet(?, union_by_name = true) WHERE user_id IN ({people})"
print(duckdb.execute(sql, [files]).fetchone()[0])
"""


class Log:
    """One log of one kind, made anew."""

    made = 0

    def __init__(self, kind: str, rows: int) -> None:
        Log.made += 1
        self.kind, self.folder = kind, str(Path(f"{kind}-{Log.made}").absolute())
        name = f"bench.logs.clicks_{Log.made}"
        self.source = {
            "parquet": f"{self.folder}/*.parquet",
            "delta": f"delta:{self.folder}",
            "iceberg": f"iceberg:{name}",
            "sqlite": f"sqlite:///{self.folder}/log.db",
            "postgresql": os.environ.get("ARMNESIA_TEST_POSTGRES", ""),
        }[kind]
        self.metadata = run(MAKE, json.dumps({**self.given, "rows": rows, "parts": PARTS}))[0]

    @property
    def given(self) -> dict[str, Any]:
        table = {"sqlite": "log", "postgresql": "bench_log"}.get(self.kind)
        return {"kind": self.kind, "folder": self.folder, "source": self.source, "table": table}

    def rows_of(self, people: list[int]) -> int:
        """How many rows of these people are in the files, whatever the table says."""
        return int(run(LEFT, json.dumps({"place": self.place, "people": people}))[0])

    def remove(self) -> None:
        """Delete the files."""
        shutil.rmtree(self.place)

    @property
    def place(self) -> str:
        """The folder of the files."""
        table = self.source.rpartition(".")[2]
        return (
            glob.glob(f"warehouse/**/{table}", recursive=True)[0] if self.kind == "iceberg" else self.folder
        )


def measure(log: Log, task: str, rounds: int, before: str | None, **more: Any) -> bool:
    """Print the time and the memory of each side, and whether the goal is met."""
    given = {**log.given, "task": task, "metadata": log.metadata, **more}
    sides: dict[str, tuple[str, str | None]] = {"DuckDB": (BARE, None), "armnesia": (ARMNESIA, None)}
    if before is not None:
        sides["before"] = (ARMNESIA, before)
    times: dict[str, list[float]] = {side: [] for side in sides}
    peaks, found = dict.fromkeys(sides, 0.0), []
    for _ in range(rounds):
        for side, (code, source) in sides.items():
            printed, peak = run(code, json.dumps(given), source=source)
            taken, answer = json.loads(printed.splitlines()[-1])
            times[side].append(taken)
            peaks[side] = max(peaks[side], peak)
            found.append(answer)
    assert all(answer == found[0] for answer in found), "the sides differ"
    return report(log.kind, task, {side: statistics.median(taken) for side, taken in times.items()}, peaks)


def report(kind: str, task: str, seconds: dict[str, float], peaks: dict[str, float]) -> bool:
    """Print one line, and say whether the goal is met."""
    words = [f"{kind:11} {task:8}"]
    for side, taken in seconds.items():
        ratio = "" if side == "DuckDB" else f" ×{taken / seconds['DuckDB']:.2f}"
        words.append(f"{side} {taken:8.3f} s{ratio} {peaks[side]:5,.0f} MB")
    most = goal(kind, task, seconds)
    is_met = seconds["armnesia"] <= most and (task == "erase" or peaks["armnesia"] <= MOST_MEMORY)
    if most < math.inf:
        words.append(f"goal {most:.3f} s: {'met' if is_met else 'MISSED'}")
    print("   ".join(words), flush=True)
    return is_met


def goal(kind: str, task: str, seconds: dict[str, float]) -> float:
    """How many seconds it may take."""
    if task == "erase":
        return 1.2 * seconds.get("before", math.inf)
    if kind in {"sqlite", "postgresql"} and task == "count":  # the version before looks up in memory
        return 1.5 * min(taken for side, taken in seconds.items() if side != "armnesia")
    if kind == "parquet":
        return 1.25 * seconds["DuckDB"] if task == "count" else 1.5 * seconds["DuckDB"] + 0.06
    return math.inf


def measure_erasing(kind: str, rows: int, before: str | None) -> bool:
    """Each side erases the same people once, from a log of its own."""
    people = [(7919 * number + 17) % max(rows // 20, 1) for number in range(TOGETHER)]
    seconds, peaks = {}, {}
    sides = {"DuckDB": None, "armnesia": None, **({"before": before} if before else {})}
    for side, source in sides.items():
        log = Log("parquet" if side == "DuckDB" else kind, rows)
        given = {
            **log.given,
            "task": "erase",
            "people": people,
            "tiny": TINY,
            "vault": f"sqlite:///{log.folder}.vault",
        }
        if side != "DuckDB":
            run(PREPARE, json.dumps(given), source=source)
        printed, peaks[side] = run(BARE if side == "DuckDB" else ARMNESIA, json.dumps(given), source=source)
        seconds[side] = json.loads(printed.splitlines()[-1])[0]
        assert side == "DuckDB" or log.rows_of(people) == 0, f"rows are left by {side}"
        log.remove()
    return report(kind, "erase", seconds, peaks)


TINY = "tiny.parquet"
CATALOG = """
import duckdb, os
duckdb.sql("COPY (SELECT 'A' AS action, 1 AS reward, 1 AS user_id) TO 'tiny.parquet'")
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--tasks", default="count,look-up,erase")
    parser.add_argument("--rounds", type=int, default=5, help="how often the sides take turns")
    parser.add_argument("--before", help="the folder src of another version of armnesia")
    parser.add_argument("--folder", help="where the temporary folder with the logs is made")
    given = parser.parse_args()
    print(machine())
    print(f"{given.rows:,} rows, 100 arms, {max(given.rows // 20, 1):,} people; medians of {given.rounds}")
    start = time.perf_counter()
    with (
        tempfile.TemporaryDirectory(prefix="armnesia-sources-", dir=given.folder) as folder,
        contextlib.chdir(folder),
    ):
        os.environ["PYICEBERG_CATALOG__BENCH__URI"] = f"sqlite:///{folder}/catalog.db"
        os.environ["PYICEBERG_CATALOG__BENCH__WAREHOUSE"] = f"file://{folder}/warehouse"
        os.mkdir("warehouse")
        run(CATALOG)
        met = []
        for kind in given.kinds.split(","):
            if kind == "postgresql" and not os.environ.get("ARMNESIA_TEST_POSTGRES"):
                from tests.databases import postgres_url  # noqa: PLC0415 (it starts a server)

                os.environ["ARMNESIA_TEST_POSTGRES"] = postgres_url()
            log = Log(kind, given.rows)
            for task in ("count", "look-up"):
                if task in given.tasks:
                    person = given.rows // 60
                    met.append(measure(log, task, given.rounds, given.before, tiny=TINY, person=person))
            log.remove()
            if "erase" in given.tasks and kind in ERASED:
                met.append(measure_erasing(kind, given.rows, given.before))
    print(f"({time.perf_counter() - start:.0f} s in all)")
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
