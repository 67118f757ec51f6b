"""One person in many decisions: a request that is answered by one release per decision, with one guarantee.

Given the data the releases are independent, so their guarantee is a composition. The budget is split over the
decisions that the request touches; how many there are, and which, is part of the request's shape. At level
`retained` a reference does not know it. An unlearner without a budget (rollback) does not need it either; one
with a budget has to split it over all decisions, touched or not.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from armnesia.core.arrays import BoolArray, FloatArray, IntArray
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.randomness import draw_index
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Learner
from armnesia.privacy import Budget, Composition, Guarantee, composed_delta, split_budget
from armnesia.unlearners.base import Branch, Release, Unlearner, check_arguments, decision_distribution

Over: TypeAlias = Literal["touched", "all"]
"""Over which decisions a budget is split: those that lose records, or all of them."""


@dataclass(frozen=True, eq=False, kw_only=True)
class SharedBudget:
    """How the decisions of a request share its budget."""

    guarantee: Guarantee
    """Of all releases together: the guarantee of the request."""
    each: Budget
    """What each of the decisions that share the budget got of it."""
    n_sharing: int
    """How many decisions share the budget: d."""
    answered: IntArray
    """The decisions that the unlearner answered; the others keep their arm."""


@dataclass(frozen=True, eq=False, kw_only=True)
class JointRelease(SharedBudget):
    """The exact distributions of the arms released in all decisions, and what they guarantee together."""

    release: Release
    """The first axis of its probabilities is the decisions; its own guarantee is that of one decision."""
    touched: BoolArray
    """Which decisions lose records."""

    def __repr__(self) -> str:
        return (
            f"JointRelease(guarantee={str(self.guarantee)!r}, decisions={len(self.probabilities)},"
            f" touched={int(self.touched.sum())}, n_sharing={self.n_sharing}, each={self.each!r})"
        )

    @property
    def actions(self) -> tuple[Hashable, ...]:
        """The actions, in the order of the last axis."""
        return self.release.actions

    @property
    def probabilities(self) -> FloatArray:
        """P(arm) in each decision; decisions are on the first axis, arms on the last."""
        return self.release.probabilities

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it: what all decisions share, and one object per decision, in their order.

        >>> from armnesia import LCB, Rollback
        >>> statistics = ArmStatistics(("A", "B"), np.array([[9, 8]]), np.array([[6, 5]]) * 10**9)
        >>> removed = ArmStatistics(("A", "B"), np.array([[2, 0]]), np.array([[2, 0]]) * 10**9)
        >>> request, budget = DeletionRequest(removed, binary=True), Budget(epsilon=0.0, delta=0.0)
        >>> found = release_jointly(Rollback(), LCB(confidence=0.1), statistics, request, budget).to_dict()
        >>> found["n_sharing"], found["decisions"]
        (1, [{'probabilities': {'A': 0.0, 'B': 1.0}, 'branch': 'rollback'}])
        """
        probabilities = self.probabilities.tolist()
        return {
            "n_sharing": self.n_sharing,
            "budget_of_each": self.each.to_dict(),
            "guarantee": self.guarantee.to_dict(),
            "decisions": [
                {"probabilities": dict(zip(self.actions, row, strict=True)), "branch": branch}
                for row, branch in zip(probabilities, self.release.branch, strict=True)
            ],
        }

    def draw(self) -> list[Hashable]:
        """Draw the arm of every decision exactly, with the operating system's randomness; do it once."""
        return [self.actions[draw_index(row)] for row in self.probabilities.tolist()]


