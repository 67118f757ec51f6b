"""The base class of the unlearners that hide a deletion behind Gaussian noise.

Each of them decides which arms keep their old score and get noise; every other requested arm is rolled back.
Given that plan, release and reference are the same computation on the scores of D and of D∖U.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from armnesia.core.arrays import BoolArray, FloatArray, IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Decision, PenaltyLearner
from armnesia.privacy import Budget
from armnesia.unlearners.base import Branches, Unlearner, decision_distribution
from armnesia.unlearners.noisy_argmax import noisy_argmax

_ROUNDING = 2.0**-49
"""Scores of the same arm in both worlds, and their sensitivity, are rounded by less, per unit of 1 + b."""


@dataclass(frozen=True, eq=False)
class NoisePlan:
    """Which arms get noise instead of being rolled back, how much, and why (a label, or one per data set)."""

    noised: BoolArray
    sigma: FloatArray
    branch: str | Branches


class NoiseBasedUnlearner(Unlearner):
    """An unlearner that is described by its noise plan alone."""

    needs: ClassVar[type[Any]] = PenaltyLearner
    composes_as_gaussian: ClassVar[bool] = True
    guesses_decision: ClassVar[bool] = False
    """Whether `decision_seen` depends on the rewards of D∖U; exact evaluation needs to know it."""

    @abstractmethod
    def plan(
        self,
        learner: PenaltyLearner,
        counts: IntArray,
        deleted: IntArray,
        decision: Decision | None,
        budget: Budget,
    ) -> NoisePlan:
        """Choose the noise from what the level lets a reference see: counts, shape and, if it may, π(D).

        Data sets without records left get no noise, whatever the plan says.
        """

    def decision_seen(
        self, learner: PenaltyLearner, retained: ArmStatistics, shape: IntArray, original: Decision | None
    ) -> Decision | None:
        """The decision that the plan depends on: π(D), unless a subclass guesses it from D∖U."""
        return original

    def rolled_back_first(self, deleted: IntArray) -> IntArray:
        """How many of the deleted records are rolled back before noise is added; none but for mixing."""
        return np.zeros_like(deleted)

    def answer(
        self,
        learner: PenaltyLearner,
        statistics: ArmStatistics,
        request: DeletionRequest,
        retained: ArmStatistics,
        budget: Budget,
    ) -> tuple[FloatArray, str | Branches]:
        """Noise on the scores from D of the planned arms; every other arm is rolled back."""
        decision = self.decision_seen(learner, retained, request.counts, learner.decide(statistics))
        plan = self.checked_plan(learner, statistics.counts, request.counts, decision, budget)
        scores = np.where(plan.noised, learner.unit_scores(statistics), learner.unit_scores(retained))
        return winner_distribution(learner, retained, scores, plan), plan.branch

    def reference_probabilities(
        self,
        learner: PenaltyLearner,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        """The same noise on the scores of D∖U."""
        decision = self.decision_seen(learner, retained, shape, original_decision)
        plan = self.checked_plan(learner, retained.counts + shape, shape, decision, budget)
        return winner_distribution(learner, retained, learner.unit_scores(retained), plan)

    def checked_plan(
        self,
        learner: PenaltyLearner,
        counts: IntArray,
        deleted: IntArray,
        decision: Decision | None,
        budget: Budget,
    ) -> NoisePlan:
        """The plan without noise where no records are left, and with noise for the rounding of the scores.

        With many records, a deletion moves a score by less than its rounding does; the noise hides both.
        Infinite noise is refused.
        """
        plan = self.plan(learner, counts, deleted, decision, budget)
        left = counts - deleted
        noised = plan.noised & (left.sum(axis=-1, keepdims=True) > 0)
        if math.isinf(budget.gamma) and noised.any():
            raise InvalidInputError(
                f"{self.name} adds Gaussian noise, and this budget (epsilon = {budget.epsilon:g},"
                f" delta = {budget.delta:g}) needs an infinite amount; choose delta > 0 and a finite gamma,"
                " or an unlearner that needs no noise, such as rollback"
            )
        penalty = learner.penalty(np.maximum(left, 1), counts.shape[-1])
        rounding = _ROUNDING * (1 + np.abs(penalty))
        gamma = np.where(noised, budget.gamma, 0.0) * np.sqrt(noised.sum(axis=-1, keepdims=True))
        return replace(plan, noised=noised, sigma=np.where(noised, plan.sigma, 0.0) + gamma * rounding)


def winner_distribution(
    learner: PenaltyLearner, retained: ArmStatistics, scores: FloatArray, plan: NoisePlan
) -> FloatArray:
    """The winner's distribution; where no arm has noise, the learner's decision on D∖U."""
    some_noise = plan.noised.any(axis=-1, keepdims=True)
    return np.where(some_noise, noisy_argmax(scores, plan.sigma), decision_distribution(learner, retained))
