"""The append-only ledger as others build them, its journal, and the certificates of its entries."""
