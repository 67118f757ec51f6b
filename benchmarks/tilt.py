"""Tilt releases for 5 and for many arms, and 10⁵ vectorised ones, each as a ratio to rollback.

Rollback and tilt run in turn, and each time is the median of several: whatever else the machine does then
slows both. Times are those of the processor.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import armnesia as am

UNIT = 1_000_000_000


def case(
    n_actions: int,
    data_sets: int,
    sources: int,
    count: int = 200,
    *,
    binary: bool = True,
    unequal: bool = False,
) -> tuple[am.ArmStatistics, am.DeletionRequest]:
    """Data sets with a fifth of the records of some arms deleted; rewards 0 or 1, or any in between.

    All arms have `count` records, or each between three and five quarters of it.
    """
    rng = np.random.default_rng(0)
    shape = (data_sets, n_actions) if data_sets > 1 else (n_actions,)
    counts = np.full(shape, count)
    if unequal:
        counts = rng.integers(3 * count // 4, 5 * count // 4, size=shape)
    deleted = counts // 5
    deleted[..., sources:] = 0
    deleted_sums = rng.binomial(deleted, 0.1) * UNIT
    kept = rng.binomial(counts - deleted, 0.1) * UNIT
    if not binary:  # the same sums, less up to one unit of reward
        deleted_sums -= rng.integers(0, UNIT, size=shape) * (deleted_sums > 0)
        kept -= rng.integers(0, UNIT, size=shape) * (kept > 0)
    labels = tuple(range(n_actions))
    records = am.ArmStatistics(labels, deleted, deleted_sums)
    return am.ArmStatistics(labels, counts - deleted, kept).merge(records), am.DeletionRequest(
        records, binary
    )


def medians(
    works: list[Callable[[am.DeletionRequest], object]], request: am.DeletionRequest, times: int
) -> list[float]:
    """The median time of each, run in turn; each time with a new request, which has computed nothing yet."""
    found: list[list[float]] = [[] for _ in works]
    for _ in range(times):
        for work, each in zip(works, found, strict=True):
            new = am.DeletionRequest(request.records, request.binary)
            start = time.process_time()
            work(new)
            each.append(time.process_time() - start)
    return [statistics.median(each) for each in found]


def main() -> None:
    budget = am.Budget(epsilon=1.0, delta=1e-5)
    print(f"{'case':<44}{'rollback':>12}{'tilt':>12}{'ratio':>9}")
    for name, n_actions, data_sets, sources, times, count in (
        ("one release, m = 5, one arm", 5, 1, 1, 200, 200),
        ("one release, m = 5, all arms", 5, 1, 5, 200, 200),
        ("one release, m = 1000, one arm", 1000, 1, 1, 50, 200),
        ("one release, m = 1000, ten arms", 1000, 1, 10, 20, 200),
        ("100,000 releases, m = 5, one arm", 5, 100_000, 1, 9, 200),
        ("100,000 releases, m = 5, two arms", 5, 100_000, 2, 9, 200),
        ("the same, rewards between 0 and 1", 5, 100_000, 2, 9, 200),
        ("rewards between 0 and 1, unequal counts", 5, 100_000, 2, 9, 200),
        ("100,000 releases, m = 2, two arms", 2, 100_000, 2, 9, 200),
        ("the same, rewards between 0 and 1", 2, 100_000, 2, 9, 200),
        ("rewards between 0 and 1, unequal counts", 2, 100_000, 2, 9, 200),
        ("one release, m = 1000, 200 arms", 1000, 1, 200, 5, 1000),
        ("one release, m = 10,000, 2000 arms", 10_000, 1, 2000, 3, 1000),
        ("one release, m = 10,000, all arms", 10_000, 1, 10_000, 3, 1000),
    ):
        binary, unequal = "between" not in name, "unequal" in name
        log, request = case(n_actions, data_sets, sources, count, binary=binary, unequal=unequal)
        learner = am.LCB(confidence=1e-3)
        works: list[Callable[[am.DeletionRequest], object]] = [
            partial(unlearner.release, learner, log, budget=budget)
            for unlearner in (am.Rollback(), am.Tilt())
        ]
        rollback, tilt = medians(works, request, times)
        print(f"{name:<44}{rollback:>11.2g}s{tilt:>11.2g}s{tilt / rollback:>8.1f}x")


if __name__ == "__main__":
    main()
