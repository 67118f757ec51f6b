"""Tilt releases for 5 and for many arms, and 10⁵ vectorised ones, each as a ratio to rollback."""

import time
from collections.abc import Callable
from functools import partial

import numpy as np

import armnesia as am

UNIT = 1_000_000_000


def case(
    n_actions: int, data_sets: int, sources: int, count: int = 200
) -> tuple[am.ArmStatistics, am.DeletionRequest]:
    rng = np.random.default_rng(0)
    shape = (data_sets, n_actions) if data_sets > 1 else (n_actions,)
    deleted = np.zeros(shape, dtype=np.int64)
    deleted[..., :sources] = count // 5
    deleted_ones = rng.binomial(deleted, 0.1)
    kept = rng.binomial(count - deleted, 0.1)
    labels = tuple(range(n_actions))
    records = am.ArmStatistics(labels, deleted, deleted_ones * UNIT)
    return am.ArmStatistics(labels, count - deleted, kept * UNIT).merge(records), am.DeletionRequest(
        records, True
    )


def best_of(work: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return min(found)


def main() -> None:
    budget = am.Budget(epsilon=1.0, delta=1e-5)
    print(f"{'case':<44}{'rollback':>12}{'tilt':>12}{'ratio':>9}")
    for name, n_actions, data_sets, sources, times, count in (
        ("one release, m = 5, one arm", 5, 1, 1, 200, 200),
        ("one release, m = 5, all arms", 5, 1, 5, 200, 200),
        ("one release, m = 1000, one arm", 1000, 1, 1, 50, 200),
        ("one release, m = 1000, ten arms", 1000, 1, 10, 20, 200),
        ("100,000 releases, m = 5, one arm", 5, 100_000, 1, 2, 200),
        ("100,000 releases, m = 5, two arms", 5, 100_000, 2, 1, 200),
        ("one release, m = 1000, 200 arms", 1000, 1, 200, 5, 1000),
        ("one release, m = 10,000, 2000 arms", 10_000, 1, 2000, 3, 1000),
    ):
        statistics, request = case(n_actions, data_sets, sources, count)
        learner = am.LCB(confidence=1e-3)
        rollback, tilt = (
            best_of(partial(unlearner.release, learner, statistics, request, budget), times)
            for unlearner in (am.Rollback(), am.Tilt())
        )
        print(f"{name:<44}{rollback:>11.2g}s{tilt:>11.2g}s{tilt / rollback:>8.1f}x")


if __name__ == "__main__":
    main()
