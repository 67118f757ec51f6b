"""Creating a vault: its tables, its keys and its first ledger entry, or nothing at all."""

import os
import uuid
from contextlib import ExitStack
from pathlib import Path

from armnesia.core.errors import InvalidInputError, VaultError, refuse_first
from armnesia.core.randomness import secret_bytes
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import GENESIS, Entry, Head
from armnesia.vault.state.connection import VaultConnection, keys_path_of, pinned_head_of
from armnesia.vault.state.record_modes import RECORDS
from armnesia.vault.state.sealed_state import State, store_statements
from armnesia.vault.state.transaction import next_entry
from armnesia.vault.storage.opening import open_database
from armnesia.vault.storage.schema import TABLES, VERSION
from armnesia.vault.storage.tables import create_tables, insert_entry


def create_vault(
    url: str, configuration: Configuration, keys: str | Path | None = None, *, timeout: float = 30.0
) -> VaultConnection:
    """Create a vault and its keys; a failure leaves no file behind.

    >>> create_vault("sqlite:///no-such-folder/vault.db", Configuration(actions=("A", "B")))
    Traceback (most recent call last):
    armnesia.core.errors.VaultError: the file 'no-such-folder/vault.db' cannot be made: No such file
    or directory
    """
    if "" in (configuration.actions or ()):
        raise InvalidInputError("an action must have a name; got an empty one")
    path = keys_path_of(url, keys)
    pinned_head = pinned_head_of(path.absolute())
    if path.exists():
        complete = pinned_head.read() is not None  # it is written last
        hint = "" if complete else "; if an init was interrupted, remove them and the empty database file"
        raise VaultError(f"there are keys at {str(path)!r} already: a vault is created once{hint}")
    if os.path.lexists(pinned_head.path):
        raise VaultError(
            f"there is a pinned head at {str(pinned_head.path)!r}, of a vault whose keys are not there; a new"
            " vault would be older than it: bring the keys back, or move the file away if that vault is gone"
        )
    database = open_database(url, create=True, timeout=timeout)
    with ExitStack() as undo:
        undo.callback(database.discard)
        if database.has_vault():
            raise VaultError(f"there is already a vault at {database.location!r}")
        keyring = Keyring.create(str(uuid.UUID(bytes=secret_bytes(16), version=4)))
        keyring.save(path)
        undo.callback(path.unlink)
        records = RECORDS[configuration.mode, bool(configuration.by)]
        entry, state = _first_state(configuration, keyring)
        statements, _, state = store_statements(None, state, keyring)
        with database.writing() as session:
            create_tables(session, records.layout)
            to_ledger = insert_entry(entry.sequence, entry.text, entry.hash)
            session.execute_together([to_ledger, *statements])
            problems = database.schema_problems(session, TABLES[records.layout, VERSION])
            refuse_first(problems, "{}; nothing was created")
        undo.pop_all()  # from here on there is a vault, and it needs its keys
    database.vault_created()
    pinned_head.write(state.head)
    return VaultConnection(database, keyring, path.absolute(), pinned_head, records)


def _first_state(configuration: Configuration, keyring: Keyring) -> tuple[Entry, State]:
    """The first ledger entry, and the state with it."""
    entry = next_entry(
        keyring.vault,
        Head(0, GENESIS),
        "init",
        configuration=configuration.to_dict(),
        public_key=keyring.public_key(),
        digest_key_check=keyring.digest_check(1),
    )
    return entry, State.initial(keyring.vault, configuration, entry.head)
