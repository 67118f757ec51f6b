"""What an unlearner is: two functions that return exact probability vectors over the arms."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from armnesia.core.arrays import BoolArray, FloatArray, IntArray, one_hot, scalar_or_array
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.messages import any_of
from armnesia.core.parameters import parameters_of
from armnesia.core.randomness import draw_index
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import LCB, LEARNERS, Decision, Learner
from armnesia.privacy import Budget, Guarantee, Level


class Branch:
    """What an unlearner did with a request, as a label: the well-known ones; any other text will do."""

    UNCHANGED: Final = "unchanged (empty request)"
    ROLLBACK: Final = "rollback"
    GAUSSIAN: Final = "gaussian"
    GAUSSIAN_AND_ROLLBACK: Final = "gaussian, and rollback of arms with no certified sensitivity"
    MIXING: Final = "mixing"
    FROZEN: Final = "rollback of the means, penalties frozen"
    TILT: Final = "tilt"
    NOT_SERVED: Final = "rollback (the served arm is not in the request)"
    STRICT_BUDGET: Final = "rollback (gamma is not below the threshold)"
    NO_SENSITIVITY: Final = "rollback (no certified sensitivity)"
    TOO_MANY_DELETED: Final = "rollback (N_min <= k_max)"
    NO_DATA_LEFT: Final = "rollback (no data left)"


Branches: TypeAlias = NDArray[np.object_]
"""Labels of what was done, one per data set."""


def first_branch(reasons: dict[str, BoolArray], otherwise: str | Branches) -> Branches:
    """The first label, in order, whose reason holds; one per data set.

    >>> first_branch({"rollback": np.array([True, False])}, otherwise="my noise")
    array(['rollback', 'my noise'], dtype=object)
    """
    branches = np.asarray(otherwise, dtype=object)
    for branch, holds in reversed(reasons.items()):
        branches = np.where(holds, np.array(branch, dtype=object), branches)
    return branches


@dataclass(frozen=True, eq=False)
class Release:
    """The exact distribution of the released arm, from which nothing has been drawn yet.

    `probabilities` has the arms on its last axis, in the order of `actions`; leading axes are data sets.
    """

    actions: tuple[Hashable, ...]
    probabilities: FloatArray
    branch: Any
    """The label of what was done, such as those of `Branch`; an array of labels for a batch."""
    guarantee: Guarantee

    def draw(self) -> Hashable:
        """Draw the arm exactly, with the operating system's randomness: the only random step.

        Draw once per request: n draws from one release are an n-fold composition of its guarantee, at most
        (nε, nδ). `audit(…).repeated(n)` gives their exact δ(ε).
        """
        if self.probabilities.ndim != 1:
            raise InvalidInputError(
                "draw takes the release of one data set;"
                f" this one holds {self.probabilities.size // len(self.actions)}"
            )
        (possible,) = self.probabilities.nonzero()
        if len(possible) == 1 and self.probabilities[possible[0]] == 1.0:  # nothing is left to chance
            return self.actions[int(possible[0])]
        return self.actions[draw_index(self.probabilities)]

    def to_dict(self) -> dict[str, Any]:
        """Write the release of one data set as JSON holds it."""
        return {
            "probabilities": dict(zip(self.actions, self.probabilities.tolist(), strict=True)),
            "branch": self.branch,
            "guarantee": self.guarantee.to_dict(),
        }

    def __repr__(self) -> str:
        shown = dict(zip(self.actions, self.probabilities.round(6).T.tolist(), strict=True))
        return f"Release({shown}, branch={self.branch!r}, guarantee={str(self.guarantee)!r})"


class Unlearner(ABC):
    """Forgets records at a stated level, with as little loss of decision quality as possible.

    `release` is the distribution of π′(U, π(D), T(D)). `reference` is the distribution that the guarantee
    compares it with, computed from D∖U and what else the level lets it see. It need not be what retraining on
    D∖U would serve; it is for rollback. The audit compares the two.

    A subclass is a frozen dataclass. It implements `answer` and `reference_probabilities`; the checks, the
    case of no records left and the label of an empty request are here.
    """

    name: ClassVar[str]
    level: ClassVar[Level]
    several_arms: ClassVar[bool] = True
    """Whether a request may touch more than one arm."""
    needs_budget: ClassVar[bool] = True
    """Whether the release depends on the budget; the other unlearners guarantee (0, 0)."""
    conceals_empty_requests: ClassVar[bool] = False
    """Whether the branch of an empty request is as `answer` says; otherwise it is `UNCHANGED`: π(D)."""
    composes_as_gaussian: ClassVar[bool] = False
    """Whether d releases, each with √d times the noise of a budget, stay within that budget together."""
    needs: ClassVar[type[Any]] = Learner
    """The kind of learner that it works with: `Learner` or one of its abstract subclasses."""
    default_learner: ClassVar[type[Learner]] = LCB
    """The learner to use it with where none is named."""

    registered: ClassVar["Mapping[str, type[Unlearner]]"]
    """All unlearners by name, for alternatives in refusals; set by `armnesia.unlearners`."""

    def resolved(self) -> Self:
        """The same unlearner, with every default written out that depends on other parameters."""
        return self

    @classmethod
    def as_in_the_paper(cls) -> Self:
        """The unlearner with the parameters of the paper's experiments; the defaults where it has none there.

        >>> from armnesia import Gaussian, Tilt
        >>> Gaussian.as_in_the_paper(), Tilt.as_in_the_paper() == Tilt()
        (Gaussian(sensitivity='paper', joint=False), True)
        """
        return cls()

    @property
    def label(self) -> str:
        """The name; with its level, if parameters have selected another level than that of its class.

        >>> from armnesia import Tilt
        >>> Tilt().label, Tilt(assumed_share=0.95).label
        ('tilt', 'tilt (retained)')
        """
        return self.name if self.level is type(self).level else f"{self.name} ({self.level})"

    @property
    def described(self) -> str:
        """The name with the parameters in force; those that are not set are left out.

        >>> from armnesia import Rollback, Tilt
        >>> Rollback().described, Tilt(assumed_share=0.95).described
        ('rollback', 'tilt (assumed_share=0.95, predictive=by_counts, insurance=0.02)')
        """
        used = self.resolved()
        values = {each.name: getattr(used, each.name) for each in parameters_of(type(self))}
        shown = [
            f"{name}={getattr(value, '__name__', value)}"
            for name, value in values.items()
            if value is not None
        ]
        return f"{self.name} ({', '.join(shown)})" if shown else self.name

    def remark(
        self, learner: Any, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> str:
        """One line on how a request is answered, for the operator; empty if there is nothing to say.

        If there are decisions on the first axis, it is about all of them, and `budget` is that of each.
        """
        return ""

    def insured(
        self, learner: Any, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> tuple[IntArray, IntArray] | None:
        """How many contenders are insured in each data set, of how many; None if nothing can be insured."""
        return None

    @abstractmethod
    def answer(
        self,
        learner: Any,
        statistics: ArmStatistics,
        request: DeletionRequest,
        retained: ArmStatistics,
        budget: Budget,
    ) -> tuple[FloatArray, str | Branches]:
        """The distribution of the released arm, and what was done: one label, or one per data set.

        `learner` is of the kind that `needs` names; `retained` is D∖U.
        """

    @abstractmethod
    def reference_probabilities(
        self,
        learner: Any,
        retained: ArmStatistics,
        shape: IntArray,
        original_decision: Decision | None,
        budget: Budget,
    ) -> FloatArray:
        """The distribution that the guarantee compares a release with.

        `shape` and `original_decision` are what the level sees: at level `retained` the shape is all zeros,
        below `original_decision` the decision is None.
        """

    def guarantee(self, request: DeletionRequest, budget: Budget) -> Guarantee:
        """What a release guarantees: the budget at the unlearner's level, or (0, 0) if it needs none."""
        epsilon, delta = (budget.epsilon, budget.delta) if self.needs_budget else (0.0, 0.0)
        return Guarantee(epsilon, delta, self.level)

    def release(
        self, learner: Learner, statistics: ArmStatistics, request: DeletionRequest, budget: Budget
    ) -> Release:
        """The exact distribution of the arm released after forgetting the request."""
        lacks_budget = self.needs_budget and not isinstance(budget, Budget)
        if lacks_budget or not (
            isinstance(learner, Learner)
            and isinstance(statistics, ArmStatistics)
            and isinstance(request, DeletionRequest)
        ):
            check_arguments(learner, statistics, request, budget)
        self.check_supported(learner, request.records.counts)
        retained = request.taken_from(statistics)
        probabilities, branch = self.answer(learner, statistics, request, retained, budget)
        no_data = retained.total == 0
        if np.count_nonzero(no_data) or probabilities.shape != retained.counts.shape:
            probabilities = default_where_empty(learner, retained, probabilities)
        is_empty = retained.total == statistics.total  # both are known, and the request's would be added up
        unchanged = is_empty & (not self.conceals_empty_requests)
        branches = first_branch({Branch.NO_DATA_LEFT: no_data, Branch.UNCHANGED: unchanged}, otherwise=branch)
        guarantee = self.guarantee(request, budget)
        if learner.reveals:
            guarantee = replace(guarantee, reveals=learner.reveals)
        return Release(statistics.actions, probabilities, scalar_or_array(branches), guarantee)

    def reference(
        self,
        learner: Learner,
        retained: ArmStatistics,
        budget: Budget,
        *,
        shape: IntArray | None = None,
        original_decision: Decision | None = None,
    ) -> FloatArray:
        """The exact distribution that the guarantee compares a release with, given what the level sees.

        `shape` is the number of deleted records per arm (levels `request_shape` and `original_decision`),
        `original_decision` is π(D) (level `original_decision`). What the level does not see is ignored.
        """
        if not self.level.sees_shape:
            shape = np.zeros_like(retained.counts)
        elif shape is None:
            raise InvalidInputError(f"the reference of {self.name} needs shape, the deleted counts; got None")
        self.check_supported(learner, shape)
        if not self.level.sees_decision:
            original_decision = None
        elif original_decision is None:
            raise InvalidInputError(
                f"the reference of {self.name} needs original_decision, the decision π(D); got None"
            )
        probabilities = self.reference_probabilities(learner, retained, shape, original_decision, budget)
        return default_where_empty(learner, retained, probabilities)

    def check_supported(self, learner: Learner, shape: IntArray) -> None:
        """Refuse a learner of another kind than `needs`, and several arms if the unlearner takes only one.

        The message names alternatives: learners of the kind that is needed, and the other unlearners for
        this learner whose level is not weaker.
        """
        if not learner.supports(self.needs):
            suitable = [repr(name) for name, kind in LEARNERS.items() if issubclass(kind, self.needs)]
            others = [kind.name for kind in self._alternatives(learner)]
            raise UnsupportedError(
                f"{self.name} needs a learner {self.needs.description}, such as {any_of(suitable)};"
                f" got {learner.name!r}, for which use {any_of(others)}"
            )
        if not self.several_arms and (shape > 0).sum(axis=-1).max(initial=0) > 1:
            others = [kind.name for kind in self._alternatives(learner) if kind.several_arms]
            raise UnsupportedError(
                f"{self.name} takes requests of one arm; this one touches several: use {any_of(others)}"
            )

    def _alternatives(self, learner: Learner) -> "list[type[Unlearner]]":
        """The unlearners that work with this learner, at a level that is not weaker."""
        return [
            kind
            for kind in self.registered.values()
            if learner.supports(kind.needs) and Level.weakest(kind.level, self.level) is self.level
        ]


