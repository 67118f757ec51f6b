"""Greedy: serve the arm with the highest empirical mean."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray
from armnesia.learners.mean_and_count import PenaltyLearner


@dataclass(frozen=True, kw_only=True)
class Greedy(PenaltyLearner):
    """Score μ̂(a), without regard to the number of records; −1 without any.

    Pessimism guards against few lucky records, and greedy does not. The penalty is 0, so rollback loses no
    certainty: `Adaptive` never prefers noise, and frozen rollback is rollback.

    >>> from armnesia import ArmStatistics
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1, 1, 1]})
    >>> Greedy().decide(statistics)
    Decision(action='B', scores=[0.6, 1.0])
    """

    name: ClassVar[str] = "greedy"

    @property
    def score_falls_then_rises(self) -> bool:
        """Yes, it only falls: S/N in the number of zeros; unless a subclass has a penalty."""
        return type(self).penalty is Greedy.penalty

    def penalty(self, counts: ArrayLike, n_actions: int) -> FloatArray:
        """0."""
        return np.zeros(np.shape(counts))
