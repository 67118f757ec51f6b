"""The input of an exact evaluation: fixed counts and Bernoulli rewards."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.learners import Learner, MeanAndCountLearner
from armnesia.privacy import Budget
from armnesia.simulation.score_distribution import NEGLIGIBLE, ScoreDistribution, arm_scores, binomial


def inherits(algorithm: object, *methods: Callable[..., Any]) -> bool:
    """Whether the formulas know the algorithm: it has these methods, and not others by their names."""
    return all(getattr(type(algorithm), method.__name__) is method for method in methods)


@dataclass(frozen=True, eq=False)
class FixedCase:
    """Bernoulli means, counts, deleted counts, the learner and the budget."""

    means: FloatArray
    counts: IntArray
    deleted: IntArray
    learner: Any
    """A `MeanAndCountLearner` of the kind that the unlearner needs, which decides as that class does."""
    budget: Budget

    def __post_init__(self) -> None:
        relied_on = Learner.decide, Learner.best_arm, MeanAndCountLearner.unit_scores
        if not (self.learner.supports(MeanAndCountLearner) and inherits(self.learner, *relied_on)):
            raise UnsupportedError(
                "exact evaluation needs a learner that serves the best score by mean and count, or decides by"
                f" counts alone; got {self.learner.name!r}: use the sampled protocol"
            )

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
