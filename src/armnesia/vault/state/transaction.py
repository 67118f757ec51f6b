"""A transaction on a vault: a session of the database, the keys, and the state."""

from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

from armnesia.vault.keys.canonical_json import utc_now
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Entry
from armnesia.vault.state.sealed_state import State, StoredState, store_statements
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session, Statement
from armnesia.vault.storage.schema import VERSION

CODE = f"armnesia {metadata.version('armnesia')}"
"""The code that writes an entry of the ledger."""


@dataclass
class Transaction:
    """One transaction; `state` is the one that it read or stored last."""

    session: Session
    all_keys: Keyring
    """Every key of the vault; one may be in the keys' file before it is in use."""
    state: State
    intact: bool = True
    """False if the stored state was changed by something else, and was replaced by a replayed one."""
    stored: StoredState | None = None
    """The rows of the state, if this transaction stored one."""

    @property
    def keyring(self) -> Keyring:
        """The keys that the state uses."""
        return self.state.keyring_in_use(self.all_keys)

    def store(self, state: State, *others: Statement, all_keys: Keyring | None = None) -> None:
        """Store a new state, together with other statements; `all_keys` has keys that are new in it."""
        self.all_keys = all_keys or self.all_keys
        statements, self.stored = store_statements(self.state, state, self.all_keys)
        self.session.execute_together([*others, *statements])
        self.state = replace(state, version=VERSION)


def append_entry(
    state: State, kind: str, *, new_signer: Keyring | None = None, **facts: Any
) -> tuple[Entry, State, Statement]:
    """The next entry of the ledger, the state with it, and the statement that stores it.

    An entry that puts a signing key in use is signed with it, by `new_signer`.
    """
    entry = Entry.next_after(
        state.head.sequence, state.head.hash, vault=state.vault, kind=kind, time=utc_now(), code=CODE, **facts
    )
    if new_signer is not None:
        entry = Entry({**entry.fields, "signed_by_new": new_signer.sign(entry.text.encode()).hex()})
    statement = tables.append_entry(entry.sequence, entry.text, entry.hash)
    return entry, replace(state, head=entry.head), statement
