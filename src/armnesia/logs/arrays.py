"""Decisions in Python's memory, without DuckDB: arrays, mappings, Open Bandit Pipeline feedback."""

import math
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.statistics import exact_sums_at, products_of
from armnesia.core.units import to_units
from armnesia.logs import refusals
from armnesia.logs.columns import IF_PRESENT, Columns
from armnesia.logs.conditions import Where, conditions
from armnesia.logs.engine import Connection
from armnesia.logs.keys import KeyColumn
from armnesia.logs.remarks import EXPERIMENT, propensity_columns, vary
from armnesia.logs.source import Scan, Source
from armnesia.logs.statements import Chosen, Tally, Wrong
from armnesia.logs.values import label_text, number_of, python_values

_FEEDBACK = {"n_actions", "n_rounds", "action", "reward"}
"""What the feedback of the Open Bandit Pipeline always has."""


def as_mapping(source: Any) -> Any:
    """Turn a data set of the Open Bandit Pipeline, which has its feedback as attributes, into a mapping."""
    is_feedback = not isinstance(source, Mapping) and all(hasattr(source, name) for name in _FEEDBACK)
    # Asked last: a lazy frame warns when its columns are asked for.
    if not is_feedback or hasattr(source, "columns"):
        return source
    return {**vars(source), **{name: getattr(source, name) for name in _FEEDBACK}}


def mapped_columns(source: Mapping[Any, Any]) -> dict[str, Any]:
    """The columns of a mapping; feedback of the Open Bandit Pipeline also holds numbers and tables."""
    if not set(source) >= _FEEDBACK:
        return {str(name): values for name, values in source.items()}
    rounds = source["n_rounds"]
    return {
        name: values
        for name, values in source.items()
        if name in ("action", "reward")
        or (hasattr(values, "__len__") and not isinstance(values, str) and len(values) == rounds)
    }


