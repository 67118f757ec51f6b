"""A vault with many decisions: what forgetting, deciding and verifying cost.

    python benchmarks/vault_decisions.py [--rows 1000000] [--decisions 100000] [--url sqlite:///FILE]

Prints times and ratios. Exits with 1 if a request in 20 decisions takes more than 3 times one of as many rows
in one decision, if naming one decision takes more than 5 ms, or if verifying four times as many rows takes
more than 6 times as long.
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from armnesia.vault import Configuration, Vault

ACTIONS = tuple(f"arm {number}" for number in range(10))
ROWS_OF_ONE, ASKED = 20, 40
"""Rows of each person who may be forgotten, and how many people of each kind are."""
MOST_RATIO, MOST_SECONDS, MOST_GROWTH = 3.0, 0.005, 6.0


def write_log(path: Path, rows: int, decisions: int) -> None:
    """Write rows of a tenth as many people: some have 20 rows, the others share what is left.

    The 20 rows are in as many decisions; those of every tenth of these people are in one.
    """
    import duckdb  # noqa: PLC0415 (an extra)

    random = np.random.default_rng(1)
    asked, people = number_of_asked(rows), rows // 10
    person = np.arange(rows) // ROWS_OF_ONE
    others = np.arange(rows - ROWS_OF_ONE * asked)
    person[ROWS_OF_ONE * asked :] = asked + others % (people - asked)
    place = random.integers(0, decisions, rows)
    alone = (person % 10 == 0) & (person < asked)
    place[alone] = place[person[alone] * ROWS_OF_ONE]
    arm, click = random.integers(0, len(ACTIONS), rows), random.integers(0, 2, rows)
    columns = {"person": person, "place": place, "arm": arm, "click": click}
    with duckdb.connect() as connection:
        for name, values in columns.items():
            connection.register(f"column_{name}", {name: values})
        joined = " POSITIONAL JOIN ".join(f"column_{name}" for name in columns)
        connection.execute(
            "COPY (SELECT 'user-' || person AS who, place, 'arm ' || arm AS arm, click,"
            f" row_number() OVER () AS id FROM {joined}) TO '{path}' (FORMAT parquet)"
        )


def number_of_asked(rows: int) -> int:
    """How many people have 20 rows: the first tenth of them."""
    return rows // 100


def seconds(work: Callable[[], Any]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median_of(asked: list[Callable[[], Any]]) -> float:
    """The median time of calls, after one to warm up."""
    asked[0]()
    return statistics.median(map(seconds, asked[1:]))


def filled(folder: Path, rows: int, decisions: int, url: str | None) -> Vault:
    """A vault with so many rows, of a tenth as many people."""
    log = folder / f"log-{rows}.parquet"
    write_log(log, rows, decisions)
    configuration = Configuration(actions=ACTIONS, by=("place",))
    vault = Vault.create(
        url or f"sqlite:///{folder}/vault-{rows}.db", configuration, keys=folder / f"{rows}.keys"
    )
    took = seconds(lambda: vault.ingest(str(log), action="arm", reward="click", user="who", id="id"))
    print(f"ingest {rows:,} rows into {vault.status().decisions:,} decisions: {rows / took:,.0f} rows/s")
    return vault


def main() -> int:
    """Fill two vaults and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--url", help="An empty PostgreSQL database for the larger vault.")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with filled(folder, given.rows // 4, given.decisions // 4, None) as smaller:
            quarter = seconds(smaller.verify)
        with filled(folder, given.rows, given.decisions, given.url) as vault:
            growth = seconds(vault.verify) / quarter
            print(f"verify {4:g} × the rows and decisions: {growth:.1f} × the time")
            places = [each["place"] for each in vault.decisions().keys[: ASKED + 1]]
            named = median_of([partial(vault.decide, {"place": place}) for place in places])
            print(f"decide --where: {1000 * named:.2f} ms")
            people = np.random.default_rng(2).permutation(number_of_asked(given.rows))
            many, one = (
                median_of(
                    [
                        partial(vault.forget, [f"user-{person}"])
                        for person in people[(people % 10 == 0) == alone][: ASKED + 1]
                    ]
                )
                for alone in (False, True)
            )
            print(f"forget {ROWS_OF_ONE} rows in one decision: {1000 * one:.2f} ms")
            print(f"forget {ROWS_OF_ONE} rows in as many decisions: {1000 * many:.2f} ms, {many / one:.2f} ×")
    return int(many / one > MOST_RATIO or named > MOST_SECONDS or growth > MOST_GROWTH)


if __name__ == "__main__":
    sys.exit(main())
