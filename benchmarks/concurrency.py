"""Clients that forget people at the same time: how long each waits, and whether all get their turn.

    python benchmarks/concurrency.py [--clients 8] [--seconds 10] [--sqlite | --postgresql]

Each client forgets people of its own, one after another, in a process of its own. Printed are the median and
the 99th percentile of the time of one request, and the requests of the slowest client against the mean of
all. Without a server's address in ARMNESIA_TEST_POSTGRES, a PostgreSQL server is started.
"""

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from armnesia.vault import Configuration, Vault
from tests.databases import Place, fresh_place

PEOPLE_PER_CLIENT = 20_000


def client(place: Place, number: int, start: Any, seconds: float, results: Any) -> None:
    """Forget people until the time is over."""
    with Vault.open(place.url, keys=place.keys, timeout=120) as vault:
        vault.forget(users=[f"{number}-warm-up"])
        start.wait()
        times: list[float] = []
        end = time.perf_counter() + seconds
        while time.perf_counter() < end and len(times) < PEOPLE_PER_CLIENT:
            began = time.perf_counter()
            vault.forget(users=[f"{number}-{len(times)}"])
            times.append(time.perf_counter() - began)
    results.put((number, times))


def measure(place: Place, clients: int, seconds: float) -> str:
    """Let all clients work; one line of results."""
    context = multiprocessing.get_context("spawn")
    start, results = context.Barrier(clients), context.Queue()
    people = [f"{number}-{person}" for number in range(clients) for person in range(2_000)]
    rows = {"action": ["A", "B"] * (len(people) // 2), "reward": [1, 0] * (len(people) // 2), "user": people}
    with place.create(Configuration(actions=("A", "B"))) as vault:
        vault.ingest(rows, user="user")
    workers = [
        context.Process(target=client, args=(place, number, start, seconds, results))
        for number in range(clients)
    ]
    for worker in workers:
        worker.start()
    found = dict(results.get() for _ in workers)
    for worker in workers:
        worker.join()
    times = np.concatenate([np.array(own) for own in found.values()])
    median, late = np.quantile(times, [0.5, 0.99])
    numbers = np.array([len(own) for own in found.values()])
    return (
        f"{len(times) / seconds:7.0f} requests/s  median {1000 * median:7.1f} ms  99 % {1000 * late:7.1f} ms"
        f"  ratio {late / median:5.1f}  slowest client {numbers.min() / numbers.mean():4.2f} of the mean"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--sqlite", action="store_true")
    parser.add_argument("--postgresql", action="store_true")
    arguments = parser.parse_args()
    both = arguments.sqlite == arguments.postgresql
    print(f"{arguments.clients} clients, {os.cpu_count()} cores")
    cases = ["sqlite"] if both or arguments.sqlite else []
    cases += ["postgresql"] if both or arguments.postgresql else []
    for database in cases:
        with tempfile.TemporaryDirectory() as folder:
            place = fresh_place(database, Path(folder))
            line = measure(place, arguments.clients, arguments.seconds)
            print(f"{database:<12} {line}")


if __name__ == "__main__":
    main()
