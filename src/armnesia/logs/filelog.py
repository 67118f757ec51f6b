"""A log that stays in its files: DuckDB counts and adds up, in memory that does not grow with the log.

Rewards become units before they are added. A sum of floats depends on the order of addition, which
differs from run to run when several threads read; a sum of integers does not.
"""

import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from armnesia.core.actions import checked_actions
from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.logs import rules
from armnesia.logs.columns import sorted_if_comparable
from armnesia.logs.files import open_files
from armnesia.logs.log import Log, no_rows_of
from armnesia.logs.view import DecisionView

_TALLY = f"count(*), sum(units), bool_and(units IN (0, {UNIT}))"


@dataclass(frozen=True, eq=False, repr=False)
class FileLog(Log):
    """A log in CSV or Parquet files, checked as a whole when it is read."""

    view: DecisionView
    totals: ArmStatistics

    @classmethod
    def of_files(
        cls,
        source: str | os.PathLike[str],
        names: dict[str, str],
        declared: tuple[Hashable, ...] | None,
        reward_range: tuple[float, float],
    ) -> Self:
        """Check every row in one pass, which also gives the statistics."""
        arm_of_declared = None if declared is None else _arm_of_text(declared)
        view = DecisionView(open_files(source, set(names.values())), names, reward_range)
        found = view.query(
            "SELECT action, count(*), sum(units), count(*) - count(units) FROM decisions GROUP BY action"
        )
        if not found:
            raise rules.empty_log()
        labels = [label for label, *_ in found if label is not None]
        if len(labels) < len(found):
            raise rules.missing_actions(view.described("action"), view.first_rows("NULL", "action IS NULL"))
        actions = checked_actions(sorted_if_comparable(labels)) if declared is None else declared
        arm_of = arm_of_declared or _arm_of_text(actions)
        undeclared = [str(label) for label in labels if str(label) not in arm_of]
        if undeclared:
            offences = view.first_rows("action", "action_text IN (SELECT unnest($texts))", texts=undeclared)
            raise rules.undeclared_actions(view.described("action"), offences, actions)
        if any(refused for *_, refused in found):
            raise _refused_rewards(view)
        totals = _records(((label, n, total) for label, n, total, _ in found), actions, reward_range)
        return cls(actions, reward_range, "user" in names, view, totals)

    def __len__(self) -> int:
        return int(self.totals.total)

    def statistics(self) -> ArmStatistics:
        """Count the rows and add up the rewards of each action, in exact integers."""
        return self.totals

    def _request_of_users(self, users: list[Hashable]) -> DeletionRequest:
        texts = {str(user): user for user in users}
        found = self.view.query(
            f"SELECT user_text, action, {_TALLY} FROM decisions"
            " WHERE user_text IN (SELECT unnest($texts)) GROUP BY user_text, action",
            texts=list(texts),
        )
        known = {text for text, *_ in found}
        if len(known) < len(texts):
            raise no_rows_of(user for text, user in texts.items() if text not in known)
        return self._request(tally for _, *tally in found)

    def _request_of_rows(self, rows: list[int]) -> DeletionRequest:
        sql = (
            f"SELECT action, {_TALLY} FROM numbered WHERE position IN (SELECT unnest($rows)) GROUP BY action"
        )
        return self._request(self.view.query(sql, rows=rows))

    def _rows_of_each_user(self, action: Hashable) -> dict[Hashable, int]:
        only, parameters = "", {}
        if action is not None:
            only, parameters = "AND action_text = $action", {"action": str(action)}
        sql = f'SELECT "user", count(*) FROM decisions WHERE "user" IS NOT NULL {only} GROUP BY "user"'
        return dict(self.view.query(sql, **parameters))

    def _request(self, tallies: Iterable[Iterable[Any]]) -> DeletionRequest:
        tallied = [tuple(tally) for tally in tallies]
        records = _records(
            ((label, n, total) for label, n, total, _ in tallied), self.actions, self.reward_range
        )
        return DeletionRequest(records, all(binary for *_, binary in tallied))


def _records(
    tallies: Iterable[tuple[Any, int, int]], actions: tuple[Hashable, ...], reward_range: tuple[float, float]
) -> ArmStatistics:
    """Put tallies of action labels, as the file has them, in the order of the declared actions."""
    arm_of = _arm_of_text(actions)
    counts = np.zeros(len(actions), dtype=np.int64)
    sums = np.zeros(len(actions), dtype=object)  # Python integers: a sum over many files can exceed int64
    for label, n, total in tallies:
        counts[arm_of[str(label)]] += n
        sums[arm_of[str(label)]] += total
    return ArmStatistics(actions, counts, sums, reward_range)


def _refused_rewards(view: DecisionView) -> InvalidLogError:
    """Say what is wrong with the first refused rewards, the gravest fault first."""
    what = view.described("reward")
    offences = view.first_rows("reward_text", "reward IS NULL AND reward_text IS NOT NULL")
    if offences:
        return rules.not_numbers(what, offences)
    offences = view.first_rows("reward", "reward IS NULL OR NOT isfinite(reward)")
    if offences:
        return rules.not_finite(what, offences)
    return rules.outside_range(what, view.first_rows("reward", "units IS NULL"), view.reward_range)


def _arm_of_text(actions: tuple[Hashable, ...]) -> dict[str, int]:
    arm_of: dict[str, int] = {}
    for arm, action in enumerate(actions):
        if str(action) in arm_of:
            raise InvalidInputError(
                "actions must differ in their text, by which they are found in a file;"
                f" got {actions[arm_of[str(action)]]!r} and {action!r}"
            )
        arm_of[str(action)] = arm
    return arm_of
