"""The service beside the vault called directly: requests per second, and how long the slowest take.

    python benchmarks/service.py [--seconds 10] [--rounds 3] [--mixed 60] [--sqlite | --postgresql]

The server runs in a process of its own, and so do its clients. Each round measures, one after another on
vaults of their own: the vault called directly by one process, the service with one client, and with 64.
People have ten records each. The rates of the service are divided by those of the vault in the same round;
printed are medians over rounds, and beside them the processor time of the vault's process and of the
server's, which other work on the same machine changes less, and that of the clients. If everybody is
forgotten before the time is over, the rate is that of the time it took. Then 200 clients read and forget at
the same time. Without a server's address in ARMNESIA_TEST_POSTGRES, a PostgreSQL server is started. Databases
are in the folder TMPDIR: on a disk that commits slowly, more is gained by storing the deletions of many
clients at once.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from armnesia.vault import Configuration, UserType, Vault
from tests.databases import DATABASES, Place, fresh_place
from tests.service.load import Load, Plan, loading
from tests.service.processes import Process, serve_process

ROWS = 10
PEOPLE = 6_000
MANY, MIXED = 64, 200
GOALS = {"one client": 0.5, f"{MANY} clients": 1.0}
"""The rates of deletions, as multiples of the vault's own, that the service is made to reach."""
READ = "/v1/decisions"
_NEVER = 10**9


