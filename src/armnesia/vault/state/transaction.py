"""A transaction on a vault: a session of the database, the keys, and the state."""

from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from armnesia.vault.keys.canonical_json import utc_now
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Entry, Head
from armnesia.vault.state.sealed_state import State, StoredState, store_statements
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session, Statement

CODE = f"armnesia {metadata.version('armnesia')}"
"""The code that writes an entry of the ledger."""


@dataclass
class Transaction:
    """One transaction; `state` is the one that it read or stored last.

    `append` and `add` collect what belongs to the next state; `store` sends it with the state, in one batch.
    """

    session: Session
    all_keys: Keyring
    """Every key of the vault; one may be in the keys' file before it is in use."""
    state: State
    intact: bool = True
    """False if the stored state was changed by something else, and was replaced by a replayed one."""
    stored: StoredState | None = None
    """The rows of the state, if this transaction stored one."""
    collected: list[Statement] = field(default_factory=list)
    """What the next `store` sends with the state."""
    _appended: Head | None = None
    """The head of the ledger with the entries that were appended since the last `store`."""

    @property
    def keyring(self) -> Keyring:
        """The keys that the state uses."""
        return self.state.keyring_in_use(self.all_keys)

    def append(self, kind: str, *, new_signer: Keyring | None = None, **facts: Any) -> Entry:
        """Append an entry to the ledger, with the next `store`.

        An entry that puts a signing key in use is signed with it, by `new_signer`.
        """
        head = self._appended or self.state.head
        entry = next_entry(self.state.vault, head, kind, new_signer=new_signer, **facts)
        self.add(tables.insert_entry(entry.sequence, entry.text, entry.hash))
        self._appended = entry.head
        return entry

    def add(self, *statements: Statement) -> None:
        """Add statements to the batch of the next `store`."""
        self.collected += statements

    def store(self, state: State, *, all_keys: Keyring | None = None) -> None:
        """Store a new state, at the head of the appended entries; `all_keys` has keys that are new in it."""
        self.all_keys = all_keys or self.all_keys
        head, keyring = self._appended or state.head, state.keyring_in_use(self.all_keys)
        statements, self.stored, self.state = store_statements(self.state, state, head, keyring)
        self.session.execute_together([*self.collected, *statements])
        self.collected, self._appended = [], None


def next_entry(
    vault: str, head: Head, kind: str, *, new_signer: Keyring | None = None, **facts: Any
) -> Entry:
    """The entry of the ledger that follows a head, written now by this code."""
    entry = Entry.next_after(
        head.sequence, head.hash, vault=vault, kind=kind, time=utc_now(), code=CODE, **facts
    )
    if new_signer is None:
        return entry
    return Entry({**entry.fields, "signed_by_new": new_signer.sign(entry.text.encode()).hex()})