def check_arguments(learner: object, statistics: object, request: object, budget: object) -> None:
    """Refuse arguments of a release that are none, such as a log in the place of a request on it.

    >>> from armnesia.learners import LCB
    >>> check_arguments(LCB(), ArmStatistics.from_rewards({"A": [1]}), None, Budget(epsilon=1.0, delta=0.0))
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: request must be a DeletionRequest, such as
    log.request(user='ann'); got NoneType
    """
    expected: tuple[tuple[str, object, type, str], ...] = (
        ("learner", learner, Learner, "a Learner, such as LCB()"),
        ("statistics", statistics, ArmStatistics, "ArmStatistics, such as log.statistics()"),
        ("request", request, DeletionRequest, "a DeletionRequest, such as log.request(user='ann')"),
        ("budget", budget, Budget, "a Budget, such as Budget(epsilon=1.0, delta=1e-5)"),
    )
    for name, given, kind, accepted in expected:
        if not isinstance(given, kind):
            raise InvalidInputError(f"{name} must be {accepted}; got {type(given).__name__}")


def default_where_empty(learner: Learner, retained: ArmStatistics, probabilities: FloatArray) -> FloatArray:
    """The probabilities, replaced by the learner's default arm where no records are left."""
    no_data = np.expand_dims(retained.total == 0, -1)
    default = decision_distribution(learner, retained) if no_data.any() else np.zeros(retained.counts.shape)
    return np.where(no_data, default, probabilities)


def decision_distribution(learner: Learner, statistics: ArmStatistics) -> FloatArray:
    """All probability on the arm that the learner serves."""
    return one_hot(learner.best_arm(statistics, learner.unit_scores(statistics)), statistics.n_actions)