def release_jointly(
    unlearner: Unlearner,
    learner: Learner,
    statistics: ArmStatistics,
    request: DeletionRequest,
    budget: Budget,
    *,
    composition: Composition = "best",
    over: Over = "touched",
) -> JointRelease:
    """Forget a request in all decisions, the first axis, so that all releases together are (ε, δ).

    Decisions that lose no records keep their arm, unless the unlearner conceals which they are. Unlearners
    that add Gaussian noise are composed as Gaussian mechanisms, with √d times the noise of the whole budget;
    the budget of the others is split by `composition` (see `split_budget`).

    The keys of the decisions are public, like the actions. Except at level `retained`, so is which decisions
    lose how many records of each arm: where keys describe people, it tells their country or age group.

    >>> from armnesia import LCB, Tilt
    >>> ones = np.array([[410, 365]] * 3)
    >>> statistics = ArmStatistics(("A", "B"), np.array([[900, 800]] * 3), ones * 10**9)
    >>> counts, ones = np.array([[90, 0], [0, 0], [90, 0]]), np.array([[45, 0], [0, 0], [41, 0]])
    >>> request = DeletionRequest(ArmStatistics(("A", "B"), counts, ones * 10**9), binary=True)
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> found = release_jointly(Tilt(), LCB(confidence=0.01), statistics, request, budget)
    >>> found.probabilities.round(3), found.n_sharing, found.each
    (array([[0.622, 0.378], [1. , 0. ], [0.771, 0.229]]), 2, Budget(epsilon=0.5, delta=5e-06))
    >>> print(found.guarantee)
    (ε = 1, δ = 1e-05) at level request_shape: up to (ε, δ), the rewards are forgotten; how many records of
    each arm in each decision were deleted is not; two possible contents of the request differ by at most
    (ε = 2, δ = 3.72e-05)
    """
    check_arguments(learner, statistics, request, budget)
    check_decisions(statistics, request)
    probabilities = decision_distribution(learner, statistics)
    branches = np.full(len(probabilities), Branch.UNCHANGED, dtype=object)
    answers = answers_jointly(
        unlearner, learner, statistics, request, budget, composition=composition, over=over
    )
    if answers.release is not None:
        probabilities[answers.answered] = answers.release.probabilities
        branches[answers.answered] = answers.release.branch
    each = replace(unlearner.guarantee(request, answers.each), reveals=learner.reveals)
    release = Release(statistics.actions, probabilities, branches, each)
    return JointRelease(
        guarantee=answers.guarantee,
        each=answers.each,
        n_sharing=answers.n_sharing,
        answered=answers.answered,
        release=release,
        touched=~request.is_empty,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class Answers(SharedBudget):
    """The releases in the decisions that an unlearner answers; all others keep their arm."""

    release: Release | None
    """Of those decisions alone; None if there are none."""


def answers_jointly(
    unlearner: Unlearner,
    learner: Learner,
    statistics: ArmStatistics,
    request: DeletionRequest,
    budget: Budget,
    *,
    composition: Composition = "best",
    over: Over = "touched",
    n_sharing: int | None = None,
) -> Answers:
    """The part of `release_jointly` that needs the unlearner; its time depends on the touched decisions.

    If these decisions are a part of those that a request touches, `n_sharing` is the number of all of them.
    """
    check_decisions(statistics, request)
    touched = ~request.is_empty
    every = _shares_over_all(unlearner, over)
    rows = np.arange(len(touched)) if every else np.flatnonzero(touched)
    number = rows.size if n_sharing is None else n_sharing
    if number < rows.size:
        raise InvalidInputError(
            f"n_sharing must be at least the number of decisions that are answered, {rows.size};"
            f" got {n_sharing}"
        )
    each = budget_of_each(unlearner, budget, number, composition)
    guarantee = joint_guarantee(unlearner, request, budget, number, composition)
    guarantee = replace(guarantee, reveals=learner.reveals, is_joint=True)
    release = None
    if rows.size:
        own = learner.for_rows(rows, statistics.counts.shape)
        release = unlearner.release(own, rows_of(statistics, rows), request_of(request, rows), each)
    return Answers(guarantee=guarantee, each=each, n_sharing=number, answered=rows, release=release)


def reference_jointly(
    unlearner: Unlearner,
    learner: Learner,
    statistics: ArmStatistics,
    request: DeletionRequest,
    found: JointRelease,
) -> FloatArray:
    """The distributions that the guarantee compares the releases with, given what the level sees."""
    reference = decision_distribution(learner, statistics)  # the same in both worlds where nothing is deleted
    rows = found.answered
    if not rows.size:
        return reference
    before, deleted = rows_of(statistics, rows), request_of(request, rows)
    own = learner.for_rows(rows, statistics.counts.shape)
    decision = own.decide(before)
    reference[rows] = unlearner.reference(
        own,
        before.without(deleted),
        found.each,
        shape=deleted.counts if unlearner.level.sees_shape else None,
        original_decision=decision if unlearner.level.sees_decision else None,
    )
    return reference


def budget_of_each(unlearner: Unlearner, budget: Budget, number: int, composition: Composition) -> Budget:
    """The budget of each of the decisions that share one.

    >>> from armnesia import Gaussian, Tilt
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> budget_of_each(Tilt(), budget, 4, "even")
    Budget(epsilon=0.25, delta=2.5...e-06)
    >>> budget_of_each(Gaussian(), budget, 4, "best").gamma / budget.gamma
    2.0
    """
    if number <= 1 or not unlearner.needs_budget:
        return budget
    if _as_gaussian(unlearner, composition):
        return Budget.from_gamma(budget.gamma * math.sqrt(number), delta=budget.delta / number)
    return split_budget(budget, number, composition)


def joint_guarantee(
    unlearner: Unlearner, request: DeletionRequest, budget: Budget, number: int, composition: Composition
) -> Guarantee:
    """What all releases guarantee together: the budget, or what the unlearner claims of each, composed."""
    if number <= 1 or not unlearner.needs_budget or _as_gaussian(unlearner, composition):
        return unlearner.guarantee(request, budget)
    each = budget_of_each(unlearner, budget, number, composition)
    claim = unlearner.guarantee(request, each)
    if (claim.epsilon, claim.delta) == (each.epsilon, each.delta):
        return Guarantee(budget.epsilon, budget.delta, claim.level)
    delta = composed_delta(
        epsilon_each=claim.epsilon, delta_each=claim.delta, number=number, epsilon=budget.epsilon
    )
    return Guarantee(budget.epsilon, delta, claim.level)


def check_decisions(statistics: ArmStatistics, request: DeletionRequest) -> None:
    """Refuse statistics or a request without one axis of decisions."""
    if statistics.counts.ndim != 2 or request.counts.shape != statistics.counts.shape:
        raise InvalidInputError(
            "statistics and request must have decisions on the first axis and arms on the last, as those of"
            f" log.by(...) have; got shapes {statistics.counts.shape} and {request.counts.shape}"
        )


def check_over(over: Over) -> None:
    """Refuse what does not say over which decisions a budget is split."""
    if over not in get_args(Over):
        raise InvalidInputError(f"over must be 'touched' or 'all'; got {over!r}")


def rows_of(statistics: ArmStatistics, rows: Any) -> ArmStatistics:
    """The statistics of some of the decisions."""
    return statistics.selected(lambda values: values[rows])


def request_of(request: DeletionRequest, rows: Any) -> DeletionRequest:
    """The part of a request in some of the decisions."""
    return DeletionRequest(rows_of(request.records, rows), request.binary)


def _as_gaussian(unlearner: Unlearner, composition: Composition) -> bool:
    return unlearner.composes_as_gaussian and composition == "best"


def _shares_over_all(unlearner: Unlearner, over: Over) -> bool:
    check_over(over)
    if over == "all":
        return True
    if unlearner.needs_budget and not unlearner.level.sees_shape:
        raise UnsupportedError(
            f"{unlearner.name} at level {unlearner.level} cannot split its budget over the decisions that a"
            " request touches, because that level conceals how many there are; use rollback, an unlearner at"
            " level request_shape, or over='all' (--over all), which splits it over all decisions"
        )
    return False
