"""Pessimism: the arm with the highest lower confidence bound (Algorithm 1)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray
from armnesia.learners.confidence import ConfidenceLearner


@dataclass(frozen=True, kw_only=True)
class LCB(ConfidenceLearner):
    """Algorithm 1: score μ̂(a) − b(a), with Hoeffding's b(a) = √(ln(m/τ) / (2·N(a))).

    An arm with no records scores 0 − 1 = −1, as in the paper; note that this beats an arm whose few records
    give a penalty above 1 plus its mean.

    >>> from armnesia import ArmStatistics
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1, 1, 1]})
    >>> LCB().bind(statistics).decide(statistics)
    Decision(action='A', scores=[0.436784, 0.057673])
    """

    name: ClassVar[str] = "lcb"

    def lower_bounds(self, means: FloatArray, counts: ArrayLike, n_actions: int) -> FloatArray:
        """μ̂(a) − b(a)."""
        return means - self.penalty(counts, n_actions)

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
