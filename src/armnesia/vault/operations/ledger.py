"""Reading the ledger."""

from armnesia.vault.results.checks import LedgerEntries
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.storage import tables


def read_ledger(connection: VaultConnection, after: int = 0, most: int | None = None) -> LedgerEntries:
    """The entries of the ledger after one of them, in one transaction."""
    with connection.reading() as transaction:
        if after == 0 and most is None:
            return LedgerEntries(tuple(text for _, text, _ in tables.stream_ledger(transaction.session)))
        rows = tables.read_ledger_from(transaction.session, after + 1, most)
        return LedgerEntries(tuple(text for _, text, _ in rows))
