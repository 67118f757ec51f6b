"""Corrections: rows that were corrected at their source come in, in the place of the records with their ids.

A correction is a new fact, not a deletion: it takes no budget, and there is no certificate of it. To whom a
record belongs cannot be corrected: a request of the person before would no longer find it.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

from armnesia.core.errors import ChangedRecordError, Fault, VaultError
from armnesia.core.messages import counted
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.decisions import FIRST
from armnesia.vault.state.incoming_rows import Rows
from armnesia.vault.state.owner_tallies import damaged, remove_from_tallies
from armnesia.vault.state.table_digests import row_texts
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.schema import RecordLayout

_IDENTITY, _OWNER, _ARM, _UNITS, _DECISION = range(5)


class Corrected(NamedTuple):
    """The records of a managed vault that rows of a chunk correct."""

    records: list[Row]
    same_arm: set[bytes]
    """The identities of those that stay with their arm and their decision."""

    @property
    def identities(self) -> set[bytes]:
        """The identities of all of them."""
        return {bytes(record[_IDENTITY]) for record in self.records}

    def per_decision(self) -> list[tuple[int, int, int]]:
        """The decision, the arm and the units of each record."""
        return [
            (record[_DECISION] if len(record) > _DECISION else FIRST, record[_ARM], record[_UNITS])
            for record in self.records
        ]


def find_corrected(
    held: Mapping[bytes, Row], incoming: Mapping[bytes, Row], rows: Rows, places: Mapping[bytes, int]
) -> Corrected:
    """The held records that incoming rows differ from, both by identity; refuse rows of other people.

    `places` says where the rows stand in their chunk, also those that are left out because their person is
    forgotten: they must not be held as somebody else's. If they were left out here, what the source has
    corrected to a forgotten person would stay in the vault, under another name.
    """
    found, same_arm, others, of_forgotten, of_nobody = [], set(), set(), set(), set()
    for identity, record in held.items():
        new, own = incoming.get(identity), record[_OWNER]
        if new is None:
            of_forgotten.add(identity)
        elif own is None and new[_OWNER] is not None:
            of_nobody.add(identity)
        elif new[_OWNER] != (None if own is None else bytes(own)):
            others.add(identity)
        elif tuple(new[_ARM:]) != tuple(record[_ARM:]):
            found.append(record)
            if (new[_ARM], *new[_DECISION:]) == (record[_ARM], *record[_DECISION:]):
                same_arm.add(identity)
    if of_forgotten:
        first = min(places[identity] for identity in of_forgotten)
        one, several = "row of a forgotten person has", "rows of forgotten people have"
        raise ChangedRecordError(
            f"at least {counted(len(of_forgotten), one, several)} an id that the vault holds for another"
            f" user, or without one: the first is row {rows.positions[first]}; if the record is the forgotten"
            " person's, forget it by its id; if the id was given to another row since, leave the old row out;"
            " nothing was ingested"
        ).at(Fault("id", rows.positions[first], "is held by the vault for another user, or without one"))
    if of_nobody:
        first = min(places[identity] for identity in of_nobody)
        raise held_without_user(len(of_nobody), rows.positions[first])
    if others:
        first = min(places[identity] for identity in others)
        raise ChangedRecordError(
            f"at least {counted(len(others), 'row of this source has', 'rows of this source have')} an id"
            f" that the vault holds for another user, or without one: the first is row"
            f" {rows.positions[first]}; an id belongs to one person, and a correction cannot change whose it"
            " is; forget the record by its id, and bring the row in with a new one; nothing was ingested"
        ).at(Fault("id", rows.positions[first], "is held by the vault for another user, or without one"))
    return Corrected(found, same_arm)


def held_without_user(number: int, first: int) -> VaultError:
    """Refuse rows with a user that came in without one before.

    >>> print(held_without_user(2, 7))
    at least 2 rows of this source are in the vault without a user: the first is row 7; whose a record is
    cannot be added later, so make a new vault, with --successor-of if people were forgotten here, and ingest
    the log there with its user column; nothing was ingested
    """
    fault = Fault("user", first, "must be null, as in the vault")
    return ChangedRecordError(
        f"at least {counted(number, 'row of this source is', 'rows of this source are')} in the vault without"
        f" a user: the first is row {first}; whose a record is cannot be added later, so make a new vault,"
        " with --successor-of if people were forgotten here, and ingest the log there with its user column;"
        " nothing was ingested"
    ).at(fault)


def delete_corrected(session: Session, keyring: Keyring, layout: RecordLayout, corrected: Corrected) -> None:
    """Delete these records, and take them from the tallies of their owners."""
    deleted = tables.delete_records(session, layout, "identity", sorted(corrected.identities))
    if {tuple(row) for row in deleted} != {tuple(row) for row in corrected.records}:
        raise damaged()
    texts = row_texts(deleted)
    session.execute_together(remove_from_tallies(session, keyring, layout, (), deleted, texts))


def replaced_since(session: Session, after: int = 0) -> int:
    """How many records the corrections after this ledger entry have replaced."""
    return sum(json.loads(text)["replaced"] for _, text in tables.read_corrections(session, after))
