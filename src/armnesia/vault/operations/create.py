"""Making a vault: its tables, its keys and its first entry, or nothing at all."""

import uuid
from contextlib import ExitStack
from pathlib import Path

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.randomness import secret_bytes
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import GENESIS, Head
from armnesia.vault.state.connection import Opened, appended, keys_path_of, pin_of
from armnesia.vault.state.sealed_state import State, new_stream
from armnesia.vault.state.table_digests import Tallies
from armnesia.vault.storage.database import open_database
from armnesia.vault.storage.schema import VERSION, create_tables


def create_vault(
    url: str, configuration: Configuration, keys: str | Path | None = None, *, timeout: float = 30.0
) -> Opened:
    """Make a new vault and its keys; where that fails, no file is left behind.

    >>> create_vault("sqlite:///no-such-folder/vault.db", Configuration(actions=("A", "B")))
    Traceback (most recent call last):
    armnesia.core.errors.VaultError: the file 'no-such-folder/vault.db' cannot be made: No such file
    or directory
    """
    if "" in (configuration.actions or ()):
        raise InvalidInputError("an action must have a name, which others can be told; got an empty one")
    path = keys_path_of(url, keys)
    if path.exists():
        complete = pin_of(path).read() is not None  # it is the last thing that is written
        hint = "" if complete else "; if an init was interrupted, remove them and the empty database file"
        raise VaultError(f"there are keys at {str(path)!r} already: a vault is made once{hint}")
    database = open_database(url, create=True, timeout=timeout)
    with ExitStack() as undoing:
        undoing.callback(database.discard)
        if database.has_tables():
            raise VaultError(f"there is already a vault at {database.location!r}")
        keyring = Keyring.create(str(uuid.UUID(bytes=secret_bytes(16), version=4)))
        keyring.save(path)
        undoing.callback(path.unlink)
        absolute = path.absolute()
        opened = Opened(database, keyring, absolute, pin_of(absolute), configuration.mode)
        state = _write_first_state(opened, configuration)
        undoing.pop_all()  # from here on there is a vault, and it needs its keys
    database.has_tables()  # from now on writers take the lock of its row
    opened.pin.write(state.head)
    return opened


def _write_first_state(opened: Opened, configuration: Configuration) -> State:
    stream = new_stream(configuration)
    nothing = State(
        *(opened.keyring.vault, VERSION, configuration, None, None, "default", Head(0, GENESIS), 0, 1, 1),
        tallies=Tallies(),
    )
    first = nothing if stream is None else nothing.with_stream(stream)
    _, state, to_ledger = appended(
        first, "init", configuration=configuration.to_facts(), public_key=opened.keyring.public_key()
    )
    with opened.writing() as session:
        create_tables(session, opened.database, configuration.mode)
        opened.store(session, None, state, to_ledger)
    return state
