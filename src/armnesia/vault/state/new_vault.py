"""The place of a new vault: its database and the file of its keys, both made or neither."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

from armnesia.core.errors import VaultError, refuse_first
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.connection import pinned_head_of
from armnesia.vault.storage.database import Database, Session
from armnesia.vault.storage.opening import open_database
from armnesia.vault.storage.schema import TABLES, VERSION, RecordLayout
from armnesia.vault.storage.tables import create_tables


@contextmanager
def creating_vault(
    url: str,
    keys_path: Path,
    keyring: Keyring,
    layout: RecordLayout,
    *,
    timeout: float,
    save_keys: bool = True,
) -> Iterator[tuple[Database, Session]]:
    """Begin the transaction that creates a vault, with empty tables; a failure leaves no file behind.

    The caller pins the head afterwards. Without `save_keys` the file of the keys is there already.
    """
    if save_keys:
        _refuse_existing_keys(url, keys_path, timeout=timeout)
    database = open_database(url, create=True, timeout=timeout)
    with ExitStack() as undo:
        undo.callback(database.discard)
        if database.has_vault():
            raise VaultError(f"there is already a vault at {database.location!r}")
        if save_keys:
            keyring.save(keys_path)
            undo.callback(keys_path.unlink)
        with database.bulk_loading(), database.writing() as session:
            create_tables(session, layout)
            yield database, session
            problems = database.schema_problems(session, TABLES[layout, VERSION])
            refuse_first(problems, "{}; nothing was created")
        undo.pop_all()  # from here on there is a vault, and it needs its keys
    database.vault_created()


def refuse_existing_vault(url: str, keys_path: Path, *, timeout: float) -> None:
    """Refuse a place where there is a vault, or where none can be made; nothing is left there."""
    _refuse_existing_keys(url, keys_path, timeout=timeout)
    database = open_database(url, create=True, timeout=timeout)
    with ExitStack() as undo:
        undo.callback(database.discard)
        if database.has_vault():
            raise VaultError(f"there is already a vault at {database.location!r}")


def _refuse_existing_keys(url: str, path: Path, *, timeout: float) -> None:
    """Refuse a place where the keys or the pinned head of another vault are."""
    pinned_head = pinned_head_of(path.absolute())
    if path.exists():
        if (location := _vault_at(url, timeout)) is not None:
            raise VaultError(
                f"there is already a vault at {location!r}, and there are keys at {str(path)!r} already: a"
                " vault is created once; another one needs an address of its own"
            )
        complete = pinned_head.read() is not None  # it is written last
        hint = (
            ""
            if complete
            else "; if an init or a copy was interrupted, remove them and the unfinished database file"
        )
        raise VaultError(
            f"there are keys at {str(path)!r} already: a vault is created once; if they are those of another"
            f" vault, name a new file with --keys (of a copy: --new-keys){hint}"
        )
    if os.path.lexists(pinned_head.path):
        raise VaultError(
            f"there is a pinned head at {str(pinned_head.path)!r}, of a vault whose keys are not there; a new"
            " vault would be older than it: bring the keys back, or move the file away if that vault is gone"
        )


def _vault_at(url: str, timeout: float) -> str | None:
    """Where a vault is at this address; None if there is none, or if nobody can tell."""
    with suppress(VaultError), closing(open_database(url, timeout=timeout)) as database:
        return database.location if database.has_vault() else None
    return None
