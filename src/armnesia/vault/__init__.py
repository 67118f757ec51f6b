"""The persistent system: a log in a database that can forget people, with a ledger and certificates."""

from armnesia.core.identifiers import UserType
from armnesia.vault.configuration import DEFAULT_CONFIDENCE, EXTERNAL, MANAGED, Configuration, Policy
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import INTEGRITY_ONLY, Certificate
from armnesia.vault.ledger.ledger import Entry, Head
from armnesia.vault.results import (
    OPERATOR_ONLY,
    SCREEN_ONLY,
    BackedUp,
    Compacted,
    Exported,
    Forgotten,
    Ingested,
    LedgerCheck,
    LedgerEntries,
    PolicyChange,
    Preview,
    PublicKeys,
    Readmitted,
    Rebuilt,
    Restored,
    Rotated,
    Served,
    Status,
    Upgraded,
    Verification,
)
from armnesia.vault.vault import DEFAULT_URL, Vault

__all__ = [
    "DEFAULT_CONFIDENCE",
    "DEFAULT_URL",
    "EXTERNAL",
    "INTEGRITY_ONLY",
    "MANAGED",
    "OPERATOR_ONLY",
    "SCREEN_ONLY",
    "BackedUp",
    "Certificate",
    "Compacted",
    "Configuration",
    "Entry",
    "Exported",
    "Forgotten",
    "Head",
    "Ingested",
    "Keyring",
    "LedgerCheck",
    "LedgerEntries",
    "Policy",
    "PolicyChange",
    "Preview",
    "PublicKeys",
    "Readmitted",
    "Rebuilt",
    "Restored",
    "Rotated",
    "Served",
    "Status",
    "Upgraded",
    "UserType",
    "Vault",
    "Verification",
]
