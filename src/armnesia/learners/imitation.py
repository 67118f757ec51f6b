"""Imitation: serve the most frequent arm of the log, for behaviour policies with C* < 2."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.statistics import ArmStatistics
from armnesia.learners.base import CountsOnlyLearner


@dataclass(frozen=True, kw_only=True)
class Imitation(CountsOnlyLearner):
    """Section 3.3.2: the most frequent arm of the log, whatever its rewards; ties go to the first.

    If the log chose the best arm more than half of the time (C* ∈ (1, 2)), the probability of an error falls
    exponentially in N.

    >>> statistics = ArmStatistics.from_rewards({"A": [0, 0, 0], "B": [1, 1]})
    >>> Imitation().decide(statistics)
    Decision(action='A', scores=[3.0, 2.0])
    """

    name: ClassVar[str] = "imitation"

    def unit_scores(self, statistics: ArmStatistics) -> FloatArray:
        """The counts."""
        return statistics.counts.astype(np.float64)
