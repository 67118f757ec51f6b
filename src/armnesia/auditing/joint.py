"""Audit and comparison of one request in many decisions: the releases of all decisions together."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from armnesia.auditing.audit import ROUNDING
from armnesia.auditing.comparison import posterior_means, strictest_and_best_first
from armnesia.core.arrays import FloatArray
from armnesia.core.errors import ArmnesiaError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Learner
from armnesia.privacy import (
    Budget,
    Composition,
    Guarantee,
    JointLoss,
    composed_delta,
    hockey_stick,
    smallest_epsilon,
)
from armnesia.unlearners import UNLEARNERS, JointRelease, Unlearner, release_jointly
from armnesia.unlearners.base import check_arguments
from armnesia.unlearners.joint import Over, answers_jointly, check_over, reference_jointly

MOST_CONVOLVED = 2000
"""Decisions whose privacy losses are convolved; of more only where composition does not settle the claim."""

Verdict: TypeAlias = Literal["holds", "does not hold", "not shown"]
"""What an audit says of a claim."""


@dataclass(frozen=True, eq=False)
class JointAudit:
    """The δ of all releases together at the budget's ε, and their ε at the budget's δ.

    Both are exact up to rounding where `is_exact`; otherwise the true δ is at most `delta` and at least
    `delta` − `delta_error`, and `smallest_epsilon` is an upper bound. `holds` says whether the claimed
    guarantee of the request is shown to be true on these data sets.
    """

    release: JointRelease
    reference: FloatArray
    budget: Budget
    delta_forward: float
    delta_backward: float
    delta_error: float
    smallest_epsilon: float
    delta_at_claim: tuple[float, float]
    """The lower and the upper end of the δ at the claim's ε; the same where it is exact up to rounding."""
    is_exact: bool
    """Whether no losses had to be put together, so that nothing is only enclosed."""

    def __repr__(self) -> str:
        return (
            f"JointAudit(verdict={self.verdict!r}, delta={self.delta:.6g},"
            f" delta_error={self.delta_error:.6g}, smallest_epsilon={self.smallest_epsilon:.6g},"
            f" guarantee={str(self.guarantee)!r}, decisions={len(self.reference)})"
        )

    @property
    def holds(self) -> bool:
        """Whether the claim is true: the upper end of δ at the claim's ε is at most the claim's δ."""
        return self.delta_at_claim[1] <= self.guarantee.delta + self._rounding

    @property
    def is_refuted(self) -> bool:
        """Whether the claim is false: the lower end of δ at the claim's ε is larger than the claim's δ."""
        return self.delta_at_claim[0] > self.guarantee.delta + self._rounding

    @property
    def verdict(self) -> Verdict:
        """What is known of the claim; "not shown" if its δ lies between both ends of δ at its ε."""
        if self.holds:
            return "holds"
        return "does not hold" if self.is_refuted else "not shown"

    @property
    def _rounding(self) -> float:
        """What the floating-point errors of all releases may account for."""
        return ROUNDING * max(1, len(self.reference))

    @property
    def delta(self) -> float:
        """The joint δ at the budget's ε: the larger of both directions."""
        return max(self.delta_forward, self.delta_backward)

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee that is claimed of the request."""
        return self.release.guarantee

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it: the releases, what was measured, and the reference of each decision.

        >>> from armnesia import LCB, Rollback
        >>> statistics = ArmStatistics(("A", "B"), np.array([[9, 8]]), np.array([[6, 5]]) * 10**9)
        >>> removed = ArmStatistics(("A", "B"), np.array([[2, 0]]), np.array([[2, 0]]) * 10**9)
        >>> request, budget = DeletionRequest(removed, binary=True), Budget(epsilon=0.0, delta=0.0)
        >>> found = audit_jointly(Rollback(), LCB(confidence=0.1), statistics, request, budget).to_dict()
        >>> found["delta"], found["holds"], found["decisions"][0]["reference"]
        (0.0, True, {'A': 0.0, 'B': 1.0})
        """
        facts = self.release.to_dict()
        releases = facts.pop("decisions")
        references = self.reference.tolist()
        return {
            **facts,
            "delta_forward": self.delta_forward,
            "delta_backward": self.delta_backward,
            "delta": self.delta,
            "delta_error": self.delta_error,
            "smallest_epsilon": self.smallest_epsilon,
            "holds": self.holds,
            "verdict": self.verdict,
            "is_exact": self.is_exact,
            "decisions": [
                {**each, "reference": dict(zip(self.release.actions, reference, strict=True))}
                for each, reference in zip(releases, references, strict=True)
            ],
        }


