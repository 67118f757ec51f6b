"""The benchmarks of the vault still run, and the rival for retraining is the fastest that we know."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from armnesia.vault import Configuration
from tests.databases import Place
from tests.vault.raw_vaults import values

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


def test_both_ways_to_retrain_give_the_same(place: Place) -> None:
    specification = importlib.util.spec_from_file_location("benchmark_of_the_vault", PROGRAM)
    assert specification is not None
    assert specification.loader is not None
    benchmark: Any = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(benchmark)
    log = {"action": list("ABCDEABCAB"), "reward": [number / 10 for number in range(10)]}
    with place.create(Configuration(actions=benchmark.ACTIONS)) as vault:
        vault.ingest(log)
        grouped, in_one_pass = (values(vault, sql) for sql in benchmark.RETRAINING.values())
    assert [int(value) for row in sorted(grouped) for value in row[1:]] == [int(v) for v in in_one_pass[0]]


@pytest.mark.slow
def test_the_peak_memory_of_every_command_is_printed(tmp_path: Path) -> None:
    program = PROGRAM.with_name("vault_memory.py")
    size = ("--rows", "2000", "--entries", "30", "--folder", str(tmp_path))
    ran = subprocess.run(
        [sys.executable, str(program), *size, "--sqlite"], capture_output=True, text=True, check=True
    )
    lines = re.findall(r"^  (\S.*?) +([0-9.]+) s +([0-9]+) MB$", ran.stdout, re.MULTILINE)
    assert len(lines) == len(ran.stdout.splitlines()) - 1 == 16
    assert all(20 < int(memory) < 600 for *_, memory in lines)
    assert list(tmp_path.iterdir()) == []
