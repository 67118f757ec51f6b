"""A log whose rows are held in memory, as three arrays of integers."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from numbers import Real
from types import NoneType
from typing import Any, Self

import numpy as np

from armnesia.core.actions import checked_actions
from armnesia.core.arrays import FloatArray, IntArray, read_only
from armnesia.core.errors import InvalidLogError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT, to_units
from armnesia.logs import rules
from armnesia.logs.columns import MISSING, encode, is_missing, python_values, sorted_if_comparable
from armnesia.logs.log import Log, no_rows_of


@dataclass(frozen=True, eq=False, repr=False)
class MemoryLog(Log):
    """Action and user of each row as positions in lists of labels, the reward in units."""

    action_codes: IntArray
    units: IntArray
    user_codes: IntArray
    user_labels: tuple[Hashable, ...]

    @classmethod
    def of_columns(
        cls,
        columns: dict[str, Any],
        names: dict[str, str],
        actions: tuple[Hashable, ...] | None,
        reward_range: tuple[float, float],
    ) -> Self:
        """Check and encode the columns "action", "reward" and perhaps "user"; `names` is for messages."""
        labels = {role: python_values(columns[role], names[role]) for role in columns if role != "reward"}
        rewards = reward_numbers(columns["reward"], names["reward"])
        _check_lengths({role: len(labels.get(role, rewards)) for role in columns}, names)
        if not rewards.size:
            raise rules.empty_log()
        declared, action_codes = _encoded_actions(labels["action"], names["action"], actions)
        check_rewards(rewards, names["reward"], reward_range, range(rewards.size))
        user_codes, user_labels = encode(labels.get("user", []), names.get("user", "user"))
        return cls(
            declared,
            reward_range,
            "user" in columns,
            read_only(action_codes),
            read_only(to_units(rewards, reward_range)),
            read_only(user_codes),
            tuple(user_labels),
        )

    def __len__(self) -> int:
        return len(self.units)

    def statistics(self) -> ArmStatistics:
        """Count the rows and add up the rewards of each action, in exact integers."""
        return self._records(np.arange(len(self)))

    def _request_of_users(self, users: list[Hashable]) -> DeletionRequest:
        codes = [self._user_code(user) for user in users]
        if MISSING in codes:
            raise no_rows_of(user for user, code in zip(users, codes, strict=True) if code == MISSING)
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
            return self._code_of_user.get(user, MISSING)
        except TypeError:  # not hashable, so nobody's label
            return MISSING

    @cached_property
    def _code_of_user(self) -> dict[Hashable, int]:
        return {user: code for code, user in enumerate(self.user_labels)}


def _check_lengths(lengths: dict[str, int], names: dict[str, str]) -> None:
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{n} in {names[role]}" for role, n in lengths.items())
        raise InvalidLogError(f"columns must have the same number of rows; got {told}")


def _encoded_actions(
    labels: list[Any], what: str, declared: tuple[Hashable, ...] | None
) -> tuple[tuple[Hashable, ...], IntArray]:
    """Number the actions by their place in the declared set, or in the sorted one if none is declared."""
    codes, seen = encode(labels, what)
    missing = np.flatnonzero(codes == MISSING)
    if missing.size:
        raise rules.missing_actions(what, ((int(row), None) for row in missing))
    actions = checked_actions(sorted_if_comparable(seen)) if declared is None else declared
    position = {action: arm for arm, action in enumerate(actions)}
    arm_of_code = np.array([position.get(label, MISSING) for label in seen])
    arms = arm_of_code[codes]
    undeclared = np.flatnonzero(arms == MISSING)
    if undeclared.size:
        offences = ((int(row), seen[codes[row]]) for row in undeclared)
        raise rules.undeclared_actions(what, offences, actions)
    return actions, arms


def check_rewards(
    rewards: FloatArray, what: str, reward_range: tuple[float, float], positions: Sequence[int]
) -> None:
    """Refuse rewards that are not finite or not in the range; `positions` says where each stands in the log.

    >>> check_rewards(np.array([0.5, 7.0]), "reward", (0.0, 1.0), range(100, 102))
    Traceback (most recent call last):
    armnesia.core.errors.InvalidLogError: reward must lie in reward_range [0.0, 1.0]; got 7.0 at row 101
    """
    low, high = reward_range
    strange = np.flatnonzero(~np.isfinite(rewards))
    if strange.size:
        raise rules.not_finite(what, ((positions[int(row)], float(rewards[row])) for row in strange))
    outside = np.flatnonzero((rewards < low) | (rewards > high))
    if outside.size:
        offences = ((positions[int(row)], float(rewards[row])) for row in outside)
        raise rules.outside_range(what, offences, reward_range)


def reward_numbers(column: Any, what: str, positions: Sequence[int] | None = None) -> FloatArray:
    """Turn rewards into floats, a missing one into NaN; refuse what is not a number, text above all.

    >>> reward_numbers([True, None, 0.25], "reward")
    array([1.  ,  nan, 0.25])
    """
    plain = isinstance(column, np.ndarray) and not isinstance(column, np.ma.MaskedArray)
    if plain and column.ndim == 1 and column.dtype.kind in "biuf":
        return np.asarray(column, dtype=np.float64)
    values = python_values(column, what)
    if set(map(type, values)) <= {float, bool, NoneType}:
        return np.array(values, dtype=np.float64)
    numbers = [_number(value) for value in values]
    if None in numbers:
        rows = range(len(values)) if positions is None else positions
        strange = ((rows[row], values[row]) for row, number in enumerate(numbers) if number is None)
        raise rules.not_numbers(what, strange)
    return np.array(numbers, dtype=np.float64)


def _number(value: Any) -> float | None:
    if isinstance(value, np.bool_ | Decimal | Real):
        try:
            return float(value)
        except OverflowError:  # an integer beyond every float
            return float("inf")
    return float("nan") if is_missing(value) else None
