"""Compacting: deleted bytes leave the database's files, however long it takes."""

from armnesia.core.errors import refuse_first
from armnesia.vault.results.upkeep import Compacted, CompactionEstimate
from armnesia.vault.state.connection import VaultConnection


def compact(connection: VaultConnection) -> Compacted:
    """Rewrite the database's files, and note how far their deleted bytes are erased."""
    with connection.reading() as transaction:
        head = transaction.state.head
        problems = connection.database.integrity_problems(transaction.session)
        refuse_first(problems, "{}; a copy would keep the damage: run armnesia rebuild first")
    if not connection.database.compact():
        return Compacted("pending", connection.database.erasure_obstacle)
    connection.erased_at = head
    with connection.writing() as transaction:
        transaction.store(transaction.state)  # which has what this process knows of erasure
    return Compacted("complete")


def estimate_compaction(connection: VaultConnection) -> CompactionEstimate:
    """How long `compact` would take now, by a short trial."""
    return CompactionEstimate(*connection.database.compaction_cost())
