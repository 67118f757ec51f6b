"""What an unlearner is: two functions that return exact probability vectors over the arms."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from armnesia.core.arrays import BoolArray, FloatArray, IntArray, one_hot, scalar_or_array
from armnesia.core.errors import InvalidInputError
from armnesia.core.randomness import draw_index
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Decision, Learner
from armnesia.privacy import Budget, Guarantee, Level


class Branch(StrEnum):
    """What an unlearner did with a request, in words."""

    UNCHANGED = "unchanged (empty request)"
    ROLLBACK = "rollback"
    GAUSSIAN = "gaussian"
    GAUSSIAN_AND_ROLLBACK = "gaussian, and rollback of arms with no certified sensitivity"
    MIXING = "mixing"
    FROZEN = "rollback of the means, penalties frozen"
    TILT = "tilt"
    NOT_SERVED = "rollback (the served arm is not in the request)"
    STRICT_BUDGET = "rollback (gamma is not below the threshold)"
    NO_SENSITIVITY = "rollback (no certified sensitivity)"
    TOO_MANY_DELETED = "rollback (N_min <= k_max)"
    NO_DATA_LEFT = "rollback (no data left)"


_BRANCHES = np.array(list(Branch), dtype=object)


BranchCodes: TypeAlias = NDArray[np.int8]
"""Branches as arrays hold them: positions in `Branch`."""


def is_branch(codes: BranchCodes, branch: Branch) -> BoolArray:
    """Where a branch was taken."""
    return np.asarray(codes == list(Branch).index(branch))


def first_branch(reasons: dict[Branch, BoolArray], otherwise: Branch) -> BranchCodes:
    """The first branch, in order, whose reason holds; one a data set."""
    order = list(Branch)
    codes = np.asarray(order.index(otherwise))
    for branch, holds in reversed(reasons.items()):
        codes = np.where(holds, order.index(branch), codes)
    return np.asarray(codes, dtype=np.int8)


@dataclass(frozen=True, eq=False)
class Release:
    """The exact distribution of the released arm, before any coin is tossed.

    `probabilities` has the arms on its last axis, in the order of `actions`; leading axes are data sets.
    """

    actions: tuple[Hashable, ...]
    probabilities: FloatArray
    branch_codes: BranchCodes
    guarantee: Guarantee

    @property
    def branch(self) -> Any:
        """What was done, as a `Branch`; an array of them for a batch."""
        return scalar_or_array(np.asarray(_BRANCHES[self.branch_codes], dtype=object))

    def draw(self) -> Hashable:
        """Draw the arm: the one random step, exact, from the operating system's randomness.

        Draw once per request: n draws from one release are an n-fold composition of its guarantee.
        """
        if self.probabilities.ndim != 1:
            raise InvalidInputError(
                "draw takes the release of one data set;"
                f" this one holds {self.probabilities.size // len(self.actions)}"
            )
        return self.actions[draw_index(self.probabilities.tolist())]

    def __repr__(self) -> str:
        shown = dict(zip(self.actions, self.probabilities.round(6).T.tolist(), strict=True))
        return f"Release({shown}, branch={str(self.branch)!r}, guarantee={str(self.guarantee)!r})"


class Unlearner(ABC):
    """Forgets records at a stated level, at the smallest loss of decision quality it can.

    `release` is the distribution of π′(U, π(D), T(D)); `reference` that of π′(∅, π(D∖U), T(D∖U)), computed
    from exactly what the level lets a reference see. The audit compares the two.
    """

    name: ClassVar[str]
    level: ClassVar[Level]
    several_arms: ClassVar[bool] = True
    """Whether a request may touch more than one arm."""
    needs_budget: ClassVar[bool] = True
    """Whether the release depends on the budget; the others are (0, 0)."""

    @abstractmethod
    def release(
        self, learner: Learner, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> Release:
        """The exact distribution of the arm released after forgetting the request."""

    @abstractmethod
    def reference(
        self,
        learner: Learner,
        retained: ArmStatistics,
        budget: Budget,
        *,
        shape: IntArray | None = None,
        original_decision: Decision | None = None,
    ) -> FloatArray:
        """The exact distribution in the world without the records, given what the level may see.

        `shape` is how many records of each arm were deleted (levels `request_shape` and
        `original_decision`), `original_decision` is π(D) (level `original_decision` only).
        """


def required_shape(shape: IntArray | None, unlearner: str) -> IntArray:
    """The deleted counts, which a reference at this level is told; refused where they are missing."""
    if shape is None:
        raise InvalidInputError(f"the reference of {unlearner} needs shape, the deleted counts; got None")
    return shape


def unless_empty(learner: Learner, retained: ArmStatistics, probabilities: FloatArray) -> FloatArray:
    """The probabilities; but where no data is left at all, the learner's default arm."""
    return np.where(np.expand_dims(retained.total == 0, -1), served(learner, retained), probabilities)


def served(learner: Learner, statistics: ArmStatistics) -> FloatArray:
    """All probability on the arm that the learner serves."""
    return one_hot(learner.decide(statistics).index, statistics.n_actions)
