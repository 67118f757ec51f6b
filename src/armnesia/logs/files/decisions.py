"""Decisions of a log in CSV or Parquet files: one group-by for the statistics, and one for a request."""

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from armnesia.core.errors import InvalidLogError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.logs import rules
from armnesia.logs.conditions import Condition
from armnesia.logs.decisions import Decisions, part_rows, summed_by_decision
from armnesia.logs.files.label_lookup import Lookup
from armnesia.logs.key_columns import KeyColumn, missing_keys, too_many_keys
from armnesia.logs.tallies import SUM_OF_PRODUCTS
from armnesia.logs.values import arm_of_text, label_text

_TALLY = f"count(*), sum(units), {SUM_OF_PRODUCTS}, bool_and(units IN (0, {UNIT}))"


class KeyedFiles(Protocol):
    """Files with key columns; see `FileSource.query`."""

    where: tuple[Condition, ...]

    def query(
        self, sql: str, reward_range: tuple[float, float], *, found: Lookup | None = None, **parameters: Any
    ) -> list[tuple[Any, ...]]:
        """Run SQL over the decisions; `key_0`, `key_1`, … are the keys of a row, NULL where it has none."""

    def text_of(self, role: str) -> str:
        """The text of decisions that are grouped by `action_value` or `user_value`, in SQL."""

    def of_labels(self, role: str, texts: Collection[str]) -> Lookup:
        """The rows with these labels, for `query`."""


@dataclass(frozen=True, eq=False, repr=False)
class FileDecisions(Decisions):
    """Decisions of a log in files, which are read again for each request."""

    files: KeyedFiles

    @property
    def where(self) -> tuple[Condition, ...]:
        """The conditions that the rows satisfy."""
        return self.files.where

    @classmethod
    def of_files(
        cls,
        columns: tuple[KeyColumn, ...],
        files: KeyedFiles,
        totals: ArmStatistics,
        *,
        has_users: bool,
        at_most: int,
    ) -> "FileDecisions":
        """Add up the rows of each decision; refuse rows without a key, and too many keys."""
        names = _names(columns)
        ((number,),) = files.query(
            f"SELECT count(*) FROM (SELECT DISTINCT {names} FROM decisions)", totals.reward_range
        )
        if number > at_most:
            raise too_many_keys(columns, number, at_most)
        found = files.query(
            f"SELECT {names}, {files.text_of('action')}, {_TALLY} FROM decisions"
            f" GROUP BY {names}, action_value",
            totals.reward_range,
        )
        *texts, actions, counts, sums, products, _ = zip(*found, strict=True)
        for place, column in enumerate(columns):
            if None in texts[place]:
                raise _refused_keys(files, place, column, totals.reward_range)
        coded = [np.unique(np.array(each, dtype=object), return_inverse=True) for each in texts]
        keys, decisions = part_rows(
            columns,
            [labels.tolist() for labels, _ in coded],
            [codes.reshape(-1) for _, codes in coded],
            at_most,
        )
        arm_of = arm_of_text(totals.actions)
        tallies = (
            decisions,
            np.array([arm_of[action] for action in actions]),
            np.array(counts, dtype=np.int64),
            np.array(sums, dtype=object),
            np.array(products, dtype=object),
        )
        statistics = summed_by_decision(len(keys), totals.actions, totals.reward_range, tallies)
        return cls(columns, keys, has_users, statistics, files)

    def _request_of_users(self, users: list[Hashable]) -> DeletionRequest:
        user_of = {label_text(user): user for user in users}
        lookup = self.files.of_labels("user", [text for text in user_of if text is not None])
        found = self._tallies("decisions", "user", "true", found=lookup)
        known = {text for text, *_ in found}
        if len(known) < len(user_of):
            unknown = [user for text, user in user_of.items() if text not in known]
            lookup = self.files.of_labels("user", rules.other_spellings(unknown))
            spelled = {text for text, *_ in self._tallies("decisions", "user", "true", found=lookup)}
            raise rules.unknown_users(unknown, sorted(spelled))
        return self._request(found)

    def _request_of_rows(self, rows: list[int]) -> DeletionRequest:
        return self._request(
            self._tallies("numbered", "action", "position IN (SELECT unnest($rows))", rows=rows)
        )

    def _tallies(self, source: str, role: str, condition: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Count and add up the chosen rows by a user or action, the keys and the action."""
        names, label, action = _names(self.columns), self.files.text_of(role), self.files.text_of("action")
        return self.files.query(
            f"SELECT {label}, {names}, {action}, {_TALLY} FROM {source} WHERE {condition}"
            f" GROUP BY {role}_value, {names}, action_value",
            self.statistics.reward_range,
            **parameters,
        )

    def _request(self, tallies: list[tuple[Any, ...]]) -> DeletionRequest:
        arm_of = arm_of_text(self.statistics.actions)
        _, *keys, actions, counts, sums, products, binary = zip(*tallies, strict=True)
        records = summed_by_decision(
            len(self),
            self.statistics.actions,
            self.statistics.reward_range,
            (
                np.array([self._index_of_key[key] for key in zip(*keys, strict=True)]),
                np.array([arm_of[action] for action in actions]),
                np.array(counts, dtype=np.int64),
                np.array(sums, dtype=object),
                np.array(products, dtype=object),
            ),
        )
        return DeletionRequest(records, all(binary))


def interval_sql(column: KeyColumn, number: str) -> str:
    """The interval of a number, in SQL; NULL where it is missing.

    >>> print(interval_sql(KeyColumn("age", (18, 30)), "c0"))
    CASE WHEN c0 IS NULL OR isnan(c0) THEN NULL WHEN c0 < 18.0::DOUBLE THEN '<18'
     WHEN c0 < 30.0::DOUBLE THEN '18..30' ELSE '>=30' END
    """
    *below, last = column.intervals
    cases = " ".join(
        f"WHEN {number} < {edge!r}::DOUBLE THEN '{text}'"
        for edge, text in zip(column.edges, below, strict=True)
    )
    return f"CASE WHEN {number} IS NULL OR isnan({number}) THEN NULL {cases} ELSE '{last}' END"


def _names(columns: tuple[KeyColumn, ...]) -> str:
    return ", ".join(f"key_{place}" for place in range(len(columns)))


def _refused_keys(
    files: KeyedFiles, place: int, column: KeyColumn, reward_range: tuple[float, float]
) -> InvalidLogError:
    """Name the first rows that have no key: values that are no numbers, else missing ones."""

    def first(condition: str) -> list[tuple[int, Any]]:
        sql = (
            f"SELECT position, key_{place}_text FROM numbered WHERE key_{place} IS NULL AND {condition}"
            " ORDER BY position LIMIT 4"
        )
        return [(row, value) for row, value in files.query(sql, reward_range)]

    offences = first(f"key_{place}_text IS NOT NULL")
    if offences:
        return rules.not_numbers(column.described, offences)
    return missing_keys(column, first("true"))
