"""The shared frame of the unlearners that hide a deletion behind Gaussian noise.

Each of them decides which arms keep their old score and get noise; every other arm is rolled back. Given
that plan, release and reference are the same computation on the scores of D and of D∖U.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from armnesia.core.arrays import BoolArray, FloatArray, IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import LCB, Decision, Learner
from armnesia.privacy import Budget, Guarantee
from armnesia.unlearners.base import BranchCodes, Release, Unlearner, required_shape, served
from armnesia.unlearners.calibration import require_lcb
from armnesia.unlearners.noisy_argmax import noisy_argmax


@dataclass(frozen=True, eq=False)
class NoisePlan:
    """Which arms are noised instead of rolled back, by how much, and why (a `Branch` a data set)."""

    noised: BoolArray
    sigma: FloatArray
    branch_codes: BranchCodes


class NoisyUnlearner(Unlearner):
    """An unlearner that is described by its noise plan alone."""

    @abstractmethod
    def plan(
        self, learner: LCB, counts: IntArray, deleted: IntArray, decision: Decision | None, budget: Budget
    ) -> NoisePlan:
        """Choose the noise from what the level lets a reference see: counts, shape and perhaps π(D)."""

    def decision_seen(
        self, learner: LCB, retained: ArmStatistics, shape: IntArray, original: Decision | None
    ) -> Decision | None:
        """The decision that the plan goes by: π(D), unless the unlearner must do without it."""
        return original

    def rolled_back_first(self, deleted: IntArray) -> IntArray:
        """How many of the deleted records are rolled back before noise is added: none, unless mixing."""
        return np.zeros_like(deleted)

    def guarantee(self, deleted: IntArray, budget: Budget) -> Guarantee:
        """What is promised: the budget, at the unlearner's level."""
        return Guarantee(budget.epsilon, budget.delta, self.level)

    def release(
        self, learner: Learner, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> Release:
        """Noise on the planned arms' scores from D, every other arm rolled back."""
        lcb = require_lcb(learner, self.name)
        retained = statistics.without(request)
        decision = self.decision_seen(lcb, retained, request.counts, lcb.decide(statistics))
        plan = self.checked_plan(lcb, statistics.counts, request.counts, decision, budget)
        scores = np.where(plan.noised, lcb.unit_scores(statistics), lcb.unit_scores(retained))
        probabilities = winner_distribution(lcb, retained, scores, plan)
        guarantee = self.guarantee(request.counts, budget)
        return Release(statistics.actions, probabilities, plan.branch_codes, guarantee)

    def reference(
        self,
        learner: Learner,
        retained: ArmStatistics,
        budget: Budget,
        *,
        shape: IntArray | None = None,
        original_decision: Decision | None = None,
    ) -> FloatArray:
        """The same noise on the scores of D∖U."""
        lcb = require_lcb(learner, self.name)
        shape = required_shape(shape, self.name)
        decision = self.decision_seen(lcb, retained, shape, original_decision)
        plan = self.checked_plan(lcb, retained.counts + shape, shape, decision, budget)
        return winner_distribution(lcb, retained, lcb.unit_scores(retained), plan)

    def checked_plan(
        self, learner: LCB, counts: IntArray, deleted: IntArray, decision: Decision | None, budget: Budget
    ) -> NoisePlan:
        """The plan, refused where it asks for infinite noise."""
        plan = self.plan(learner, counts, deleted, decision, budget)
        if math.isinf(budget.gamma) and plan.noised.any():
            raise InvalidInputError(
                f"{self.name} adds Gaussian noise, and this budget (epsilon = {budget.epsilon:g},"
                f" delta = {budget.delta:g}) asks for infinitely much; choose delta > 0 and a finite gamma,"
                " or an unlearner that needs no noise, such as rollback"
            )
        return plan


def winner_distribution(
    learner: LCB, retained: ArmStatistics, scores: FloatArray, plan: NoisePlan
) -> FloatArray:
    """The winner's distribution; where no arm is noised, the learner's own decision on D∖U."""
    some_noise = plan.noised.any(axis=-1, keepdims=True)
    return np.where(some_noise, noisy_argmax(scores, plan.sigma), served(learner, retained))
