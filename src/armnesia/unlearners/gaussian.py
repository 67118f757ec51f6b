"""The Gaussian mechanism: noise on the score of every arm that loses records."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.learners import LCB, Decision
from armnesia.privacy import Budget, Guarantee, Level, privacy_curve
from armnesia.unlearners.base import Branch, first_branch
from armnesia.unlearners.calibration import (
    Sensitivity,
    check_choice,
    score_sensitivity,
    sensitivity_certified,
)
from armnesia.unlearners.noise_based import NoisePlan, NoisyUnlearner


@dataclass(frozen=True)
class Gaussian(NoisyUnlearner):
    """The base algorithm of Section 3: noise σ_a = √ℓ·γ·Δ_a on each of the ℓ requested arms, always.

    All ℓ scores may move at once, so the noise is calibrated jointly, by √ℓ. `joint=False` is the paper's
    baseline σ_a = γ·Δ_a; for ℓ > 1 it is certified at γ/√ℓ only and reports the larger δ that this means.
    An arm whose paper sensitivity is not certified is rolled back. Level `request_shape`.

    >>> from armnesia import ArmStatistics, DeletionRequest
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 10, "B": []})
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> Gaussian().release(LCB().bind(statistics), statistics, request, budget).probabilities.round(4)
    array([0.5968, 0.4032])
    """

    sensitivity: Sensitivity = "exact"
    joint: bool = True

    name: ClassVar[str] = "gaussian"
    level: ClassVar[Level] = Level.REQUEST_SHAPE

    def __post_init__(self) -> None:
        check_choice("sensitivity", self.sensitivity)
        if not isinstance(self.joint, bool):
            raise InvalidInputError(f"joint must be True or False; got {self.joint!r}")

    def plan(
        self, learner: LCB, counts: IntArray, deleted: IntArray, decision: Decision | None, budget: Budget
    ) -> NoisePlan:
        """Noise on every requested arm, whatever π(D) is."""
        m = counts.shape[-1]
        touched = deleted > 0
        data_left = (counts - deleted).sum(axis=-1, keepdims=True) > 0
        certified = sensitivity_certified(self.sensitivity, learner, counts, deleted, m)
        noised = touched & certified & data_left
        sources = noised.sum(axis=-1, keepdims=True)
        inflation = np.sqrt(sources) if self.joint else 1.0
        gamma = np.where(noised, budget.gamma, 0.0) * inflation
        reasons = {
            Branch.NO_DATA_LEFT: ~data_left[..., 0],
            Branch.UNCHANGED: ~touched.any(axis=-1),
            Branch.NO_SENSITIVITY: ~noised.any(axis=-1),
            Branch.GAUSSIAN_AND_ROLLBACK: (touched & ~noised).any(axis=-1),
        }
        delta_f = score_sensitivity(self.sensitivity, learner, counts, deleted, m)
        return NoisePlan(noised, gamma * delta_f, first_branch(reasons, otherwise=Branch.GAUSSIAN))

    def guarantee(self, deleted: IntArray, budget: Budget) -> Guarantee:
        """The budget; with `joint=False`, the δ that noise of γ/√ℓ really has at ε."""
        sources = int((deleted > 0).sum(axis=-1).max(initial=0))
        delta = budget.delta
        if not self.joint and sources > 1:
            delta = privacy_curve(budget.gamma / math.sqrt(sources)).delta(budget.epsilon)
        return Guarantee(budget.epsilon, delta, self.level)
