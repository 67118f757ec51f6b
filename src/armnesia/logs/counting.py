"""What a vault without rows asks of a source: sums of rows, rows of given people, and names.

These are the answers, and how a source gives them that reads its rows one by one; `files/counting.py` lets
DuckDB give them.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from armnesia.core.units import UNIT
from armnesia.logs.key_columns import KeyCodes, KeyColumn
from armnesia.logs.rows import RawRows, Rows
from armnesia.logs.user_names import UserNames


class RowRules(NamedTuple):
    """What rows are checked against, and how their users are spelled."""

    actions: tuple[Hashable, ...]
    reward_range: tuple[float, float]
    names: UserNames


class LeftOut(NamedTuple):
    """Rows that are not counted: those of users and those with ids that have these texts in the source."""

    users: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()


NOTHING_LEFT_OUT = LeftOut()

Sums = Mapping[tuple[tuple[str, ...], int], tuple[int, int]]
"""By the key of a decision (empty without key columns) and the arm: how many rows, and their units."""


@dataclass(frozen=True)
class CountedRows:
    """What the rows of a source add up to, all of which were checked."""

    sums: Sums
    n_rows: int
    """How many rows were read, with those that were left out."""
    one_spelling: bool = True
    """Whether every user is written as a request spells the name."""
    some_without_user: bool = False

    @property
    def n_counted(self) -> int:
        """How many rows were not left out."""
        return sum(count for count, _ in self.sums.values())

    @property
    def n_left_out(self) -> int:
        """How many rows were left out."""
        return self.n_rows - self.n_counted


class FoundRows(NamedTuple):
    """Rows of one person, arm and decision, added up."""

    user: str | None
    """In the spelling of the vault; None where the source has no users."""
    id: str | None
    """None unless rows were told apart by their ids."""
    key: tuple[str, ...]
    arm: int
    number: int
    units: int
    extremes: bool
    """Whether all rewards are the lowest or the highest."""


def count_chunks(
    chunks: Iterable[tuple[RawRows, Rows]], keys: Sequence[KeyColumn], n_read: Sequence[int], has_users: bool
) -> CountedRows:
    """Add up rows; `n_read` has, at the end, how many there were with those that were left out."""
    sums: defaultdict[tuple[tuple[str, ...], int], list[int]] = defaultdict(lambda: [0, 0])
    codes, one_spelling, some_without_user = [KeyCodes(key) for key in keys], True, not has_users
    for raw, rows in chunks:
        one_spelling = one_spelling and rows.users == raw.users
        some_without_user = some_without_user or None in rows.users
        for key, arm, units in zip(keys_of(rows, codes), rows.arms, rows.units, strict=True):
            own = sums[key, arm]
            own[0] += 1
            own[1] += units
    found = {place: (count, units) for place, (count, units) in sums.items()}
    return CountedRows(found, sum(n_read), one_spelling, some_without_user)


def found_in_chunks(
    chunks: Iterable[tuple[RawRows, Rows]], keys: Sequence[KeyColumn], *, with_ids: bool
) -> list[FoundRows]:
    """Add up the rows of each person, id, arm and decision; ids are as the source spells them.

    That is so also if they are the users, which are brought to one spelling: rows are left out by the ids of
    the source.
    """
    found: dict[tuple[str | None, str | None, tuple[str, ...], int], tuple[int, int, bool]] = {}
    codes = [KeyCodes(key) for key in keys]
    for raw, rows in chunks:
        ids: Sequence[str | None] = raw.ids if with_ids and raw.ids is not None else [None] * len(rows)
        places = zip(rows.users, ids, keys_of(rows, codes), rows.arms, strict=True)
        for place, units in zip(places, rows.units, strict=True):
            count, total, extremes = found.get(place, (0, 0, True))
            found[place] = (count + 1, total + units, extremes and units in (0, UNIT))
    return [FoundRows(*place, *sums) for place, sums in found.items()]


def keys_of(rows: Rows, codes: Sequence[KeyCodes]) -> list[tuple[str, ...]]:
    """The key of each row; refuse a missing one."""
    if not codes:
        return [()] * len(rows)
    columns = []
    for code, values in zip(codes, rows.keys, strict=True):
        columns.append([code.texts[each] for each in code.encode(values, rows.positions).tolist()])
    return list(zip(*columns, strict=True))


def without(raw: RawRows, left_out: LeftOut) -> RawRows:
    """The rows of a chunk that are not left out.

    >>> raw = RawRows(range(2), ["A", "B"], [1, 0], ["ann", "bob"], None, None)
    >>> without(raw, LeftOut(users=frozenset(["ann"]))).users
    ['bob']
    """
    ids: Sequence[str | None] = raw.ids if raw.ids is not None else [None] * len(raw.positions)
    named = zip(raw.users, ids, strict=True)
    kept = [
        place
        for place, (user, id_) in enumerate(named)
        if user not in left_out.users and id_ not in left_out.ids
    ]
    return raw if len(kept) == len(raw.positions) else raw.at(kept)
