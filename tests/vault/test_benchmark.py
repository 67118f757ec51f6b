"""The benchmarks of the vault still run, and the rival for retraining is the fastest that we know."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.units import UNIT
from armnesia.vault import Configuration
from tests.databases import Place
from tests.vault.raw_vaults import arms, values

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "vault.py"


def test_it_compares_with_the_faster_way_to_retrain() -> None:
    command = [sys.executable, str(PROGRAM), "--rows", "2000", "--forgets", "25", "--sqlite"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    forget = re.search(r"forget a user of 10 rows: ([0-9.]+) ms", ran.stdout)
    ways = re.findall(r"retraining (by [a-z -]+): ([0-9.]+) s", ran.stdout)
    factor = re.search(r"the faster of the two is ([0-9.,]+) times a forget", ran.stdout)
    assert forget
    assert [way for way, _ in ways] == ["by a group-by", "by sums of each arm"]
    assert factor
    columnar = re.findall(
        r"no vault, counting again in columns \(\d+ threads\), ([a-z ]+): ([0-9.]+) s,"
        r" [0-9.,]+ times a forget",
        ran.stdout,
    )
    assert [way for way, _ in columnar] == ["the person filtered out", "the file written anew"]
    assert all(float(seconds) > 0 for _, seconds in columnar)


def test_counting_again_in_columns_gives_what_the_vault_has_after_a_forget(
    place: Place, tmp_path: Path
) -> None:
    benchmark = load_benchmark()
    log = tmp_path / "log.parquet"
    benchmark.write_log(log, 2000)
    with place.create(Configuration(actions=benchmark.ACTIONS)) as vault:
        vault.ingest(str(log), action="arm", reward="click", user="who", id="id")
        done = vault.forget(users=["user-7"])
        assert done.records == 10
        rows = zip(benchmark.ACTIONS, arms(vault), strict=True)
        left = {action: (count, total // UNIT) for action, (count, total, _) in rows}
    assert sum(count for count, _ in left.values()) == 1990
    before = log.read_bytes()
    for recount in (benchmark.recounted, benchmark.rewritten):
        found = {arm: (count, clicks) for arm, count, clicks in recount(log, "user-7")}
        assert found == left
        assert (log.read_bytes() == before) is (recount is benchmark.recounted)


def load_benchmark() -> Any:
    specification = importlib.util.spec_from_file_location("benchmark_of_the_vault", PROGRAM)
    assert specification is not None
    assert specification.loader is not None
    benchmark: Any = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(benchmark)
    return benchmark


def test_both_ways_to_retrain_give_the_same(place: Place) -> None:
    benchmark = load_benchmark()
    log = {"action": list("ABCDEABCAB"), "reward": [number / 10 for number in range(10)]}
    with place.create(Configuration(actions=benchmark.ACTIONS)) as vault:
        vault.ingest(log, no_user=True)
        grouped, in_one_pass = (values(vault, sql) for sql in benchmark.RETRAINING.values())
    assert [int(value) for row in sorted(grouped) for value in row[1:]] == [int(v) for v in in_one_pass[0]]


def test_bare_sql_runs_the_very_statements_of_a_forget(tmp_path: Path) -> None:
    benchmark = load_benchmark()
    log, url = tmp_path / "log.parquet", f"sqlite:///{tmp_path}/vault.db"
    benchmark.write_log(log, 2000)
    with benchmark.Vault.create(url, Configuration(actions=benchmark.ACTIONS)) as vault:
        vault.ingest(str(log), action="arm", reward="click", user="who", id="id")
        database = benchmark.copied(vault, "SQLite", url)
        vault.forget(users=["user-1"])
        bare = benchmark.BareSql(database, vault)
        bare.forget("user-2")
        ours, theirs = statements_of(vault.database), statements_of(database)
        vault.forget(users=["user-3"])
        bare.forget("user-3")
        database.close()
    # What follows is the database's own in both.
    ours, theirs = ours[: ours.index("COMMIT")], theirs[: theirs.index("COMMIT")]
    changing = ("INSERT", "UPDATE", "DELETE")
    assert [each for each in ours if each.startswith(changing)] == [
        each for each in theirs if each.startswith(changing)
    ]
    assert set(theirs) <= set(ours)
    assert len(theirs) > 8


def statements_of(database: Any) -> list[str]:
    """The statements that a database runs from now on, without the values in them."""
    found: list[str] = []
    values = re.compile(r"x?'(?:[^']|'')*'|(?<=[ (])-?\d+|NULL")
    database._connection.set_trace_callback(lambda statement: found.append(values.sub("?", statement)))
    return found


@pytest.mark.slow
@pytest.mark.skipif(
    "ARMNESIA_HARD_TEST" not in os.environ, reason="it runs 30 commands; make hard-test runs it"
)
def test_the_peak_memory_of_every_command_is_printed(tmp_path: Path) -> None:
    program = PROGRAM.with_name("vault_memory.py")
    size = ("--rows", "2000", "--entries", "30", "--folder", str(tmp_path))
    ran = subprocess.run(
        [sys.executable, str(program), *size, "--sqlite"], capture_output=True, text=True, check=True
    )
    lines = re.findall(r"^  (\S.*?) +([0-9.]+) s +([0-9]+) MB$", ran.stdout, re.MULTILINE)
    assert len(lines) == len(ran.stdout.splitlines()) - 1 == 19
    assert all(20 < int(memory) < 600 for *_, memory in lines)
    assert list(tmp_path.iterdir()) == []
