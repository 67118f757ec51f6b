"""Learners whose penalties still count records that are gone: for decisions over a stream of deletions."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray, IntArray, read_only
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.learners.base import Learner
from armnesia.learners.confidence import ConfidenceLearner
from armnesia.learners.lcb import LCB


@dataclass(frozen=True, kw_only=True, eq=False)
class FrozenPenalty(ConfidenceLearner):
    """A pessimistic learner that judges an arm's certainty by N + g records, g of which were deleted earlier.

    Means are those of the records that are left; only the penalty is frozen. Since g is a count and not a
    reward, it is what a reference at level `request_shape` may know; it counts as public configuration.
    The lower bound is then no confidence bound any more: it is as narrow as N + g records would make it.
    Make one with `frozen_penalty`.

    >>> from armnesia import ArmStatistics
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 30, "B": [1] * 50})
    >>> learner = LCB().bind(statistics)
    >>> frozen_penalty(learner, [30, 0]).decide(statistics).action, learner.decide(statistics).action
    ('A', 'B')
    """

    inner: ConfidenceLearner
    deleted_counts: IntArray

    name: ClassVar[str] = "frozen_penalty"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "deleted_counts", checked_deleted_counts(self.deleted_counts))
        object.__setattr__(self, "name", f"{self.inner.name} with a frozen penalty")

    def lower_bounds(self, means: FloatArray, counts: ArrayLike, n_actions: int) -> FloatArray:
        """The inner learner's, for as many records more as are gone."""
        return self.inner.lower_bounds(means, np.asarray(counts) + self.deleted_counts, n_actions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenPenalty) and (
            self.inner == other.inner and np.array_equal(self.deleted_counts, other.deleted_counts)
        )

    def __hash__(self) -> int:
        return hash((self.inner, tuple(self.deleted_counts.flat)))


@dataclass(frozen=True, kw_only=True, eq=False)
class FrozenLCB(FrozenPenalty, LCB):
    """`LCB` with a frozen penalty: it is still an LCB, whose sensitivity is known.

    Deleting k of the N records that are there moves the mean by at most k/N, whatever is gone, and the
    penalty from b(N + g) to b(N − k + g); `LCB.sensitivity` says just that, given this penalty.
    """

    inner: LCB

    def penalty(self, counts: ArrayLike, n_actions: int) -> FloatArray:
        """b(N + g), and 1 where there are no records: what is gone earns no trust without a mean.

        >>> frozen_penalty(LCB(confidence=0.01), [150, 0, 9]).penalty([50, 50, 0], n_actions=3).round(4)
        array([0.1194, 0.2388, 1.    ])
        """
        numbers = np.asarray(counts)
        return np.where(numbers > 0, self.inner.penalty(numbers + self.deleted_counts, n_actions), 1.0)


def frozen_penalty(learner: Learner, deleted_counts: ArrayLike) -> FrozenPenalty:
    """The learner with its penalties frozen over these many deleted records of each arm.

    Freezing anew replaces what was frozen before.

    >>> frozen_penalty(LCB(confidence=0.01), [150, 0]).deleted_counts
    array([150,   0])
    """
    inner = learner.inner if isinstance(learner, FrozenPenalty) else learner
    if not isinstance(inner, ConfidenceLearner):
        raise UnsupportedError(
            f"a frozen penalty needs a learner that has one, such as 'lcb'; got {learner.name!r}"
        )
    inner.log_term(1)  # refuses a learner whose τ is not fixed yet: it must not move over a stream
    kind = FrozenLCB if isinstance(inner, LCB) else FrozenPenalty
    return kind(
        inner=inner,  # type: ignore[arg-type]
        deleted_counts=checked_deleted_counts(deleted_counts),
        confidence=inner.confidence,
        default_action=inner.default_action,
    )


def checked_deleted_counts(deleted_counts: ArrayLike) -> IntArray:
    """Counts of deleted records as an array that cannot be written to.

    >>> checked_deleted_counts([3, 0])
    array([3, 0])
    """
    counts = np.asarray(deleted_counts)
    if counts.dtype.kind not in "iu" or counts.ndim == 0 or np.any(counts < 0):
        raise InvalidInputError(
            f"deleted_counts must be whole numbers, 0 or more, one an arm; got {deleted_counts!r}"
        )
    return read_only(counts.astype(np.int64))