@dataclass(frozen=True, eq=False)
class ArraySource(Source):
    """Columns in memory: lists, arrays, series."""

    arrays: Mapping[str, Any] = field(default_factory=dict)
    named: bool = True
    """Whether the columns have names, for messages."""

    @classmethod
    def of_arrays(
        cls, action: Any, reward: Any, user: Any, others: Mapping[str, Any], where: Where | None
    ) -> "ArraySource":
        """Arrays for the roles, and further ones by name."""
        arrays = {"action": action, "reward": reward, **others}
        if user is not None and user is not IF_PRESENT:
            arrays["user"] = user
        for role, values in arrays.items():
            if isinstance(values, str) and role not in others:
                raise InvalidInputError(
                    f"{role} must be an array when there is no source; got the column name {values!r}"
                )
        taken = [name for name in others if name in ("action", "reward", "user")]
        if taken:
            raise InvalidInputError(
                f"columns must have other names than action, reward and user; got {taken[0]!r}"
            )
        columns = Columns("action", "reward", "user" if "user" in arrays else None)
        arrays = {name: list(each) if isinstance(each, Iterator) else each for name, each in arrays.items()}
        found = cls("", columns, where=conditions(where), arrays=arrays, named=False)
        return found._checked()

    @classmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> "ArraySource":
        """A mapping from names to columns; the feedback of the Open Bandit Pipeline declares its actions."""
        arrays = mapped_columns(location)
        found = cls("", columns.found_in(list(arrays)), arrays=arrays)
        if set(location) >= _FEEDBACK and columns.action == "action":
            return replace(found, declared_actions=tuple(range(int(location["n_actions"]))))
        return found

    @property
    def holds_still(self) -> bool:
        """What was read is kept."""
        return True

    def scan(self, connection: Connection) -> Scan:
        """Nothing: DuckDB does not read these columns."""
        raise NotImplementedError

    def _checked(self) -> "ArraySource":
        """Refuse columns of different lengths, and conditions that cannot be evaluated."""
        named = self._named(())
        for role, name in named.items():
            if name not in self.arrays:
                raise refusals.missing_column(role.partition("_")[0], name, list(self.arrays))
        lengths = {self.described(role): len(self._values(name)) for role, name in named.items()}
        if len(set(lengths.values())) > 1:
            written = ", ".join(f"{length} in {name}" for name, length in lengths.items())
            raise InvalidLogError(f"columns must have the same number of rows; got {written}")
        assert self._rows is not None
        return self

    def filtered(self, where: Where | None) -> "ArraySource":
        """The same columns, of which only some rows are read."""
        return replace(self, where=conditions(where))._checked()

    def described(self, role: str) -> str:
        """Name a column in a message."""
        kind = role.partition("_")[0]
        return refusals.described(kind, self._named(())[role]) if self.named or kind == "where" else kind

    def type_of(self, role: str) -> str:
        """What a column holds: "integer", "boolean" or "other"."""
        types = set(map(type, python_values(self._values(self._named(())[role]), role))) - {type(None)}
        return "boolean" if types == {bool} else "integer" if types == {int} else "other"

    def keyed_by(self, keys: tuple[KeyColumn, ...]) -> "ArraySource":
        """The same columns with key columns."""
        return super().keyed_by(keys)._checked() if keys else self

    def tallies(
        self,
        reward_range: tuple[float, float],
        *,
        chosen: Chosen | None = None,
        others: bool = False,
        by: Collection[str] = (),
        positions: Sequence[int] = (),
    ) -> list[Tally]:
        """Add up the rows; see `Reading.tallies`."""
        rows = np.array(positions, dtype=np.int64) - 1 if len(positions) else self._rows
        if chosen is not None:
            texts, codes = self._labels("user")
            wanted = np.array([text in chosen.users for text in texts], dtype=bool)
            rows = rows[wanted[codes[rows]]]
        parts = [self._labels("action"), *(self._key(place) for place in range(len(self.keys)))]
        parts += [self._labels(role) for role in by]
        numbers, _ = self._numbers(self.columns.reward)
        is_valid = (numbers >= reward_range[0]) & (numbers <= reward_range[1])
        units = np.zeros(len(numbers), dtype=np.int64)
        units[is_valid] = to_units(numbers[is_valid], reward_range)
        # One number for each combination of labels.
        group = np.zeros(len(rows), dtype=np.int64)
        for texts, codes in parts:
            _, group = np.unique(group * len(texts) + codes[rows], return_inverse=True)
        firsts = np.unique(group, return_index=True)[1]
        n_groups = len(firsts)
        sums = [
            np.bincount(group, minlength=n_groups),
            exact_sums_at((n_groups,), group, units[rows]),
            np.bincount(group, is_valid[rows], minlength=n_groups),
            exact_sums_at((n_groups,), group, products_of(units[rows])),
        ]
        found = []
        for place, first in enumerate(firsts):
            action, *labels = [texts[codes[rows[first]]] for texts, codes in parts]
            key, rest = tuple(labels[: len(self.keys)]), dict(zip(by, labels[len(self.keys) :], strict=True))
            number, total, valid, products = (int(each[place]) for each in sums)
            found.append(Tally(action, key, rest.get("user"), None, True, number, total, valid, products))
        return found

    def first_wrong(
        self,
        role: str,
        fault: Wrong,
        reward_range: tuple[float, float] = (0.0, 1.0),
        texts: Collection[str] = (),
    ) -> list[tuple[int, Any]]:
        """The first rows with a fault in a column, and the value there."""
        name, rows = self._named(())[role], self._rows
        values = python_values(self._values(name), role)
        if fault in (Wrong.MISSING, Wrong.UNDECLARED):
            labels, codes = self._labels_of(name)
            looked_for = set(texts) if fault is Wrong.UNDECLARED else {None}
            wrong = np.array([text in looked_for for text in labels], dtype=np.bool_)[codes[rows]]
        else:
            numbers, is_number = self._numbers(name)
            low, high = reward_range
            wrong = {
                Wrong.NO_NUMBER: ~is_number,
                Wrong.NOT_FINITE: ~np.isfinite(numbers),
                Wrong.OUTSIDE: (numbers < low) | (numbers > high),
            }[fault][rows]
            values = values if fault is Wrong.NO_NUMBER else numbers.tolist()
        return [(int(row) + 1, values[row]) for row in rows[np.flatnonzero(wrong)[:4]]]

    def varying_propensity(self) -> str | None:
        """A column of propensities that differ among the rows of an action and key; None if there is none."""
        for name in propensity_columns(set(self.arrays) - set(self.columns.named().values())):
            numbers, is_number = self._numbers(name)
            ranges: dict[Hashable, tuple[float, float]] = {}
            parts = [self._labels("action"), *(self._key(place) for place in range(len(self.keys)))]
            for row in self._rows[np.isfinite(numbers[self._rows])].tolist():
                low, high = ranges.get(group := tuple(codes[row] for _, codes in parts), (np.inf, -np.inf))
                ranges[group] = min(low, float(numbers[row])), max(high, float(numbers[row]))
            if is_number.all() and vary(ranges.values()):
                return name
        return None

    def mixes_experiments(self) -> bool:
        """Whether rows of several experiments are read as one decision."""
        if EXPERIMENT not in self.arrays or EXPERIMENT in {key.name for key in self.keys}:
            return False
        texts, codes = self._labels_of(EXPERIMENT)
        return len({texts[code] for code in codes[self._rows]} - {None}) > 1

    def _values(self, name: str) -> Any:
        """A column: an array of numbers as it is, anything else as a list."""
        values = self.arrays[name]
        is_plain = type(values) is np.ndarray and values.ndim == 1 and values.dtype.kind in "biuf"
        return values if is_plain else python_values(values, name)

    @cached_property
    def _rows(self) -> IntArray:
        """The places of the rows that satisfy the conditions; a condition sees what those before it left."""
        rows = np.arange(len(self._values(self.columns.action)))
        for condition in self.where:
            values = python_values(self._values(condition.column), condition.column)
            held = [condition.is_satisfied(values[row]) for row in rows]
            if None in held:
                wrong = (
                    (int(row) + 1, values[row]) for row, each in zip(rows, held, strict=True) if each is None
                )
                raise condition.no_numbers((row, label_text(value)) for row, value in wrong)
            rows = rows[np.array(held, dtype=bool)]
        return rows

    def _labels(self, role: str) -> "Labels":
        return self._labels_of(self._named(())[role])

    def _labels_of(self, name: str) -> "Labels":
        """The texts of a column, and which of them each row has."""
        if name not in self._known:
            values = self._values(name)
            if isinstance(values, np.ndarray):
                distinct, codes = np.unique(values, return_inverse=True)
                self._known[name] = list(map(label_text, distinct)), codes.reshape(-1)
                return self._known[name]
            unusable = [(row, each) for row, each in enumerate(values, 1) if type(each).__hash__ is None]
            if unusable:
                roles = {column: role for role, column in self._named(()).items()}
                what = self.described(roles[name]) if name in roles else name
                raise refusals.refused(what, "must hold single values", unusable)
            texts: dict[str | None, int] = {}
            found = [texts.setdefault(label_text(each), len(texts)) for each in values]
            self._known[name] = list(texts), np.array(found, dtype=np.int64)
        return self._known[name]

    def _key(self, place: int) -> "Labels":
        key = self.keys[place]
        if not key.edges:
            return self._labels_of(key.name)
        numbers, _ = self._numbers(key.name)
        places = np.searchsorted(key.edges, numbers, side="right")
        places[np.isnan(numbers)] = len(key.intervals)
        return [*key.intervals, None], places

    def _numbers(self, name: str) -> tuple[FloatArray, Any]:
        """A column as floats, NaN where it is missing or no number; and where it is one, or missing."""
        values = self._values(name)
        if isinstance(values, np.ndarray):
            return values.astype(np.float64), np.ones(len(values), dtype=bool)
        numbers = [_number(value) for value in values]
        is_number = np.array([number is not None for number in numbers], dtype=bool)
        return np.array([math.nan if each is None else each for each in numbers], dtype=np.float64), is_number

    @cached_property
    def _known(self) -> dict[str, "Labels"]:
        return {}


Labels: TypeAlias = tuple[list[str | None], IntArray]


def _number(value: Any) -> float | None:
    """A reward as a float, NaN where it is missing; None for text, and what else is no number."""
    return None if isinstance(value, str | bytes) else number_of(value)