def audit_jointly(
    unlearner: Unlearner,
    learner: Learner,
    statistics: ArmStatistics,
    request: DeletionRequest,
    budget: Budget,
    *,
    composition: Composition = "best",
    over: Over = "touched",
) -> JointAudit:
    """Compare the product of all releases with the product of all references.

    >>> from armnesia import LCB, Tilt
    >>> ones = np.array([[410, 365]] * 3)
    >>> statistics = ArmStatistics(("A", "B"), np.array([[900, 800]] * 3), ones * 10**9)
    >>> counts, ones = np.array([[90, 0], [0, 0], [90, 0]]), np.array([[45, 0], [0, 0], [41, 0]])
    >>> request = DeletionRequest(ArmStatistics(("A", "B"), counts, ones * 10**9), binary=True)
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> found = audit_jointly(Tilt(), LCB(confidence=0.01), statistics, request, budget)
    >>> found.holds, found.delta_error
    (True, 0.0)
    """
    release = release_jointly(
        unlearner, learner, statistics, request, budget, composition=composition, over=over
    )
    reference = reference_jointly(unlearner, learner, statistics, request, release)
    return audited(release, reference, budget)


def audited(release: JointRelease, reference: FloatArray, budget: Budget) -> JointAudit:
    """Compare releases with references that are given."""
    p, r = release.probabilities, reference
    claim = release.guarantee
    if int((p != r).any(axis=-1).sum()) > MOST_CONVOLVED:
        bounded = _bounded(release, reference, budget)
        if bounded.holds or bounded.is_refuted:
            return bounded
    losses = JointLoss.of(p, r), JointLoss.of(r, p)
    forward, backward = (loss.delta(budget.epsilon) for loss in losses)
    uppers = [loss.delta(claim.epsilon) for loss in losses]
    lowers = [upper - loss.error(claim.epsilon) for upper, loss in zip(uppers, losses, strict=True)]
    return JointAudit(
        release=release,
        reference=reference,
        budget=budget,
        delta_forward=forward,
        delta_backward=backward,
        delta_error=max(loss.error(budget.epsilon) for loss in losses),
        smallest_epsilon=max(loss.epsilon(budget.delta) for loss in losses),
        delta_at_claim=(max(lowers), max(uppers)),
        is_exact=all(loss.is_exact for loss in losses),
    )


