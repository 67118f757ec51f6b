"""The input of an exact evaluation: fixed counts and Bernoulli rewards."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.privacy import Budget
from armnesia.simulation.score_distribution import NEGLIGIBLE, ScoreDistribution, arm_scores, binomial


@dataclass(frozen=True, eq=False)
class FixedCase:
    """Bernoulli means, counts, deleted counts, the learner and the budget."""

    means: FloatArray
    counts: IntArray
    deleted: IntArray
    learner: Any
    """A `MeanAndCountLearner` of the kind that the unlearner needs."""
    budget: Budget

    @property
    def m(self) -> int:
        """The number of arms."""
        return len(self.means)

    def scores(self, arm: int, sums: IntArray, count: int) -> FloatArray:
        """The scores of an arm for these sums of `count` rewards."""
        return arm_scores(self.learner, arm, sums, count, self.m)

    def score_distributions(
        self, counts: IntArray, sigma: FloatArray | None = None, penalty_counts: IntArray | None = None
    ) -> list[ScoreDistribution]:
        """The distributions of all scores: with these counts, this noise, and penalties of other counts."""
        noise = np.zeros(self.m) if sigma is None else sigma
        penalised = counts if penalty_counts is None else penalty_counts
        return [
            self._score_distribution(arm, int(counts[arm]), float(noise[arm]), int(penalised[arm]))
            for arm in range(self.m)
        ]

    def _score_distribution(
        self, arm: int, count: int, sigma: float, penalty_count: int
    ) -> ScoreDistribution:
        weights = binomial(count, float(self.means[arm]))
        kept = np.flatnonzero(weights > NEGLIGIBLE)
        scores = arm_scores(self.learner, arm, kept, count, self.m, penalty_count=penalty_count)
        return ScoreDistribution(scores, weights[kept], sigma)
