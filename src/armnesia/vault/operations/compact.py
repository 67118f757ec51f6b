"""Compacting: deleted bytes leave the database's files, however long it takes."""

from armnesia.core.errors import refuse_first
from armnesia.vault.results.upkeep import Compacted, CompactionEstimate
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.subject_requests import note_names_erased, requests_with_names_in_files
from armnesia.vault.storage.schema import WITH_SERVICE


def compact(connection: VaultConnection) -> Compacted:
    """Rewrite the database's files, and note how far their deleted bytes are erased."""
    with connection.reading() as transaction:
        session, head = transaction.session, transaction.state.head
        has_requests = transaction.state.version >= WITH_SERVICE
        answered = requests_with_names_in_files(session, transaction.keyring) if has_requests else []
        problems = connection.database.integrity_problems(session)
        refuse_first(
            problems,
            "{}; a copy would keep the damage: run armnesia rebuild first, and restore a backup if that is"
            " refused",
        )
    if not connection.database.compact():
        return Compacted("pending", connection.database.erasure_obstacle)
    connection.erased_at = head
    with connection.writing() as transaction:
        note_names_erased(transaction.session, transaction.keyring, answered)
        transaction.store(transaction.state)  # which has what this process knows of erasure
    return Compacted("complete")


def estimate_compaction(connection: VaultConnection) -> CompactionEstimate:
    """How long `compact` would take now, by a short trial."""
    return CompactionEstimate(*connection.database.compaction_cost())
