"""Decisions in memory: arrays and mappings, whose rows Python adds up without DuckDB; dataframes.

DuckDB reads a dataframe (pandas, polars, Arrow) where it is, and a mapping that is read with conditions.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.identifiers import LARGEST_EXACT
from armnesia.core.messages import listed
from armnesia.core.units import UNIT, to_units
from armnesia.logs import refusals
from armnesia.logs.columns import Columns
from armnesia.logs.engine import Connection, DuckDBConnection
from armnesia.logs.source import IN_MEMORY, Scan, Source, Version
from armnesia.logs.sql import Column, by_name, qualified
from armnesia.logs.statements import Chosen, Tally
from armnesia.logs.values import label_text, number_of, python_values

_FEEDBACK = {"n_actions", "n_rounds", "action", "reward"}
"""What the feedback of the Open Bandit Pipeline always has."""


def actions_of_feedback(source: Mapping[Any, Any]) -> tuple[int, ...] | None:
    """The actions that the feedback of the Open Bandit Pipeline declares; None of any other mapping."""
    return tuple(range(int(source["n_actions"]))) if set(source) >= _FEEDBACK else None


def mapped_columns(source: Mapping[Any, Any]) -> dict[str, Any]:
    """The columns of a mapping; feedback of the Open Bandit Pipeline also holds numbers and tables."""
    if actions_of_feedback(source) is None:
        names = list(map(str, source))
        if len(set(names)) < len(names):  # 1 and "1"
            raise refusals.repeated_column(next(name for name in names if names.count(name) > 1))
        return dict(zip(names, source.values(), strict=True))
    rounds = source["n_rounds"]
    return {
        name: values
        for name, values in source.items()
        if name in ("action", "reward")
        or (hasattr(values, "__len__") and not isinstance(values, str) and len(values) == rounds)
    }


@dataclass(frozen=True, eq=False)
class ArraySource(Source):
    """Columns in memory: lists, arrays, series; their rows are added up one by one."""

    arrays: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> "ArraySource":
        """A mapping from names to columns."""
        given = mapped_columns(location)
        arrays = {name: list(each) if isinstance(each, Iterator) else each for name, each in given.items()}
        return cls("", columns.found_in(list(arrays)), arrays=arrays)

    def version(self) -> Version:
        """What was read is kept."""
        return {}

    def scan(self, connection: Connection) -> Scan:
        """Nothing: DuckDB does not read these columns."""
        raise NotImplementedError

    def column_names(self) -> list[str]:
        """The names of all columns."""
        return list(self.arrays)

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
        texts, units = self._texts, self._units(reward_range)
        rows = [position - 1 for position in positions] or range(len(units))
        if chosen is not None:
            rows = [row for row in rows if texts["user"][row] in chosen.users]
        users = texts["user"] if "user" in by else [None] * len(units)
        labels = list(zip(users, *(texts[role] for role in self._groups), strict=True))
        sums: defaultdict[tuple[str | None, ...], list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for row in rows:
            added, unit = sums[labels[row]], units[row]
            added[0] += 1
            if unit is not None:
                added[1] += unit
                added[2] += 1
                added[3] += unit * (UNIT - unit)
        return [Tally(of[1], of[2:], of[0], None, True, *added) for of, added in sums.items()]

    def first_wrong(
        self, role: str, texts: Collection[str] = (), reward_range: tuple[float, float] = (0.0, 1.0)
    ) -> list[tuple[int, Any]]:
        """The first rows without a label, or with one of these, or with no reward; and the value there."""
        labels = self._units(reward_range) if role == "reward" else self._texts[role]
        rows = zip(range(1, len(labels) + 1), self._values[role], labels, strict=True)
        wrong = set[str | None](texts) or {None}
        return [(row, value) for row, value, label in rows if label in wrong][:4]

    def wrong_names(self, role: str) -> list[tuple[int, Any]]:
        """The first rows with a float that may stand for several integers."""
        rows = enumerate(self._values.get(role, ()), 1)
        floats = ((row, value) for row, value in rows if isinstance(value, float) and math.isfinite(value))
        return [(row, value) for row, value in floats if abs(value) >= LARGEST_EXACT][:4]

    def ranges(self, role: str) -> list[tuple[float, float]]:
        """The lowest and the highest number of a column, for each action and key."""
        groups = list(zip(*(self._texts[each] for each in self._groups), strict=True))
        found: dict[tuple[str | None, ...], list[float]] = {}
        for group, number in zip(groups, map(_number, self._values[role]), strict=True):
            if math.isfinite(number):
                found.setdefault(group, []).append(number)
        return [(min(numbers), max(numbers)) for numbers in found.values()]

    @property
    def _groups(self) -> list[str]:
        """The roles by which rows are always told apart."""
        return ["action", *(f"key_{place}" for place in range(len(self.keys)))]

    @cached_property
    def _values(self) -> dict[str, list[Any]]:
        """The columns that are read, by their roles; refuse columns of different lengths."""
        values = {}
        for role, name in self._named(()).items():
            if name not in self.arrays:
                raise refusals.missing_column(role.partition("_")[0], name, list(self.arrays))
            values[role] = python_values(self.arrays[name], name)
        lengths = {self.described(role): len(each) for role, each in values.items()}
        if len(set(lengths.values())) > 1:
            written = ", ".join(f"{length} in {name}" for name, length in lengths.items())
            raise InvalidLogError(f"columns must have the same number of rows; got {written}")
        return values

    @cached_property
    def _texts(self) -> dict[str, list[str | None]]:
        """The labels of all rows by their roles; of keys with edges, the intervals."""
        texts: dict[str, list[str | None]] = {}
        for role, values in self._values.items():
            key = self.keys[int(role[4:])] if role.startswith("key_") else None
            if key is not None and key.edges:
                texts[role] = [key.interval(_number(value)) for value in values]
            elif not role.startswith(("reward", "where")):
                unusable = [(row, each) for row, each in enumerate(values, 1) if type(each).__hash__ is None]
                if unusable:
                    raise refusals.refused(self.described(role), "must hold single values", unusable)
                texts[role] = list(map(label_text, values))
        return texts

    def _units(self, reward_range: tuple[float, float]) -> list[int | None]:
        """The rewards in units; None where there is no number of the range, or a wrong user."""
        numbers = np.array(list(map(_number, self._values["reward"])), dtype=np.float64)
        is_valid = (numbers >= reward_range[0]) & (numbers <= reward_range[1])
        units = to_units(np.where(is_valid, numbers, reward_range[0]), reward_range).tolist()
        found = [unit if valid else None for unit, valid in zip(units, is_valid.tolist(), strict=True)]
        for row, _ in self.wrong_names("user"):
            found[row - 1] = None
        return found


def _number(value: Any) -> float:
    """The number that a value reads as; NaN where it is missing or no number."""
    number = number_of(value)
    return math.nan if number is None else number


class _Stream:
    """What gives an Arrow stream, and nothing else of it: DuckDB would ask for pyarrow."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._frame.__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, eq=False)
