"""KL-LCB: lower confidence bounds by the Bernoulli Kullback-Leibler divergence."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray
from armnesia.learners.confidence import ConfidenceLearner
from armnesia.learners.mean_and_count import MeanAndCountLearner

_HALVINGS = 60  # of the interval [0, mean]: then it is as short as rounding


@dataclass(frozen=True, kw_only=True)
class KLLCB(ConfidenceLearner, MeanAndCountLearner):
    """Score: the smallest μ with N·kl(μ̂, μ) ≤ ln(m/τ), by Chernoff's bound, at the same confidence as `LCB`.

    It holds for all rewards in [0, 1]. It is never below Hoeffding's bound, and far above it for means near 0
    or 1: at a click rate of half a percent and 10,000 records, Hoeffding's bound is negative.

    >>> from armnesia import LCB, ArmStatistics
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 50 + [0] * 9950, "B": [1] * 30 + [0] * 9970})
    >>> KLLCB().bind(statistics).decide(statistics)
    Decision(action='A', scores=[0.002413, 0.001131])
    >>> LCB().bind(statistics).decide(statistics)
    Decision(action='A', scores=[-0.018018, -0.020018])
    """

    name: ClassVar[str] = "kl_lcb"

    @property
    def score_rounding(self) -> float:
        """10⁻⁷. A divergence is computed with an error of about 10⁻¹⁶, and its root is the distance of μ."""
        return 1e-7

    @property
    def score_falls_then_rises(self) -> bool:
        """Yes (it only falls; docs/theory.md has the proof), unless a subclass has another bound."""
        return type(self).lower_bounds is KLLCB.lower_bounds

    def lower_bounds(self, means: FloatArray, counts: ArrayLike, n_actions: int) -> FloatArray:
        """The bounds by bisection: kl(μ̂, μ) falls from infinity to 0 as μ rises from 0 to μ̂."""
        allowed = self.log_term(n_actions) / np.asarray(counts)
        low, high = np.zeros(np.broadcast_shapes(means.shape, allowed.shape)), np.array(means + 0.0 * allowed)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            too_far = bernoulli_kl(means, middle) > allowed
            low, high = np.where(too_far, middle, low), np.where(too_far, high, middle)
        return high


def bernoulli_kl(p: FloatArray, q: FloatArray) -> FloatArray:
    """kl(p, q) = p·ln(p/q) + (1−p)·ln((1−p)/(1−q)), with 0·ln 0 = 0; infinite where q excludes p.

    >>> bernoulli_kl(np.array([0.5, 0.0, 0.3]), np.array([0.25, 0.0, 0.0])).round(4)
    array([0.1438, 0.    ,    inf])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ones = np.where(p > 0, p * np.log(p / q), 0.0)
        zeros = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    return np.asarray(ones + zeros)
