"""Rollback: subtract the deleted records and decide again. Identical to retraining."""

from dataclasses import dataclass
from typing import ClassVar

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Decision, Imitation, Learner
from armnesia.privacy import Budget, Guarantee, Level
from armnesia.unlearners.base import Branch, Release, Unlearner, first_branch, served


@dataclass(frozen=True)
class Rollback(Unlearner):
    """The base algorithm of Section 3: any learner, any request, (0, 0) at level `retained`.

    >>> from armnesia.learners import LCB
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60, "B": [1] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 30, "B": []})
    >>> Rollback().release(LCB().bind(statistics), statistics, request, Budget(epsilon=0, delta=0))
    Release({'A': 0.0, 'B': 1.0}, branch='rollback', guarantee='(ε = 0, δ = 0) at level retained: ...')
    """

    name: ClassVar[str] = "rollback"
    level: ClassVar[Level] = Level.RETAINED
    needs_budget: ClassVar[bool] = False

    def release(
        self, learner: Learner, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> Release:
        """All probability on the decision of D∖U."""
        retained = statistics.without(request)
        reasons = {Branch.NO_DATA_LEFT: retained.total == 0, Branch.UNCHANGED: request.is_empty}
        codes = first_branch(reasons, otherwise=Branch.ROLLBACK)
        return Release(statistics.actions, served(learner, retained), codes, Guarantee(0.0, 0.0, self.level))

    def reference(
        self,
        learner: Learner,
        retained: ArmStatistics,
        budget: Budget,
        *,
        shape: IntArray | None = None,
        original_decision: Decision | None = None,
    ) -> FloatArray:
        """All probability on the decision of D∖U: the same."""
        return served(learner, retained)


@dataclass(frozen=True)
class ImitationRollback(Rollback):
    """Algorithm 6 (appendix A.4), for C* ∈ (1, 2): roll back the counts and serve the most frequent arm left.

    >>> statistics = ArmStatistics.from_rewards({"A": [0] * 5, "B": [1] * 4})
    >>> request = DeletionRequest.from_rewards({"A": [0, 0], "B": []})
    >>> budget = Budget(epsilon=0, delta=0)
    >>> ImitationRollback().release(Imitation(), statistics, request, budget).probabilities
    array([0., 1.])
    """

    name: ClassVar[str] = "imitation_rollback"

    def release(
        self, learner: Learner, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> Release:
        """All probability on the most frequent arm of D∖U."""
        _require_imitation(learner)
        return super().release(learner, statistics, request, budget)

    def reference(
        self,
        learner: Learner,
        retained: ArmStatistics,
        budget: Budget,
        *,
        shape: IntArray | None = None,
        original_decision: Decision | None = None,
    ) -> FloatArray:
        """All probability on the most frequent arm of D∖U: the same."""
        _require_imitation(learner)
        return super().reference(learner, retained, budget)


def _require_imitation(learner: Learner) -> None:
    if not isinstance(learner, Imitation):
        raise UnsupportedError(
            f"imitation_rollback unlearns the learner 'imitation'; got {learner.name!r}: use rollback"
        )
