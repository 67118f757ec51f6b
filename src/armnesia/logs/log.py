"""`Log` and `Decisions`: statistics, deletion requests, and the users of logged decisions.

Both keep the sums of their rows, and ask the source again for each request.
"""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.core.identifiers import UserType
from armnesia.core.messages import counted, listed
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.logs import refusals
from armnesia.logs.conditions import Condition
from armnesia.logs.counting import check_tallies, summed
from armnesia.logs.keys import MOST_DECISIONS, KeyColumn, checked_keys, too_many_keys
from armnesia.logs.source import Source
from armnesia.logs.statements import Chosen, Tally
from armnesia.logs.values import label_text, python_values


@dataclass(frozen=True, eq=False, repr=False)
class RecordChoice(ABC):
    """Logged decisions, from which the records of users or of given rows can be chosen."""

    source: Source
    actions: tuple[Hashable, ...]
    reward_range: tuple[float, float]

    @property
    def has_users(self) -> bool:
        """Whether a column names the user of each row."""
        return self.source.columns.user is not None

    @property
    def where(self) -> tuple[Condition, ...]:
        """The conditions that the rows satisfy."""
        return self.source.where

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows."""

    def request(
        self,
        *,
        user: Hashable = None,
        users: Iterable[Hashable] | None = None,
        rows: Iterable[int] | None = None,
    ) -> DeletionRequest:
        """Collect the records to forget: all rows of one user, of several users, or given rows (from 1).

        Users are known by their text: 7 and "7" are the same.

        >>> from armnesia.logs import read_log
        >>> users = ["ann", "bob", "bob"]
        >>> log = read_log(action=["A", "B", "A"], reward=[1, 0, 0], user=users, actions=["A", "B"])
        >>> log.request(user="bob").counts, log.request(rows=[1]).counts
        (array([1, 1]), array([1, 0]))
        """
        given = [
            name for name, value in (("user", user), ("users", users), ("rows", rows)) if value is not None
        ]
        if len(given) != 1:
            raise InvalidInputError(
                f"a request needs exactly one of user, users and rows; got {' and '.join(given) or 'none'}"
            )
        if rows is not None:
            return self._summed(self._of_rows(rows))
        self._check_has_users()
        if user is not None and type(user).__hash__ is None:
            raise InvalidInputError(
                f"user must be a single label; got {type(user).__name__}: name several by users=[...]"
            )
        wanted = {label_text(each): each for each in ([user] if users is None else _checked_users(users))}
        found = self._of_users([text for text in wanted if text is not None])
        held = {each.user for each in found}
        unknown = [each for text, each in wanted.items() if text not in held]
        if unknown:
            others = {
                each.user for each in self._of_users(_other_spellings(unknown)) if each.user is not None
            }
            raise refusals.unknown_users(unknown, others)
        return self._summed(found)

    def _of_users(self, texts: Sequence[str]) -> list[Tally]:
        if self.source.holds_still:
            return self.source.tallies(self.reward_range, chosen=Chosen(texts), by=["user"])
        # All rows are added up again, in one statement: a request must consist of rows that are counted.
        found = self.source.tallies(self.reward_range, chosen=Chosen(texts), others=True, by=["user"])
        self._check_unchanged(found)
        return [each for each in found if each.chosen]

    def _of_rows(self, rows: Iterable[int]) -> list[Tally]:
        if self.where:
            raise InvalidInputError(
                "rows are named by their position in the source, and this log has only those that satisfy"
                f" {' and '.join(map(str, self.where))}; name users, or read the log without where"
            )
        if not self.source.ordered:
            raise refusals.no_order()
        positions = _checked_rows(rows, self.n_rows)
        if self.source.holds_still:
            return self.source.tallies(self.reward_range, positions=positions)
        with self.source.reading() as reading:  # of one snapshot, where there is one
            self._check_unchanged(reading.tallies(self.reward_range))
            return reading.tallies(self.reward_range, positions=positions)

    def _check_unchanged(self, found: Sequence[Tally]) -> None:
        try:
            check_tallies(self.source, found, self.actions, self.reward_range)
            unchanged = self._statistics_of(found) == self._statistics
        except (InvalidInputError, KeyError):
            unchanged = False
        if not unchanged:
            raise refusals.changed_source()

    def _summed(self, found: Sequence[Tally]) -> DeletionRequest:
        return DeletionRequest(self._statistics_of(found), all(each.is_binary for each in found))

    @property
    @abstractmethod
    def _statistics(self) -> ArmStatistics: ...

    @abstractmethod
    def _statistics_of(self, found: Iterable[Tally]) -> ArmStatistics: ...

    def _check_has_users(self) -> None:
        if not self.has_users:
            raise InvalidInputError(
                "the log was read without a user column; name one with read_log(user=...) (--user-column), or"
                " give rows (--rows)"
            )


@dataclass(frozen=True, eq=False, repr=False)
class Log(RecordChoice):
    """Logged decisions: in each row an action, its reward and, if known, the user it belongs to.

    Made by `read_log`. A log does not change: to forget, subtract a request from the statistics with
    `ArmStatistics.without`, and delete the rows where they are stored.

    >>> from armnesia.logs import read_log
    >>> users = ["ann", "bob", "bob"]
    >>> log = read_log(action=["A", "B", "A"], reward=[1, 0, 0], user=users, actions=["A", "B"])
    >>> log
    <Log of 3 rows, actions 'A', 'B', reward_range (0.0, 1.0), with users>
    >>> log.statistics().counts
    array([2, 1])
    """

    totals: ArmStatistics

    def __len__(self) -> int:
        return int(self.totals.total)

    @property
    def n_rows(self) -> int:
        """The number of rows, as `len` gives it."""
        return len(self)

    def statistics(self) -> ArmStatistics:
        """The number of rows and the sum of the rewards of each action, in exact integers."""
        return self.totals

    @property
    def _statistics(self) -> ArmStatistics:
        return self.totals

    def _statistics_of(self, found: Iterable[Tally]) -> ArmStatistics:
        return summed(found, self.actions, self.reward_range)

    def users(self, action: Hashable = None) -> dict[str, int]:
        """Count the rows of each user, for one action or for all; most rows first, then by name.

        >>> from armnesia.logs import read_log
        >>> users = ["ann", "bob", "bob"]
        >>> log = read_log(action=["A", "B", "A"], reward=[1, 0, 0], user=users, actions=["A", "B"])
        >>> log.users(), log.users("B")
        ({'bob': 2, 'ann': 1}, {'bob': 1})
        """
        self._check_has_users()
        if action is not None and label_text(action) not in map(label_text, self.actions):
            raise InvalidInputError(f"action {action!r} is not one of {listed(self.actions)}")
        found = self.source.tallies(self.reward_range, by=["user"])
        self._check_unchanged(found)
        rows_of: Counter[str] = Counter()
        for each in found:
            if each.user is not None and (action is None or each.action == label_text(action)):
                rows_of[each.user] += each.number
        return dict(sorted(rows_of.items(), key=lambda item: (-item[1], item[0])))

    def by(self, *keys: str | KeyColumn, at_most: int = MOST_DECISIONS) -> "Decisions":
        """Part the rows into decisions: one for each combination of values of the key columns that occurs.

        A key is the name of a column, or of a column of numbers with edges behind a colon. Values are known
        by their text, as users are; every row needs one. The keys of decisions are public, like the actions.
        More than `at_most` decisions are refused.

        >>> from armnesia.logs import read_log
        >>> visits = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "country": ["DE", "FR", "DE"],
        ...     "age": [17, 44, 30]}
        >>> log = read_log(visits, actions=["A", "B"])
        >>> log.by("country", "age:18,30").keys
        (('DE', '<18'), ('DE', '>=30'), ('FR', '>=30'))
        """
        if not (isinstance(at_most, int) and at_most >= 1):
            raise InvalidInputError(f"at_most must be a whole number, 1 or more; got {at_most!r}")
        columns = checked_keys(keys)
        source = self.source.keyed_by(columns)
        found = source.tallies(self.reward_range)
        check_tallies(source, found, self.actions, self.reward_range)
        if self._statistics_of(found) != self.totals:
            raise refusals.changed_source()
        number = len({each.key for each in found})
        if number > at_most:
            raise too_many_keys(columns, number, at_most)
        texts = in_order(columns, {tuple(map(str, each.key)) for each in found})
        places: dict[tuple[str | None, ...], int] = {key: place for place, key in enumerate(texts)}
        statistics = summed(found, self.actions, self.reward_range, places)
        return Decisions(source, self.actions, self.reward_range, texts, statistics)

    def __repr__(self) -> str:
        users = "with users" if self.has_users else "without users"
        return (
            f"<Log of {counted(len(self), 'row')}, actions {listed(self.actions)},"
            f" reward_range {self.reward_range}, {users}>"
        )


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

    keys: tuple[tuple[str, ...], ...]
    """One text per key column: the value, or the interval between two edges."""
    statistics: ArmStatistics

    @property
    def columns(self) -> tuple[KeyColumn, ...]:
        """The key columns."""
        return self.source.keys

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

    @property
    def _statistics(self) -> ArmStatistics:
        return self.statistics

    def _statistics_of(self, found: Iterable[Tally]) -> ArmStatistics:
        return summed(found, self.actions, self.reward_range, self._place_of)

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
        return [
            text for (text,) in in_order(self.columns[column : column + 1], {(k[column],) for k in self.keys})
        ]

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
        place = self._place_of.get(tuple(str(label_text(key[name])) for name in names))
        if place is None:
            raise InvalidInputError(f"the log has no decision with the key {dict(key)!r}")
        return place

    @cached_property
    def _place_of(self) -> dict[tuple[str | None, ...], int]:
        return {key: index for index, key in enumerate(self.keys)}

    def __repr__(self) -> str:
        return (
            f"<{counted(len(self), 'decision')} by {', '.join(map(str, self.columns))},"
            f" actions {listed(self.actions)}, {counted(self.n_rows, 'row')},"
            f" {'with' if self.has_users else 'without'} users>"
        )


def in_order(columns: Sequence[KeyColumn], keys: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Keys in order: intervals and numbers in rising order, other values by their text.

    >>> in_order([KeyColumn("hour")], [("10",), ("9",)])
    (('9',), ('10',))
    """
    every = list(keys)
    ranks: list[dict[str, tuple[float, str]]] = []
    for place, column in enumerate(columns):
        texts = {key[place] for key in every}
        try:
            numbers = {text: float(text) for text in texts}
        except ValueError:
            numbers = {}
        if column.edges:
            ranks.append({text: (rank, "") for rank, text in enumerate(column.intervals)})
        elif numbers and all(map(math.isfinite, numbers.values())):  # NaN has no place in an order
            ranks.append({text: (number, text) for text, number in numbers.items()})
        else:
            ranks.append({text: (0, text) for text in texts})
    return tuple(sorted(every, key=lambda key: [rank[text] for rank, text in zip(ranks, key, strict=True)]))


