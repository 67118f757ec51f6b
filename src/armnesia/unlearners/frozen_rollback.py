"""Frozen rollback: forget the rewards, keep the penalties of the counts before the deletion."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray, one_hot
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Decision, MeanAndCountLearner
from armnesia.privacy import Budget, Level
from armnesia.unlearners.base import Branch, Unlearner


def frozen_scores(learner: MeanAndCountLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
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
    a reference at `request_shape` sees, so the penalty of the counts before the deletion may stay.

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
    needs: ClassVar[type[Any]] = MeanAndCountLearner

    def answer(
        self,
        learner: MeanAndCountLearner,
        statistics: ArmStatistics,
        request: DeletionRequest,
        retained: ArmStatistics,
        budget: Budget,
    ) -> tuple[FloatArray, str]:
        """All probability on the best frozen score."""
        return self.reference_probabilities(learner, retained, request.counts, None, budget), Branch.FROZEN

    def reference_probabilities(
        self,
        learner: MeanAndCountLearner,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        """The same: it uses only D∖U and the shape."""
        scores = frozen_scores(learner, retained, shape)
        return one_hot(np.argmax(scores, axis=-1), retained.n_actions)
