"""Certificates as they are handed out: an entry, its proof for the ledger as it is now, and the openings."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

from armnesia.core.errors import InvalidInputError, UnknownEntryError, VaultError
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.ledger.certificate import Certificate, Logged, concerns
from armnesia.vault.ledger.checkpoint import Note
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.merkle import Tree, split
from armnesia.vault.ledger.people import RECORD, USER, Opening, People
from armnesia.vault.state.connection import envelope_of, signed_checkpoint
from armnesia.vault.state.sealed_state import changed_values
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import EntryRow, PeopleRow

_LATER = ("compacted", "erased", "readmit")


def entry_of(session: Session, number: int) -> Entry:
    """An entry of the ledger."""
    return entry_in(_read_entry(session, number))


def _read_entry(session: Session, number: int) -> str:
    found = tables.read(session, EntryRow, number=number)
    if not found:
        raise UnknownEntryError(f"the ledger has no entry {number}; see armnesia ledger")
    return found[0].envelope


def entry_in(text: str) -> Entry:
    """An entry as the database holds it."""
    return Entry.of(envelope_of(text))


def time_of(session: Session, number: int) -> str:
    """When an entry was written."""
    return entry_of(session, number).time


@dataclass
class Certificates:
    """Makes certificates, all for the ledger as it is in one transaction."""

    transaction: Transaction
    _requests: dict[int, tuple[People, list[Opening]]] = field(default_factory=dict)
    """The request that was asked for last: most names were in the same one."""

    def of(self, target: ErasureTarget, number: int) -> Certificate:
        """Of one name in the request of an entry."""
        people, said = self._people(number)
        keyring, role = self.transaction.keyring, USER if target.users else RECORD
        try:
            openings = [people.opening(keyring, number, role, target.names[0])]
        except InvalidInputError as error:
            raise VaultError(str(error)) from None
        return self._issued(number, [*openings, *said])

    def of_entry(self, number: int) -> Certificate:
        """Of the request of an entry, opened for nobody."""
        return self._issued(number, [])

    def _issued(self, number: int, openings: Iterable[Opening]) -> Certificate:
        logged = self._logged(number)
        if logged.entry.kind != "forget":
            raise UnknownEntryError(f"entry {number} of the ledger is no deletion; see armnesia ledger")
        is_last = number == self.transaction.state.head.size
        later = [] if is_last else [each for each in self._later if concerns(each.entry, number)]
        # Deleted bytes may have come back with a backup: what was compacted before a restore does not count.
        compacted = [
            each for each in later if each.entry.kind == "compacted" and each.entry.number > self._restored
        ][:1]
        others = [each for each in later if each.entry.kind != "compacted"]
        return Certificate(logged, tuple(openings), (*compacted, *others))

    def _logged(self, number: int) -> Logged:
        text = _read_entry(self.transaction.session, number)
        return Logged.of(envelope_of(text), self._ledger, self._note)

    @cached_property
    def _later(self) -> list[Logged]:
        """All entries that may concern a deletion."""
        found = tables.envelopes_of(self.transaction.session, _LATER)
        return [Logged.of(envelope_of(text), self._ledger, self._note) for text in found]

    @cached_property
    def _restored(self) -> int:
        """The last entry of a restore; 0 if there is none."""
        found = tables.envelopes_of(self.transaction.session, ["restored"])
        return entry_in(found[-1]).number if found else 0

    @cached_property
    def _ledger(self) -> Tree:
        tree = Tree(tables.read_leaves(self.transaction.session, self.transaction.state.head.size))
        if tree.root != self.transaction.state.head.root:
            raise changed_values()
        return tree

    @cached_property
    def _note(self) -> Note:
        return signed_checkpoint(self.transaction)

    def _people(self, number: int) -> tuple[People, list[Opening]]:
        """The commitments of a request, and the openings of what is said of it."""
        if number not in self._requests:
            found = tables.read(self.transaction.session, PeopleRow, number=number)
            if not found:
                raise UnknownEntryError(f"entry {number} of the ledger is no deletion; see armnesia ledger")
            _, leaves, sealed, _ = found[0]
            people, keyring = People(split(bytes(leaves))), self.transaction.keyring
            said = {} if sealed is None else keyring.decrypted(bytes(sealed), f"said of {number}")
            openings = [
                people.opening(keyring, number, role, text) for role, text in said.items() if text is not None
            ]
            self._requests = {number: (people, openings)}
        return self._requests[number]
