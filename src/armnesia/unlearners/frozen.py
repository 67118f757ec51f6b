"""Frozen rollback: forget the rewards, keep the confidence that the counts before had earned."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray, one_hot
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import ConfidenceLearner, Decision, Learner
from armnesia.privacy import Budget, Guarantee, Level
from armnesia.unlearners.base import Branch, Release, Unlearner, first_branch, required_shape, unless_empty
from armnesia.unlearners.calibration import require_confidence


def frozen_scores(learner: ConfidenceLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
    """Means of D∖U with the penalties of D: μ̂′(a) − b(N(a)), and −1 for an arm that is left empty.

    >>> from armnesia.learners import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1, 0], "B": [1]})
    >>> frozen_scores(LCB(confidence=0.5), retained, np.array([2, 0])).round(3)
    array([0.084, 0.167])
    """
    before = np.maximum(retained.counts + shape, 1)
    frozen = learner.lower_bounds(retained.unit_means, before, retained.n_actions)
    return np.where(retained.counts > 0, frozen, -1.0)


@dataclass(frozen=True)
class FrozenRollback(Unlearner):
    """Roll back the means only: (0, 0) at level `request_shape`.

    Rollback loses most of its quality not by the mean, which hardly moves, but by the penalty: with fewer
    records the best arm looks less certain, and a worse one wins. The penalty depends on counts alone, which
    a reference at `request_shape` knows; so the penalty of the counts before the deletion may stay.

    >>> from armnesia.learners import LCB
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60, "B": [1] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 30, "B": []})
    >>> budget = Budget(epsilon=0, delta=0)
    >>> FrozenRollback().release(LCB().bind(statistics), statistics, request, budget).probabilities
    array([1., 0.])
    """

    name: ClassVar[str] = "frozen_rollback"
    level: ClassVar[Level] = Level.REQUEST_SHAPE
    needs_budget: ClassVar[bool] = False

    def release(
        self, learner: Learner, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> Release:
        """All probability on the best frozen score."""
        retained = statistics.without(request)
        reasons = {Branch.NO_DATA_LEFT: retained.total == 0, Branch.UNCHANGED: request.is_empty}
        return Release(
            statistics.actions,
            self.reference(learner, retained, budget, shape=request.counts),
            first_branch(reasons, otherwise=Branch.FROZEN),
            Guarantee(0.0, 0.0, self.level),
        )

    def reference(
        self,
        learner: Learner,
        retained: ArmStatistics,
        budget: Budget,
        *,
        shape: IntArray | None = None,
        original_decision: Decision | None = None,
    ) -> FloatArray:
        """The same: nothing but D∖U and the shape is used."""
        pessimist = require_confidence(learner, self.name)
        scores = frozen_scores(pessimist, retained, required_shape(shape, self.name))
        best = one_hot(np.argmax(scores, axis=-1), retained.n_actions)
        return unless_empty(learner, retained, best)
