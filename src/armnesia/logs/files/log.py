"""A log in CSV or Parquet files: it stays there, and DuckDB adds up the rows of each request."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.logs import rules
from armnesia.logs.conditions import Condition
from armnesia.logs.decisions import Decisions
from armnesia.logs.files.decisions import FileDecisions, KeyedFiles
from armnesia.logs.key_columns import KeyColumn
from armnesia.logs.log import Log
from armnesia.logs.tallies import SUM_OF_PRODUCTS, statistics_of_sums
from armnesia.logs.values import label_text

_COUNT_SUM_BINARY = f"count(*), sum(units), {SUM_OF_PRODUCTS}, bool_and(units IN (0, {UNIT}))"


class LogInFiles(KeyedFiles, Protocol):
    """Files that were opened: `FileSource`."""

    def label_of(self, role: str) -> str:
        """The label of decisions that are grouped by `action_value` or `user_value`, in SQL."""

    def check_sizes(self, *roles: str) -> None:
        """Refuse files with long texts in the columns of these roles."""

    def keyed_by(self, keys: tuple[KeyColumn, ...]) -> KeyedFiles:
        """The same files with key columns."""


@dataclass(frozen=True, eq=False, repr=False)
class FileLog(Log):
    """A log in CSV or Parquet files, every row of which was checked when it was read."""

    source: LogInFiles
    totals: ArmStatistics

    @property
    def where(self) -> tuple[Condition, ...]:
        """The conditions that the rows satisfy."""
        return self.source.where

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
            f"SELECT grouping(user_value), {self.source.text_of('user')}, {self.source.label_of('action')},"
            f" {_COUNT_SUM_BINARY} FROM decisions GROUP BY GROUPING SETS ((user_value), (action_value))",
            found=self.source.of_labels("user", [text for text in user_of if text is not None]),
        )
        known = {text for of_action, text, *_ in found if not of_action}
        if len(known) < len(user_of):
            unknown = [user for text, user in user_of.items() if text not in known]
            raise rules.unknown_users(unknown, self._spelled_otherwise(unknown))
        return self._request(sums for of_action, _, *sums in found if of_action)

    def _spelled_otherwise(self, users: Iterable[Hashable]) -> list[str]:
        """Users of the log that are the same integers as these, as far as programs spell them otherwise."""
        lookup = self.source.of_labels("user", rules.other_spellings(users))
        found = self._query("SELECT DISTINCT user_text FROM decisions ORDER BY 1", found=lookup)
        return [text for (text,) in found]

    def _request_of_rows(self, rows: list[int]) -> DeletionRequest:
        return self._request(
            self._query(
                f"SELECT {self.source.label_of('action')}, {_COUNT_SUM_BINARY} FROM numbered"
                " WHERE position IN (SELECT unnest($rows)) GROUP BY action_value",
                rows=rows,
            )
        )

    def _rows_of_each_user(self, action: Hashable) -> dict[Hashable, int]:
        self.source.check_sizes("user")
        condition, parameters = "", {}
        if action is not None:
            condition, parameters = "AND action_text = $action", {"action": label_text(action)}
        label = self.source.label_of("user")
        return dict(
            self._query(
                f"SELECT {label} AS label, count(*) FROM decisions"
                f" WHERE {label} IS NOT NULL {condition} GROUP BY label",
                **parameters,
            )
        )

    def _request(self, found: Iterable[Iterable[Any]]) -> DeletionRequest:
        per_action = [tuple(row) for row in found]
        records = ((label, n, total, products) for label, n, total, products, _ in per_action)
        binary = all(binary for *_, binary in per_action)
        return DeletionRequest(statistics_of_sums(records, self.actions, self.reward_range), binary)

    def _query(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        return self.source.query(sql, self.reward_range, **parameters)
