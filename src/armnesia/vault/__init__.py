"""The persistent system: a log in a database that can forget people, with a ledger and certificates."""

from armnesia.core.identifiers import UserType
from armnesia.vault.arm_rules import ArmRule
from armnesia.vault.configuration import DEFAULT_CONFIDENCE, EXTERNAL, MANAGED, Configuration, Policy
from armnesia.vault.db.opening import known_addresses
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate, PublicKeys
from armnesia.vault.ledger.checkpoint import Checkpoint
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.signed_decisions import SignedDecisions
from armnesia.vault.operations.subject_requests import Callback, SubjectRequest
from armnesia.vault.operations.tokens import IssuedToken, Role, Token, Tokens
from armnesia.vault.results import (
    OPERATOR_ONLY,
    SCREEN_ONLY,
    ArmChange,
    Compacted,
    Forgotten,
    HeldSource,
    Ingested,
    LedgerCheck,
    LedgerEntries,
    OfferedArm,
    OfferedArms,
    PolicyChange,
    Preview,
    Readmitted,
    Restored,
    Rotated,
    SavedCertificates,
    SavedFile,
    Served,
    ServedDecisions,
    SourceErasures,
    Status,
    TouchedDecision,
    VaultIdentity,
    Verification,
)
from armnesia.vault.state.requests import ForgetRequest
from armnesia.vault.vault import DEFAULT_URL, Vault

__all__ = [
    "DEFAULT_CONFIDENCE",
    "DEFAULT_URL",
    "EXTERNAL",
    "MANAGED",
    "OPERATOR_ONLY",
    "SCREEN_ONLY",
    "ArmChange",
    "ArmRule",
    "Callback",
    "Certificate",
    "Checkpoint",
    "Compacted",
    "Configuration",
    "Entry",
    "ForgetRequest",
    "Forgotten",
    "HeldSource",
    "Ingested",
    "IssuedToken",
    "Keyring",
    "LedgerCheck",
    "LedgerEntries",
    "OfferedArm",
    "OfferedArms",
    "Policy",
    "PolicyChange",
    "Preview",
    "PublicKeys",
    "Readmitted",
    "Restored",
    "Role",
    "Rotated",
    "SavedCertificates",
    "SavedFile",
    "Served",
    "ServedDecisions",
    "SignedDecisions",
    "SourceErasures",
    "Status",
    "SubjectRequest",
    "Token",
    "Tokens",
    "TouchedDecision",
    "UserType",
    "Vault",
    "VaultIdentity",
    "Verification",
    "known_addresses",
]
