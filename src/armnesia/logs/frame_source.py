"""Decisions in dataframes and mappings of columns, taken apart a chunk at a time."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidLogError
from armnesia.logs import rules
from armnesia.logs.columns import python_values
from armnesia.logs.frames import eager_columns, is_bandit_feedback
from armnesia.logs.source import Columns, RawRows, Source
from armnesia.logs.values import heading, joined_texts, label_text, plain_times


class FrameSource(Source):
    """A dataframe, or a mapping from names to columns: in memory, so it cannot be opened again."""

    def __init__(self, frame: Any, columns: Columns) -> None:
        self.columns = columns
        self._kind = type(frame).__name__
        self._columns = (
            _columns_of_mapping(frame, columns.named(), whole=columns.id is None)
            if isinstance(frame, Mapping)
            else eager_columns(frame, columns.named(), whole=columns.id is None)
        )
        others = [name for name in self._columns if name != columns.reward]
        self._others = sorted(others)
        self.heading = heading(columns.reward, others) if columns.id is None else None

    @property
    def description(self) -> Mapping[str, Any]:
        """That it was a dataframe; there is no place to look it up again."""
        return {"kind": "frame", "location": self._kind, "table": None, "columns": vars(self.columns)}

    def n_rows(self) -> int:
        """The length of its columns."""
        return len(self._columns[self.columns.reward])

    def action_labels(self) -> Iterable[Any]:
        """Collect the different actions, chunk by chunk."""
        found: dict[tuple[type, Any], Any] = {}
        for raw in self.raw_rows(50_000, None):
            for action in raw.actions:
                found.setdefault((type(action), label_text(action)), action)
        return found.values()

    def raw_rows(self, chunk: int, user: str | None) -> Iterator[RawRows]:
        """Cut the columns into chunks; a user is looked for in each."""
        for first in range(0, self.n_rows(), chunk):
            cut = {
                name: python_values(column[first : first + chunk], name)
                for name, column in self._columns.items()
            }
            raw = raw_rows_of(cut, self.columns, first, self._others if self.heading is not None else None)
            raw = raw if user is None else of_user(raw, user)
            if raw.positions:
                yield raw


def raw_rows_of(
    values: Mapping[str, list[Any]], columns: Columns, first: int, others: list[str] | None
) -> RawRows:
    """Put Python values of the columns of a chunk together, labels as text; `others` are needed without ids.

    >>> raw_rows_of({"a": ["A"], "r": [1], "u": [7.0]}, Columns("a", "r", "u"), 100, ["a", "u"])
    RawRows(positions=range(100, 101), actions=['A'], rewards=[1], users=['7'], ids=None, others=['1:A1:7'])
    """
    rewards = values[columns.reward]
    return RawRows(
        range(first, first + len(rewards)),
        values[columns.action],
        rewards,
        [None] * len(rewards) if columns.user is None else list(map(label_text, values[columns.user])),
        None if columns.id is None else list(map(label_text, values[columns.id])),
        None if others is None else joined_texts([values[name] for name in others]),
    )


def of_user(raw: RawRows, user: str) -> RawRows:
    """Keep the rows of one user.

    >>> raw = raw_rows_of({"a": ["A", "B"], "r": [1, 0], "u": [7, 8]}, Columns("a", "r", "u"), 100, None)
    >>> of_user(raw, "8").positions
    [101]
    """
    rows = [row for row, text in enumerate(raw.users) if text == user]
    return RawRows(
        [raw.positions[row] for row in rows],
        [raw.actions[row] for row in rows],
        [raw.rewards[row] for row in rows],
        [raw.users[row] for row in rows],
        None if raw.ids is None else [raw.ids[row] for row in rows],
        None if raw.others is None else [raw.others[row] for row in rows],
    )


def _columns_of_mapping(
    source: Mapping[Any, Any], names: dict[str, str], *, whole: bool
) -> dict[str, list[Any]]:
    for role, name in names.items():
        if name not in source:
            raise rules.missing_column(role, name, list(source))
    chosen = list(source) if whole else list(dict.fromkeys(names.values()))
    if whole and is_bandit_feedback(source):  # it holds numbers and tables of actions beside its columns
        rounds = int(source["n_rounds"])
        chosen = [name for name in source if name in names.values() or _length(source[name]) == rounds]
    columns = {str(name): python_values(_plain(source[name]), f"column {name!r}") for name in chosen}
    if len({len(column) for column in columns.values()}) > 1:
        told = ", ".join(f"{len(column)} in {name!r}" for name, column in columns.items())
        raise InvalidLogError(f"columns must have the same number of rows; got {told}")
    return columns


def _plain(column: Any) -> Any:
    return plain_times(column) if isinstance(column, np.ndarray) else column


def _length(column: Any) -> int | None:
    return len(column) if hasattr(column, "__len__") and not isinstance(column, str) else None
