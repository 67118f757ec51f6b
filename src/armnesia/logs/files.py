"""Decisions in CSV and Parquet files: aggregated by DuckDB for a log, streamed by it for a vault.

A log stays in its files. Rewards become units before they are added: a sum of floats depends on the order of
addition, which differs from run to run when several threads read; a sum of integers does not.
"""

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from armnesia.core.actions import checked_actions
from armnesia.core.errors import InvalidLogError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.logs import rules
from armnesia.logs.columns import Columns
from armnesia.logs.decisions import Decisions
from armnesia.logs.duckdb_values import FileColumn
from armnesia.logs.file_decisions import FileDecisions, interval_sql
from armnesia.logs.file_formats import open_files
from armnesia.logs.key_columns import KeyColumn
from armnesia.logs.log import Log
from armnesia.logs.source import RawRows, Selection, Source
from armnesia.logs.values import arm_of_text, label_text, sorted_if_comparable

# The arithmetic of armnesia.core.units.to_units, operation by operation, in float64 and with ties to even.
_UNITS = (
    "CASE WHEN reward BETWEEN $low AND $high"
    f" THEN CAST(round_even((reward - $low) / ($high - $low) * {UNIT}::DOUBLE, 0) AS BIGINT) END"
)
_TALLY = f"count(*), sum(units), bool_and(units IN (0, {UNIT}))"