def _other_spellings(users: Iterable[Hashable]) -> list[str]:
    """The integers among these users, as programs spell them."""
    integers = (UserType.INTEGER.normalised(label_text(user) or "") for user in users)
    return [text for integer in integers if integer for text in (integer, f"{integer}.0")]


def _checked_users(users: Iterable[Hashable]) -> list[Hashable]:
    if isinstance(users, str | bytes) or not isinstance(users, Iterable):
        raise InvalidInputError(f"users must be a list of labels (user takes a single one); got {users!r}")
    labels = python_values(users, "users")
    if not labels:
        raise InvalidInputError("users must name at least one user; got none")
    return labels


def _checked_rows(rows: Iterable[int], n_rows: int) -> list[int]:
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise InvalidInputError(f"rows must be a list of row positions, such as [1, 8]; got {rows!r}")
    positions = [row.item() if isinstance(row, np.generic) else row for row in python_values(rows, "rows")]
    if not positions:
        raise InvalidInputError("rows must name at least one row; got none")
    strange = [row for row in positions if not isinstance(row, int) or isinstance(row, bool)]
    if strange:
        raise InvalidInputError(
            f"rows must be whole numbers, the positions of rows; got {listed(strange, 3)}"
        )
    outside = [row for row in positions if not 1 <= row <= n_rows]
    if outside:
        raise InvalidInputError(f"rows must lie between 1 and {n_rows}; got {listed(outside, 3)}")
    repeated = [row for row, times in Counter(positions).items() if times > 1]
    if repeated:
        raise InvalidInputError(f"rows must be distinct; got {listed(repeated, 3)} more than once")
    return positions
