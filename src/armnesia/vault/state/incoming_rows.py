"""The rows of a source as a vault takes them in: in chunks, from one reading that was counted and checked."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import looks_like_float
from armnesia.logs import refusals
from armnesia.logs.columns import Columns
from armnesia.logs.statements import Reading
from armnesia.logs.values import arm_of_text
from armnesia.vault.keys.keyring import Keyring

CHUNK = 50_000
"""How many rows are compared and loaded at a time."""


@dataclass(frozen=True)
class Rows:
    """A chunk of a source, checked."""

    positions: Sequence[int]
    """Where each row stands in the source, from 1; of equal rows the first. A table has no order."""
    arms: Sequence[int]
    units: Sequence[int]
    users: Sequence[str | None]
    ids: Sequence[str] | None
    contents: Sequence[str] | None
    """Without ids: the text of the whole row."""
    ordinals: Sequence[int] = ()
    """How many earlier rows of the same reading have the same id, or without ids the same content."""
    keys: tuple[Sequence[str], ...] = ()
    """The values of each key column."""

    def __len__(self) -> int:
        return len(self.arms)

    @cached_property
    def float_ids(self) -> dict[int, str]:
        """By place, the ids that look like integers that became floats.

        >>> Rows(range(3), [0] * 3, [5] * 3, [None] * 3, ["17", "17.0", "a.b"], None).float_ids
        {1: '17.0'}
        """
        return {
            place: id_ for place, id_ in enumerate(self.ids or ()) if "." in id_ and looks_like_float(id_)
        }

    def identities(self, keyring: Keyring) -> list[bytes]:
        """Which row is which, the same whenever and from whichever source a row is read.

        A row is known by its id or, without ids, by its whole content and the number of earlier rows with the
        same content in its source. So the same file twice, or a file that overlaps an earlier one, adds no
        rows, and rows that occur several times in one source stay distinct.
        """
        if self.ids is not None:
            return keyring.record_identities("id", self.ids)
        assert self.contents is not None  # the source was opened with `whole_rows`
        units, ordinals = map(str, self.units), map(str, self.ordinals)
        return keyring.record_identities("content", list(units), self.contents, list(ordinals))


def read_rows(
    reading: Reading, columns: Columns, actions: Sequence[Hashable], reward_range: tuple[float, float]
) -> Iterator[Rows]:
    """The rows of a reading in chunks, whose sums were checked before."""
    arm_of = arm_of_text(actions)
    rows = chain.from_iterable(reading.rows(reward_range))
    while chunk := list(islice(rows, CHUNK)):
        numbers = [row[-1] for row in chunk]
        ordinals: Sequence[int] = [0] * len(chunk)
        if max(numbers) > 1:
            if columns.id is not None and columns.id == columns.user:
                first = next(row for row in chunk if row[-1] > 1)
                raise refusals.repeated_user_ids(columns.described("id"), first[0])
            chunk = [row for row in chunk for _ in range(row[-1])]
            ordinals = list(chain.from_iterable(map(range, numbers)))
        yield _checked(chunk, ordinals, arm_of, has_ids=columns.id is not None)


def _checked(
    chunk: list[tuple[Any, ...]], ordinals: Sequence[int], arm_of: dict[str, int], *, has_ids: bool
) -> Rows:
    """A chunk by column; refuse rows that were not those that were counted."""
    positions, actions, units, users, ids, *keys, _ = zip(*chunk, strict=True)
    contents = None if has_ids else keys.pop()
    named = ids if contents is None else contents
    known = (units, *keys, named)
    if not arm_of.keys() >= set(actions) or any(None in column for column in known):
        raise VaultError("the source has changed while it was read; ingest again")
    arms = list(map(arm_of.__getitem__, actions))
    return Rows(positions, arms, units, users, ids if has_ids else None, contents, ordinals, tuple(keys))
