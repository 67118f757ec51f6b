"""What a learner is: a rule that scores every arm from statistics and serves the best one."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import BoolArray, FloatArray, IntArray, scalar_or_array
from armnesia.core.errors import UnsupportedError
from armnesia.core.parameters import parameter, parameters_of
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import from_unit_scale


@dataclass(frozen=True, eq=False)
class Decision:
    """The arm that a learner serves, with the scores of all arms on the scale of the rewards.

    `no_data` marks a decision that was made without records: the default arm.
    """

    actions: tuple[Hashable, ...]
    index: IntArray
    scores: FloatArray
    no_data: BoolArray

    @property
    def action(self) -> Any:
        """The label of the served arm; a list of labels for a batch."""
        position = scalar_or_array(self.index)
        if isinstance(position, int):
            return self.actions[position]
        return [self.actions[i] for i in position.flat]

    def to_dict(self, statistics: ArmStatistics) -> dict[str, Any]:
        """Write the decision on one data set as JSON holds it, with the count, mean and score of each arm.

        >>> from armnesia.learners import Imitation
        >>> statistics = ArmStatistics.from_rewards({"A": [1, 0], "B": [1]})
        >>> Imitation().decide(statistics).to_dict(statistics)
        {'action': 'A', 'no_data': False, 'n_rows': 3, 'arms':
        [{'action': 'A', 'count': 2, 'mean': 0.5, 'score': 2.0},
        {'action': 'B', 'count': 1, 'mean': 1.0, 'score': 1.0}]}
        """
        counts, means = statistics.counts.tolist(), statistics.means.tolist()
        columns = zip(self.actions, counts, means, self.scores.tolist(), strict=True)
        return {
            "action": self.action,
            "no_data": bool(self.no_data),
            "n_rows": sum(counts),
            "arms": [
                {"action": action, "count": count, "mean": mean, "score": score}
                for action, count, mean, score in columns
            ],
        }

    def __repr__(self) -> str:
        flag = ", no_data=True" if self.no_data.any() else ""
        return f"Decision(action={self.action!r}, scores={self.scores.round(6).tolist()}{flag})"


@dataclass(frozen=True, kw_only=True)
class Learner(ABC):
    """Scores arms; the highest score is served, ties go to the first arm in the declared order.

    Without records there is nothing to score: `default_action` is served, by default the first arm, and the
    decision is marked.

    A learner implements `unit_scores`. One that says more about its scores derives from a subclass and works
    with more unlearners: `CountsOnlyLearner`, `MeanAndCountLearner`, `PenaltyLearner`, `ConfidenceLearner`.
    """

    default_action: Hashable | None = parameter(
        None, help="The action to serve when there are no records; the first one if not given."
    )

    name: ClassVar[str]
    description: ClassVar[str] = "of any kind"
    """Completes "a learner …" in the message of an unlearner that needs this kind."""
    needs_squares: ClassVar[bool] = False
    """Whether the scores depend on the second moment, which not all statistics hold (`squares`)."""

    @abstractmethod
    def unit_scores(self, statistics: ArmStatistics) -> FloatArray:
        """Scores on the [0, 1] reward scale of the theory, arms on the last axis."""

    def bind(self, statistics: ArmStatistics) -> Self:
        """Fix everything that the learner takes from the data D; the same learner then serves D∖U."""
        return self

    def check_bound(self) -> None:  # noqa: B027 (most learners take nothing from the data)
        """Refuse a learner that still has to be bound; see `bind`."""

    @property
    def reveals(self) -> str:
        """What the learner took from the log when it was bound, and so makes public; empty if nothing."""
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it: the name, the parameters without the default action, and what it reveals.

        `confidence` is None if the learner has none, `reveals` if it took nothing from the log.

        >>> from armnesia.learners import LCB
        >>> LCB(confidence=0.01).to_dict()
        {'name': 'lcb', 'confidence': 0.01, 'reveals': None}
        """
        own = {each.name: getattr(self, each.name) for each in parameters_of(type(self))}
        own.pop("default_action", None)
        return {"name": self.name, "confidence": None, **own, "reveals": self.reveals or None}

    def supports(self, kind: type) -> bool:
        """Whether the learner is of this kind and has its methods.

        >>> from armnesia.learners import LCB, Imitation, MeanAndCountLearner
        >>> LCB().supports(MeanAndCountLearner), Imitation().supports(MeanAndCountLearner)
        (True, False)
        """
        return isinstance(self, kind)

    @property
    def unfrozen(self) -> "Learner":
        """The learner without a frozen penalty."""
        return self

    def for_rows(self, rows: IntArray, shape: tuple[int, ...], arms: IntArray | None = None) -> Self:
        """The learner for these data sets of a batch whose counts have this shape, and for some arms of each.

        `arms` has a row for each of the data sets; None stands for all arms.
        """
        return self

    def with_frozen_penalty(self, deleted_counts: ArrayLike) -> "Learner":
        """The learner with the penalties of N + `deleted_counts` records per arm; see `FrozenPenalty`."""
        raise UnsupportedError(
            "a frozen penalty needs a learner that scores by mean and count, such as 'lcb';"
            f" got {self.name!r}"
        )

    def scores(self, statistics: ArmStatistics) -> FloatArray:
        """Scores on the scale of the rewards."""
        return self.on_reward_scale(self.unit_scores(statistics), statistics.reward_range)

    def on_reward_scale(self, unit_scores: FloatArray, reward_range: tuple[float, float]) -> FloatArray:
        """Convert scores from the [0, 1] scale to the scale of the rewards."""
        return from_unit_scale(unit_scores, reward_range)

    def decide(self, statistics: ArmStatistics) -> Decision:
        """Serve the arm with the highest score; ties go to the first."""
        unit_scores = self.unit_scores(statistics)
        scores = self.on_reward_scale(unit_scores, statistics.reward_range)
        no_data = np.asarray(statistics.total == 0)
        return Decision(statistics.actions, self.best_arm(statistics, unit_scores), scores, no_data)

    def best_arm(self, statistics: ArmStatistics, unit_scores: FloatArray) -> IntArray:
        """The position of the arm that `decide` serves, by these scores; the default arm without records."""
        default = 0 if self.default_action is None else statistics.index_of(self.default_action)
        best = np.where(statistics.total == 0, default, unit_scores.argmax(axis=-1))
        return np.asarray(best, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class CountsOnlyLearner(Learner):
    """A learner whose decision depends on counts alone.

    A reference that sees the shape of a request then sees everything, so the levels `request_shape` and
    `original_decision` are empty for it.
    """

    description: ClassVar[str] = "that decides by counts alone"

    def on_reward_scale(self, unit_scores: FloatArray, reward_range: tuple[float, float]) -> FloatArray:
        """The scores unchanged: they are not rewards."""
        return unit_scores
