"""10⁵ LCB decisions with Adaptive releases (m = 5) on one core: vectorised, beside the plain Python loop.

The loop is Algorithm 1 and Algorithm 2 as printed, one data set at a time, with math only. Both compute the
same probabilities, which is checked; speed is reported as a ratio of the two, measured in the same run.
"""

import math
import time

import numpy as np

import armnesia as am

DATA_SETS, LOOPED, K, COUNT = 100_000, 2_000, 80, 200
MEANS = np.array([0.10, 0.08, 0.06, 0.04, 0.02])


def draw_data(rng: np.random.Generator) -> tuple[am.ArmStatistics, am.DeletionRequest]:
    deleted = np.zeros((DATA_SETS, 5), dtype=np.int64)
    deleted[:, 0] = K
    deleted_ones = np.zeros_like(deleted)
    deleted_ones[:, 0] = rng.binomial(K, MEANS[0], DATA_SETS)
    kept = rng.binomial(COUNT - deleted, MEANS)
    unit = 1_000_000_000
    labels = tuple(range(5))
    records = am.ArmStatistics(labels, deleted, deleted_ones * unit)
    return am.ArmStatistics(labels, COUNT - deleted, kept * unit).merge(records), am.DeletionRequest(
        records, True
    )


def adaptive_by_hand(
    counts: list[int], ones: list[int], k: int, gone_ones: int, log_term: float, gamma: float
) -> list[float]:
    """P(released) for a request of k records of arm 0, by the printed threshold and sensitivity."""
    m = len(counts)
    scores = [one / n - math.sqrt(log_term / (2 * n)) for one, n in zip(ones, counts, strict=True)]
    served = max(range(m), key=scores.__getitem__)
    left = counts[0] - k
    others = max(range(1, m), key=scores.__getitem__)
    probabilities = [0.0] * m
    if served == 0 and gamma < 1.3 * 4 / 3 * math.sqrt(math.pi * log_term / left):
        sigma = gamma * 3 * k / (2 * counts[0])
        stays = 0.5 * math.erfc(-(scores[0] - scores[others]) / (sigma * math.sqrt(2)))
        probabilities[0], probabilities[others] = stays, 1 - stays
    else:
        rolled_back = (ones[0] - gone_ones) / left - math.sqrt(log_term / (2 * left))
        probabilities[0 if rolled_back >= scores[others] else others] = 1.0
    return probabilities


def main() -> None:
    statistics, request = draw_data(np.random.default_rng(0))
    learner = am.LCB().bind(statistics)
    budget = am.Budget.from_gamma(0.5, delta=1e-5)
    unlearner = am.Adaptive.as_in_the_paper()

    start = time.perf_counter()
    release = unlearner.release(learner, statistics, request, budget)
    vectorised = time.perf_counter() - start

    ones = (statistics.sums // 1_000_000_000).tolist()
    deleted_ones = (request.sums[:, 0] // 1_000_000_000).tolist()
    counts = [COUNT] * 5
    log_term = learner.log_term(5)
    start = time.perf_counter()
    looped = [
        adaptive_by_hand(counts, ones[i], K, deleted_ones[i], log_term, budget.gamma) for i in range(LOOPED)
    ]
    loop = (time.perf_counter() - start) * DATA_SETS / LOOPED

    difference = float(np.abs(np.array(looped) - release.probabilities[:LOOPED]).max())
    assert difference < 1e-12, difference
    noised = float((release.branch == am.Branch.GAUSSIAN).mean())
    print(f"{DATA_SETS:,} LCB + Adaptive releases, m = 5 ({noised:.0%} by noise)")
    print(f"  vectorised   {vectorised:.3f} s")
    print(f"  Python loop  {loop:.3f} s (from {LOOPED:,} of them)")
    print(f"  ratio        {loop / vectorised:.1f}x;  largest difference {difference:.1e}")


if __name__ == "__main__":
    main()
