"""Empirical-Bernstein LCB: lower confidence bounds that are narrow where rewards vary little."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.statistics import ArmStatistics
from armnesia.learners.confidence import ConfidenceLearner


@dataclass(frozen=True, kw_only=True)
class EmpiricalBernsteinLCB(ConfidenceLearner):
    """Score μ̂ − √(2·V·L/N) − 7·L/(3(N−1)), with the sample variance V and L = ln(2m/τ).

    Maurer & Pontil (2009), Theorem 4, for one arm at level τ/m; by the union bound all m bounds hold at once
    with probability 1 − τ. The 2 in L, which `LCB` has not, pays for the variance that is estimated. It holds
    for all rewards of the range, and is far above Hoeffding's bound where they vary little around any mean.

    With one record V is 0 and N − 1 counts as 1: the bound is then below every reward, and so true. An arm
    without records scores −1, as with every learner; this exceeds the bound of an arm with few records, up to
    about 7·L/3. The score depends on the second moment, so rollback is the unlearner for it.

    >>> from armnesia import LCB
    >>> statistics = ArmStatistics.from_rewards({"A": [0.5, 0.52] * 100, "B": [0, 1, 1, 1, 0] * 40})
    >>> EmpiricalBernsteinLCB(confidence=0.01).decide(statistics)
    Decision(action='A', scores=[0.437294, 0.409533])
    >>> LCB(confidence=0.01).decide(statistics)
    Decision(action='B', scores=[0.39491, 0.48491])
    """

    name: ClassVar[str] = "bernstein_lcb"
    needs_squares: ClassVar[bool] = True

    def unit_scores(self, statistics: ArmStatistics) -> FloatArray:
        """The bounds on the [0, 1] scale; refuse statistics without the second moment."""
        variances = statistics.unit_variances
        if variances is None:
            raise UnsupportedError(
                f"the learner {self.name} needs the squares of the rewards, which these statistics do not"
                " hold: take those of read_log or ArmStatistics.from_rewards, or another learner, such as"
                " kl_lcb"
            )
        log_term, counts = math.log(2) + self.log_term(statistics.n_actions), statistics.counts
        by_variance = np.sqrt(2 * variances * log_term / np.maximum(counts, 1))
        bounds = statistics.unit_means - by_variance - 7 * log_term / (3 * np.maximum(counts - 1, 1))
        return np.where(counts > 0, bounds, -1.0)
