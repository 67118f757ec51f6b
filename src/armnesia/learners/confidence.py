"""What the pessimistic learners share: a confidence τ, and a lower bound on an arm's mean."""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from numbers import Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.statistics import ArmStatistics
from armnesia.learners.base import Learner


@dataclass(frozen=True, kw_only=True)
class ConfidenceLearner(Learner):
    """Scores an arm by a lower confidence bound on its mean; −1 where there are no records.

    `confidence` is τ: given, or bound once as 1/N. It must not move when records are deleted, or rollback
    would not equal retraining with it. Bound as 1/N it tells N: it counts as public configuration; give it
    beforehand where the size of the log is not to be known.

    >>> from armnesia import LCB, ArmStatistics
    >>> LCB().bind(ArmStatistics.from_rewards({"A": [1, 0], "B": [1, 1]})).confidence
    0.25
    """

    confidence: float | None = None

    def __post_init__(self) -> None:
        tau = self.confidence
        if tau is not None and not (isinstance(tau, Real) and 0 < tau <= 1):
            raise InvalidInputError(f"confidence must lie in (0, 1]; got {self.confidence!r}")

    @abstractmethod
    def lower_bounds(self, means: FloatArray, counts: ArrayLike, n_actions: int) -> FloatArray:
        """Lower confidence bounds of arms with these empirical means and (positive) counts."""

    def bind(self, statistics: ArmStatistics) -> Self:
        """Fix τ = 1/N, unless a confidence was given."""
        if self.confidence is not None:
            return self
        totals = np.unique(statistics.total)
        if len(totals) != 1 or totals[0] == 0:
            raise InvalidInputError(
                "confidence can be bound as 1/N only where every data set has the same N > 0;"
                f" got N = {totals.tolist()[:3]}; give confidence instead"
            )
        return replace(self, confidence=1 / int(totals[0]))

    def unit_scores(self, statistics: ArmStatistics) -> FloatArray:
        """The lower bounds on the [0, 1] scale, and −1 for arms without records."""
        bounds = self.lower_bounds(
            statistics.unit_means, np.maximum(statistics.counts, 1), statistics.n_actions
        )
        return np.where(statistics.counts > 0, bounds, -1.0)

    def log_term(self, n_actions: int) -> float:
        """L = ln(m/τ), which every bound of the paper contains."""
        if self.confidence is None:
            raise InvalidInputError(
                f"the learner {self.name} has no confidence yet: give confidence=τ or use .bind(statistics)"
            )
        return math.log(n_actions / self.confidence)
