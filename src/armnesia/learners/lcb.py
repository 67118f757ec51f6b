"""LCB: serve the arm with the highest lower confidence bound (Algorithm 1)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import BoolArray, FloatArray
from armnesia.learners.confidence import ConfidenceLearner
from armnesia.learners.mean_and_count import PenaltyLearner


@dataclass(frozen=True, kw_only=True)
class LCB(ConfidenceLearner, PenaltyLearner):
    """Algorithm 1: score μ̂(a) − b(a), with Hoeffding's b(a) = √(ln(m/τ) / (2·N(a))).

    An arm without records scores 0 − 1 = −1, as in the paper. This exceeds the score of an arm with so few
    records that its penalty exceeds its mean by more than 1.

    >>> from armnesia import ArmStatistics
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1, 1, 1]})
    >>> LCB().bind(statistics).decide(statistics)
    Decision(action='A', scores=[0.436784, 0.057673])
    """

    name: ClassVar[str] = "lcb"

    @property
    def score_falls_then_rises(self) -> bool:
        """Yes (docs/theory.md has the proof), unless a subclass has another penalty."""
        return type(self).penalty is LCB.penalty

    def penalty(self, counts: ArrayLike, n_actions: int) -> FloatArray:
        """b(N) = √(L / (2N)), and 1 where there are no records.

        >>> LCB(confidence=0.01).penalty([0, 50, 200], n_actions=5).round(4)
        array([1.    , 0.2493, 0.1246])
        """
        numbers = np.asarray(counts)
        bound = np.sqrt(self.log_term(n_actions) / (2 * np.maximum(numbers, 1)))
        return np.asarray(np.where(numbers > 0, bound, 1.0))

    def paper_sensitivity_holds(self, counts: ArrayLike, deleted: ArrayLike, n_actions: int) -> BoolArray:
        """Whether 3k/(2N) bounds the sensitivity: exactly when (N−k) + √(N(N−k)) ≥ √(2LN).

        The paper's condition k ≤ N − √(NL/2) is sufficient.

        >>> LCB(confidence=0.001).paper_sensitivity_holds([200, 200], [80, 195], n_actions=5)
        array([ True, False])
        """
        before = np.asarray(counts, dtype=np.float64)
        left = before - np.asarray(deleted)
        return np.asarray(left + np.sqrt(before * left) >= np.sqrt(2 * self.log_term(n_actions) * before))
