"""A deletion request: the records to forget, as counts and sums per arm."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armnesia.core.arrays import BoolArray, IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT, to_units


@dataclass(frozen=True)
class DeletionRequest:
    """The records U to forget. Single-source if they are of one arm, multi-source if of several.

    `binary` states that every reward is the lowest or the highest of its range; then counts and sums
    describe the records completely, which `Mixing` needs.

    >>> request = DeletionRequest.from_rewards({"A": [1, 0], "B": [], "C": [1]})
    >>> request.counts, request.n_sources, request.binary
    (array([2, 0, 1]), array(2), True)
    """

    records: ArmStatistics
    binary: bool = False

    def __post_init__(self) -> None:
        if self.binary and np.count_nonzero(self.records.sums % UNIT):
            raise InvalidInputError(
                "binary must be False: the sums are not whole numbers, so not all rewards are 0 or 1"
            )
        if self.binary and self.products is not None and np.count_nonzero(self.products):
            raise InvalidInputError("binary must be False: by their squares, not all rewards are 0 or 1")

    @classmethod
    def from_rewards(
        cls, rewards: Mapping[Any, ArrayLike], reward_range: tuple[float, float] = (0.0, 1.0)
    ) -> Self:
        """Make a request from the rewards to forget per arm; the keys are the whole action set."""
        units = (to_units(values, reward_range) for values in rewards.values())
        binary = all(np.isin(arm, (0, UNIT)).all() for arm in units)
        return cls(ArmStatistics.from_rewards(rewards, reward_range), binary)

    def taken_from(self, statistics: ArmStatistics) -> ArmStatistics:
        """D∖U: the statistics without these records; the last answer is kept, because a release asks twice.

        >>> log = ArmStatistics.from_rewards({"A": [1, 0, 1], "B": [0]})
        >>> DeletionRequest.from_rewards({"A": [1], "B": []}).taken_from(log).counts
        array([2, 1])
        """
        known: tuple[ArmStatistics, ArmStatistics] | None = self.__dict__.get("_known")
        if known is None or known[0] is not statistics:
            known = self.__dict__["_known"] = (statistics, statistics.without(self.records))
        return known[1]

    @property
    def actions(self) -> tuple[Hashable, ...]:
        """The whole declared action set."""
        return self.records.actions

    @property
    def counts(self) -> IntArray:
        """k: the number of records to forget per arm, the shape of the request."""
        return self.records.counts

    @property
    def sums(self) -> NDArray[Any]:
        """The reward sum of the records to forget per arm, in units."""
        return self.records.sums

    @property
    def products(self) -> NDArray[Any] | None:
        """Σu·(10⁹ − u) of the records to forget per arm; None where it was not counted."""
        return self.records.products

    @property
    def reward_range(self) -> tuple[float, float]:
        """The declared reward range."""
        return self.records.reward_range

    @property
    def touched(self) -> BoolArray:
        """Which arms lose records."""
        return np.asarray(self.counts > 0)

    @property
    def n_sources(self) -> IntArray:
        """The number of arms that lose records, one number per data set."""
        return np.asarray(self.touched.sum(axis=-1))

    @property
    def is_empty(self) -> BoolArray:
        """Whether the request holds no records."""
        return np.asarray(self.records.total == 0)
