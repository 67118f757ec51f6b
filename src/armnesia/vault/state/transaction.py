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
    keyring: Keyring
    ring: Keyring
    """The keys that the state used when the transaction began."""
    state: State
    intact: bool = True
    """False if the stored state was changed by something else, and was replaced by a replayed one."""
    stored: StoredState | None = None
    """The rows of the state, if this transaction stored one."""

    def store(self, state: State, *others: Statement) -> None:
        """Store a new state, together with other statements."""
        statements, self.stored = store_statements(self.state, state, self.keyring)
        self.session.execute_together([*others, *statements])
        self.state = replace(state, version=VERSION)


def ring_of(keyring: Keyring, state: State) -> Keyring:
    """The keys that a state uses: a key may be in the keys' file before it is in use."""
    return keyring.at(
        digest_version=state.digest_key,
        signing_version=state.signing_key,
        rotated_below=state.rotated_below,
    )


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
