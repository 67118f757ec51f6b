"""A transaction on a vault: a session of the database, the keys, and the state."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from importlib import metadata
from typing import Any, TypeVar

from armnesia.core.errors import ArmnesiaError
from armnesia.vault.configuration import Configuration
from armnesia.vault.db import statements
from armnesia.vault.db.database import Row, Session
from armnesia.vault.db.schema import TABLES, EntryRow, PeopleRow, SuppressedRow
from armnesia.vault.keys.canonical_json import utc_now
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.envelope import Envelope
from armnesia.vault.ledger.journal import Line
from armnesia.vault.state.sealed_state import State, next_row

R = TypeVar("R", bound=tuple[Any, ...])
CODE = f"armnesia {metadata.version('armnesia')}"
"""The code that writes an entry of the ledger."""


@dataclass
class Transaction:
    """One transaction; `append` and `put` change `state`, which is stored at its end.

    Tables are changed at once, the one row of the state by `finish`.
    """

    session: Session
    all_keys: Keyring
    """Every key of the vault; one may be in the keys' file before it is in use."""
    state: State
    entries: list[Envelope] = field(default_factory=list)
    """What is new, for the journal."""
    suppressed: list[SuppressedRow] = field(default_factory=list)
    people: list[PeopleRow] = field(default_factory=list)
    last_proof: tuple[bytes, ...] | None = None
    """That the entry which was appended last is in the ledger: so its certificate needs no other entry."""

    @property
    def keyring(self) -> Keyring:
        """The keys that the state uses."""
        return self.state.keyring_in_use(self.all_keys)

    @property
    def line(self) -> Line:
        """What this transaction adds to the journal."""
        state, head = self.state, self.state.head
        new = tuple(self.entries), tuple(self.suppressed), tuple(self.people)
        return Line(state.vault, state.commits, head.size, head.root, *new)

    def append(
        self,
        kind: str,
        *,
        people: bytes | None = None,
        configuration: Configuration | None = None,
        signer: Keyring | None = None,
        **facts: Any,
    ) -> Entry:
        """Append an entry to the ledger.

        `people` is the root over those of a request; the subject of other entries is the configuration. A new
        `configuration` stands in its entry, and is in force from it on. So is the newest signing key of
        `signer`, which signs the entry that puts it in use.
        """
        if configuration is not None:
            facts["configuration"] = configuration.to_dict()
            self.state = self.state.changed(configuration=configuration)
        if signer is not None:
            self.state = self.state.changed(signing_key=signer.signing_version)
        state, keyring = self.state, signer or self.keyring
        entry = Entry(
            vault=state.vault,
            organisation=state.configuration.organisation,
            number=state.frontier.size + 1,
            time=utc_now(),
            code=CODE,
            signer=keyring.public_key(),
            kind=kind,
            subject=people or digest_of(state.configuration),
            facts=facts,
        )
        envelope = entry.signed(keyring.signing_keys[-1])
        self.session.execute_together([statements.insert(entry_row(entry, envelope))])
        self.entries.append(envelope)
        self.last_proof = tuple(reversed(state.frontier.hashes))
        self.state = state.changed(frontier=state.frontier.append(envelope.leaf))
        return entry

    def put(self, rows: Sequence[R], before: Iterable[R] = ()) -> None:
        """Store rows of one table, in the place of those with their keys that were there before."""
        if not rows:
            return
        self.session.execute_together(map(statements.put, rows))
        self.note(TABLES[type(rows[0])].name, [*before, *rows])
        self.suppressed += [row for row in rows if isinstance(row, SuppressedRow)]
        self.people += [row for row in rows if isinstance(row, PeopleRow)]

    def note(self, table: str, rows: Iterable[Row]) -> None:
        """Note rows that came into a table, or left it, in its check-sum."""
        check_sums = self.state.check_sums.update(self.keyring, table, rows)
        self.state = self.state.changed(check_sums=check_sums)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Do something that may be refused by an `ArmnesiaError`: then nothing of it is left.

        After any other error the whole transaction is rolled back anyway, and the database may have begun.
        """
        state, last_proof = self.state, self.last_proof
        new: tuple[list[Any], ...] = self.entries, self.suppressed, self.people
        sizes = [len(each) for each in new]
        try:
            with statements.savepoint(self.session):
                yield
        except ArmnesiaError:
            self.state, self.last_proof = state, last_proof
            for each, size in zip(new, sizes, strict=True):
                del each[size:]
            raise

    def finish(self) -> None:
        """Store the state, one commit later, under its seal."""
        row, self.state = next_row(self.state, self.keyring)
        self.session.execute_together([statements.put(row)])


def entry_row(entry: Entry, envelope: Envelope) -> EntryRow:
    """An entry as the database has it."""
    text = json.dumps(envelope.to_dict(), separators=(",", ":"))
    return EntryRow(entry.number, entry.kind, text, envelope.leaf)


def digest_of(configuration: Configuration) -> bytes:
    """The digest that is the subject of entries that are not about people."""
    return sha256(configuration.text.encode()).digest()
