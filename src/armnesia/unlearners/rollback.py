"""Rollback: subtract the deleted records and decide again. Identical to retraining."""

from dataclasses import dataclass
from typing import Any, ClassVar

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import CountsOnlyLearner, Decision, Imitation, Learner
from armnesia.privacy import Budget, Level
from armnesia.unlearners.base import Branch, Unlearner, decision_distribution


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

    def answer(
        self,
        learner: Learner,
        statistics: ArmStatistics,
        request: DeletionRequest,
        retained: ArmStatistics,
        budget: Budget,
    ) -> tuple[FloatArray, str]:
        """All probability on the decision of D∖U."""
        return decision_distribution(learner, retained), Branch.ROLLBACK

    def reference_probabilities(
        self,
        learner: Learner,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        """The same."""
        return decision_distribution(learner, retained)


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
    needs: ClassVar[type[Any]] = CountsOnlyLearner
    default_learner: ClassVar[type[Learner]] = Imitation
