"""Reading the ledger."""

from armnesia.vault.ledger.ledger import Entry
from armnesia.vault.results import LedgerEntries
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.storage import tables


def read_ledger(connection: VaultConnection) -> LedgerEntries:
    """The entries of the ledger, from the first, in one transaction."""
    with connection.reading() as transaction:
        rows = tables.read_ledger(transaction.session)
    return LedgerEntries(tuple(Entry.from_text(text) for _, text, _ in rows))
