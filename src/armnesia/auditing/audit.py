"""The audit: the release of an unlearner, compared exactly with its own reference."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics, is_whole
from armnesia.learners import Learner
from armnesia.privacy import (
    Budget,
    Guarantee,
    JointLoss,
    hockey_stick,
    renyi_divergence,
    smallest_epsilon,
    trade_off,
    trade_off_corners,
)
from armnesia.unlearners import Release, Unlearner
from armnesia.unlearners.base import check_arguments

ROUNDING = 1e-12
"""The part of δ that the floating-point error of a release may account for."""
SHOWN_ORDERS = (1.0, 2.0, np.inf)
"""The orders of the Rényi divergences that are printed and written."""


@dataclass(frozen=True, eq=False)
class Audit:
    """The exact δ of a release at the budget's ε, and its exact ε at the budget's δ.

    `delta_forward` compares release with reference, `delta_backward` reference with release; both must be
    small. `holds` says whether the claimed guarantee is true on these data sets. A pass confirms the claim
    for them only, while the guarantee is for all data sets.

    >>> from armnesia import LCB, Tilt
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 25 + [0] * 5, "B": []})
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> found = audit(Tilt(), LCB().bind(statistics), statistics, request, budget)
    >>> found.holds, round(float(found.advantage), 4)
    (True, 0.17)
    >>> found.trade_off([0.05, 0.5]).round(4)  # by guessing, 0.95 and 0.5
    array([0.8641, 0.33  ])
    >>> [round(float(found.renyi(order)), 4) for order in (1, 2, np.inf)]
    [0.1161, 0.2808, 1.0]
    >>> round(found.repeated(10).epsilon(1e-5), 4)  # of ten draws; by adding up, 10
    8.6189
    """

    release: Release
    reference: FloatArray
    budget: Budget
    delta_forward: FloatArray
    delta_backward: FloatArray
    smallest_epsilon: FloatArray

    def __repr__(self) -> str:
        claimed = np.max(self.delta_at_claim, initial=0.0)
        at_claim = "" if self.guarantee.epsilon == self.budget.epsilon else f" delta_at_claim={claimed:.6g},"
        return (
            f"Audit(holds={self.holds}, delta={np.max(self.delta, initial=0.0):.6g},{at_claim}"
            f" smallest_epsilon={np.max(self.smallest_epsilon, initial=0.0):.6g},"
            f" guarantee={str(self.guarantee)!r}, data_sets={self.delta.size})"
        )

    @property
    def delta(self) -> FloatArray:
        """The exact δ at the budget's ε: the larger of both directions."""
        return np.maximum(self.delta_forward, self.delta_backward)

    @property
    def delta_at_claim(self) -> FloatArray:
        """The exact δ at the claimed ε, which may be below the budget's; `holds` judges this one."""
        p, r, epsilon = self.release.probabilities, self.reference, self.guarantee.epsilon
        return np.maximum(hockey_stick(p, r, epsilon), hockey_stick(r, p, epsilon))

    @property
    def holds(self) -> bool:
        """Whether the claimed guarantee is true on these data sets."""
        return bool(np.all(self.delta_at_claim <= self.guarantee.delta + ROUNDING))

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that the release claims."""
        return self.release.guarantee

    @property
    def advantage(self) -> FloatArray:
        """The membership-inference advantage: the exact δ at ε = 0, which is the total variation distance.

        Whoever guesses from the released arm whether it is of the release or of the reference is right with
        probability (1 + advantage)/2 at most, if both are equally likely.
        """
        return hockey_stick(self.release.probabilities, self.reference, 0.0)

    def renyi(self, order: float) -> FloatArray:
        """The Rényi divergence of this order, the larger of both directions: 1 is KL, ∞ the ε at δ = 0."""
        p, r = self.release.probabilities, self.reference
        return np.maximum(renyi_divergence(p, r, order), renyi_divergence(r, p, order))

    def trade_off(self, type_1: ArrayLike) -> FloatArray:
        """The smallest type II error of any test that tells release from reference, at this type I error.

        This is the exact f of f-DP, for one data set, whichever of the two is the null hypothesis.
        """
        return trade_off(trade_off_corners(*self._one_data_set()), type_1)

    def repeated(self, number: int) -> JointLoss:
        """The exact δ(ε) and ε(δ) of so many draws from the release of one data set, all seen together."""
        if not is_whole(number) or number < 1:
            raise InvalidInputError(f"number must be a whole number of draws, 1 or more; got {number!r}")
        p, r = self._one_data_set()
        return JointLoss.both_ways(np.tile(p, (number, 1)), np.tile(r, (number, 1)))

    def _one_data_set(self) -> tuple[FloatArray, FloatArray]:
        if self.reference.ndim != 1:
            raise InvalidInputError(
                "this takes the audit of one data set;"
                f" this one holds {self.reference.size // self.reference.shape[-1]}"
            )
        return self.release.probabilities, self.reference

    def to_dict(self) -> dict[str, Any]:
        """Write the audit of one data set as JSON holds it: release, reference and what was measured."""
        return {
            **self.release.to_dict(),
            "reference": dict(zip(self.release.actions, self.reference.tolist(), strict=True)),
            "delta_forward": float(self.delta_forward),
            "delta_backward": float(self.delta_backward),
            "delta": float(self.delta),
            "smallest_epsilon": float(self.smallest_epsilon),
            "delta_at_claim": float(self.delta_at_claim),
            "holds": self.holds,
            "advantage": float(self.advantage),
            "renyi": {f"{order:g}": float(self.renyi(order)) for order in SHOWN_ORDERS},
            "trade_off": trade_off_corners(*self._one_data_set()).tolist(),
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
    p, r = release.probabilities, reference
    return Audit(
        release=release,
        reference=reference,
        budget=budget,
        delta_forward=hockey_stick(p, r, budget.epsilon),
        delta_backward=hockey_stick(r, p, budget.epsilon),
        smallest_epsilon=np.maximum(
            smallest_epsilon(p, r, budget.delta), smallest_epsilon(r, p, budget.delta)
        ),
    )
