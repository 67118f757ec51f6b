"""The audit of a level: whether any reference exists that the unlearner's releases can be compared with.

Group all (D, U) by what a level lets a reference see. The unlearner holds the level at (ε, δ) exactly when
in every group *one* vector r lies within (ε, δ) of all releases of the group. The smallest such δ is the
value of a linear program; the unlearner's own reference is not used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armnesia.auditing.audit import ROUNDING
from armnesia.auditing.linear_programs import (
    closest_reference,
    simple_references,
    smallest_possible,
    worst_divergences,
)
from armnesia.auditing.small_worlds import small_worlds, stacked
from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import CountsOnlyLearner, Learner
from armnesia.privacy import Budget, Level
from armnesia.unlearners import Unlearner
from armnesia.unlearners.joint import request_of, rows_of


@dataclass(frozen=True, eq=False)
class Witness:
    """The group of (D, U) with the largest δ: what its members share, and their releases."""

    retained: ArmStatistics
    instances: tuple[tuple[ArmStatistics, DeletionRequest], ...]
    releases: FloatArray
    reference: FloatArray
    """The best reference for the group."""


@dataclass(frozen=True, eq=False)
class Feasibility:
    """The smallest δ at which the level holds over all the instances, with the worst group as witness."""

    level: Level
    budget: Budget
    delta: float
    at_least: float
    """A lower bound on the δ of every reference, from two releases of the witness and one set of arms."""
    n_instances: int
    n_groups: int
    branches: dict[str, int]
    """How often the unlearner took each branch. Without noise, only rollback is tested."""
    witness: Witness

    @property
    def holds(self) -> bool:
        """Whether the level holds at the budget, on these instances."""
        return self.delta <= self.budget.delta + ROUNDING

    @property
    def refuted(self) -> bool:
        """Whether the level certainly does not hold at the budget."""
        return self.at_least > self.budget.delta + ROUNDING


def feasible_reference(
    unlearner: Unlearner,
    learner: Learner,
    *,
    level: Level | str,
    budget: Budget,
    instances: Sequence[tuple[ArmStatistics, DeletionRequest]] | None = None,
    max_count: int = 6,
    progress: Callable[[int, int], None] | None = None,
) -> Feasibility:
    """The smallest δ for which any reference of this level exists, at the budget's ε.

    By default all data sets with two arms, up to `max_count` records per arm and rewards in {0, 1} are tried
    with all their requests; `instances` replaces them. The learner must be bound: its confidence is a
    constant. `progress` is called with the groups done and the number of groups.

    >>> from armnesia import LCB, Gaussian
    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> lcb = LCB(confidence=0.5)
    >>> feasible_reference(Gaussian(), lcb, level="request_shape", budget=budget, max_count=2).holds
    True
    >>> feasible_reference(Gaussian(), lcb, level="retained", budget=budget, max_count=2).holds
    False
    """
    level = Level.named(level)
    if learner.supports(CountsOnlyLearner) and level is not Level.RETAINED:
        raise UnsupportedError(
            f"level {level} is empty for the learner {learner.name!r}, which depends on counts alone:"
            " a reference that sees the deleted counts sees everything; use level retained"
        )
    if instances is None:
        statistics, request = small_worlds(max_count, several_arms=unlearner.several_arms)
    else:
        statistics, request = stacked(instances)
    released = unlearner.release(learner, statistics, request, budget)
    releases = released.probabilities
    names, times = np.unique(released.branch.astype(np.str_), return_counts=True)
    groups = _groups(_seen(level, learner, statistics, request))
    worst_delta, worst_group, worst_reference = _worst_group(releases, groups, budget.epsilon, progress)
    retained = statistics.without(request)
    return Feasibility(
        level=level,
        budget=budget,
        delta=worst_delta,
        at_least=smallest_possible(releases[worst_group], budget.epsilon),
        n_instances=len(releases),
        n_groups=len(groups),
        branches=dict(zip(names.tolist(), times.tolist(), strict=True)),
        witness=Witness(
            retained=rows_of(retained, worst_group[0]),
            instances=tuple((rows_of(statistics, i), request_of(request, i)) for i in worst_group),
            releases=releases[worst_group],
            reference=worst_reference,
        ),
    )


def _seen(
    level: Level, learner: Learner, statistics: ArmStatistics, request: DeletionRequest
) -> NDArray[Any]:
    """What a reference of this level sees, one row per instance."""
    retained = statistics.without(request)
    columns = [retained.counts, retained.sums]
    if retained.products is not None:
        columns.append(retained.products)
    if level.sees_shape:
        columns.append(request.counts)
    if level.sees_decision:
        columns.append(learner.decide(statistics).index[:, None])
    seen = np.concatenate(columns, axis=-1)
    # np.unique cannot sort rows of Python integers (sums beyond int64), but it can sort their texts.
    return seen.astype(np.str_) if seen.dtype == object else seen


def _groups(seen: NDArray[Any]) -> list[IntArray]:
    """The indices of the instances with equal rows, one array per group."""
    _, membership = np.unique(seen, axis=0, return_inverse=True)
    order = np.argsort(membership, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(membership[order])) + 1)


def _simple_bound(releases: FloatArray, epsilon: float) -> float:
    """The δ of a group with the best of its releases and their mean as reference."""
    distinct = np.unique(releases, axis=0) if len(releases) > 1 else releases
    if len(distinct) == 1:
        return 0.0  # it is its own reference
    return float(worst_divergences(distinct, simple_references(distinct), epsilon).min())


def _worst_group(
    releases: FloatArray,
    groups: list[IntArray],
    epsilon: float,
    progress: Callable[[int, int], None] | None,
) -> tuple[float, IntArray, FloatArray]:
    """Solve the groups in falling order of a simple upper bound, until no other can be worse."""
    bounds = [_simple_bound(releases[group], epsilon) for group in groups]
    worst_delta, worst_group, worst_reference = -1.0, groups[0], releases[groups[0][0]]
    for done, number in enumerate(np.argsort(bounds)[::-1]):
        if bounds[number] <= worst_delta:
            break
        if progress is not None:
            progress(done, len(groups))
        delta, reference = closest_reference(releases[groups[number]], epsilon)
        if delta > worst_delta:
            worst_delta, worst_group, worst_reference = delta, groups[number], reference
    if progress is not None:
        progress(len(groups), len(groups))
    return worst_delta, worst_group, worst_reference
