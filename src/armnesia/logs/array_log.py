"""A log whose rows are in memory, as three arrays of integers: dataframes, arrays and tables."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics, exact_sums_at, products_of
from armnesia.core.units import UNIT
from armnesia.logs import rules
from armnesia.logs.conditions import Condition
from armnesia.logs.decisions import ArrayDecisions, Decisions, InMemoryRows, part_rows
from armnesia.logs.key_columns import KeyCodes, KeyColumn
from armnesia.logs.log import Log
from armnesia.logs.values import is_missing, label_text

MISSING = -1
"""The code of a row that has no label."""


class LabelCodes(dict[Hashable, int]):
    """Numbers labels in order of first appearance; a missing label gets `MISSING`.

    >>> codes = LabelCodes()
    >>> codes.encode(["b", None, "a"], "user"), codes.encode(["a"], "user"), codes.labels
    (array([ 0, -1,  1]), array([1]), ['b', 'a'])
    """

    def __init__(self) -> None:
        self.labels: list[Hashable] = []

    def __missing__(self, label: Any) -> int:
        code = MISSING
        if not is_missing(label):
            code = len(self.labels)
            self.labels.append(label.item() if isinstance(label, np.generic) else label)
        self[label] = code
        return code

    def encode(self, labels: Sequence[Any], what: str, positions: Sequence[int] | None = None) -> IntArray:
        """Give the code of each label; refuse what cannot be hashed, found by `positions`."""
        try:
            return np.fromiter(map(self.__getitem__, labels), np.int64, len(labels))
        except TypeError:
            rows = range(len(labels)) if positions is None else positions
            offences = (
                (row, label) for row, label in zip(rows, labels, strict=True) if not _is_hashable(label)
            )
            raise rules.unusable_labels(what, offences) from None


class KeyedSource(Protocol):
    """A source of which further columns can be read."""

    where: tuple[Condition, ...]

    def with_keys(self, names: tuple[str, ...]) -> "KeyedSource":
        """The same source, of which key columns are read as well."""

    def read_keyed(
        self, actions: tuple[Hashable, ...], reward_range: tuple[float, float], keys: Sequence[KeyCodes]
    ) -> "tuple[ArrayLog, list[IntArray]]":
        """Read the log again, with the code of each row's value in each key column."""


@dataclass(frozen=True, eq=False, repr=False)
class ArrayLog(Log, InMemoryRows):
    """Action and user of each row as positions in lists of labels, the reward in units."""

    action_codes: IntArray
    units: IntArray
    user_codes: IntArray
    user_labels: tuple[Hashable, ...]
    users_by_text: bool = False
    """Whether the labels of users are their text, as in a table; otherwise they are Python values."""
    source: KeyedSource | None = None
    """Where the log was read, if it has further columns."""

    def __post_init__(self) -> None:
        for array in (self.action_codes, self.units, self.user_codes):
            array.flags.writeable = False  # not a copy: they were made for this log, and may be large

    def __len__(self) -> int:
        return len(self.units)

    @property
    def where(self) -> tuple[Condition, ...]:
        """The conditions that the rows satisfy."""
        return () if self.source is None else self.source.where

    def statistics(self) -> ArmStatistics:
        """Count the rows and add up the rewards of each action, in exact integers."""
        return self._records(np.arange(len(self)))

    def _request_of_users(self, users: list[Hashable]) -> DeletionRequest:
        return self._request(self.rows_of_users(users))

    def rows_of_users(self, users: list[Hashable]) -> IntArray:
        """The positions of all rows of these users; refuse a user without rows."""
        codes = [self._user_code(user) for user in users]
        if MISSING in codes:
            unknown = [user for user, code in zip(users, codes, strict=True) if code == MISSING]
            raise rules.unknown_users(unknown, self.user_labels)
        return np.flatnonzero(np.isin(self.user_codes, codes))

    def all_binary(self, rows: IntArray) -> bool:
        """Whether each of these rows has the lowest or the highest reward."""
        return bool(np.isin(self.units[rows], [0, UNIT]).all())

    def _request_of_rows(self, rows: list[int]) -> DeletionRequest:
        return self._request(np.array(rows))

    def _rows_of_each_user(self, action: Hashable) -> dict[Hashable, int]:
        chosen = self.user_codes != MISSING
        if action is not None:
            chosen &= self.action_codes == self.actions.index(action)
        rows = np.bincount(self.user_codes[chosen], minlength=len(self.user_labels))
        return {user: int(n) for user, n in zip(self.user_labels, rows, strict=True) if n}

    def _decisions(self, keys: tuple[KeyColumn, ...], at_most: int) -> Decisions:
        if self.source is None:
            raise InvalidInputError("this log was made without a source, so it has no columns to part it by")
        codes = [KeyCodes(key) for key in keys]
        named = self.source.with_keys(tuple(key.name for key in keys))
        log, code_columns = named.read_keyed(self.actions, self.reward_range, codes)
        if log.statistics() != self.statistics():
            raise rules.changed_source()
        found, decision_of_row = part_rows(keys, [key.texts for key in codes], code_columns, at_most)
        return ArrayDecisions.of_log(keys, found, log, decision_of_row)

    def _request(self, rows: IntArray) -> DeletionRequest:
        return DeletionRequest(self._records(rows), self.all_binary(rows))

    def _records(self, rows: IntArray) -> ArmStatistics:
        codes = self.action_codes[rows]
        counts = np.bincount(codes, minlength=len(self.actions))
        sums = np.zeros(len(self.actions), dtype=np.int64)
        np.add.at(sums, codes, self.units[rows])  # not bincount's weights: those are floats
        products = exact_sums_at(counts.shape, codes, products_of(self.units[rows]))
        return ArmStatistics(self.actions, counts, sums, self.reward_range, products)

    def _user_code(self, user: Hashable) -> int:
        try:
            return self._code_of_user.get(label_text(user) if self.users_by_text else user, MISSING)
        except TypeError:  # not hashable, so not a label
            return MISSING

    @cached_property
    def _code_of_user(self) -> dict[Hashable, int]:
        return {user: code for code, user in enumerate(self.user_labels)}


def _is_hashable(label: Any) -> bool:
    try:
        hash(label)
    except TypeError:
        return False
    return True
