"""Learners that score an arm by its empirical mean and its count, and their form with a frozen penalty.

What they say about their scores decides which unlearners work with them: frozen rollback and tilt need a
`MeanAndCountLearner`, mechanisms that add noise a `PenaltyLearner`.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import BoolArray, FloatArray, IntArray, read_only
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.statistics import ArmStatistics
from armnesia.learners.base import Learner


@dataclass(frozen=True, kw_only=True)
class MeanAndCountLearner(Learner):
    """Scores an arm by a function of its empirical mean and its count; −1 for an arm without records."""

    description: ClassVar[str] = "that scores by mean and count"

    @abstractmethod
    def lower_bounds(self, means: FloatArray, counts: ArrayLike, n_actions: int) -> FloatArray:
        """The scores of arms with these means and positive counts.

        They must not fall as a mean rises, nor as a count rises unless `falls_with_count`, by more than
        `score_rounding`.
        """

    @property
    def falls_with_count(self) -> bool:
        """Whether a score never rises with the count, as of an optimist; otherwise it never falls."""
        return False

    @property
    def score_falls_then_rises(self) -> bool:
        """Whether a score, as zeros are added to an arm, falls up to some number of them and never after.

        This must hold with every frozen penalty too. Then the lowest score is found by a search; otherwise
        tilt at level `retained` takes a bound below it.
        """
        return False

    @property
    def score_rounding(self) -> float:
        """How far a score, as it is computed, can fall where mean or count rises: 0 unless it is rounded."""
        return 0.0

    def unit_scores(self, statistics: ArmStatistics) -> FloatArray:
        """The lower bounds on the [0, 1] scale, and −1 for arms without records."""
        bounds = self.lower_bounds(
            statistics.unit_means, np.maximum(statistics.counts, 1), statistics.n_actions
        )
        return np.where(statistics.counts > 0, bounds, -1.0)

    def score_spread(
        self, means: FloatArray, spread: FloatArray, counts: ArrayLike, n_actions: int
    ) -> FloatArray:
        """Half the difference between the scores at mean + spread and mean − spread, cut at 0 and 1."""
        high = self.lower_bounds(np.minimum(means + spread, 1.0), counts, n_actions)
        low = self.lower_bounds(np.maximum(means - spread, 0.0), counts, n_actions)
        return np.asarray((high - low) / 2)

    def with_frozen_penalty(self, deleted_counts: ArrayLike) -> "FrozenPenalty":
        """The learner with the penalties of N + `deleted_counts` records per arm; replaces earlier counts.

        >>> from armnesia import LCB
        >>> LCB(confidence=0.01).with_frozen_penalty([150, 0]).deleted_counts
        array([150,   0])
        """
        self.check_bound()  # over a stream the confidence must not move
        return FrozenPenalty(
            inner=self,
            deleted_counts=checked_deleted_counts(deleted_counts),
            default_action=self.default_action,
        )


@dataclass(frozen=True, kw_only=True)
class PenaltyLearner(MeanAndCountLearner):
    """Scores an arm by its mean less a penalty of its count: μ̂(a) − b(N(a)), where b does not rise with N.

    If `falls_with_count`, −b is a bonus, and b does not fall with N.

    Then the sensitivity of a score to a deletion is known exactly, and noise can be calibrated to it.
    """

    description: ClassVar[str] = "whose score sensitivity is known"

    @abstractmethod
    def penalty(self, counts: ArrayLike, n_actions: int) -> FloatArray:
        """b(N) for positive counts N, arms on the last axis."""

    def lower_bounds(self, means: FloatArray, counts: ArrayLike, n_actions: int) -> FloatArray:
        """μ̂(a) − b(a)."""
        return means - self.penalty(counts, n_actions)

    def score_spread(
        self, means: FloatArray, spread: FloatArray, counts: ArrayLike, n_actions: int
    ) -> FloatArray:
        """The spread of the mean: the score moves exactly as the mean does."""
        return spread

    def sensitivity(self, counts: ArrayLike, deleted: ArrayLike, n_actions: int) -> FloatArray:
        """The largest change of an arm's score that deleting k of its N records can cause.

        The mean moves by at most k/N either way and the penalty by |b(N−k) − b(N)|; the score of an
        emptied arm falls to −1 from anywhere in [−b(N), 1 − b(N)]. Both are attained: this is the exact
        maximum over all rewards.

        >>> from armnesia import LCB
        >>> LCB(confidence=0.01).sensitivity([100, 100], [0, 20], n_actions=5).round(4)
        array([0.    , 0.2208])
        """
        before, removed = np.asarray(counts), np.asarray(deleted)
        left = before - removed
        penalty = self.penalty(np.maximum(before, 1), n_actions)
        moved = np.abs(self.penalty(np.maximum(left, 1), n_actions) - penalty)
        partly = removed / np.maximum(before, 1) + moved
        emptied = np.maximum(2 - penalty, penalty - 1)
        return np.asarray(np.where(removed == 0, 0.0, np.where(left > 0, partly, emptied)))

    def paper_sensitivity_holds(self, counts: ArrayLike, deleted: ArrayLike, n_actions: int) -> BoolArray:
        """Whether the paper's 3k/(2N) (Lemma A.1) bounds the sensitivity."""
        claimed = 1.5 * np.asarray(deleted) / np.maximum(counts, 1)
        return np.asarray(claimed >= self.sensitivity(counts, deleted, n_actions))

    def log_term(self, n_actions: int) -> float:
        """L of Hoeffding's penalty √(L/(2N)), which the paper's constants contain."""
        raise UnsupportedError(
            f"the paper's threshold is for the penalty of 'lcb'; got {self.name!r}: use threshold 'exact'"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class FrozenPenalty(PenaltyLearner):
    """A learner with the penalties of N + g records per arm, g of which were deleted earlier.

    Means are those of the N records that are left; only the penalty is frozen. g is a count and not a
    reward, so a reference at level `request_shape` may see it; it is public configuration. The lower bound
    is no longer a confidence bound: it is as narrow as N + g records would make it. Deleting k of the N
    records moves the mean by at most k/N and the penalty from b(N + g) to b(N − k + g), so the sensitivity
    is known if that of the inner learner is. Made by `learner.with_frozen_penalty`.

    >>> from armnesia import LCB, ArmStatistics
    >>> statistics = ArmStatistics.from_rewards({"A": [1] * 30, "B": [1] * 50})
    >>> learner = LCB().bind(statistics)
    >>> frozen = learner.with_frozen_penalty([30, 0])
    >>> frozen.decide(statistics).action, learner.decide(statistics).action
    ('A', 'B')
    """

    inner: MeanAndCountLearner
    deleted_counts: IntArray

    name: ClassVar[str] = "frozen_penalty"

    def __post_init__(self) -> None:
        object.__setattr__(self, "deleted_counts", checked_deleted_counts(self.deleted_counts))
        object.__setattr__(self, "name", f"{self.inner.name} with a frozen penalty")

    @property
    def unfrozen(self) -> MeanAndCountLearner:
        """The inner learner."""
        return self.inner

    @property
    def reveals(self) -> str:
        """What the inner learner reveals; the counts in the penalty are public by declaration."""
        return self.inner.reveals

    def supports(self, kind: type) -> bool:
        """What the inner learner supports."""
        return self.inner.supports(kind)

    def with_frozen_penalty(self, deleted_counts: ArrayLike) -> "FrozenPenalty":
        """The inner learner with these counts instead."""
        return self.inner.with_frozen_penalty(deleted_counts)

    def for_rows(self, rows: IntArray, shape: tuple[int, ...], arms: IntArray | None = None) -> Self:
        """With the counts of these data sets, if every data set has its own, or of some arms of each.

        >>> from armnesia import LCB
        >>> batch = LCB(confidence=0.01).with_frozen_penalty([[5, 0], [7, 1]])
        >>> batch.for_rows(np.array([1]), shape=(2, 2)).deleted_counts
        array([[7, 1]])
        >>> batch.for_rows(np.array([1]), shape=(2, 2), arms=np.array([[1]])).deleted_counts
        array([[1]])
        """
        if self.deleted_counts.ndim == 1 and arms is None:
            return self
        counts = np.broadcast_to(self.deleted_counts, shape).reshape(-1, shape[-1])[rows]
        if arms is not None:
            counts = np.take_along_axis(counts, arms, -1)
        return replace(self, deleted_counts=counts)

    @property
    def score_rounding(self) -> float:
        """That of the inner learner."""
        return self.inner.score_rounding

    @property
    def falls_with_count(self) -> bool:
        """Whether that of the inner learner does."""
        return self.inner.falls_with_count

    @property
    def score_falls_then_rises(self) -> bool:
        """Whether that of the inner learner does, with every frozen penalty."""
        return self.inner.score_falls_then_rises

    def lower_bounds(self, means: FloatArray, counts: ArrayLike, n_actions: int) -> FloatArray:
        """Those of the inner learner at N + g records."""
        return self.inner.lower_bounds(means, np.asarray(counts) + self.deleted_counts, n_actions)

    def score_spread(
        self, means: FloatArray, spread: FloatArray, counts: ArrayLike, n_actions: int
    ) -> FloatArray:
        """That of the inner learner at N + g records."""
        return self.inner.score_spread(means, spread, np.asarray(counts) + self.deleted_counts, n_actions)

    def penalty(self, counts: ArrayLike, n_actions: int) -> FloatArray:
        """b(N + g), if the inner learner has a penalty b.

        >>> from armnesia import LCB
        >>> LCB(confidence=0.01).with_frozen_penalty([150, 0]).penalty([50, 50], n_actions=2).round(4)
        array([0.1151, 0.2302])
        """
        return self._penalty_learner.penalty(np.asarray(counts) + self.deleted_counts, n_actions)

    def paper_sensitivity_holds(self, counts: ArrayLike, deleted: ArrayLike, n_actions: int) -> BoolArray:
        """Whether it holds for the inner learner, and with the frozen penalty too."""
        without = self._penalty_learner.paper_sensitivity_holds(counts, deleted, n_actions)
        return without & super().paper_sensitivity_holds(counts, deleted, n_actions)

    def log_term(self, n_actions: int) -> float:
        """That of the inner learner."""
        return self._penalty_learner.log_term(n_actions)

    @property
    def _penalty_learner(self) -> PenaltyLearner:
        return cast(PenaltyLearner, self.inner)  # checked by `supports` before a penalty is used

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrozenPenalty) and (
            self.inner == other.inner and np.array_equal(self.deleted_counts, other.deleted_counts)
        )

    def __hash__(self) -> int:
        return hash((self.inner, tuple(self.deleted_counts.flat)))


def checked_deleted_counts(deleted_counts: ArrayLike) -> IntArray:
    """Check the numbers of deleted records per arm and make them a read-only array.

    >>> checked_deleted_counts([3, 0])
    array([3, 0])
    """
    counts = np.asarray(deleted_counts)
    if counts.dtype.kind not in "iu" or counts.ndim == 0 or np.any(counts < 0):
        raise InvalidInputError(
            f"deleted_counts must be whole numbers, 0 or more, one per arm; got {deleted_counts!r}"
        )
    return read_only(counts.astype(np.int64))
