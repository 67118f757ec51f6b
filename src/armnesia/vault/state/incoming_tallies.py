"""The tallies of the owners of incoming rows, added up in memory and merged into the table at times."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.digest_arrays import (
    Columns,
    DigestArray,
    order_of,
    starts_of_groups,
    xor_of_groups,
)

MOST_OWNERS = 1 << 20
"""Owners whose tallies are in memory at the same time, of 40 bytes each."""
_RANGES = 16
"""Tallies are merged separately in so many ranges of owners: merging takes several times their memory."""
_AT_ONCE = 50_000
"""Tallies that one statement writes."""


class _Tallies(NamedTuple):
    """Tallies in the order of their owners."""

    owners: DigestArray
    records: IntArray
    digests: DigestArray

    def added_up(self) -> "_Tallies":
        """The same tallies, one per owner."""
        order = order_of(self.owners)
        owners = self.owners[order]
        starts = starts_of_groups(owners)
        records = np.add.reduceat(self.records[order], starts) if len(starts) else self.records
        return _Tallies(owners[starts], records, xor_of_groups(self.digests[order], starts))

    def part(self, places: slice) -> "_Tallies":
        """Copies of some of them: a view would keep all in memory."""
        return _Tallies(self.owners[places].copy(), self.records[places].copy(), self.digests[places].copy())

    def columns(self) -> Columns:
        """As the table holds them."""
        return {"owner": self.owners, "records": self.records, "digest": self.digests}


class IncomingTallies:
    """Counts the records that come in, by owner."""

    def __init__(self, *, table_is_empty: bool) -> None:
        self._table_is_empty = table_is_empty
        self._ranges: list[list[_Tallies]] = [[] for _ in range(_RANGES)]

    def add(self, owners: DigestArray, digests: DigestArray) -> None:
        """Count records that have owners, each with the digest that it has in the tally of its owner."""
        tallies = _Tallies(owners, np.ones(len(owners), np.int64), digests).added_up()
        for parts, places in zip(self._ranges, _range_places(tallies.owners), strict=True):
            parts.append(tallies.part(places))
            # As in a log-structured merge tree: each tally is merged a few times only.
            while len(parts) > 1 and len(parts[-2].owners) < 2 * len(parts[-1].owners):
                parts[-2:] = [_joined(parts[-2:])]

    def are_many(self) -> bool:
        """Whether they should be stored now, to save memory."""
        if self._number() >= MOST_OWNERS:
            self._ranges = [[_joined(parts)] if parts else [] for parts in self._ranges]
        return self._number() >= MOST_OWNERS

    def _number(self) -> int:
        return sum(len(part.owners) for parts in self._ranges for part in parts)

    def store(self, session: Session) -> None:
        """Add them to those that the table holds; from here on there are none in memory."""
        number = self._number()
        for parts in self._ranges:
            if parts:
                self._store(session, _joined(parts))
                parts.clear()
        self._table_is_empty = self._table_is_empty and not number

    def _store(self, session: Session, tallies: _Tallies) -> None:
        for start in range(0, len(tallies.owners), _AT_ONCE):
            some = tallies.part(slice(start, start + _AT_ONCE))
            if self._table_is_empty:
                tables.insert_tallies(session, some.columns())
            else:
                tables.merge_tallies(session, some.columns())


def _range_places(owners: DigestArray) -> list[slice]:
    """Where in an ordered array the owners of each range stand, by their first byte."""
    first_bytes = np.ascontiguousarray(owners).view(np.uint8).reshape(-1, owners.itemsize)[:, 0]
    bounds = np.searchsorted(first_bytes, np.arange(0, 257, 256 // _RANGES)).tolist()
    return [slice(*pair) for pair in pairwise(bounds)]


def _joined(parts: list[_Tallies]) -> _Tallies:
    """Several tallies as one."""
    return _Tallies(*map(np.concatenate, zip(*parts, strict=True))).added_up()