class FrameSource(Source):
    """A dataframe, or columns by name."""

    frame: Any = None
    """An Arrow stream, or the columns by their places."""
    names: tuple[str, ...] = ()
    """Those of the columns, if they are not the stream's own as DuckDB takes them."""
    objects: frozenset[str] = frozenset()
    """Columns with lists or other objects, which are no labels."""

    @classmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> "FrameSource":
        """A dataframe, as a caller has it."""
        frame = location
        if hasattr(frame, "collect"):  # a lazy one of polars
            frame = frame.collect()
        if hasattr(frame, "read_all"):  # an Arrow stream, which can be read once
            frame = frame.read_all()
        is_pandas = type(frame).__module__.partition(".")[0] == "pandas"
        if isinstance(frame, Mapping):
            pairs = list(mapped_columns(frame).items())
        elif is_pandas and hasattr(frame, "iloc") and hasattr(frame, "columns"):
            pairs = [(str(name), frame.iloc[:, at]) for at, name in enumerate(frame.columns)]
        elif hasattr(frame, "__arrow_c_stream__") and not is_pandas:
            names = _names_in(frame)
            repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
            if repeated:  # nothing of such a stream can be read
                raise refusals.repeated_column(repeated[0])
            # DuckDB would read the addresses of polars' objects.
            types = zip(names, getattr(frame, "dtypes", ()), strict=False)
            objects = frozenset(name for name, type_ in types if str(type_) == "Object")
            return cls(IN_MEMORY, columns, frame=_Stream(frame), names=names, objects=objects)
        else:
            raise InvalidInputError(
                "source must be a dataframe, a mapping of columns, the path of CSV or Parquet files, or the"
                f" URL of a database; got {type(location).__name__}"
            )
        held = [_column(values, name) for name, values in pairs]
        lengths = {len(values) for values, _ in held}
        if len(lengths) > 1:
            raise InvalidLogError(f"columns must have the same number of rows; got {listed(sorted(lengths))}")
        by_place = {f"c{at}": values for at, (values, _) in enumerate(held)}
        names = tuple(name for name, _ in pairs)
        objects = frozenset(name for name, (_, is_plain) in zip(names, held, strict=True) if not is_plain)
        return cls(IN_MEMORY, columns, frame=by_place, names=names, objects=objects)

    def scan(self, connection: Connection) -> Scan:
        """The columns as they are in memory."""
        assert isinstance(connection, DuckDBConnection)
        view = f"log_frame_{id(self.frame)}"  # a connection may read several
        connection.register(view, self.frame)
        described = connection.rows(f"DESCRIBE {view}")
        names = self.names or [name for name, *_ in described]
        columns = [
            Column(qualified(name), "lists or other objects" if own in self.objects else type_)
            for own, (name, type_, *_) in zip(names, described, strict=True)
        ]
        return Scan(view, by_name(names, columns))


def _names_in(frame: Any) -> tuple[str, ...]:
    """The names of the columns of a frame: DuckDB gives new ones to those that are there twice.

    polars has them as `columns`, Arrow in its schema.
    """
    for names in (getattr(frame, "columns", None), getattr(getattr(frame, "schema", None), "names", None)):
        if isinstance(names, list) and all(isinstance(name, str) for name in names):
            return tuple(names)
    return ()


def _column(values: Any, name: str) -> tuple[Any, bool]:
    """A column that DuckDB reads as it is: numbers and times of numpy; of anything else the texts.

    Also, whether every value is a single one.
    """
    # Not what other libraries would make of it: integers with a missing value would be floats.
    is_numpy = isinstance(getattr(values, "dtype", None), np.dtype)
    array = values.to_numpy() if is_numpy and hasattr(values, "to_numpy") else values
    if type(array) is np.ndarray and array.ndim == 1 and array.dtype.kind in "biufM":
        whole_seconds = array.dtype.kind == "M" and np.datetime_data(array.dtype)[0] in "YMWDhm"
        # DuckDB has no longer units, and no strides below 0.
        return np.ascontiguousarray(array.astype("datetime64[s]") if whole_seconds else array), True
    given = python_values(values, name)
    if set(map(type, given)) in ({bool}, {int}):
        whole = np.array(given)
        if whole.dtype.kind in "bi":
            return whole, True
    if {float} <= set(map(type, given)) <= {float, type(None)}:
        return np.array(given, dtype=np.float64), True
    is_plain = all(type(each).__hash__ is not None for each in given)
    return np.array(list(map(label_text, given)), dtype=object), is_plain
