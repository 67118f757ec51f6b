"""The rows of a source as a vault takes them in: in chunks, from one reading that was counted and checked."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from armnesia.core.errors import Fault, InvalidLogError, VaultError
from armnesia.core.identifiers import looks_like_float
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
    names: Sequence[str]
    """The ids, each once; without ids the text of the whole row."""
    numbers: Sequence[int]
    """How many rows of the source have this id."""
    ordinals: Sequence[int] | None
    """Without ids: how many earlier rows of the same reading have the same content."""
    keys: tuple[Sequence[str], ...] = ()
    """The values of each key column."""

    def identities(self, keyring: Keyring) -> list[bytes]:
        """Which row is which, the same whenever and from whichever source a row is read.

        A row is known by its id or, without ids, by its whole content and the number of earlier rows with the
        same content in its source. So the same file twice, or a file that overlaps an earlier one, adds no
        rows, and rows that occur several times in one source stay distinct.
        """
        if self.ordinals is None:
            return keyring.record_identities("id", self.names)
        units, ordinals = map(str, self.units), map(str, self.ordinals)
        return keyring.record_identities("content", list(units), self.names, list(ordinals))


def read_rows(
    reading: Reading, columns: Columns, actions: Sequence[Hashable], reward_range: tuple[float, float]
) -> Iterator[Rows]:
    """The rows of a reading in chunks, whose sums were checked before."""
    arm_of = arm_of_text(actions)
    rows = chain.from_iterable(reading.rows(reward_range))
    while chunk := list(islice(rows, CHUNK)):
        ordinals = None
        if columns.id is not None:
            _check_ids(chunk, columns)
        else:
            numbers = [row[-1] for row in chunk]
            ordinals = list(chain.from_iterable(map(range, numbers)))
            if len(ordinals) > len(chunk):
                chunk = [(*row[:-1], 1) for row in chunk for _ in range(row[-1])]
        positions, labels, units, users, ids, *others, counts = zip(*chunk, strict=True)
        names = ids if columns.id is not None else others.pop()
        if not arm_of.keys() >= set(labels) or any(None in column for column in (units, *others, names)):
            raise VaultError("the source has changed while it was read; ingest again")
        arms = list(map(arm_of.__getitem__, labels))
        yield Rows(positions, arms, units, users, names, counts, ordinals, tuple(others))


def _check_ids(chunk: list[tuple[Any, ...]], columns: Columns) -> None:
    """Refuse ids of people with several rows, and ids that would be another spelling of an integer.

    A program that turned integers into floats would otherwise bring forgotten records back, and others twice.
    """
    if columns.id == columns.user:
        several = next((row[0] for row in chunk if row[-1] > 1), None)
        if several is not None:
            raise InvalidLogError(
                f"id column {columns.id!r} is the user column as well, so each person must have one row; row"
                f" {several} is the first of a person with several: name another column of ids, or none"
            )
    floats = next(
        ((row[0], row[4]) for row in chunk if "." in (row[4] or "") and looks_like_float(row[4])), None
    )
    if floats is not None:
        place, id_ = floats
        raise InvalidLogError(
            f"id column {columns.id!r} looks like integers that became floats: {id_!r} in row {place}, which"
            " would not be recognised as the same record; write the ids as integers; nothing was ingested"
        ).at(Fault("id", place, "must be written as an integer"))
