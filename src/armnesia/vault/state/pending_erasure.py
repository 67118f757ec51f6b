"""Whether the erasure of forgotten people is complete: before that, a vault is not left behind."""

from armnesia.core.errors import VaultError
from armnesia.core.messages import counted
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables


def complete_erasure(connection: VaultConnection) -> None:
    """Make deleted bytes leave the files where the database can do so at once."""
    with connection.reading() as transaction:
        head = transaction.state.head
    connection.erase(head, wait=True)


def refuse_pending_erasure(connection: VaultConnection, transaction: Transaction) -> None:
    """Refuse a vault whose files may still have bytes of forgotten people."""
    waiting = tables.count_certificates_after(transaction.session, transaction.state.erased_through)
    if waiting:
        raise VaultError(
            f"erasure is pending for {counted(waiting, 'certificate')} of the vault"
            f" {connection.database.location!r}, and nobody would complete it there later: first run"
            f" {connection.database.erasure_steps}"
        )
