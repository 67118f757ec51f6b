"""A stream: new records and deletions over time, and what every decision guarantees.

Each request is handled once: the arm is released by an unlearner, then the statistics are rolled back
exactly. So a deleted record influences the one release that answers its deletion, by at most (ε, δ), and
nothing later: everything later is computed from the records that are left (and, with a frozen penalty, from
the number of deleted records). Requests of different people do not compose; requests that arrive together
are one request; later requests may be chosen by looking at the release. Records that were collected while a
decision was served that had seen the deleted ones stay in the log.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from armnesia.core.arrays import BoolArray, IntArray, read_only
from armnesia.core.errors import InvalidInputError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Decision, Learner
from armnesia.learners.mean_and_count import checked_deleted_counts
from armnesia.privacy import Budget, Level
from armnesia.unlearners import JointRelease, Release, Unlearner, release_jointly
from armnesia.unlearners.base import Branch, decision_distribution
from armnesia.unlearners.joint import (
    answers_jointly,
    budget_of_each,
    check_decisions,
    joint_guarantee,
    request_of,
    rows_of,
)
from armnesia.unlearners.tilt_reference import insured_text

Penalty: TypeAlias = Literal["retained", "frozen"]
"""Whether the penalty of an arm is that of the records left, or stays as if none had been deleted."""


@dataclass(frozen=True, eq=False)
class Stream:
    """The state of a decision that is made repeatedly while records are added and deleted.

    With `penalty="retained"` the state is the statistics of the records that are left and nothing else; every
    release has the level of its unlearner. With `penalty="frozen"` the state also holds `deleted_counts`, the
    number of records ever deleted per arm, and the penalties stay those of N + deleted_counts. Deletion then
    costs hardly any decision quality, also later. The counts are a public part of the state, so a release is
    at best at level `request_shape`.

    The learner must be bound: τ is fixed once for the whole stream. Leading axes are data sets.

    `offered` says which arms can be served, one value per count; None: all. The others are never released,
    and the learner and the unlearner see the statistics of the offered arms only: every release is that of a
    log with these arms alone. Which arms are offered is public, and does not depend on the records.

    >>> from armnesia import LCB, Tilt
    >>> first = ArmStatistics.from_rewards({"A": [1] * 60 + [0] * 40, "B": [1] * 50 + [0] * 50})
    >>> stream = Stream(LCB().bind(first), first, penalty="frozen")
    >>> stream = stream.add(ArmStatistics.from_rewards({"A": [1, 0], "B": [1]}))
    >>> request = DeletionRequest.from_rewards({"A": [1] * 30 + [0] * 25, "B": []})
    >>> release, stream = stream.forget(Tilt(), request, Budget(epsilon=1.0, delta=1e-5))
    >>> release.probabilities.round(2), str(release.guarantee.level)
    (array([1., 0.]), 'request_shape')
    >>> stream.decision().action, stream.statistics.counts, stream.deleted_counts
    ('A', array([ 47, 101]), array([55,  0]))
    """

    learner: Learner
    statistics: ArmStatistics
    penalty: Penalty = "retained"
    deleted_counts: IntArray | None = None
    offered: BoolArray | None = None

    def __post_init__(self) -> None:
        if self.offered is not None:
            object.__setattr__(self, "offered", _checked_offer(self.offered, self.statistics.counts.shape))
        if self.learner.unfrozen is not self.learner:
            raise InvalidInputError(
                f"learner must not have a frozen penalty, which the stream adds; got {self.learner.name!r}"
            )
        self.learner.check_bound()
        if self.penalty == "retained":
            if self.deleted_counts is not None:
                raise InvalidInputError(
                    "deleted_counts must be None with penalty='retained', which keeps no counts of deleted"
                    f" records; got {self.deleted_counts!r}"
                )
        elif self.penalty == "frozen":
            counts = self.statistics.counts
            deleted_counts = checked_deleted_counts(
                np.zeros_like(counts) if self.deleted_counts is None else self.deleted_counts
            )
            if deleted_counts.shape != counts.shape:
                raise InvalidInputError(
                    f"deleted_counts must have the shape of the statistics' counts, {counts.shape};"
                    f" got {deleted_counts.shape}"
                )
            self.learner.with_frozen_penalty(deleted_counts)  # refuses a learner without a penalty
            object.__setattr__(self, "deleted_counts", deleted_counts)
        else:
            raise InvalidInputError(f"penalty must be 'retained' or 'frozen'; got {self.penalty!r}")

    @property
    def current_learner(self) -> Learner:
        """The learner as it decides now: with the deleted records in its penalties, if these are frozen.

        An audit of the next release takes it: `audit(unlearner, stream.current_learner,
        stream.statistics, request, budget)`.
        """
        if self.deleted_counts is None:
            return self.learner
        return self.learner.with_frozen_penalty(self.deleted_counts)

    @property
    def level(self) -> Level:
        """The strictest level that a release of this stream can have."""
        return Level.RETAINED if self.penalty == "retained" else Level.REQUEST_SHAPE

    def decision(self) -> Decision:
        """The arm that is served until the next request.

        >>> from armnesia import LCB
        >>> log = ArmStatistics.from_rewards({"A": [1] * 9, "B": [1] * 5, "C": [0]})
        >>> Stream(LCB(confidence=0.1), log, offered=np.array([False, True, True])).decision().action
        'B'
        """
        if self.offered is None:
            return self.current_learner.decide(self.statistics)
        counts = self.statistics.counts
        index, no_data = np.zeros(counts.shape[:-1], dtype=np.int64), np.zeros(counts.shape[:-1], dtype=bool)
        scores = np.full(counts.shape, -np.inf)
        for rows, arms in self._groups():
            part = self._part(rows, arms)
            found = part.current_learner.decide(part.statistics)
            index[rows], no_data[rows] = arms[found.index], found.no_data
            scores[_places(rows, arms)] = found.scores
        return Decision(self.statistics.actions, index, scores, no_data)

    def add(self, statistics: ArmStatistics) -> "Stream":
        """The stream with new records added."""
        merged = self.statistics.merge(statistics)
        return self._with_state(merged, self.deleted_counts)

    def remove(self, request: DeletionRequest) -> "Stream":
        """The stream without the records of a request, where another part of it was released.

        >>> from armnesia import LCB
        >>> log = ArmStatistics.from_rewards({"A": [1, 0], "B": [1]})
        >>> one = DeletionRequest.from_rewards({"A": [1], "B": []})
        >>> Stream(LCB(confidence=0.1), log).remove(one).statistics.counts
        array([1, 1])
        """
        deleted_counts = None if self.deleted_counts is None else self.deleted_counts + request.counts
        return self._with_state(request.taken_from(self.statistics), deleted_counts)

    def forget(
        self, unlearner: Unlearner, request: DeletionRequest, budget: Budget
    ) -> tuple[Release, "Stream"]:
        """The release that answers a request, and the stream without its records.

        Draw from the release once. Its guarantee covers the release and everything later together, because
        everything later does not depend on the deleted rewards.
        """
        if self.offered is None:
            release = unlearner.release(self.current_learner, self.statistics, request, budget)
        else:
            release = self._release_offered(unlearner, request, budget)
        if self.penalty == "frozen":
            level = Level.weakest(release.guarantee.level, self.level)
            release = replace(release, guarantee=replace(release.guarantee, level=level))
        return release, self.remove(request)

    def forget_jointly(
        self, unlearner: Unlearner, request: DeletionRequest, budget: Budget
    ) -> tuple[JointRelease, "Stream"]:
        """As `forget`, where the data sets are decisions that one request touches, with one guarantee."""
        if self.offered is None:
            release = release_jointly(unlearner, self.current_learner, self.statistics, request, budget)
        else:
            release = self._release_offered_jointly(unlearner, request, budget)
        level = Level.weakest(release.guarantee.level, self.level)
        release = replace(release, guarantee=replace(release.guarantee, level=level))
        deleted_counts = None if self.deleted_counts is None else self.deleted_counts + request.counts
        return release, self._with_state(self.statistics.without(request), deleted_counts)

    def remark(self, unlearner: Unlearner, request: DeletionRequest, budget: Budget) -> str:
        """What the unlearner says about a request (`Unlearner.remark`); contenders are offered arms only.

        With decisions on the first axis, `budget` is that of each.
        """
        if self.offered is None:
            return unlearner.remark(self.current_learner, self.statistics, request, budget)
        parts = []
        for places, arms in self._groups():
            rows = places if self.offered.ndim == 1 else places[~request.is_empty[places]]
            part, own = self._part(rows, arms), _request_on(request_of(request, rows), arms)
            parts.append((part.current_learner, part.statistics, own, budget))
        found = [unlearner.insured(*part) for part in parts]
        counts = [each for each in found if each is not None]
        if len(parts) == 1 or not counts:
            return unlearner.remark(*parts[0])
        return insured_text(*map(np.concatenate, zip(*counts, strict=True)))

    def _release_offered(self, unlearner: Unlearner, request: DeletionRequest, budget: Budget) -> Release:
        """The release over the offered arms; the others have probability 0."""
        if self.statistics.counts.ndim != 1:
            raise InvalidInputError("with offered arms, forget takes one data set; see forget_jointly")
        ((rows, arms),) = self._groups()
        part = self._part(rows, arms)
        found = unlearner.release(part.current_learner, part.statistics, _request_on(request, arms), budget)
        probabilities = np.zeros(self.statistics.n_actions)
        probabilities[arms] = found.probabilities
        return replace(found, actions=self.statistics.actions, probabilities=probabilities)

    def _release_offered_jointly(
        self, unlearner: Unlearner, request: DeletionRequest, budget: Budget
    ) -> JointRelease:
        """The releases of decisions that may offer different arms.

        The budget is split over the decisions that lose records of offered arms: the other records have no
        influence on any release.
        """
        check_decisions(self.statistics, request)
        assert self.offered is not None
        seen = _masked(request, self.offered)
        touched = ~seen.is_empty
        number = int(touched.sum())
        probabilities = np.zeros(self.statistics.counts.shape)
        branches = np.full(len(probabilities), Branch.UNCHANGED, dtype=object)
        for rows, arms in self._groups():
            kept, answered = rows[~touched[rows]], rows[touched[rows]]
            part = self._part(kept, arms)
            probabilities[np.ix_(kept, arms)] = decision_distribution(part.current_learner, part.statistics)
            part, own = self._part(answered, arms), _request_on(request_of(seen, answered), arms)
            found = answers_jointly(
                unlearner, part.current_learner, part.statistics, own, budget, n_sharing=number
            ).release
            if found is not None:
                probabilities[np.ix_(answered, arms)] = found.probabilities
                branches[answered] = found.branch
        each = budget_of_each(unlearner, budget, number, "best")
        reveals = self.learner.reveals
        guarantee = joint_guarantee(unlearner, seen, budget, number, "best")
        of_each = replace(unlearner.guarantee(seen, each), reveals=reveals)
        return JointRelease(
            guarantee=replace(guarantee, reveals=reveals, is_joint=True),
            each=each,
            n_sharing=number,
            answered=np.flatnonzero(touched),
            release=Release(self.statistics.actions, probabilities, branches, of_each),
            touched=touched,
        )

    def _groups(self) -> Iterator[tuple[Any, IntArray]]:
        """The data sets with the same offered arms, and the places of these arms."""
        assert self.offered is not None
        if self.offered.ndim == 1:
            yield (), np.flatnonzero(self.offered)
            return
        masks, group = np.unique(self.offered, axis=0, return_inverse=True)
        for number, mask in enumerate(masks):
            yield np.flatnonzero(group.reshape(-1) == number), np.flatnonzero(mask)

    def _part(self, rows: Any, arms: IntArray) -> "Stream":
        """The stream of some data sets with some arms alone.

        Where the default action is not offered, the first offered arm is the default.
        """
        learner = self.learner
        statistics = _arms_of(rows_of(self.statistics, rows), arms)
        if learner.default_action is not None and learner.default_action not in statistics.actions:
            learner = replace(learner, default_action=None)
        deleted = None if self.deleted_counts is None else self.deleted_counts[rows][..., arms]
        return Stream(learner, statistics, self.penalty, deleted)

    def _with_state(self, statistics: ArmStatistics, deleted_counts: IntArray | None) -> "Stream":
        if deleted_counts is not None:  # the counts of one data set and a batch of requests, or the reverse
            deleted_counts = np.broadcast_to(deleted_counts, statistics.counts.shape)
        offered = None if self.offered is None else np.broadcast_to(self.offered, statistics.counts.shape)
        if deleted_counts is None and offered is None:  # nothing has to be checked again
            later = object.__new__(type(self))
            later.__dict__.update(
                learner=self.learner,
                statistics=statistics,
                penalty=self.penalty,
                deleted_counts=None,
                offered=None,
            )
            return later
        return replace(self, statistics=statistics, deleted_counts=deleted_counts, offered=offered)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (
            (self.learner, self.statistics, self.penalty) == (other.learner, other.statistics, other.penalty)
        ) and (_same(self.deleted_counts, other.deleted_counts) and _same(self.offered, other.offered))

    def __hash__(self) -> int:
        return hash((self.learner, self.statistics, self.penalty))

    def __reduce__(self) -> tuple[Any, ...]:
        # The constructor runs again when unpickled or copied: arrays are checked and read-only again.
        return type(self), (
            self.learner,
            self.statistics,
            self.penalty,
            self.deleted_counts,
            self.offered,
        )


def _checked_offer(offered: Any, shape: tuple[int, ...]) -> BoolArray | None:
    """Refuse what does not say of every arm whether it is offered; None if all are."""
    mask = np.array(offered)
    if mask.dtype != bool or mask.shape != shape or len(shape) > 2:
        raise InvalidInputError(
            f"offered must be true or false for each arm, in one data set or in a list of them: of shape"
            f" {shape}; got {mask.dtype} of shape {mask.shape}"
        )
    if not mask.any(axis=-1).all():
        raise InvalidInputError("offered must have at least one arm in every data set; got none in one")
    return None if mask.all() else read_only(mask)


def _arms_of(statistics: ArmStatistics, arms: IntArray) -> ArmStatistics:
    """The statistics of some arms alone."""
    actions = tuple(statistics.actions[arm] for arm in arms)
    return statistics.selected(lambda values: values[..., arms], actions)


def _request_on(request: DeletionRequest, arms: IntArray) -> DeletionRequest:
    return DeletionRequest(_arms_of(request.records, arms), request.binary)


def _masked(request: DeletionRequest, offered: BoolArray) -> DeletionRequest:
    """The request without its records of arms that are not offered."""
    return DeletionRequest(
        request.records.selected(lambda values: np.where(offered, values, 0)), request.binary
    )


def _places(rows: Any, arms: IntArray) -> Any:
    """Where the arms of these data sets are, in an array of all; a single data set has no rows."""
    return arms if isinstance(rows, tuple) else np.ix_(rows, arms)


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))
