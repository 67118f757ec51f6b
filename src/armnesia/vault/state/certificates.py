"""Certificates as they are handed out: an entry, its proof for the ledger as it is now, and the openings."""

from functools import cached_property

from armnesia.core.errors import InvalidInputError, UnknownEntryError, VaultError
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session
from armnesia.vault.db.schema import EntryRow, PeopleRow
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.ledger.certificate import Certificate, Logged, concerns
from armnesia.vault.ledger.checkpoint import Proof
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.merkle import Tree, split
from armnesia.vault.ledger.people import Opening, People
from armnesia.vault.state.connection import envelope_of, signed_checkpoint
from armnesia.vault.state.sealed_state import changed_values
from armnesia.vault.state.transaction import Transaction

_LATER = ("compacted", "erased", "readmit")


def entry_in(text: str) -> Entry:
    """An entry as the database holds it."""
    return Entry.of(envelope_of(text))


def time_of(session: Session, number: int) -> str:
    """When an entry was written."""
    return entry_in(_read_entry(session, number).envelope).time


def _read_entry(session: Session, number: int) -> EntryRow:
    for row in statements.read(session, EntryRow, number=number):
        return row
    raise UnknownEntryError(f"the ledger has no entry {number}; see armnesia ledger")


class Certificates:
    """Makes certificates, all for the ledger as it is in one transaction."""

    def __init__(self, transaction: Transaction) -> None:
        self._session, self._keyring = transaction.session, transaction.keyring
        self._head, self._note = transaction.state.head, signed_checkpoint(transaction)
        self._last_proof = transaction.last_proof
        self._last: tuple[int, People, list[Opening]] | None = None
        """The request that was asked for last: most names were in the same one."""

    def of(self, number: int, target: ErasureTarget | None = None) -> Certificate:
        """Of the one name of a target in the request of an entry; without one, opened for nobody."""
        row = _read_entry(self._session, number)
        if row.kind != "forget":
            raise UnknownEntryError(f"entry {number} of the ledger is no deletion; see armnesia ledger")
        openings = () if target is None else self._openings(number, target)
        if number == self._head.size and self._last_proof is not None:
            proof = Proof(number - 1, self._last_proof, self._note)
            return Certificate(Logged(envelope_of(row.envelope), proof), openings)
        return Certificate(self._logged(row.envelope), openings, self._concerning(number))

    def _logged(self, text: str) -> Logged:
        return Logged.of(envelope_of(text), self._ledger, self._note)

    @cached_property
    def _ledger(self) -> Tree:
        tree = Tree(statements.read_leaves(self._session, self._head.size))
        if tree.root != self._head.root:
            raise changed_values()
        return tree

    def _concerning(self, number: int) -> tuple[Logged, ...]:
        """The later entries that concern a deletion; of those of the files, the first that still counts."""
        later = [each for each in self._later if concerns(each.entry, number)]
        # Deleted bytes may have come back with a backup: what was compacted before a restore does not count.
        compacted = [
            each for each in later if each.entry.kind == "compacted" and each.entry.number > self._restored
        ]
        return (*compacted[:1], *(each for each in later if each.entry.kind != "compacted"))

    @cached_property
    def _later(self) -> list[Logged]:
        """All entries that may concern a deletion."""
        return list(map(self._logged, statements.envelopes_of(self._session, _LATER)))

    @cached_property
    def _restored(self) -> int:
        """The last entry of a restore; 0 if there is none."""
        found = statements.envelopes_of(self._session, ["restored"])
        return entry_in(found[-1]).number if found else 0

    def _openings(self, number: int, target: ErasureTarget) -> tuple[Opening, ...]:
        """The opening of a name in a request, and those of what is said of the request."""
        if self._last is None or self._last[0] != number:
            self._last = (number, *self._request(number))
        _, people, said = self._last
        try:
            return people.opening(self._keyring, number, target.kind, target.names[0]), *said
        except InvalidInputError as error:
            raise VaultError(str(error)) from None

    def _request(self, number: int) -> tuple[People, list[Opening]]:
        """The commitments of a request, and the openings of what is said of it."""
        found = statements.read(self._session, PeopleRow, number=number)
        if not found:
            raise changed_values()
        (row,) = found
        people, keyring = People(split(bytes(row.leaves))), self._keyring
        said = {} if row.said is None else keyring.decrypted(bytes(row.said), f"said of {number}")
        given = [(role, text) for role, text in said.items() if text is not None]
        return people, [people.opening(keyring, number, role, text) for role, text in given]
