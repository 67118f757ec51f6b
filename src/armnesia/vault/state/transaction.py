"""A transaction on a vault: a session of the database, the keys, and the state."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from importlib import metadata
from typing import Any

from armnesia.core.errors import ArmnesiaError
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.canonical_json import utc_now
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.envelope import Envelope
from armnesia.vault.ledger.journal import Commitments, Digest, Line
from armnesia.vault.state.check_sums import CheckSums
from armnesia.vault.state.decisions import count_in_decisions
from armnesia.vault.state.sealed_state import State, next_row
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session, Statement
from armnesia.vault.storage.schema import DecisionRow, EntryRow, PeopleRow, SuppressedRow

CODE = f"armnesia {metadata.version('armnesia')}"
"""The code that writes an entry of the ledger."""


@dataclass
class Transaction:
    """One transaction; `state` is the one that it read or stored last.

    `append`, `add` and `suppress` collect what belongs to the next state; `store` sends it with the state, in
    one batch.
    """

    session: Session
    all_keys: Keyring
    """Every key of the vault; one may be in the keys' file before it is in use."""
    state: State
    collected: list[Statement] = field(default_factory=list)
    """What the next `store` sends with the state."""
    entries: list[Envelope] = field(default_factory=list)
    """The entries that were appended, for the journal."""
    suppressed: list[Digest] = field(default_factory=list)
    readmitted: list[Digest] = field(default_factory=list)
    people: list[Commitments] = field(default_factory=list)
    last_proof: tuple[bytes, ...] | None = None
    """The proof that the entry which was appended last is in the ledger."""

    @cached_property
    def keyring(self) -> Keyring:
        """The keys that the state uses."""
        return self.state.keyring_in_use(self.all_keys)

    @property
    def line(self) -> Line:
        """What this transaction adds to the journal."""
        state, head = self.state, self.state.head
        return Line(
            *(state.vault, state.commits, head.size, head.root, tuple(self.entries)),
            *(tuple(self.suppressed), tuple(self.readmitted), tuple(self.people)),
        )

    def count_records(self) -> int:
        """How many records are counted, in all decisions together."""
        return count_in_decisions(tables.stream(self.session, DecisionRow))

    def append(
        self,
        kind: str,
        *,
        people: bytes | None = None,
        configuration: Configuration | None = None,
        signer: Keyring | None = None,
        **facts: Any,
    ) -> Entry:
        """Append an entry to the ledger, with the next `store`.

        `people` is the root over those of a request; the subject of other entries is the `configuration`,
        which stands in the entry if it is a new one. One that puts a signing key in use is signed by
        `signer`.
        """
        state, keyring = self.state, signer or self.keyring
        if configuration is not None:
            facts["configuration"] = configuration.to_dict()
        entry = Entry(
            vault=state.vault,
            organisation=state.configuration.organisation,
            number=state.frontier.size + 1,
            time=utc_now(),
            code=CODE,
            signer=keyring.public_key(),
            kind=kind,
            subject=people or digest_of(configuration or state.configuration),
            facts=facts,
        )
        self.append_signed(entry, entry.signed(keyring.signing_keys[-1]))
        return entry

    def append_signed(self, entry: Entry, envelope: Envelope) -> None:
        """Append an entry as it was signed."""
        self.collected.append(tables.insert(entry_row(entry, envelope)))
        self.entries.append(envelope)
        self.last_proof = tuple(reversed(self.state.frontier.hashes))
        self.state = self.state.changed(frontier=self.state.frontier.append(envelope.leaf))

    def add(self, *statements: Statement) -> None:
        """Add statements to the batch of the next `store`."""
        self.collected += statements

    def put_suppressed(
        self, before: Iterable[SuppressedRow], after: Iterable[SuppressedRow], check_sums: CheckSums
    ) -> CheckSums:
        """Put rows in the place of others of the suppression list, with the next `store`."""
        rows = list(after)
        for digest, kind, since, readmitted in rows:
            to, number = (self.suppressed, since) if readmitted is None else (self.readmitted, readmitted)
            to.append((kind, digest.hex(), number))
        self.add(*map(tables.put, rows))
        return check_sums.update(self.keyring, "suppressed", [*before, *rows])

    def put_people(self, row: PeopleRow, check_sums: CheckSums) -> CheckSums:
        """Store the commitments of a request, with the next `store`."""
        self.add(tables.insert(row))
        self.people.append(journal_row(row))
        return check_sums.update(self.keyring, "people", [row])

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Do something that may be refused by an `ArmnesiaError`: then nothing of it is left.

        After any other error the whole transaction is rolled back anyway, and the database may have begun.
        """
        lists = ("collected", "entries", "suppressed", "readmitted", "people")
        before = {**vars(self), **{name: [*getattr(self, name)] for name in lists}}
        try:
            with tables.savepoint(self.session):
                yield
        except ArmnesiaError:
            vars(self).clear()
            vars(self).update(before)
            raise

    def store(
        self, state: State, *, check_sums: CheckSums | None = None, all_keys: Keyring | None = None
    ) -> None:
        """Store a new state, with the entries that were appended.

        `check_sums` are those of its tables, if they changed; `all_keys` has keys that are new in it.
        """
        self.all_keys = all_keys or self.all_keys
        self.keyring = state.keyring_in_use(self.all_keys)
        changes = {} if check_sums is None else {"check_sums": check_sums}
        later = state.changed(frontier=self.state.frontier, commits=self.state.commits, **changes)
        row, self.state = next_row(later, self.keyring)
        self.session.execute_together([*self.collected, tables.put(row)])
        self.collected = []


def entry_row(entry: Entry, envelope: Envelope) -> EntryRow:
    """An entry as the database has it."""
    text = json.dumps(envelope.to_dict(), separators=(",", ":"))
    return EntryRow(entry.number, entry.kind, text, envelope.leaf)


def journal_row(row: PeopleRow) -> Commitments:
    """Commitments of the database as the journal has them."""
    number, *others = row
    leaves, said, case = ("" if each is None else bytes(each).hex() for each in others)
    return number, leaves, said, case


def people_row(commitments: Commitments) -> PeopleRow:
    """Commitments of the journal as the database has them.

    >>> people_row(journal_row(PeopleRow(7, b"leaves", None, None)))
    PeopleRow(number=7, leaves=b'leaves', said=None, case_digest=None)
    """
    number, leaves, said, case = commitments
    return PeopleRow(number, bytes.fromhex(leaves), bytes.fromhex(said) or None, bytes.fromhex(case) or None)


def digest_of(configuration: Configuration) -> bytes:
    """The digest that is the subject of entries that are not about people."""
    return sha256(configuration.text.encode()).digest()
