"""Every data set that a few Bernoulli records can be, and every way to choose the deleted ones."""

from itertools import combinations, product
from math import prod

import numpy as np
from numpy.typing import NDArray

from armnesia import ArmStatistics, DeletionRequest, Learner, Unlearner
from armnesia.core.units import UNIT
from armnesia.privacy import Budget
from armnesia.unlearners import Branch
from armnesia.unlearners.base import decision_distribution

Floats = NDArray[np.float64]


class AllDataSets:
    """Each outcome is one assignment of rewards to records and one choice of U, with its probability."""

    def __init__(self, means: list[float], counts: list[int], deleted: list[int]) -> None:
        self.labels = tuple(range(len(means)))
        arm_outcomes = [
            list(_outcomes_of_an_arm(p, n, k)) for p, n, k in zip(means, counts, deleted, strict=True)
        ]
        every = list(product(*arm_outcomes))
        self.weights = np.array([prod(weight for _, _, weight in outcome) for outcome in every])
        self.sums = np.array([[total for total, _, _ in outcome] for outcome in every], dtype=np.int64)
        self.deleted_sums = np.array(
            [[deleted_sum for _, deleted_sum, _ in outcome] for outcome in every], dtype=np.int64
        )
        self.counts = np.broadcast_to(np.array(counts, dtype=np.int64), self.sums.shape)
        self.deleted = np.broadcast_to(np.array(deleted, dtype=np.int64), self.sums.shape)

    @property
    def statistics(self) -> ArmStatistics:
        return ArmStatistics(self.labels, self.counts, self.sums * UNIT, products=np.zeros_like(self.sums))

    @property
    def request(self) -> DeletionRequest:
        return DeletionRequest(
            ArmStatistics(
                self.labels, self.deleted, self.deleted_sums * UNIT, products=np.zeros_like(self.sums)
            ),
            binary=True,
        )

    def released(self, unlearner: Unlearner | None, learner: Learner, budget: Budget) -> Floats:
        """P(released arm): the release on every data set, weighted."""
        if unlearner is None:
            return self.weights @ decision_distribution(learner, self.statistics)
        release = unlearner.release(learner, self.statistics, self.request, budget)
        return self.weights @ release.probabilities

    def noise_share(self, unlearner: Unlearner, learner: Learner, budget: Budget) -> float:
        """The probability that the unlearner adds noise."""
        branch = unlearner.release(learner, self.statistics, self.request, budget).branch
        by_noise = (branch == Branch.GAUSSIAN) | (branch == Branch.MIXING)
        return float(self.weights @ by_noise)


def _outcomes_of_an_arm(p: float, n: int, k: int) -> list[tuple[int, int, float]]:
    """(sum, deleted sum, probability) for every assignment of n rewards and every choice of k of them."""
    chosen = list(combinations(range(n), k))
    return [
        (sum(rewards), sum(rewards[i] for i in some), prod(p if r else 1 - p for r in rewards) / len(chosen))
        for rewards in product((0, 1), repeat=n)
        for some in chosen
    ]
