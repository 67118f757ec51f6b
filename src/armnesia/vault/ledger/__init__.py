"""The append-only ledger, its pinned head, and the certificates that contain its entries."""
