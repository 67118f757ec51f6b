"""Backing up: a copy of the vault as of one moment."""

from pathlib import Path

from armnesia.vault.ledger.ledger import Head
from armnesia.vault.results.upkeep import BackedUp
from armnesia.vault.state.connection import VaultConnection


def back_up(connection: VaultConnection, path: str | Path) -> BackedUp:
    """Copy the vault into a new file; the head is read from the copy, because others may write meanwhile."""
    with connection.reading():
        pass  # which refuses a vault that is damaged, or an old copy
    length, hash_ = connection.database.back_up(str(path))
    return BackedUp(Path(path), Head(length, hash_))
