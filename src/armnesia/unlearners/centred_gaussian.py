"""The centred Gaussian mechanism: half the sensitivity, by a reference that imputes the deleted rewards."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import Decision, PenaltyLearner
from armnesia.privacy import Budget, Level
from armnesia.unlearners.base import Branch, first_branch
from armnesia.unlearners.noise_based import NoiseBasedUnlearner, NoisePlan, winner_distribution


def centred_scores(learner: PenaltyLearner, retained: ArmStatistics, shape: IntArray) -> FloatArray:
    """The scores of D with every deleted reward in the middle of the range; −1 for an arm without records.

    >>> from armnesia import LCB
    >>> retained = ArmStatistics.from_rewards({"A": [1, 0], "B": [1]})
    >>> centred_scores(LCB(confidence=0.5), retained, np.array([2, 0])).round(3)
    array([0.084, 0.167])
    """
    before = np.maximum(retained.counts + shape, 1)
    means = (retained.sums.astype(np.float64) / UNIT + shape / 2) / before
    imputed = learner.lower_bounds(means, before, retained.n_actions)
    return np.where(shape > 0, imputed, learner.unit_scores(retained))


@dataclass(frozen=True)
class CentredGaussian(NoiseBasedUnlearner):
    """Noise σ_a = √ℓ·γ·k/(2N) on each of the ℓ requested arms: at most that of `Gaussian`, at the same level.

    A reference at `request_shape` knows how many records of each arm were deleted. So it may keep the
    penalty b(N) and give every deleted record a reward in the middle of the range. The score of D differs
    from that by at most k/(2N), where `Gaussian` needs k/N + b(N−k) − b(N): at least twice as much, if the
    arm keeps records. No arm is rolled back, also none that is left without records.

    >>> from armnesia import LCB, DeletionRequest
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 10, "B": []})
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> CentredGaussian().release(LCB().bind(statistics), statistics, request, budget).probabilities.round(4)
    array([0.7041, 0.2959])
    """

    name: ClassVar[str] = "centred_gaussian"
    level: ClassVar[Level] = Level.REQUEST_SHAPE

    def plan(
        self,
        learner: PenaltyLearner,
        counts: IntArray,
        deleted: IntArray,
        decision: Decision | None,
        budget: Budget,
    ) -> NoisePlan:
        """Noise on every requested arm, whatever π(D) is."""
        touched = deleted > 0
        sources = touched.sum(axis=-1, keepdims=True)
        gamma = np.where(touched, budget.gamma, 0.0) * np.sqrt(sources)
        sensitivity = deleted / (2.0 * np.maximum(counts, 1))
        branches = first_branch({Branch.ROLLBACK: sources[..., 0] == 0}, otherwise=Branch.GAUSSIAN)
        return NoisePlan(touched, gamma * sensitivity, branches)

    def reference_probabilities(
        self,
        learner: PenaltyLearner,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        """The same noise on the scores with the deleted rewards imputed."""
        plan = self.checked_plan(learner, retained.counts + shape, shape, None, budget)
        return winner_distribution(learner, retained, centred_scores(learner, retained, shape), plan)