class FileSource(Source):
    """CSV or Parquet files, by a path or glob; a glob's files follow each other in sorted order."""

    def __init__(self, path: str | os.PathLike[str], columns: Columns, *, whole_rows: bool) -> None:
        self._location = os.path.abspath(os.path.expanduser(os.fspath(path)))
        whole = whole_rows and columns.id is None
        self._files = open_files(path, None if whole else columns.wanted())
        names = [name for name, _ in self._files.columns]
        super().__init__(columns.found_in(names), names if whole else None)
        is_text = self._files.format.delimiter is not None
        every = [FileColumn(f"c{at}", type_, is_text) for at, (_, type_) in enumerate(self._files.columns)]
        self._column_of: dict[str, FileColumn] = {}
        for role, name in self.columns.named().items():
            if names.count(name) > 1:
                raise InvalidLogError(f"{self.described(role)} is in the source more than once")
            self._column_of[role] = every[names.index(name)]
            self._column_of[role].check(role, self.described(role))
        in_order = [every[at] for at in sorted(range(len(names)), key=names.__getitem__)]
        self._others = [c for c in in_order if c != self._column_of["reward"]] if whole else None
        self._keys: tuple[tuple[FileColumn, KeyColumn], ...] = ()

    def keyed_by(self, keys: tuple[KeyColumn, ...]) -> Self:
        """The same files with key columns; refuse files that have changed."""
        keyed = super().with_keys(tuple(key.name for key in keys))
        keyed._files = open_files(self._location, keyed.columns.wanted())
        if (keyed._files.paths, keyed._files.stamps) != (self._files.paths, self._files.stamps):
            raise InvalidLogError(
                f"source {self._location!r} has changed since the log was read; read it again"
            )
        names = [name for name, _ in keyed._files.columns]
        keyed.columns.found_in(names)
        is_text = keyed._files.format.delimiter is not None
        columns = []
        for key in keys:
            if names.count(key.name) > 1:
                raise InvalidLogError(f"{key.described} is in the source more than once")
            place = names.index(key.name)
            columns.append(FileColumn(f"c{place}", keyed._files.columns[place][1], is_text))
            columns[-1].check("reward" if key.edges else "key", key.described)
        keyed._keys = tuple(zip(columns, keys, strict=True))
        return keyed

    @property
    def description(self) -> Mapping[str, Any]:
        """The absolute path or glob."""
        return {"kind": "file", "location": self._location, "table": None, "columns": self.columns.to_dict()}

    def n_rows(self) -> int | None:
        """Ask a Parquet file, which knows; a CSV file would have to be read."""
        if self._files.format.delimiter is not None:
            return None
        ((number,),) = self._files.query(f"SELECT count(*) FROM {self._files.table}")
        return int(number)

    def distinct_actions(self) -> Iterable[Any]:
        """Ask DuckDB for the distinct actions, in an order that does not depend on its threads."""
        label = self._column_of["action"].label()
        sql = f"SELECT DISTINCT {label} AS label FROM {self._files.table} ORDER BY label"
        return [label for (label,) in self._files.query(sql)]

    def raw_rows(self, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
        """Stream the rows in the order of the files."""
        columns = ", ".join(self._streamed())
        if selection is None:
            first = 0
            for rows in self._files.stream(f"SELECT {columns} FROM {self._files.table}", chunk):
                yield self._raw(range(first, first + len(rows)), rows)
                first += len(rows)
            return
        # Numbered before they are selected: a message must name the row of the file.
        numbered = f"SELECT *, row_number() OVER () - 1 AS position FROM {self._files.table}"
        condition = f"{selection.role}_text IN (SELECT unnest($texts))"
        sql = f"SELECT {columns}, position FROM ({numbered}) WHERE {condition} ORDER BY position"
        for rows in self._files.stream(sql, chunk, texts=sorted(selection.texts)):
            yield self._raw([row[-1] for row in rows], [row[:-1] for row in rows])

    def read(self, actions: tuple[Hashable, ...] | None, reward_range: tuple[float, float]) -> Log:
        """Check every row by one group-by, which also gives the statistics."""
        declared = None if actions is None else arm_of_text(actions)
        found = self.query(
            "SELECT action_label, count(*), sum(units), count(*) - count(units)"
            " FROM decisions GROUP BY action_label",
            reward_range,
        )
        if not found:
            raise rules.empty_log()
        what = self.described("action")
        labels = [label for label, *_ in found if label is not None]
        if len(labels) < len(found):
            offences = self._first_rows("NULL", "action_text IS NULL", reward_range)
            raise rules.missing_actions(what, offences)
        if actions is None:
            actions = checked_actions(sorted_if_comparable(labels))
        arm_of = declared or arm_of_text(actions)
        undeclared = [text for text in map(label_text, labels) if text not in arm_of]
        if undeclared:
            condition = "action_text IN (SELECT unnest($texts))"
            offences = self._first_rows("action_label", condition, reward_range, texts=undeclared)
            raise rules.undeclared_actions(what, offences, actions)
        if any(refused for *_, refused in found):
            raise self._refused_rewards(reward_range)
        totals = _statistics(((label, n, total) for label, n, total, _ in found), actions, reward_range)
        return FileLog(actions, reward_range, self.columns.user is not None, self, totals)

    def query(self, sql: str, reward_range: tuple[float, float], **parameters: Any) -> list[tuple[Any, ...]]:
        """Run SQL that reads from `decisions`, or from `numbered`, which adds the position of a row.

        A decision has action_label, action_text, reward, reward_text, units and, if there is a user column,
        user_label and user_text; with key columns also key_0, key_0_text, key_1, …. A label is NULL where it
        is missing; `units` is NULL where the reward is not a number of the range. Numbering
        reads the files in order; leave it out where order does not matter.
        """
        reward = self._column_of["reward"]
        expressions = {"reward": reward.reward(), "reward_text": f"CAST({reward.name} AS VARCHAR)"}
        for role in self._column_of.keys() - {"reward"}:
            expressions[f"{role}_label"] = self._column_of[role].label()
            expressions[f"{role}_text"] = self._column_of[role].text()
        for place, (column, key) in enumerate(self._keys):
            expressions[f"key_{place}_text"] = column.text()
            expressions[f"key_{place}"] = interval_sql(key, column.reward()) if key.edges else column.text()
        columns = ", ".join(f"{expression} AS {name}" for name, expression in expressions.items())
        low, high = reward_range
        return self._files.query(
            f"WITH parsed AS (SELECT {columns} FROM {self._files.table}),"
            f" decisions AS (SELECT *, {_UNITS} AS units FROM parsed),"
            f" numbered AS (SELECT *, row_number() OVER () - 1 AS position FROM decisions) {sql}",
            low=low,
            high=high,
            **parameters,
        )

    def _first_rows(
        self, value: str, condition: str, reward_range: tuple[float, float], **parameters: Any
    ) -> list[tuple[int, Any]]:
        """Find the first rows that satisfy a condition, and the value of a column there."""
        sql = f"SELECT position, {value} FROM numbered WHERE {condition} ORDER BY position LIMIT 4"
        return [(row, found) for row, found in self.query(sql, reward_range, **parameters)]

    def _refused_rewards(self, reward_range: tuple[float, float]) -> InvalidLogError:
        """Name the first refused rewards: those that are no numbers, else not finite, else out of range."""
        what = self.described("reward")
        not_numbers = "reward IS NULL AND reward_text IS NOT NULL"
        offences = self._first_rows("reward_text", not_numbers, reward_range)
        if offences:
            return rules.not_numbers(what, offences)
        offences = self._first_rows("reward", "reward IS NULL OR NOT isfinite(reward)", reward_range)
        if offences:
            return rules.not_finite(what, offences)
        offences = self._first_rows("reward", "units IS NULL", reward_range)
        return rules.outside_range(what, offences, reward_range)

    def _streamed(self) -> Iterator[str]:
        """The columns of `_raw`, in SQL."""
        reward = self._column_of["reward"]
        yield self._column_of["action"].label()
        yield reward.reward()
        yield f"CASE WHEN {reward.reward()} IS NULL THEN CAST({reward.name} AS VARCHAR) END"
        for role in ("user", "id"):
            text = self._column_of[role].text() if role in self._column_of else "NULL"
            yield f"{text} AS {role}_text"
        if self._others is not None:
            texts = [column.text() for column in self._others]
            sizes = ", ".join(f"coalesce(length({text}) || ':' || {text}, '-')" for text in texts)
            yield f"concat({sizes})"

    def _raw(self, positions: range | list[int], rows: list[tuple[Any, ...]]) -> RawRows:
        actions, rewards, refused, users, ids, *others = (list(column) for column in zip(*rows, strict=True))
        if refused.count(None) < len(refused):
            rewards = [value if text is None else text for value, text in zip(rewards, refused, strict=True)]
        return RawRows(
            positions,
            actions,
            rewards,
            users,
            None if self.columns.id is None else ids,
            others[0] if others else None,
        )


@dataclass(frozen=True, eq=False, repr=False)
class FileLog(Log):
    """A log in CSV or Parquet files, every row of which was checked when it was read."""

    source: FileSource
    totals: ArmStatistics

    def __len__(self) -> int:
        return int(self.totals.total)

    def statistics(self) -> ArmStatistics:
        """Count the rows and add up the rewards of each action, in exact integers."""
        return self.totals

    def _decisions(self, keys: tuple[KeyColumn, ...], at_most: int) -> Decisions:
        files = self.source.keyed_by(keys)
        return FileDecisions.of_files(keys, files, self.totals, has_users=self.has_users, at_most=at_most)

    def _request_of_users(self, users: list[Hashable]) -> DeletionRequest:
        user_of = {label_text(user): user for user in users}
        found = self._query(
            f"SELECT user_text, action_label, {_TALLY} FROM decisions"
            " WHERE user_text IN (SELECT unnest($texts)) GROUP BY user_text, action_label",
            texts=[text for text in user_of if text is not None],
        )
        known = {text for text, *_ in found}
        if len(known) < len(user_of):
            raise rules.unknown_users(user for text, user in user_of.items() if text not in known)
        return self._request(tally for _, *tally in found)

    def _request_of_rows(self, rows: list[int]) -> DeletionRequest:
        return self._request(
            self._query(
                f"SELECT action_label, {_TALLY} FROM numbered"
                " WHERE position IN (SELECT unnest($rows)) GROUP BY action_label",
                rows=rows,
            )
        )

    def _rows_of_each_user(self, action: Hashable) -> dict[Hashable, int]:
        condition, parameters = "", {}
        if action is not None:
            condition, parameters = "AND action_text = $action", {"action": label_text(action)}
        return dict(
            self._query(
                "SELECT user_label, count(*) FROM decisions"
                f" WHERE user_label IS NOT NULL {condition} GROUP BY user_label",
                **parameters,
            )
        )

    def _request(self, tallies: Iterable[Iterable[Any]]) -> DeletionRequest:
        tallied = [tuple(tally) for tally in tallies]
        records = ((label, n, total) for label, n, total, _ in tallied)
        binary = all(binary for *_, binary in tallied)
        return DeletionRequest(_statistics(records, self.actions, self.reward_range), binary)

    def _query(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        return self.source.query(sql, self.reward_range, **parameters)


def _statistics(
    tallies: Iterable[tuple[Any, int, int]], actions: tuple[Hashable, ...], reward_range: tuple[float, float]
) -> ArmStatistics:
    """Put counts and sums by action label in the order of the declared actions."""
    arm_of = arm_of_text(actions)
    counts = np.zeros(len(actions), dtype=np.int64)
    sums = np.zeros(len(actions), dtype=object)  # Python integers: a sum over many files can exceed int64
    for label, n, total in tallies:
        arm = arm_of[str(label_text(label))]
        counts[arm] += n
        sums[arm] += total
    return ArmStatistics(actions, counts, sums, reward_range)
