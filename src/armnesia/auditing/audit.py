"""The audit: the release of an unlearner, compared exactly with its own reference."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Learner
from armnesia.privacy import Budget, Guarantee, hockey_stick, smallest_epsilon
from armnesia.unlearners import Release, Unlearner
from armnesia.unlearners.base import check_arguments

ROUNDING = 1e-12
"""The part of δ that the floating-point error of a release may account for."""


@dataclass(frozen=True, eq=False)
class Audit:
    """The exact δ of a release at the budget's ε, and its exact ε at the budget's δ.

    `delta_forward` compares release with reference, `delta_backward` reference with release; both must be
    small. `holds` says whether the claimed guarantee is true on these data sets. A pass confirms the claim
    for them only, while the guarantee is for all data sets.
    """

    release: Release
    reference: FloatArray
    budget: Budget
    delta_forward: FloatArray
    delta_backward: FloatArray
    smallest_epsilon: FloatArray
    holds: bool

    def __repr__(self) -> str:
        return (
            f"Audit(holds={self.holds}, delta={np.max(self.delta, initial=0.0):.6g},"
            f" smallest_epsilon={np.max(self.smallest_epsilon, initial=0.0):.6g},"
            f" guarantee={str(self.guarantee)!r}, data_sets={self.delta.size})"
        )

    @property
    def delta(self) -> FloatArray:
        """The exact δ at the budget's ε: the larger of both directions."""
        return np.maximum(self.delta_forward, self.delta_backward)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that the release claims."""
        return self.release.guarantee

    def to_dict(self) -> dict[str, Any]:
        """Write the audit of one data set as JSON holds it: release, reference and what was measured."""
        return {
            **self.release.to_dict(),
            "reference": dict(zip(self.release.actions, self.reference.tolist(), strict=True)),
            "delta_forward": float(self.delta_forward),
            "delta_backward": float(self.delta_backward),
            "delta": float(self.delta),
            "smallest_epsilon": float(self.smallest_epsilon),
            "holds": self.holds,
        }


def audit(
    unlearner: Unlearner,
    learner: Learner,
    statistics: ArmStatistics,
    request: DeletionRequest,
    budget: Budget,
) -> Audit:
    """Compare release and reference, which gets exactly what the level of the unlearner sees.

    >>> from armnesia import LCB, Gaussian
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 10, "B": []})
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> result = audit(Gaussian(), LCB().bind(statistics), statistics, request, budget)
    >>> result.holds, float(result.delta), round(float(result.smallest_epsilon), 4)
    (True, 0.0, 0.1207)
    """
    check_arguments(learner, statistics, request, budget)
    release = unlearner.release(learner, statistics, request, budget)
    reference = unlearner.reference(
        learner,
        statistics.without(request),
        budget,
        shape=request.counts if unlearner.level.sees_shape else None,
        original_decision=learner.decide(statistics) if unlearner.level.sees_decision else None,
    )
    claim = release.guarantee
    p, r = release.probabilities, reference
    missing = np.maximum(hockey_stick(p, r, claim.epsilon), hockey_stick(r, p, claim.epsilon))
    return Audit(
        release=release,
        reference=reference,
        budget=budget,
        delta_forward=hockey_stick(p, r, budget.epsilon),
        delta_backward=hockey_stick(r, p, budget.epsilon),
        smallest_epsilon=np.maximum(
            smallest_epsilon(p, r, budget.delta), smallest_epsilon(r, p, budget.delta)
        ),
        holds=bool(np.all(missing <= claim.delta + ROUNDING)),
    )
