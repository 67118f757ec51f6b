"""UCB: serve the arm with the highest upper confidence bound."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray
from armnesia.learners.confidence import ConfidenceLearner
from armnesia.learners.mean_and_count import PenaltyLearner


@dataclass(frozen=True, kw_only=True)
class UCB(ConfidenceLearner, PenaltyLearner):
    """Score μ̂(a) + √(ln(m/τ) / (2·N(a))): optimism, with the confidence width of `LCB` as a bonus.

    For decisions that also explore. An arm without records scores −1, as with every learner, so that nobody
    can have an arm served by deleting all of its records. Deleting some raises its bonus: rollback favours
    the arm that lost records, and `Adaptive` never prefers noise.

    >>> from armnesia import ArmStatistics
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1, 0, 0, 0]})
    >>> UCB(confidence=0.1).decide(statistics)
    Decision(action='B', scores=[0.722387, 0.861937])
    """

    name: ClassVar[str] = "ucb"

    @property
    def falls_with_count(self) -> bool:
        """Yes: the bonus becomes smaller."""
        return True

    @property
    def score_falls_then_rises(self) -> bool:
        """Yes, it only falls: mean and bonus both do; unless a subclass has another bonus."""
        return type(self).penalty is UCB.penalty

    def penalty(self, counts: ArrayLike, n_actions: int) -> FloatArray:
        """Minus the bonus: −√(L / (2N)).

        >>> UCB(confidence=0.01).penalty([50, 200], n_actions=5).round(4)
        array([-0.2493, -0.1246])
        """
        return np.asarray(-np.sqrt(self.log_term(n_actions) / (2 * np.asarray(counts))))
