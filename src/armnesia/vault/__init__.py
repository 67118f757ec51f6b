"""The persistent system: a log in a database that can forget people, with a ledger and certificates."""

from armnesia.core.identifiers import UserType
from armnesia.vault.arm_rules import ArmRule
from armnesia.vault.configuration import DEFAULT_CONFIDENCE, EXTERNAL, MANAGED, Configuration, Policy
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.certificate_check import INTEGRITY_ONLY, CertificateCheck
from armnesia.vault.ledger.ledger import Entry, Head
from armnesia.vault.ledger.ledger_copy import LedgerCopy
from armnesia.vault.ledger.public_keys import BareKeys, PublicKeys, SigningKey, TrustedKeys, trusted_keys
from armnesia.vault.ledger.signed_decisions import ServedCheck, SignedDecisions
from armnesia.vault.operations.forget import ForgetRequest
from armnesia.vault.results import (
    OPERATOR_ONLY,
    SCREEN_ONLY,
    ArmChange,
    BackedUp,
    Compacted,
    CompactionEstimate,
    Copied,
    Exported,
    Finished,
    Forgotten,
    Ingested,
    LedgerCheck,
    LedgerEntries,
    OfferedArm,
    OfferedArms,
    PolicyChange,
    Preview,
    Readmitted,
    Rebuilt,
    Restored,
    Rotated,
    SavedCertificates,
    Served,
    ServedDecisions,
    Status,
    TouchedDecision,
    Upgraded,
    VaultIdentity,
    Verification,
)
from armnesia.vault.state.connection import Accept
from armnesia.vault.storage.opening import known_addresses
from armnesia.vault.vault import DEFAULT_URL, Vault

__all__ = [
    "DEFAULT_CONFIDENCE",
    "DEFAULT_URL",
    "EXTERNAL",
    "INTEGRITY_ONLY",
    "MANAGED",
    "OPERATOR_ONLY",
    "SCREEN_ONLY",
    "Accept",
    "ArmChange",
    "ArmRule",
    "BackedUp",
    "BareKeys",
    "Certificate",
    "CertificateCheck",
    "Compacted",
    "CompactionEstimate",
    "Configuration",
    "Copied",
    "Entry",
    "Exported",
    "Finished",
    "ForgetRequest",
    "Forgotten",
    "Head",
    "Ingested",
    "Keyring",
    "LedgerCheck",
    "LedgerCopy",
    "LedgerEntries",
    "OfferedArm",
    "OfferedArms",
    "Policy",
    "PolicyChange",
    "Preview",
    "PublicKeys",
    "Readmitted",
    "Rebuilt",
    "Restored",
    "Rotated",
    "SavedCertificates",
    "Served",
    "ServedCheck",
    "ServedDecisions",
    "SignedDecisions",
    "SigningKey",
    "Status",
    "TouchedDecision",
    "TrustedKeys",
    "Upgraded",
    "UserType",
    "Vault",
    "VaultIdentity",
    "Verification",
    "known_addresses",
    "trusted_keys",
]
