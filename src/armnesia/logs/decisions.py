"""`Decisions`: a log parted by key columns, with the statistics of all parts in one value."""

import math
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import counted, listed
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics, exact_sums_at, products_of
from armnesia.logs.conditions import Condition
from armnesia.logs.key_columns import KeyColumn, too_many_keys
from armnesia.logs.record_choice import RecordChoice
from armnesia.logs.values import label_text


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(RecordChoice):
    """The decisions of a log, one for each combination of keys that occurs, in the order of the keys.

    Made by `Log.by`. The first axis of `statistics` and of a request is the decisions, the last is the arms.

    >>> from armnesia import LCB
    >>> from armnesia.logs import read_log
    >>> visits = {"action": ["A", "B"] * 50, "reward": [1, 0, 0, 1] * 25, "user": ["u1", "u2"] * 50,
    ...     "country": ["DE", "DE", "FR", "FR"] * 25}
    >>> decisions = read_log(visits, actions=["A", "B"]).by("country")
    >>> decisions
    <2 decisions by country, actions 'A', 'B', 100 rows, with users>
    >>> decisions.statistics.counts
    array([[25, 25], [25, 25]])
    >>> LCB().bind(decisions.pooled).decide(decisions.statistics).action
    ['A', 'B']
    >>> decisions.request(user="u1").counts
    array([[25,  0], [25,  0]])
    """

    columns: tuple[KeyColumn, ...]
    keys: tuple[tuple[str, ...], ...]
    """One text per key column: the value, or the interval between two edges."""
    has_users: bool
    statistics: ArmStatistics

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def n_rows(self) -> int:
        """The number of rows of all decisions."""
        return int(self.statistics.counts.sum())

    @property
    def pooled(self) -> ArmStatistics:
        """The statistics of all decisions together: those of the log."""
        counts, sums = self.statistics.counts.sum(axis=0), self.statistics.sums.astype(object).sum(axis=0)
        products = self.statistics.products
        return ArmStatistics(
            self.statistics.actions,
            counts,
            sums,
            self.statistics.reward_range,
            None if products is None else products.astype(object).sum(axis=0),
        )

    def key_of(self, index: int) -> dict[str, str]:
        """The key of a decision, as JSON holds it: each column's name with its value.

        >>> from armnesia.logs import read_log
        >>> visits = {"action": ["A", "B"], "reward": [1, 0], "country": ["DE", "FR"]}
        >>> read_log(visits, actions=["A", "B"]).by("country").key_of(1)
        {'country': 'FR'}
        """
        return dict(zip((column.name for column in self.columns), self.keys[index], strict=True))

    def values_of(self, column: int) -> list[str]:
        """The values that a key column takes, in order.

        >>> from armnesia.logs import read_log
        >>> visits = {"action": ["A", "B"], "reward": [1, 0], "hour": [10, 9]}
        >>> read_log(visits, actions=["A", "B"]).by("hour").values_of(0)
        ['9', '10']
        """
        return _in_order(self.columns[column], list(dict.fromkeys(key[column] for key in self.keys)))

    def index_of(self, key: Mapping[str, Any]) -> int:
        """The place of a decision, by its key.

        >>> from armnesia.logs import read_log
        >>> visits = {"action": ["A", "B"], "reward": [1, 0], "country": ["DE", "FR"]}
        >>> read_log(visits, actions=["A", "B"]).by("country").index_of({"country": "FR"})
        1
        """
        names = [column.name for column in self.columns]
        if sorted(key) != sorted(names):
            raise InvalidInputError(f"a key must have a value for each of {listed(names)}; got {dict(key)!r}")
        place = self._index_of_key.get(tuple(str(label_text(key[name])) for name in names))
        if place is None:
            raise InvalidInputError(f"the log has no decision with the key {dict(key)!r}")
        return place

    @cached_property
    def _index_of_key(self) -> dict[tuple[str, ...], int]:
        return {key: index for index, key in enumerate(self.keys)}

    def __repr__(self) -> str:
        return (
            f"<{counted(len(self), 'decision')} by {', '.join(map(str, self.columns))},"
            f" actions {listed(self.statistics.actions)}, {counted(self.n_rows, 'row')},"
            f" {'with' if self.has_users else 'without'} users>"
        )


class InMemoryRows(RecordChoice):
    """The rows of a log in memory, as `ArrayLog` has them."""

    actions: tuple[Hashable, ...]
    reward_range: tuple[float, float]
    action_codes: IntArray
    units: IntArray

    @abstractmethod
    def rows_of_users(self, users: list[Hashable]) -> IntArray:
        """The positions of all rows of these users; refuse a user without rows."""

    @abstractmethod
    def all_binary(self, rows: IntArray) -> bool:
        """Whether each of these rows has the lowest or the highest reward."""


