"""Decisions in memory: dataframes, mappings of columns, Open Bandit Pipeline feedback, and plain arrays."""

import copy
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from typing import Any, Self

import numpy as np

from armnesia.core.actions import checked_actions
from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidLogError
from armnesia.core.units import to_units
from armnesia.logs import rules
from armnesia.logs.array_log import MISSING, ArrayLog, LabelCodes
from armnesia.logs.columns import Columns
from armnesia.logs.conditions import Condition, rows_that_satisfy
from armnesia.logs.frames.columns import (
    FrameColumns,
    MappingColumns,
    as_mapping,
    exact_below,
    is_bandit_feedback,
    rows_of_column,
    sliceable,
)
from armnesia.logs.key_columns import KeyCodes
from armnesia.logs.limits import LONGEST_TEXT, in_chunks, is_longer
from armnesia.logs.propensities import Ranges
from armnesia.logs.rows import RawRows, Selection, raw_rows_of
from armnesia.logs.source import IN_MEMORY, Source, joined
from armnesia.logs.values import (
    label_text,
    python_values,
    sorted_if_comparable,
    with_decimals_as_written,
)

_PIECE = 2048
"""How many rows become Python values at a time."""


class FrameSource(Source):
    """A dataframe or a mapping from names to columns; it is in memory, so it cannot be opened again."""

    def __init__(self, frame: Any, columns: Columns, *, table: str | None, whole_rows: bool) -> None:
        rules.refuse_table(table)
        self._kind = type(frame).__name__
        frame = as_mapping(frame)
        wrapped: MappingColumns | FrameColumns = (
            MappingColumns(frame) if isinstance(frame, Mapping) else FrameColumns(frame)
        )
        super().__init__(columns, wrapped.names(), whole_rows=whole_rows)
        self._wrapped = wrapped
        named = self.columns.named()
        chosen = list(dict.fromkeys(wrapped.names() if self.reads_whole_rows else named.values()))
        self._load(chosen)
        self.user_integers_below = exact_below(self._columns.get(named.get("user", "")))
        self._others = sorted(set(chosen) - {self.columns.reward}) if self.reads_whole_rows else None
        if is_bandit_feedback(frame):
            if self.n_rows() != frame["n_rounds"]:
                raise InvalidLogError(
                    f"n_rounds must be the number of rows, {self.n_rows()}; got {frame['n_rounds']!r}"
                )
            if self.columns.action == "action":
                self.declared_actions = tuple(range(int(frame["n_actions"])))

    @property
    def description(self) -> Mapping[str, Any]:
        """The kind of dataframe; it cannot be found again."""
        place = {"kind": IN_MEMORY, "location": self._kind, "table": None}
        return {**place, "columns": vars(self.columns), **self.described_filter()}

    def _load(self, names: Sequence[str]) -> None:
        """Take these columns and the propensities, of the rows that satisfy the conditions.

        All of them at once: a lazy frame may give its rows in another order when it is asked again.
        """
        compared = [condition.column for condition in self.where]
        given = self._wrapped.columns(dict.fromkeys([*names, *compared, *self._propensities]))
        role_of = {name: role for role, name in self.columns.named().items()}
        role_of |= {name: "where" for name in compared if name not in role_of}
        role_of |= {name: "key" for name in self.keys if name not in role_of}
        what_of = {name: self._what(role, name) for name, role in role_of.items()}
        columns = {
            name: sliceable(given[name], what_of.setdefault(name, f"column {name!r}"))
            for name in dict.fromkeys([*names, *compared])
        }
        rules.check_lengths({what_of[name]: len(column) for name, column in columns.items()})
        self._columns = columns
        self._positions: Sequence[int] = range(len(columns[self.columns.reward]))
        self._propensity_of = {name: given[name] for name in self._propensities}
        if self.where:
            kept = self._places_kept()
            self._columns = {name: rows_of_column(columns[name], kept) for name in names}
            self._positions = kept

    def _what(self, role: str, name: str) -> str:
        """Name a column in a message."""
        return self.described(role) if role in self.columns.named() else rules.described(role, name)

    def _places_kept(self) -> list[int]:
        """The rows that satisfy the conditions."""
        compared = dict.fromkeys(condition.column for condition in self.where)
        kept: list[int] = []
        for pieces in zip(*map(self._pieces, compared), strict=True):
            first, values = pieces[0][0], dict(zip(compared, (piece for _, piece in pieces), strict=True))
            positions = range(first, first + len(pieces[0][1]))
            kept += [positions[place] for place in rows_that_satisfy(self.where, values, positions)]
        return kept

    def filtered(self, where: tuple[Condition, ...]) -> Self:
        """The same dataframe without the rows that do not satisfy these conditions."""
        rules.check_found("where", [condition.column for condition in where], self._wrapped.names())
        chosen = copy.copy(self)
        chosen.where = (*self.where, *where)
        chosen._load(list(self._columns))
        return chosen

    def with_keys(self, names: tuple[str, ...]) -> Self:
        """The same dataframe, of which key columns are read as well."""
        keyed = super().with_keys(names)
        rules.check_found("key", names, self._wrapped.names())
        keyed._load(list(dict.fromkeys([*self._columns, *names])))
        return keyed

    def read_keyed(
        self, actions: tuple[Hashable, ...], reward_range: tuple[float, float], keys: Sequence[KeyCodes]
    ) -> tuple[ArrayLog, list[IntArray]]:
        """Check the columns as a whole, and number the values of the key columns."""
        log = self.read(actions, reward_range)
        codes = []
        for key in keys:
            pieces = self._pieces(key.column.name)
            parts = [key.encode(values, self._positions[first:][: len(values)]) for first, values in pieces]
            codes.append(joined(parts))
        return log, codes

    def n_rows(self) -> int:
        """Take the length of a column."""
        return len(self._columns[self.columns.reward])

    def distinct_actions(self) -> Iterable[Any]:
        """Collect the distinct actions."""
        found: dict[str | None, Any] = {}
        what = self.described("action")
        for first, values in self._pieces(self.columns.action):
            positions = self._positions[first : first + len(values)]
            texts = rules.label_texts(values, what, positions)
            rules.check_label_lengths(texts, what, positions)
            for text, value in zip(texts, values, strict=True):
                found.setdefault(text, value)
        return found.values()

    def raw_rows(self, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
        """Cut the columns into chunks, and look for the selected rows in each."""
        first = 0
        for rows in in_chunks(self._rows(), chunk):
            values = dict(zip(self._columns, map(list, zip(*rows, strict=True)), strict=True))
            positions = self._positions[first : first + len(rows)]
            raw = raw_rows_of(values, self.columns, positions, self._others, self.keys).selected(selection)
            first += len(rows)
            if raw.positions:
                yield raw

    def user_texts(self) -> Iterator[list[str | None]]:
        """Cut the user column into chunks."""
        user, what = self.columns.named()["user"], self.described("user")
        for first, values in self._pieces(user):
            yield rules.label_texts(values, what, self._positions[first : first + len(values)])

    def propensity_ranges(self, name: str) -> Iterable[tuple[float | None, float | None]]:
        """Take those of each action and key; none if the column does not hold numbers."""
        column = self._propensity_of[name]
        column = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
        if column.dtype == object and all(isinstance(value, Real | None) for value in column):
            column = column.astype(np.float64)  # None becomes NaN
        if column.ndim != 1 or column.dtype.kind not in "biuf":
            return []
        if self.where and len(column) > max(self._positions, default=-1):
            column = column[self._positions]
        if len(column) != self.n_rows():
            return []
        actions, groups, ranges = LabelCodes(), LabelCodes(), Ranges()
        names = [self.columns.action, *(key.name for key in self.key_columns)]
        for (first, values), *keyed in zip(*map(self._pieces, names), strict=True):
            codes = actions.encode(values, self.described("action"))
            if keyed:
                keys = zip(self.key_columns, keyed, strict=True)
                texts = [map(key.text_of, key_values) for key, (_, key_values) in keys]
                codes = groups.encode(list(zip(codes.tolist(), *texts, strict=True)), "key")
            propensities = column[first : first + len(values)].astype(np.float64)
            known = np.isfinite(propensities)
            found, places = np.unique(codes[known], return_inverse=True)
            low, high = np.full(len(found), np.inf), np.full(len(found), -np.inf)
            np.minimum.at(low, places, propensities[known])
            np.maximum.at(high, places, propensities[known])
            for group in zip(found.tolist(), low.tolist(), high.tolist(), strict=True):
                ranges.include(*group)
        return list(ranges.values())

    def read(self, actions: tuple[Hashable, ...] | None, reward_range: tuple[float, float]) -> ArrayLog:
        """Check the columns as a whole; labels stay Python values."""
        names = self.columns.named()
        column_of = {role: self._columns[name] for role, name in names.items()}
        rewards = column_of["reward"]
        rewards = rewards.to_numpy() if hasattr(rewards, "to_numpy") else rewards  # a series of narwhals
        rewards = rules.reward_numbers(rewards, self.described("reward"), self._positions)
        if not rewards.size:
            raise rules.empty_log(self.where)
        declared, arms = self._encoded_actions(actions)
        rules.check_rewards(rewards, self.described("reward"), reward_range, self._positions)
        users, user_codes = LabelCodes(), np.empty(0, np.int64)
        if "user" in names:
            user_codes = self._encoded("user", users)
        units = to_units(rewards, reward_range)
        return ArrayLog(
            declared, reward_range, "user" in names, arms, units, user_codes, tuple(users.labels), source=self
        )

    def _encoded_actions(
        self, declared: tuple[Hashable, ...] | None
    ) -> tuple[tuple[Hashable, ...], IntArray]:
        """Number the actions by their place in the declared set, or in the sorted one if none is declared."""
        what, seen = self.described("action"), LabelCodes()
        codes = self._encoded("action", seen)
        missing = np.flatnonzero(codes == MISSING)
        if missing.size:
            raise rules.missing_actions(what, ((self._positions[int(row)], None) for row in missing))
        actions = checked_actions(sorted_if_comparable(seen.labels)) if declared is None else declared
        arm_of = {action: arm for arm, action in enumerate(actions)}
        arms = np.array([arm_of.get(label, MISSING) for label in seen.labels])[codes]
        undeclared = np.flatnonzero(arms == MISSING)
        if undeclared.size:
            offences = ((self._positions[int(row)], seen.labels[codes[row]]) for row in undeclared)
            raise rules.undeclared_actions(what, offences, actions)
        return actions, arms

    def _encoded(self, role: str, seen: LabelCodes) -> IntArray:
        """Number the labels of a column, a piece at a time: Python values take more memory than numbers."""
        what, parts = self.described(role), []
        for first, values in self._pieces(self.columns.named()[role]):
            n_known = len(seen.labels)
            positions = self._positions[first : first + len(values)]
            parts.append(seen.encode(values, what, positions))
            long = [n for n, label in enumerate(seen.labels[n_known:], n_known) if _is_long(label)]
            if long:
                raise rules.long_label(what, positions[int(np.argmax(parts[-1] == long[0]))])
        return joined(parts)

    def _pieces(self, name: str) -> Iterator[tuple[int, list[Any]]]:
        """Make Python values of a column, a few rows at a time, with the position of the first."""
        column = self._columns[name]
        for first in range(0, self.n_rows(), _PIECE):
            values = python_values(column[first : first + _PIECE], name)
            yield first, with_decimals_as_written(values) if self.decimals_as_written else values

    def _rows(self) -> Iterator[list[tuple[Any, ...]]]:
        """Make Python values of all columns, a few rows at a time."""
        for pieces in zip(*map(self._pieces, self._columns), strict=True):
            yield list(zip(*(values for _, values in pieces), strict=True))


class ArraySource(FrameSource):
    """Arrays that were given one by one: they have roles and no names."""

    def __init__(self, arrays: Mapping[str, Any], *, has_users: bool) -> None:
        columns = Columns("action", "reward", "user" if has_users else None)
        super().__init__(arrays, columns, table=None, whole_rows=False)

    def described(self, role: str) -> str:
        """Name an array in a message."""
        return role


def _is_long(label: Any) -> bool:
    return isinstance(label, str | bytes) and is_longer(label_text(label), LONGEST_TEXT)
