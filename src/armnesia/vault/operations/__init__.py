"""What a vault does: one module for each operation; `Vault` has them as its methods."""

from armnesia.vault.operations import (  # noqa: F401 (for whoever imports this folder)
    arms,
    certificates,
    create,
    decide,
    erase,
    forget,
    ingest,
    ledger,
    policy,
    preview,
    readmit,
    restore,
    rotate,
    status,
    subject_requests,
    tokens,
    upkeep,
    verify,
)
