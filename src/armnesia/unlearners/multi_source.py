"""Multi-source unlearning: noise on the served arm where its bound is smaller, rollback of all others."""

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar, Self

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.parameters import parameter
from armnesia.learners import Decision, PenaltyLearner
from armnesia.privacy import Budget, Level
from armnesia.unlearners.base import Branch, first_branch
from armnesia.unlearners.calibration import (
    SENSITIVITY_HELP,
    Sensitivity,
    Threshold,
    check_choice,
    noise_threshold,
    score_sensitivity,
    sensitivity_certified,
)
from armnesia.unlearners.noise_based import NoiseBasedUnlearner, NoisePlan


@dataclass(frozen=True)
class MultiSource(NoiseBasedUnlearner):
    """Algorithm 7 (appendix A.5), as in its proof: if the served arm π(D) is requested and γ < γ₀, its score
    gets noise σ = γ·Δ; every other requested arm, and the served one otherwise, is rolled back.

    The printed pseudo-code does nothing to a served arm with γ ≥ γ₀, so its records would not be unlearned;
    the proof rolls it back, and so does this. γ₀ uses the smallest N and the largest k among the requested
    arms; if N_min ≤ k_max, or if the sensitivity is not certified, it rolls back.

    Level `original_decision`: the reference must see π(D), which depends on the deleted records.

    >>> from armnesia import LCB, ArmStatistics, DeletionRequest
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 55 + [0] * 45, "B": [1] * 50 + [0] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 10, "B": [0] * 5})
    >>> budget = Budget(epsilon=30, delta=1e-5)
    >>> release = MultiSource().release(LCB().bind(statistics), statistics, request, budget)
    >>> release.probabilities.round(4), release.branch
    (array([0.8849, 0.1151]), 'gaussian')
    """

    threshold: Threshold = parameter(
        "exact", help="The γ₀ below which noise is added: the paper's formula, or the exact balance."
    )
    threshold_scale: float = parameter(1.0, help="A factor on γ₀; 1.3 in the paper's experiments.")
    sensitivity: Sensitivity = parameter("exact", help=SENSITIVITY_HELP)

    name: ClassVar[str] = "multi_source"
    level: ClassVar[Level] = Level.ORIGINAL_DECISION

    def __post_init__(self) -> None:
        check_choice("threshold", self.threshold)
        check_choice("sensitivity", self.sensitivity)
        if not (isinstance(self.threshold_scale, Real) and 0 <= self.threshold_scale < float("inf")):
            raise InvalidInputError(
                f"threshold_scale must be finite and not negative; got {self.threshold_scale!r}"
            )

    @classmethod
    def as_in_the_paper(cls) -> Self:
        """The paper's experiments: its printed γ₀ times 1.3, and its sensitivity 3k/(2N)."""
        return cls(threshold="paper", threshold_scale=1.3, sensitivity="paper")

    def plan(
        self,
        learner: PenaltyLearner,
        counts: IntArray,
        deleted: IntArray,
        decision: Decision | None,
        budget: Budget,
    ) -> NoisePlan:
        """Noise on π(D) alone, and only where its bound is smaller than rollback's."""
        assert decision is not None  # at this level it is seen
        m = counts.shape[-1]
        touched = deleted > 0
        is_served = decision.index[..., None] == np.arange(m)
        smallest_count = np.where(touched, counts, np.iinfo(np.int64).max).min(axis=-1, keepdims=True)
        most_deleted = deleted.max(axis=-1, keepdims=True)
        # With frozen penalties the balance differs between arms: the one of the served arm is used.
        gamma_0 = noise_threshold(
            learner, smallest_count, most_deleted, m, threshold=self.threshold, sensitivity=self.sensitivity
        )
        gamma_0 = np.where(is_served, gamma_0, 0.0).sum(axis=-1)
        certified = sensitivity_certified(self.sensitivity, learner, counts, deleted, m)
        reasons = {
            Branch.NOT_SERVED: ~(is_served & touched).any(axis=-1),
            Branch.TOO_MANY_DELETED: (smallest_count <= most_deleted)[..., 0],
            Branch.STRICT_BUDGET: budget.gamma >= self.threshold_scale * gamma_0,
            Branch.NO_SENSITIVITY: ~(is_served & certified).any(axis=-1),
        }
        branches = first_branch(reasons, otherwise=Branch.GAUSSIAN)
        noised = is_served & (branches == Branch.GAUSSIAN)[..., None]
        delta_f = score_sensitivity(self.sensitivity, learner, counts, deleted, m)
        gamma = np.where(noised, budget.gamma, 0.0)
        return NoisePlan(noised, gamma * delta_f, branches)