@dataclass(frozen=True, eq=False)
class JointComparison:
    """What one unlearner would do with a request in all decisions, or why it refuses it."""

    name: str
    guarantee: Guarantee | None
    changes: float
    """The expected number of decisions in which another arm than π(D) is released."""
    expected_loss: float
    """The expected loss of reward, added up over the decisions, judged by the records left."""
    refused: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it; an unlearner that refuses has only its name and the reason.

        >>> JointComparison("tilt", None, math.nan, math.nan, "too many arms").to_dict()
        {'name': 'tilt', 'guarantee': None, 'changes': None, 'expected_loss': None,
        'refused': 'too many arms'}
        """
        return {
            "name": self.name,
            "guarantee": None if self.guarantee is None else self.guarantee.to_dict(),
            "changes": None if self.refused else self.changes,
            "expected_loss": None if self.refused else self.expected_loss,
            "refused": self.refused or None,
        }


def compare_jointly(
    learner: Learner,
    statistics: ArmStatistics,
    request: DeletionRequest,
    budget: Budget,
    *,
    variants: Iterable[Unlearner] = (),
    composition: Composition = "best",
    over: Over = "touched",
) -> list[JointComparison]:
    """Compare all unlearners on a request in all decisions: strictest level first, then the smallest loss.

    Each has its default options, unless `variants` holds another instance of its name, or of its name at
    another level, which stands beside it as in `compare`. Each splits its budget over the same
    decisions: those that lose records, or with `over="all"` all of them. The loss is judged as `compare`
    judges it; it is an estimate for the operator and must not be published.

    >>> from armnesia import LCB
    >>> ones = np.array([[410, 365]] * 3)
    >>> statistics = ArmStatistics(("A", "B"), np.array([[900, 800]] * 3), ones * 10**9)
    >>> counts, ones = np.array([[90, 0], [0, 0], [90, 0]]), np.array([[45, 0], [0, 0], [41, 0]])
    >>> request = DeletionRequest(ArmStatistics(("A", "B"), counts, ones * 10**9), binary=True)
    >>> found = compare_jointly(LCB(confidence=0.01), statistics, request, Budget(epsilon=1.0, delta=1e-5))
    >>> [(each.name, round(each.changes, 2)) for each in found[1:6:2]]
    [('strict_adaptive', 2.0), ('gaussian', 1.0), ('tilt', 0.61)]
    """
    check_over(over)
    check_arguments(learner, statistics, request, budget)
    old = learner.decide(statistics).index
    posterior = posterior_means(statistics.without(request))
    low, high = statistics.reward_range
    losses = (high - low) * (posterior.max(axis=-1, keepdims=True) - posterior)
    unchanged = np.take_along_axis(losses, old[:, None], -1)[:, 0]
    unlearners = {name: kind() for name, kind in UNLEARNERS.items()} | {each.label: each for each in variants}
    found = []
    for name, unlearner in unlearners.items():
        try:
            answers = answers_jointly(
                unlearner, learner, statistics, request, budget, composition=composition, over=over
            )
        except ArmnesiaError as reason:
            found.append(JointComparison(name, None, math.nan, math.nan, str(reason)))
            continue
        rows, changes, loss = answers.answered, 0.0, float(unchanged.sum())
        if answers.release is not None:
            p = answers.release.probabilities
            changes = float((1 - np.take_along_axis(p, old[rows, None], -1)).sum())
            loss += float((p * losses[rows]).sum() - unchanged[rows].sum())
        found.append(JointComparison(name, answers.guarantee, max(changes, 0.0), max(loss, 0.0)))
    return sorted(found, key=lambda each: strictest_and_best_first(each.guarantee, each.expected_loss))


def _bounded(release: JointRelease, reference: FloatArray, budget: Budget) -> JointAudit:
    """Enclose δ for many decisions: at least that of one, at most that of all if all were as the worst."""
    p, r, each = release.probabilities, reference, release.each
    number = int((p != r).any(axis=-1).sum())
    directions = [
        (left, right, float(smallest_epsilon(left, right, each.delta).max()))
        for left, right in ((p, r), (r, p))
    ]

    def enclosed(epsilon: float) -> tuple[list[float], list[float]]:
        lowers = [float(hockey_stick(left, right, epsilon).max()) for left, right, _ in directions]
        uppers = [
            composed_delta(epsilon_each=worst, delta_each=each.delta, number=number, epsilon=epsilon)
            for _, _, worst in directions
        ]
        return lowers, uppers

    lowers, uppers = enclosed(budget.epsilon)
    lowers_at_claim, uppers_at_claim = enclosed(release.guarantee.epsilon)
    return JointAudit(
        release=release,
        reference=reference,
        budget=budget,
        delta_forward=uppers[0],
        delta_backward=uppers[1],
        delta_error=max(upper - lower for upper, lower in zip(uppers, lowers, strict=True)),
        smallest_epsilon=budget.epsilon if max(uppers) <= budget.delta else float("inf"),
        delta_at_claim=(max(lowers_at_claim), max(uppers_at_claim)),
        is_exact=False,
    )
