"""Whether the erasure of deleted and corrected rows is complete: before that, a vault is not left behind."""

from armnesia.core.errors import VaultError
from armnesia.core.messages import all_of, counted
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables


def complete_erasure(connection: VaultConnection) -> None:
    """Make deleted bytes leave the files where the database can do so at once."""
    with connection.reading() as transaction:
        head = transaction.state.head
    connection.erase(head, wait=True)


def refuse_pending_erasure(connection: VaultConnection, transaction: Transaction) -> None:
    """Refuse a vault whose files may still have bytes of forgotten people or of rows that were corrected."""
    session, through = transaction.session, transaction.state.erased_through
    if tables.count_erasures_after(session, through):
        numbers = {
            "certificate": tables.count_certificates_after(session, through),
            "correction": tables.count_corrections_after(session, through),
        }
        waiting = all_of(counted(number, noun) for noun, number in numbers.items() if number)
        raise VaultError(
            f"erasure is pending for {waiting} of the vault"
            f" {connection.database.location!r}, and nobody would complete it there later: first run"
            f" {connection.database.erasure_steps}"
        )
