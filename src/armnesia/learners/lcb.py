"""Pessimism: the arm with the highest lower confidence bound (Algorithm 1)."""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from armnesia.arrays import FloatArray
from armnesia.errors import InvalidInputError
from armnesia.learners.base import Learner
from armnesia.statistics import ArmStatistics


@dataclass(frozen=True, kw_only=True)
class LCB(Learner):
    """Algorithm 1: score μ̂(a) − b(a), with Hoeffding's b(a) = √(ln(m/τ) / (2·N(a))).

    An arm with no records scores 0 − 1 = −1, as in the paper; note that this beats an arm whose few records
    give a penalty above 1 plus its mean. `confidence` is τ: given, or bound once as 1/N. It must not move
    when records are deleted, or rollback would not equal retraining with it. Bound as 1/N it tells N: it
    counts as public configuration; give it beforehand where the size of the log is not to be known.

    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1, 1, 1]})
    >>> LCB().bind(statistics).decide(statistics)
    Decision(action='A', scores=[0.436784, 0.057673])
    """

    confidence: float | None = None
    name: ClassVar[str] = "lcb"

    def __post_init__(self) -> None:
        if self.confidence is not None and not (
            isinstance(self.confidence, Real) and 0 < self.confidence <= 1
        ):
            raise InvalidInputError(f"confidence must lie in (0, 1]; got {self.confidence!r}")

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
        """μ̂(a) − b(a) on the [0, 1] scale."""
        return statistics.unit_means - self.penalty(statistics.counts, statistics.n_actions)

    def log_term(self, n_actions: int) -> float:
        """L = ln(m/τ), which every bound of the paper contains."""
        if self.confidence is None:
            raise InvalidInputError(
                "this LCB has no confidence yet: use LCB(confidence=τ) or .bind(statistics)"
            )
        return math.log(n_actions / self.confidence)

    def penalty(self, counts: ArrayLike, n_actions: int) -> FloatArray:
        """b(N) = √(L / (2N)), and 1 where there are no records.

        >>> LCB(confidence=0.01).penalty([0, 50, 200], n_actions=5).round(4)
        array([1.    , 0.2493, 0.1246])
        """
        numbers = np.asarray(counts)
        bound = np.sqrt(self.log_term(n_actions) / (2 * np.maximum(numbers, 1)))
        return np.asarray(np.where(numbers > 0, bound, 1.0))

    def sensitivity(self, counts: ArrayLike, deleted: ArrayLike, n_actions: int) -> FloatArray:
        """The most that deleting k of an arm's N records can move its score, whatever the rewards.

        The mean moves by at most k/N either way and the penalty rises by b(N−k) − b(N); an emptied arm falls
        to −1 from anywhere in [−b(N), 1 − b(N)]. Both are attained: this is exact, not a bound.

        >>> LCB(confidence=0.01).sensitivity([100, 100], [0, 20], n_actions=5).round(4)
        array([0.    , 0.2208])
        """
        before, gone = np.asarray(counts), np.asarray(deleted)
        left = before - gone
        penalty = self.penalty(before, n_actions)
        partly = gone / np.maximum(before, 1) + self.penalty(left, n_actions) - penalty
        emptied = np.maximum(2 - penalty, penalty - 1)
        return np.asarray(np.where(gone == 0, 0.0, np.where(left > 0, partly, emptied)))
