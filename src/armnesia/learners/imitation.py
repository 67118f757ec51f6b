"""Imitation: serve the arm that was served most (for behaviour policies with C* < 2)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.statistics import ArmStatistics
from armnesia.learners.base import Learner


@dataclass(frozen=True, kw_only=True)
class Imitation(Learner):
    """Section 3.3.2: the most frequent arm of the log, whatever its rewards; ties go to the first.

    Where the log chose the best arm more than half of the time (C* ∈ (1, 2)) this errs with a probability
    that falls exponentially in N.

    >>> statistics = ArmStatistics.from_rewards({"A": [0, 0, 0], "B": [1, 1]})
    >>> Imitation().decide(statistics)
    Decision(action='A', scores=[3.0, 2.0])
    """

    name: ClassVar[str] = "imitation"
    counts_only: ClassVar[bool] = True

    def unit_scores(self, statistics: ArmStatistics) -> FloatArray:
        """The counts themselves."""
        return statistics.counts.astype(np.float64)

    def on_reward_scale(self, unit_scores: FloatArray, reward_range: tuple[float, float]) -> FloatArray:
        """The counts themselves: they are no rewards and have no reward scale."""
        return unit_scores
