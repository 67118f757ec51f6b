"""Decisions in CSV and Parquet files, streamed by DuckDB."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from armnesia.logs.files import open_files
from armnesia.logs.source import Columns, RawRows, Source
from armnesia.logs.values import LARGEST_EXACT, heading
from armnesia.logs.view import DecisionView

_FLOATS = ("FLOAT", "DOUBLE")
_MOMENTS = {
    "TIMESTAMP WITH TIME ZONE": "make_timestamp(epoch_us({}))",
    "TIMESTAMPTZ_NS": "make_timestamp_ns(epoch_ns({}))",
}
"""The types of times with a zone, and the same moment in UTC."""


class FileSource(Source):
    """CSV or Parquet files, by a path or glob; a glob's files follow each other in sorted order."""

    def __init__(self, path: str | os.PathLike[str], columns: Columns) -> None:
        self.columns = columns
        self._location = os.path.abspath(os.path.expanduser(os.fspath(path)))
        wanted = None if columns.id is None else set(columns.named().values())
        self._files = open_files(self._location, wanted)
        self._view = DecisionView(self._files, columns.named(), (0.0, 1.0))
        self._label_of = {role: self._view.label(role) for role in columns.labels()}
        self._view.reward()  # refuses at once a column that cannot hold rewards
        self._reward_column = self._files.position_of("reward", columns.reward)
        others = [name for at, (name, _) in enumerate(self._files.columns) if at != self._reward_column]
        self.heading = heading(columns.reward, others) if columns.id is None else None

    @property
    def description(self) -> Mapping[str, Any]:
        """The path or glob, from the root."""
        return {
            "kind": "file",
            "location": self._location,
            "table": None,
            "columns": vars(self.columns),
        }

    def n_rows(self) -> int | None:
        """A Parquet file knows; a CSV file would have to be read."""
        if self._files.format.delimiter is not None:
            return None
        ((number,),) = self._files.query(f"SELECT count(*) FROM {self._files.table}")
        return int(number)

    def action_labels(self) -> Iterable[Any]:
        """Ask DuckDB for the different actions, in an order that does not depend on its threads."""
        sql = f"SELECT DISTINCT {self._label_of['action']} AS label FROM {self._files.table} ORDER BY label"
        return [label for (label,) in self._files.query(sql)]

    def raw_rows(self, chunk: int, user: str | None) -> Iterator[RawRows]:
        """Stream the rows in the order of the files."""
        selected = ", ".join(self._expressions())
        if user is None:
            first = 0
            for rows in self._files.stream(f"SELECT {selected} FROM {self._files.table}", chunk):
                yield self._raw(range(first, first + len(rows)), rows)
                first += len(rows)
            return
        # Numbered before they are chosen: a message must name the row of the file.
        numbered = f"SELECT *, row_number() OVER () - 1 AS position FROM {self._files.table}"
        of_user = f"SELECT {selected}, position FROM ({numbered}) WHERE user_text = $user"
        for rows in self._files.stream(of_user, chunk, user=user):
            yield self._raw([row[-1] for row in rows], [row[:-1] for row in rows])

    def _expressions(self) -> Iterator[str]:
        """The columns of `_raw`, in SQL."""
        reward = self._view.reward()
        yield self._label_of["action"]
        yield reward
        yield f"CASE WHEN {reward} IS NULL THEN CAST(c{self._reward_column} AS VARCHAR) END"
        for role in ("user", "id"):
            name = self.columns.named().get(role)
            text = "NULL" if name is None else self._text(self._files.position_of(role, name))
            yield f"{text} AS {role}_text"
        if self.heading is not None:
            names = [name for name, _ in self._files.columns]
            order = sorted((name, at) for at, name in enumerate(names) if at != self._reward_column)
            sizes = [
                f"coalesce(length({text}) || ':' || {text}, '-')"
                for _, at in order
                for text in [self._text(at)]
            ]
            yield f"concat({', '.join(sizes)})"

    def _raw(self, positions: range | list[int], rows: list[tuple[Any, ...]]) -> RawRows:
        actions, rewards, strange, users, ids, *others = (list(column) for column in zip(*rows, strict=True))
        if strange.count(None) < len(strange):
            rewards = [value if text is None else text for value, text in zip(rewards, strange, strict=True)]
        return RawRows(
            positions,
            actions,
            rewards,
            users,
            None if self.columns.id is None else ids,
            others[0] if others else None,
        )

    def _text(self, position: int) -> str:
        """Write a column as text in SQL, as `label_text` writes it in Python."""
        column, type_ = f"c{position}", self._files.columns[position][1]
        plain = f"CAST({column} AS VARCHAR)"
        if type_ == "BOOLEAN":
            return f"CASE WHEN {column} THEN 'True' WHEN NOT {column} THEN 'False' END"
        if type_ in _FLOATS:
            number = f"CAST({column} AS DOUBLE)"
            whole = f"{number} = trunc({number}) AND abs({number}) < {LARGEST_EXACT}"
            return (
                f"CASE WHEN isnan({column}) THEN NULL"
                f" WHEN {whole} THEN CAST(CAST({number} AS BIGINT) AS VARCHAR)"
                f" ELSE CAST({number} AS VARCHAR) END"
            )
        if type_.startswith("DECIMAL") and not type_.endswith("]"):
            whole = f"{column} = trunc({column})"
            return f"CASE WHEN {whole} THEN CAST(CAST({column} AS HUGEINT) AS VARCHAR) ELSE {plain} END"
        if type_ in _MOMENTS:  # not through DuckDB's text, which is in the zone of the machine
            return f"CAST({_MOMENTS[type_].format(column)} AS VARCHAR) || '+00:00'"
        if type_ == "TIME WITH TIME ZONE":  # whose hours are written without minutes
            return f"regexp_replace({plain}, '([+-][0-9][0-9])$', '\\1:00')"
        return plain
