"""Lottery: release the old decision with a small probability, and roll back otherwise."""

from dataclasses import dataclass
from typing import ClassVar

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.parameters import parameter
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Decision, Learner
from armnesia.privacy import Budget, Guarantee, Level
from armnesia.unlearners.base import Branch, Unlearner, decision_distribution


@dataclass(frozen=True)
class Lottery(Unlearner):
    """π(D) with probability `keep`, the decision of D∖U otherwise: (0, keep) at level `retained`.

    >>> from armnesia import LCB, ArmStatistics, Budget, DeletionRequest
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60, "B": [1] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 30, "B": []})
    >>> budget = Budget(epsilon=0.0, delta=0.1)
    >>> Lottery(keep=0.1).release(LCB().bind(statistics), statistics, request, budget).probabilities
    array([0.1, 0.9])

    `keep` is cut at the δ of the budget, so the guarantee is never weaker than the budget.
    """

    keep: float = parameter(0.1, help="The probability of the old decision; at most δ is used.")

    name: ClassVar[str] = "lottery"
    level: ClassVar[Level] = Level.RETAINED

    def __post_init__(self) -> None:
        if not 0 <= self.keep <= 1:
            raise InvalidInputError(f"keep must be a probability between 0 and 1; got {self.keep!r}")

    def answer(
        self,
        learner: Learner,
        statistics: ArmStatistics,
        request: DeletionRequest,
        retained: ArmStatistics,
        budget: Budget,
    ) -> tuple[FloatArray, str]:
        """The mixture of both decisions."""
        keep = min(self.keep, budget.delta)
        before = decision_distribution(learner, statistics)
        after = decision_distribution(learner, retained)
        return keep * before + (1 - keep) * after, Branch.ROLLBACK

    def reference_probabilities(
        self,
        learner: Learner,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        """The decision of D∖U."""
        return decision_distribution(learner, retained)

    def guarantee(self, request: DeletionRequest, budget: Budget) -> Guarantee:
        """Compared with the decision of D∖U, the old decision costs its whole probability as δ."""
        return Guarantee(0.0, min(self.keep, budget.delta), self.level)
