"""Decisions in memory: dataframes, mappings of columns, Open Bandit Pipeline feedback, and plain arrays.

Dataframes are read through narwhals: pandas, polars, pyarrow and whatever else it supports.
"""

import importlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from armnesia.core.actions import checked_actions
from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError
from armnesia.core.units import to_units
from armnesia.logs import rules
from armnesia.logs.array_log import MISSING, ArrayLog, LabelCodes
from armnesia.logs.columns import Columns
from armnesia.logs.key_columns import KeyCodes
from armnesia.logs.source import CHUNK, RawRows, Selection, Source
from armnesia.logs.values import joined_texts, python_values, sorted_if_comparable

_ARROW_BACKENDS = ("pyarrow", "polars", "pandas")


class FrameSource(Source):
    """A dataframe or a mapping from names to columns; it is in memory, so it cannot be opened again."""

    can_be_reopened: ClassVar[bool] = False

    def __init__(self, frame: Any, columns: Columns, *, whole_rows: bool) -> None:
        self._frame = frame
        self._kind = type(frame).__name__
        whole = whole_rows and columns.id is None
        if isinstance(frame, Mapping):
            found, given = _columns_of_mapping(frame, columns, whole=whole)
        else:
            found, given = _columns_of_frame(frame, columns, whole=whole)
        super().__init__(found, given if whole else None)
        what_of = {name: self.described(role) for role, name in found.named().items()}
        self._columns = {
            name: _sliceable(column, what_of.setdefault(name, f"column {name!r}"))
            for name, column in given.items()
        }
        rules.check_lengths({what_of[name]: len(column) for name, column in self._columns.items()})
        self._others = sorted(name for name in given if name != found.reward) if whole else None
        if is_bandit_feedback(frame):
            if self.n_rows() != frame["n_rounds"]:
                raise InvalidLogError(
                    f"n_rounds must be the number of rows, {self.n_rows()}; got {frame['n_rounds']!r}"
                )
            if found.action == "action":
                self.declared_actions = tuple(range(int(frame["n_actions"])))

    @property
    def description(self) -> Mapping[str, Any]:
        """The kind of dataframe; it cannot be found again."""
        return {"kind": "frame", "location": self._kind, "table": None, "columns": self.columns.to_dict()}

    def with_keys(self, names: tuple[str, ...]) -> Self:
        """The same dataframe, of which key columns are read as well."""
        keyed = super().with_keys(names)
        take = _columns_of_mapping if isinstance(self._frame, Mapping) else _columns_of_frame
        _, given = take(self._frame, keyed.columns, whole=False)
        what_of = {name: rules.described("key", name) for name in names}
        added = {name: _sliceable(given[name], what_of[name]) for name in names}
        keyed._columns = {**self._columns, **added}
        lengths = {what_of[name]: len(column) for name, column in added.items()}
        rules.check_lengths({self.described("reward"): self.n_rows(), **lengths})
        return keyed

    def read_keyed(
        self, actions: tuple[Hashable, ...], reward_range: tuple[float, float], keys: Sequence[KeyCodes]
    ) -> tuple[ArrayLog, list[IntArray]]:
        """Check the columns as a whole, and number the values of the key columns."""
        values = (python_values(self._columns[key.column.name], key.column.described) for key in keys)
        codes = [key.encode(each, range(len(each))) for key, each in zip(keys, values, strict=True)]
        return self.read(actions, reward_range), codes

    def n_rows(self) -> int:
        """Take the length of a column."""
        return len(self._columns[self.columns.reward])

    def distinct_actions(self) -> Iterable[Any]:
        """Collect the distinct actions."""
        found: dict[str | None, Any] = {}
        for first in range(0, self.n_rows(), CHUNK):
            values = self._values(self.columns.action, first, CHUNK)
            texts = rules.label_texts(values, self.described("action"), range(first, first + len(values)))
            for text, value in zip(texts, values, strict=True):
                found.setdefault(text, value)
        return found.values()

    def raw_rows(self, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
        """Cut the columns into chunks, and look for the selected rows in each."""
        for first in range(0, self.n_rows(), chunk):
            values = {name: self._values(name, first, chunk) for name in self._columns}
            raw = raw_rows_of(values, self.columns, first, self._others).selected(selection)
            if raw.positions:
                yield raw

    def read(self, actions: tuple[Hashable, ...] | None, reward_range: tuple[float, float]) -> ArrayLog:
        """Check the columns as a whole; labels stay Python values."""
        names = self.columns.named()
        column_of = {role: self._columns[name] for role, name in names.items()}
        rewards = column_of["reward"]
        rewards = rewards.to_numpy() if hasattr(rewards, "to_numpy") else rewards  # a series of narwhals
        rewards = rules.reward_numbers(rewards, self.described("reward"))
        if not rewards.size:
            raise rules.empty_log()
        declared, arms = self._encoded_actions(python_values(column_of["action"], "action"), actions)
        rules.check_rewards(rewards, self.described("reward"), reward_range, range(rewards.size))
        users, user_codes = LabelCodes(), np.empty(0, np.int64)
        if "user" in names:
            user_codes = users.encode(python_values(column_of["user"], "user"), self.described("user"))
        units = to_units(rewards, reward_range)
        return ArrayLog(
            declared, reward_range, "user" in names, arms, units, user_codes, tuple(users.labels), source=self
        )

    def _encoded_actions(
        self, labels: list[Any], declared: tuple[Hashable, ...] | None
    ) -> tuple[tuple[Hashable, ...], IntArray]:
        """Number the actions by their place in the declared set, or in the sorted one if none is declared."""
        what, seen = self.described("action"), LabelCodes()
        codes = seen.encode(labels, what)
        missing = np.flatnonzero(codes == MISSING)
        if missing.size:
            raise rules.missing_actions(what, ((int(row), None) for row in missing))
        actions = checked_actions(sorted_if_comparable(seen.labels)) if declared is None else declared
        arm_of = {action: arm for arm, action in enumerate(actions)}
        arms = np.array([arm_of.get(label, MISSING) for label in seen.labels])[codes]
        undeclared = np.flatnonzero(arms == MISSING)
        if undeclared.size:
            offences = ((int(row), seen.labels[codes[row]]) for row in undeclared)
            raise rules.undeclared_actions(what, offences, actions)
        return actions, arms

    def _values(self, name: str, first: int, length: int) -> list[Any]:
        return python_values(self._columns[name][first : first + length], name)


class ArraySource(FrameSource):
    """Arrays that were given one by one: they have roles and no names."""

    def __init__(self, arrays: Mapping[str, Any], *, has_users: bool) -> None:
        columns = Columns("action", "reward", "user" if has_users else None)
        super().__init__(arrays, columns, whole_rows=False)

    def described(self, role: str) -> str:
        """Name an array in a message."""
        return role


def is_bandit_feedback(source: Any) -> bool:
    """Tell whether a source is the `bandit_feedback` dictionary of the Open Bandit Pipeline.

    >>> is_bandit_feedback({"n_rounds": 1, "n_actions": 2, "action": [0], "reward": [1]})
    True
    """
    return isinstance(source, Mapping) and {"n_actions", "n_rounds", "action", "reward"} <= set(source)


def raw_rows_of(
    values: Mapping[str, list[Any]], columns: Columns, first: int, others: list[str] | None
) -> RawRows:
    """Put Python values of a chunk together; `others` are the columns of a content, besides the reward.

    >>> raw_rows_of({"a": ["A"], "r": [1], "u": [7.0]}, Columns("a", "r", "u"), 100, ["a", "u"])
    RawRows(positions=range(100, 101), actions=['A'], rewards=[1], users=['7'], ids=None, others=['1:A1:7'],
            keys=[])
    """
    names = columns.named()
    positions = range(first, first + len(values[columns.reward]))
    users, ids = (
        rules.label_texts(values[names[role]], columns.described(role), positions) if role in names else None
        for role in ("user", "id")
    )
    return RawRows(
        positions,
        values[columns.action],
        values[columns.reward],
        [None] * len(positions) if users is None else users,
        ids,
        None if others is None else joined_texts([values[name] for name in others]),
        [values[name] for name in columns.keys],
    )


def _columns_of_mapping(
    source: Mapping[Any, Any], columns: Columns, *, whole: bool
) -> tuple[Columns, dict[str, Any]]:
    found = columns.found_in(list(source))
    names = found.read()
    if whole:
        # Feedback of the Open Bandit Pipeline also holds numbers and tables of actions.
        rounds = source["n_rounds"] if is_bandit_feedback(source) else None
        names = [n for n in source if n in names or rounds is None or _length(source[n]) == rounds]
    return found, {str(name): source[name] for name in names}


def _columns_of_frame(source: Any, columns: Columns, *, whole: bool) -> tuple[Columns, dict[str, Any]]:
    """Take the named columns, or all; a lazy dataframe is asked for these columns only."""
    nw = _narwhals()
    frame = _narwhals_frame(nw, source)
    found = columns.found_in(frame.collect_schema().names())
    chosen = frame if whole else frame.select(found.read())
    if isinstance(chosen, nw.LazyFrame):
        chosen = chosen.collect()
    return found, {name: chosen[name] for name in chosen.columns}


def _sliceable(column: Any, what: str) -> Any:
    """Keep series of narwhals and arrays of numbers, which are fast; make a list of anything else."""
    numeric = type(column) is np.ndarray and column.ndim == 1 and column.dtype.kind in "biuf"
    is_narwhals = type(column).__module__.partition(".")[0] == "narwhals"
    return column if numeric or is_narwhals else python_values(column, what)


def _length(column: Any) -> int | None:
    return len(column) if hasattr(column, "__len__") and not isinstance(column, str) else None


def _narwhals() -> Any:
    try:
        import narwhals  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise MissingExtraError.naming("Reading dataframes", "engines") from error
    return narwhals


def _narwhals_frame(nw: Any, source: Any) -> Any:
    """Wrap a dataframe; one that narwhals does not know is read as an Arrow stream."""
    try:
        return nw.from_native(source)
    except TypeError:
        if hasattr(source, "__arrow_c_stream__"):
            return nw.from_arrow(source, backend=_arrow_backend())
        raise InvalidInputError(
            "source must be a dataframe, a mapping of columns, the path of a CSV or Parquet file, or the URL"
            f" of a database; got {type(source).__name__}"
        ) from None
    except nw.exceptions.DuplicateError as error:
        reason = " ".join(str(error).split())
        raise InvalidLogError(f"source must have distinct column names: {reason}") from None


def _arrow_backend() -> Any:
    for name in _ARROW_BACKENDS:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return name
    raise MissingExtraError(
        f"Reading an Arrow stream needs one of {', '.join(_ARROW_BACKENDS)}: pip install pyarrow"
    )
