"""A log whose rows are in memory, as three arrays of integers: dataframes, arrays and tables."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.logs import rules
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

    def encode(self, labels: Sequence[Any], what: str, first: int = 0) -> IntArray:
        """Give the code of each label, of which the first is at row `first`; refuse what cannot be hashed."""
        try:
            return np.fromiter(map(self.__getitem__, labels), np.int64, len(labels))
        except TypeError:
            offences = ((row, label) for row, label in enumerate(labels, first) if not _is_hashable(label))
            raise rules.unusable_labels(what, offences) from None


@dataclass(frozen=True, eq=False, repr=False)
class ArrayLog(Log):
    """Action and user of each row as positions in lists of labels, the reward in units."""

    action_codes: IntArray
    units: IntArray
    user_codes: IntArray
    user_labels: tuple[Hashable, ...]
    users_by_text: bool = False
    """Whether the labels of users are their text, as in a table; otherwise they are Python values."""

    def __post_init__(self) -> None:
        for array in (self.action_codes, self.units, self.user_codes):
            array.flags.writeable = False  # not a copy: they were made for this log, and may be large

    def __len__(self) -> int:
        return len(self.units)

    def statistics(self) -> ArmStatistics:
        """Count the rows and add up the rewards of each action, in exact integers."""
        return self._records(np.arange(len(self)))

    def _request_of_users(self, users: list[Hashable]) -> DeletionRequest:
        codes = [self._user_code(user) for user in users]
        if MISSING in codes:
            unknown = [user for user, code in zip(users, codes, strict=True) if code == MISSING]
            raise rules.unknown_users(unknown, self.user_labels)
        return self._request(np.flatnonzero(np.isin(self.user_codes, codes)))

    def _request_of_rows(self, rows: list[int]) -> DeletionRequest:
        return self._request(np.array(rows))

    def _rows_of_each_user(self, action: Hashable) -> dict[Hashable, int]:
        chosen = self.user_codes != MISSING
        if action is not None:
            chosen &= self.action_codes == self.actions.index(action)
        rows = np.bincount(self.user_codes[chosen], minlength=len(self.user_labels))
        return {user: int(n) for user, n in zip(self.user_labels, rows, strict=True) if n}

    def _request(self, rows: IntArray) -> DeletionRequest:
        binary = bool(np.isin(self.units[rows], [0, UNIT]).all())
        return DeletionRequest(self._records(rows), binary)

    def _records(self, rows: IntArray) -> ArmStatistics:
        codes = self.action_codes[rows]
        counts = np.bincount(codes, minlength=len(self.actions))
        sums = np.zeros(len(self.actions), dtype=np.int64)
        np.add.at(sums, codes, self.units[rows])  # not bincount's weights: those are floats
        return ArmStatistics(self.actions, counts, sums, self.reward_range)

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
