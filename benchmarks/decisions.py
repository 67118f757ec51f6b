"""Many decisions in one call: decide, release, audit and compare, for a person and for a mass request.

    python benchmarks/decisions.py [--decisions 100000] [--arms 10] [--touched 20]

Prints seconds. Exits with 1 if decide, or release, audit and compare of the person's request, need a second
or more.
"""

import argparse
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from armnesia import (
    LCB,
    ArmStatistics,
    Budget,
    DeletionRequest,
    FrozenRollback,
    Gaussian,
    Rollback,
    Tilt,
    audit_jointly,
    compare_jointly,
    read_log,
    release_jointly,
)

UNIT, SECOND = 10**9, 1.0


def made(decisions: int, arms: int, touched: int) -> tuple[ArmStatistics, DeletionRequest]:
    """Decisions with a few hundred records per arm, of which a request takes some of one arm each."""
    random = np.random.default_rng(1)
    actions = tuple(f"arm {arm}" for arm in range(arms))
    counts = random.integers(100, 400, (decisions, arms))
    sums = random.binomial(counts, random.uniform(0.2, 0.4, (decisions, arms)))
    deleted = np.zeros_like(counts)
    rows = random.choice(decisions, touched, replace=False)
    deleted[rows, np.argmax(sums / counts, axis=-1)[rows]] = 20
    ones = random.hypergeometric(sums, counts - sums, deleted)
    statistics = ArmStatistics(actions, counts, sums * UNIT)
    return statistics, DeletionRequest(ArmStatistics(actions, deleted, ones * UNIT), binary=True)


def timed(what: str, work: Callable[[], Any]) -> float:
    """Run once to warm up and once to measure."""
    work()
    start = time.perf_counter()
    work()
    seconds = time.perf_counter() - start
    print(f"{what:58} {seconds:8.3f} s")
    return seconds


def main() -> int:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--decisions", type=int, default=100_000)
    parser.add_argument("--arms", type=int, default=10)
    parser.add_argument("--touched", type=int, default=20)
    given = parser.parse_args()
    budget, learner = Budget(epsilon=1.0, delta=1e-5), LCB(confidence=1e-3)
    statistics, person = made(given.decisions, given.arms, given.touched)
    print(f"{given.decisions} decisions, {given.arms} arms")
    slow = [timed("decide", lambda: learner.decide(statistics))]
    for unlearner in (Rollback(), FrozenRollback(), Tilt(), Gaussian()):
        case = (unlearner, learner, statistics, person, budget)
        name = f"{unlearner.name}, {given.touched} decisions touched"
        slow.append(timed(f"release by {name}", partial(release_jointly, *case)))
        slow.append(timed(f"audit of {name}", partial(audit_jointly, *case)))
    slow.append(timed("compare", lambda: compare_jointly(learner, statistics, person, budget)))
    _, everyone = made(given.decisions, given.arms, given.decisions)
    for unlearner in (Rollback(), FrozenRollback(), Tilt(), Gaussian()):
        case = (unlearner, learner, statistics, everyone, budget)
        timed(f"release by {unlearner.name}, all touched", partial(release_jointly, *case))
    rows = 1_000_000
    random = np.random.default_rng(2)
    table = {
        "action": random.integers(0, given.arms, rows),
        "reward": random.integers(0, 2, rows),
        "key": random.integers(0, given.decisions, rows),
    }
    log = read_log(table, actions=range(given.arms))
    timed(f"log.by of {rows} rows in memory", lambda: log.by("key"))
    return int(max(slow) >= SECOND)


if __name__ == "__main__":
    sys.exit(main())
