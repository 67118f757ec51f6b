"""Upkeep: compacting the files, backing them up, and exporting the ledger."""

from pathlib import Path

from armnesia.core.errors import InvalidInputError, VaultError, refuse_first
from armnesia.vault.keys import private_files
from armnesia.vault.ledger.journal import Journal
from armnesia.vault.results import Compacted, SavedFile
from armnesia.vault.state.connection import VaultConnection


def compact(connection: VaultConnection) -> Compacted:
    """Rewrite the database's files, and append an entry that claims it for all deletions before."""
    with connection.reading() as transaction:
        refuse_first(
            connection.database.integrity_problems(transaction.session),
            "{}; a copy would keep the damage: restore a backup first",
        )
        through = transaction.state.head.size
    connection.database.compact()
    with connection.writing() as transaction:
        entry = transaction.append("compacted", through=through)
    return Compacted(entry.number, transaction.state.head)


def back_up(connection: VaultConnection, path: str | Path) -> SavedFile:
    """Copy the vault into a new file; what others write meanwhile may be in it, too."""
    with connection.reading() as transaction:  # which refuses a vault that is damaged, or an old copy
        head = transaction.state.head
    connection.database.back_up(str(path))
    return SavedFile(Path(path), head)


def write_export(connection: VaultConnection, path: str | Path) -> SavedFile:
    """Write a line for each commit, without personal data; an existing file must be an older export."""
    path = Path(path)
    with connection.reading() as transaction:  # the journal has caught up
        head = transaction.state.head
    if path.exists() and not _is_export_of(path, connection.all_keys.vault):
        raise VaultError(f"{path} exists already and is no export of this vault; nothing was written")
    with (
        private_files.atomic_write(path, replace=True) as temporary,
        temporary.open("wb") as file,
    ):
        for line in connection.journal.lines():
            if line.size <= head.size:
                file.write(line.for_auditors().to_bytes())
    return SavedFile(path, head)


def _is_export_of(path: Path, vault: str) -> bool:
    try:
        lines = Journal(path).lines()  # a journal has lists, which must not be lost
        return all(line.vault == vault and line == line.for_auditors() for line in lines)
    except (VaultError, InvalidInputError):
        return False