def made(database: str, folder: str, people: int = PEOPLE) -> tuple[Place, str]:
    """A new vault, and a token for it."""
    place = fresh_place(database, Path(folder))
    users = [f"person {number % people}" for number in range(people * ROWS)]
    rows = {"action": ["A", "B"] * (len(users) // 2), "reward": [1, 0] * (len(users) // 2), "user": users}
    configuration = Configuration(actions=("A", "B"), user_type=UserType.TEXT)
    with Vault.create(place.url, configuration, keys=place.keys) as vault:
        vault.ingest(rows, user="user")
        return place, vault.create_token("operator").text


def names(people: int = PEOPLE) -> list[str]:
    return [f"person {number}" for number in range(people)]


def repeated(work: Callable[[], object], seconds: float) -> list[float]:
    """The times of calls until the time is over."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return times


class Times(NamedTuple):
    """The times of requests, the seconds in which they were answered, and the processor time of them all."""

    each: list[float]
    seconds: float
    processor: float
    of_clients: float = 0.0
    """The processor time of the process of the clients."""

    @property
    def rate(self) -> float:
        return len(self.each) / self.seconds

    def line(self, name: str) -> str:
        median, late = 1000 * np.quantile(self.each, [0.5, 0.99])
        clients = f" (clients {1000 * self.of_clients / len(self.each):.2f})" if self.of_clients else ""
        return (
            f"  {name:<34} {self.rate:8.0f}/s   median {median:7.1f} ms   99 % {late:7.1f} ms"
            f"   processor {1000 * self.processor / len(self.each):5.2f} ms{clients}"
        )


def direct(place: Place, seconds: float) -> tuple[Times, Times]:
    """The times of reads and of deletions of the vault itself."""
    people = iter(names())
    with place.open() as vault:
        vault.forget(users=[next(people)])
        vault.decisions()
        begun = time.process_time()
        reading = repeated(vault.decisions, seconds)
        middle = time.process_time()
        forgetting = repeated(lambda: vault.forget(users=[next(people)]), seconds)
        end = time.process_time()
        return Times(reading, seconds, middle - begun), Times(forgetting, seconds, end - middle)


def processor_seconds(running: Process) -> float:
    """The processor time of a server so far, as Linux tells it."""
    fields = Path(f"/proc/{running.process.pid}/stat").read_text("ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def loaded(url: str, token: str, people: list[str], clients: int, seconds: float, period: int) -> Load:
    """What clients were told; with a period of 1 they forget only."""
    plan = Plan(url, token, people, clients, seconds, period)
    if period == _NEVER:
        plan.reads = (READ,)
    with loading(plan) as load:
        found = load.result()
    if found.other or found.broken:
        raise SystemExit(f"clients were told {found.other[:3]}; {found.broken} connections broke")
    return found


def through_the_service(place: Place, token: str, clients: int, seconds: float) -> tuple[Times, Times]:
    """The times of reads and of deletions of clients."""
    people, warm = names(), clients * 2
    with serve_process(place) as running:
        loaded(running.url, token, people[:warm], clients, seconds, 1)
        begun = processor_seconds(running)
        reads = loaded(running.url, token, [], clients, seconds, _NEVER)
        middle = processor_seconds(running)
        deletions = loaded(running.url, token, people[warm:], clients, seconds, 1)
        end = processor_seconds(running)
    return (
        Times(reads.reading, reads.seconds, middle - begun, reads.processor),
        Times(deletions.forgetting, deletions.seconds, end - middle, deletions.processor),
    )


def compare(database: str, seconds: float, rounds: int) -> dict[str, float]:
    """Measure in turn; the ratios of rates of deletions."""
    ratios: dict[str, list[float]] = {name: [] for name in GOALS}
    for number in range(rounds):
        print(f"{database}, round {number + 1}", flush=True)
        with tempfile.TemporaryDirectory(prefix="armnesia-bench-") as folder:
            place, _ = made(database, folder)
            own = direct(place, seconds)
            print(own[0].line("vault, reads"))
            print(own[1].line("vault, deletions"), flush=True)
            for name, clients in zip(GOALS, (1, MANY), strict=True):
                place, token = made(database, folder)
                found = through_the_service(place, token, clients, seconds)
                for what, times, others in zip(("reads", "deletions"), found, own, strict=True):
                    line = times.line(f"service, {name}, {what}")
                    print(f"{line}   {times.rate / others.rate:5.2f} x", flush=True)
                ratios[name].append(found[1].rate / own[1].rate)
    return {name: float(np.median(found)) for name, found in ratios.items()}


def mixed(database: str, seconds: float) -> None:
    """200 clients, each of whose four requests is a deletion."""
    people = 60 * PEOPLE // 10
    with tempfile.TemporaryDirectory(prefix="armnesia-bench-") as folder:
        place, token = made(database, folder, people)
        with serve_process(place) as running:
            begun = processor_seconds(running)
            load = loaded(running.url, token, names(people), MIXED, seconds, 4)
            processor = processor_seconds(running) - begun
        print(f"{database}, {MIXED} clients that read and forget for {load.seconds:.0f} s")
        print(Times(load.reading, load.seconds, 0).line("reads"))
        print(Times(load.forgetting, load.seconds, processor).line("deletions (processor: of both)"))
        with place.open() as vault:
            entries = sum(entry.kind == "forget" for entry in vault.ledger())
            problems = len(vault.verify().problems)
    print(
        f"  refused as too busy: {len(load.refused)}; acknowledged {len(load.acknowledged)}, in the ledger"
        f" {entries}; problems found by verify: {problems}",
        flush=True,
    )
    if entries != len(load.acknowledged) or problems or not all(when for _, when in load.refused):
        raise SystemExit("the ledger does not hold every acknowledged deletion exactly once")


def main() -> int:
    """Measure and print; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mixed", type=float, default=60, help="seconds of 200 clients; 0: not measured")
    parser.add_argument("--sqlite", action="store_true")
    parser.add_argument("--postgresql", action="store_true")
    given = parser.parse_args()
    both = given.sqlite == given.postgresql
    missed = 0
    for database in DATABASES:
        if not (both or getattr(given, database)):
            continue
        for name, ratio in compare(database, given.seconds, given.rounds).items() if given.rounds else ():
            met = ratio >= GOALS[name]
            missed += not met
            print(
                f"{database}, deletions of {name}: {ratio:.2f} times the vault's own rate; the goal of"
                f" {GOALS[name]:g} is {'met' if met else 'missed'}"
            )
        if given.mixed:
            mixed(database, given.mixed)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