@dataclass(frozen=True, eq=False, repr=False)
class ArrayDecisions(Decisions):
    """Decisions of a log in memory."""

    log: InMemoryRows
    decision_of_row: IntArray

    @property
    def where(self) -> tuple[Condition, ...]:
        """The conditions that the rows satisfy."""
        return self.log.where

    @classmethod
    def of_log(
        cls,
        columns: tuple[KeyColumn, ...],
        keys: tuple[tuple[str, ...], ...],
        log: InMemoryRows,
        decision_of_row: IntArray,
    ) -> "ArrayDecisions":
        """Add up the rows of each decision."""
        records = summed_by_decision(
            len(keys),
            log.actions,
            log.reward_range,
            (decision_of_row, log.action_codes, np.ones_like(log.units), log.units, products_of(log.units)),
        )
        return cls(columns, keys, log.has_users, records, log, decision_of_row)

    def _request_of_users(self, users: list[Hashable]) -> DeletionRequest:
        return self._request(self.log.rows_of_users(users))

    def _request_of_rows(self, rows: list[int]) -> DeletionRequest:
        return self._request(np.array(rows))

    def _request(self, rows: IntArray) -> DeletionRequest:
        units, arms = self.log.units[rows], self.log.action_codes[rows]
        tallies = (self.decision_of_row[rows], arms, np.ones_like(units), units, products_of(units))
        records = summed_by_decision(len(self), self.log.actions, self.log.reward_range, tallies)
        return DeletionRequest(records, self.log.all_binary(rows))


def summed_by_decision(
    n_decisions: int,
    actions: tuple[Hashable, ...],
    reward_range: tuple[float, float],
    tallies: tuple[IntArray, IntArray, IntArray, NDArray[Any], NDArray[Any]],
) -> ArmStatistics:
    """Add up tallies: decision, arm, count, sum of units and of products each.

    >>> units = np.array([0, 7, 5])
    >>> tallies = (np.array([1, 0, 1]), np.array([0, 1, 0]), np.array([2, 1, 1]), units, products_of(units))
    >>> found = summed_by_decision(2, ("A", "B"), (0.0, 1.0), tallies)
    >>> found.counts, found.sums
    (array([[0, 1], [3, 0]]), array([[0, 7], [5, 0]]))
    """
    decisions, arms, n, units, products = tallies
    counts = np.zeros((n_decisions, len(actions)), dtype=np.int64)
    sums = np.zeros(counts.shape, dtype=units.dtype)  # Python integers if the units are
    np.add.at(counts, (decisions, arms), n)
    np.add.at(sums, (decisions, arms), units)
    return ArmStatistics(
        actions, counts, sums, reward_range, exact_sums_at(counts.shape, (decisions, arms), products)
    )


def part_rows(
    columns: tuple[KeyColumn, ...], texts: Iterable[Sequence[str]], codes: Iterable[IntArray], at_most: int
) -> tuple[tuple[tuple[str, ...], ...], IntArray]:
    """Give the keys that occur, in order, and the place of each row's key among them.

    `codes` has, for each column, the place of each row's value among the column's `texts`.

    >>> columns = (KeyColumn("country"), KeyColumn("hour"))
    >>> part_rows(columns, [["FR", "DE"], ["9", "10"]], [np.array([0, 1, 0]), np.array([0, 1, 1])], 9)
    ((('DE', '10'), ('FR', '9'), ('FR', '10')), array([1, 0, 2]))
    """
    decision: IntArray | None = None
    keys: list[tuple[str, ...]] = [()]
    for column, labels, code in zip(columns, texts, codes, strict=True):
        ordered = _in_order(column, labels)
        place_of = {text: place for place, text in enumerate(ordered)}
        places = np.array([place_of[text] for text in labels], dtype=np.int64)[code]
        both = places if decision is None else decision * len(ordered) + places
        found, decision = np.unique(both, return_inverse=True)
        if len(found) > at_most:
            raise too_many_keys(columns, len(found), at_most)
        before, last = np.divmod(found, len(ordered))
        keys = [(*keys[first], ordered[place]) for first, place in zip(before, last, strict=True)]
    assert decision is not None  # there is a column
    return tuple(keys), decision.reshape(-1)


def _in_order(column: KeyColumn, texts: Sequence[str]) -> list[str]:
    """Intervals and numbers in rising order, other values by their text."""
    if column.edges:
        return [text for text in column.intervals if text in texts]
    try:
        numbers = {text: float(text) for text in texts}
    except ValueError:
        return sorted(texts)
    finite = all(map(math.isfinite, numbers.values()))  # NaN has no place in an order
    return sorted(texts, key=lambda text: (numbers[text], text)) if finite else sorted(texts)
