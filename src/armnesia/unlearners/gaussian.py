"""The Gaussian mechanism: noise on the score of every arm that loses records."""

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.parameters import parameter
from armnesia.core.request import DeletionRequest
from armnesia.learners import Decision, PenaltyLearner
from armnesia.privacy import Budget, Guarantee, Level, privacy_curve
from armnesia.unlearners.base import Branch, first_branch
from armnesia.unlearners.calibration import (
    SENSITIVITY_HELP,
    Sensitivity,
    check_choice,
    score_sensitivity,
    sensitivity_certified,
)
from armnesia.unlearners.noise_based import NoiseBasedUnlearner, NoisePlan


@dataclass(frozen=True)
class Gaussian(NoiseBasedUnlearner):
    """The base algorithm of Section 3: noise σ_a = √ℓ·γ·Δ_a on each of the ℓ requested arms.

    All ℓ scores may move at once, so the noise is calibrated jointly, by √ℓ. `joint=False` is the paper's
    baseline σ_a = γ·Δ_a; for ℓ > 1 it is certified at γ/√ℓ only, and the guarantee states the larger δ.
    An arm whose paper sensitivity is not certified is rolled back. Level `request_shape`.

    >>> from armnesia import LCB, ArmStatistics
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 10, "B": []})
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> Gaussian().release(LCB().bind(statistics), statistics, request, budget).probabilities.round(4)
    array([0.5968, 0.4032])
    """

    sensitivity: Sensitivity = parameter("exact", help=SENSITIVITY_HELP)
    joint: bool = parameter(
        True, help="Calibrate the noise of several requested arms jointly; without it δ is larger."
    )

    name: ClassVar[str] = "gaussian"
    level: ClassVar[Level] = Level.REQUEST_SHAPE

    def __post_init__(self) -> None:
        check_choice("sensitivity", self.sensitivity)
        if not isinstance(self.joint, bool):
            raise InvalidInputError(f"joint must be True or False; got {self.joint!r}")

    @classmethod
    def as_in_the_paper(cls) -> Self:
        """The paper's experiments: its sensitivity 3k/(2N), and each arm calibrated by itself."""
        return cls(sensitivity="paper", joint=False)

    def plan(
        self,
        learner: PenaltyLearner,
        counts: IntArray,
        deleted: IntArray,
        decision: Decision | None,
        budget: Budget,
    ) -> NoisePlan:
        """Noise on every requested arm, whatever π(D) is."""
        m = counts.shape[-1]
        touched = deleted > 0
        noised = touched & sensitivity_certified(self.sensitivity, learner, counts, deleted, m)
        sources = noised.sum(axis=-1, keepdims=True)
        inflation = np.sqrt(sources) if self.joint else 1.0
        gamma = np.where(noised, budget.gamma, 0.0) * inflation
        reasons = {
            Branch.NO_SENSITIVITY: np.asarray(~noised.any(axis=-1)),
            Branch.GAUSSIAN_AND_ROLLBACK: np.asarray((touched & ~noised).any(axis=-1)),
        }
        delta_f = score_sensitivity(self.sensitivity, learner, counts, deleted, m)
        return NoisePlan(noised, gamma * delta_f, first_branch(reasons, otherwise=Branch.GAUSSIAN))

    def guarantee(self, request: DeletionRequest, budget: Budget) -> Guarantee:
        """The budget; with `joint=False`, the δ of noise γ/√ℓ at ε."""
        sources = int(request.n_sources.max(initial=0))
        delta = budget.delta
        if not self.joint and sources > 1:
            delta = privacy_curve(budget.gamma / math.sqrt(sources)).delta(budget.epsilon)
        return Guarantee(budget.epsilon, delta, self.level)
