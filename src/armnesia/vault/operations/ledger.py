"""Reading the ledger."""

from armnesia.vault.results import LedgerEntries
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.storage import tables


def read_ledger(connection: VaultConnection) -> LedgerEntries:
    """The entries of the ledger, from the first, in one transaction."""
    with connection.reading() as transaction:
        return LedgerEntries(tuple(text for _, text, _ in tables.stream_ledger(transaction.session)))
