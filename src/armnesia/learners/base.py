"""What a learner is: a rule that scores every arm from statistics and serves the best one."""

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from armnesia.core.arrays import BoolArray, FloatArray, IntArray, scalar_or_array
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import from_unit_scale


@dataclass(frozen=True, eq=False)
class Decision:
    """The arm a learner serves, with the scores it was chosen by (on the scale of the rewards).

    `no_data` flags a decision made without a single record: the default arm.
    """

    actions: tuple[Hashable, ...]
    index: IntArray
    scores: FloatArray
    no_data: BoolArray

    @property
    def action(self) -> Any:
        """The label of the served arm; a list of labels for a batch."""
        return _labels(self.actions, self.index)

    def __repr__(self) -> str:
        flag = ", no_data=True" if self.no_data.any() else ""
        return f"Decision(action={self.action!r}, scores={self.scores.round(6).tolist()}{flag})"


def _labels(actions: tuple[Hashable, ...], index: IntArray) -> Any:
    position = scalar_or_array(index)
    return actions[position] if isinstance(position, int) else [actions[i] for i in position.flat]


@dataclass(frozen=True, kw_only=True)
class Learner(ABC):
    """Scores arms; the highest score is served, ties go to the first arm in the declared order.

    Where no data is left at all there is nothing to score: `default_action` (by default the first arm) is
    served, and the decision is flagged.
    """

    default_action: Hashable | None = None

    name: ClassVar[str]
    counts_only: ClassVar[bool] = False
    """Whether the decision depends on counts alone, so that knowing the request's shape says everything."""

    @abstractmethod
    def unit_scores(self, statistics: ArmStatistics) -> FloatArray:
        """Scores on the [0, 1] reward scale of the theory, arms on the last axis."""

    def bind(self, statistics: ArmStatistics) -> Self:
        """Fix once, from D, whatever the learner takes from the data; the same learner serves D∖U."""
        return self

    def scores(self, statistics: ArmStatistics) -> FloatArray:
        """Scores on the scale of the rewards."""
        return self.on_reward_scale(self.unit_scores(statistics), statistics.reward_range)

    def on_reward_scale(self, unit_scores: FloatArray, reward_range: tuple[float, float]) -> FloatArray:
        """Bring scores to the scale of the rewards."""
        return from_unit_scale(unit_scores, reward_range)

    def decide(self, statistics: ArmStatistics) -> Decision:
        """Serve the arm with the highest score; ties go to the first."""
        no_data = statistics.total == 0
        default = 0 if self.default_action is None else statistics.index_of(self.default_action)
        unit_scores = self.unit_scores(statistics)
        index = np.asarray(np.where(no_data, default, np.argmax(unit_scores, axis=-1)), dtype=np.int64)
        scores = self.on_reward_scale(unit_scores, statistics.reward_range)
        return Decision(statistics.actions, index, scores, np.asarray(no_data))
