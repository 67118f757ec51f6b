"""A log in a table: it stays there, and the database adds up its rows.

A table can change while a log of it is in use, and a request must consist of rows that the statistics count.
So every later statement adds up all rows again, and a sum that has changed is refused.
"""

from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass

from armnesia.core.errors import UnsupportedError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.logs import rules
from armnesia.logs.conditions import Condition
from armnesia.logs.decisions import Decisions
from armnesia.logs.key_columns import KeyCodes, KeyColumn
from armnesia.logs.log import Log
from armnesia.logs.tallies import (
    Tally,
    TallyingSource,
    parted_tallies,
    statistics_of_tallies,
    sums_by_decision,
)
from armnesia.logs.values import arm_of_text, label_text


@dataclass(frozen=True, eq=False, repr=False)
class TableLog(Log):
    """A log in a table, every row of which was checked when it was read."""

    source: TallyingSource
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

    def _request_of_users(self, users: list[Hashable]) -> DeletionRequest:
        wanted = {label_text(user): user for user in users}
        found = self._tallies_of(wanted)
        known = {each.user for each in found}
        if len(known) < len(wanted):
            unknown = [user for text, user in wanted.items() if text not in known]
            raise rules.unknown_users(unknown, self._spelled_otherwise(unknown))
        return _request(found, statistics_of_tallies(found, self.actions, self.reward_range))

    def _spelled_otherwise(self, users: Iterable[Hashable]) -> list[str]:
        """Users of the log that are the same integers as these, as far as programs spell them otherwise."""
        return sorted(
            {each.user for each in self._tallies_of(rules.other_spellings(users)) if each.user is not None}
        )

    def _request_of_rows(self, rows: list[int]) -> DeletionRequest:
        raise _no_order()

    def _rows_of_each_user(self, action: Hashable) -> dict[Hashable, int]:
        rows_of: dict[Hashable, int] = {}
        for each in self._unchanged(self.source.tallies(self.reward_range, every_user=True)):
            if each.user is not None and (action is None or label_text(each.action) == label_text(action)):
                rows_of[each.user] = rows_of.get(each.user, 0) + each.n_rows
        return rows_of

    def _decisions(self, keys: tuple[KeyColumn, ...], at_most: int) -> Decisions:
        source = self.source.keyed_by(keys)
        found = self._unchanged(source.tallies(self.reward_range))
        if any(None in each.keys for each in found):
            _refuse_keys(source, keys, self.totals)
        texts, statistics = parted_tallies(keys, found, self.totals, at_most)
        return TableDecisions(keys, texts, self.has_users, statistics, source)

    def _tallies_of(self, texts: Collection[str | None]) -> list[Tally]:
        users = {text for text in texts if text is not None}
        found = self._unchanged(self.source.tallies(self.reward_range, users=users))
        return [each for each in found if each.user is not None]

    def _unchanged(self, found: list[Tally]) -> list[Tally]:
        """Tallies of all rows, unless they add up to something else than before."""
        _check_sound(found, self.actions)
        if statistics_of_tallies(found, self.actions, self.reward_range) != self.totals:
            raise rules.changed_source()
        return found


@dataclass(frozen=True, eq=False, repr=False)
class TableDecisions(Decisions):
    """Decisions of a log in a table, whose rows are added up again for each request."""

    source: TallyingSource

    @property
    def where(self) -> tuple[Condition, ...]:
        """The conditions that the rows satisfy."""
        return self.source.where

    def _request_of_users(self, users: list[Hashable]) -> DeletionRequest:
        wanted = {label_text(user): user for user in users}
        texts = {text for text in wanted if text is not None}
        every = self.source.tallies(self.statistics.reward_range, users=texts)
        _check_sound(every, self.statistics.actions)
        if not {each.keys for each in every} <= self._places.keys() or self._sums(every) != self.statistics:
            raise rules.changed_source()
        found = [each for each in every if each.user is not None]
        known = {each.user for each in found}
        if len(known) < len(wanted):
            unknown = [user for text, user in wanted.items() if text not in known]
            raise rules.unknown_users(unknown, self._spelled_otherwise(unknown))
        return _request(found, self._sums(found))

    def _spelled_otherwise(self, users: Iterable[Hashable]) -> list[str]:
        """As of a log in a table."""
        texts = rules.other_spellings(users)
        found = self.source.tallies(self.statistics.reward_range, users=texts)
        return sorted({each.user for each in found if each.user is not None})

    def _request_of_rows(self, rows: list[int]) -> DeletionRequest:
        raise _no_order()

    def _sums(self, found: list[Tally]) -> ArmStatistics:
        return sums_by_decision(found, self._places, len(self), self.statistics)

    @property
    def _places(self) -> dict[tuple[str | None, ...], int]:
        return {(*key,): place for key, place in self._index_of_key.items()}


def _request(found: Iterable[Tally], records: ArmStatistics) -> DeletionRequest:
    return DeletionRequest(records, all(each.binary == each.n_rows for each in found))


def _check_sound(found: Iterable[Tally], actions: tuple[Hashable, ...]) -> None:
    """Refuse tallies with a row that was not there when the log was read: every row was right then."""
    arm_of = arm_of_text(actions)
    if any(each.valid < each.n_rows or label_text(each.action) not in arm_of for each in found):
        raise rules.changed_source()


def _no_order() -> UnsupportedError:
    return UnsupportedError(
        "rows of this source have no order, so they cannot be named by position: name users"
    )


def _refuse_keys(source: TallyingSource, keys: tuple[KeyColumn, ...], totals: ArmStatistics) -> None:
    """Name the rows that have no key."""
    codes = [KeyCodes(key) for key in keys]
    for rows in source.rows(totals.actions, totals.reward_range):
        for code, values in zip(codes, rows.keys, strict=True):
            code.encode(values, rows.positions)
    raise rules.changed_source()
