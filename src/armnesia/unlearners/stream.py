"""A stream: new records and deletions over time, and what every decision guarantees.

Each request is handled once: the arm is released by an unlearner, then the statistics are rolled back
exactly. So a deleted record influences the one release that answers its deletion, by at most (ε, δ), and
nothing later: everything later is computed from the records that are left (and, with a frozen penalty, from
the number of deleted records). Requests do not compose; requests that arrive together are one request; later
requests may be chosen by looking at the release. Records that were collected while a decision was served that
had seen the deleted ones stay in the log.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Decision, Learner
from armnesia.learners.mean_and_count import checked_deleted_counts
from armnesia.privacy import Budget, Level
from armnesia.unlearners import JointRelease, Release, Unlearner, release_jointly

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

    def __post_init__(self) -> None:
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
        """The arm that is served until the next request."""
        return self.current_learner.decide(self.statistics)

    def add(self, statistics: ArmStatistics) -> "Stream":
        """The stream with new records added."""
        merged = self.statistics.merge(statistics)
        return self._with_state(merged, self.deleted_counts)

    def forget(
        self, unlearner: Unlearner, request: DeletionRequest, budget: Budget
    ) -> tuple[Release, "Stream"]:
        """The release that answers a request, and the stream without its records.

        Draw from the release once. Its guarantee covers the release and everything later together, because
        everything later does not depend on the deleted rewards.
        """
        release = unlearner.release(self.current_learner, self.statistics, request, budget)
        own = release.guarantee.level
        level = Level.weakest(own, self.level)
        if level is not own:
            release = replace(release, guarantee=replace(release.guarantee, level=level))
        deleted_counts = None if self.deleted_counts is None else self.deleted_counts + request.counts
        later = self._with_state(self.statistics.without(request), deleted_counts)
        return release, later

    def forget_jointly(
        self, unlearner: Unlearner, request: DeletionRequest, budget: Budget
    ) -> tuple[JointRelease, "Stream"]:
        """As `forget`, where the data sets are decisions that one request touches, with one guarantee."""
        release = release_jointly(unlearner, self.current_learner, self.statistics, request, budget)
        level = Level.weakest(release.guarantee.level, self.level)
        release = replace(release, guarantee=replace(release.guarantee, level=level))
        deleted_counts = None if self.deleted_counts is None else self.deleted_counts + request.counts
        return release, self._with_state(self.statistics.without(request), deleted_counts)

    def _with_state(self, statistics: ArmStatistics, deleted_counts: IntArray | None) -> "Stream":
        if deleted_counts is not None:  # the counts of one data set and a batch of requests, or the reverse
            deleted_counts = np.broadcast_to(deleted_counts, statistics.counts.shape)
        return replace(self, statistics=statistics, deleted_counts=deleted_counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return (
            (self.learner, self.statistics, self.penalty) == (other.learner, other.statistics, other.penalty)
        ) and (
            self.deleted_counts is None
            or np.array_equal(self.deleted_counts, np.asarray(other.deleted_counts))
        )

    def __hash__(self) -> int:
        return hash((self.learner, self.statistics, self.penalty))

    def __reduce__(self) -> tuple[Any, ...]:
        # The constructor runs again when unpickled or copied: arrays are checked and read-only again.
        return type(self), (self.learner, self.statistics, self.penalty, self.deleted_counts)
