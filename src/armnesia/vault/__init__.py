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
from armnesia.vault.results.changes import ArmChange, OfferedArm, OfferedArms, PolicyChange
from armnesia.vault.results.checks import LedgerCheck, LedgerEntries, Verification
from armnesia.vault.results.forgotten import Forgotten, Preview, Readmitted, TouchedDecision
from armnesia.vault.results.ingested import Ingested
from armnesia.vault.results.notes import OPERATOR_ONLY, SCREEN_ONLY
from armnesia.vault.results.served import Served, ServedDecisions
from armnesia.vault.results.sources import (
    DroppedSource,
    ErasurePreview,
    HeldSource,
    RowsAtSource,
    SourceErasure,
    SourceErasures,
)
from armnesia.vault.results.status import PendingErasures, Status, VaultIdentity
from armnesia.vault.results.upkeep import (
    BackedUp,
    Compacted,
    CompactionEstimate,
    Copied,
    Exported,
    Finished,
    Rebuilt,
    Restored,
    Rotated,
    SavedCertificates,
)
from armnesia.vault.state.connection import Accept
from armnesia.vault.state.request_options import ForgetRequest
from armnesia.vault.storage.opening import known_addresses
from armnesia.vault.subject_requests import Callback, SubjectRequest
from armnesia.vault.tokens import IssuedToken, Role, Token, Tokens
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
    "Callback",
    "Certificate",
    "CertificateCheck",
    "Compacted",
    "CompactionEstimate",
    "Configuration",
    "Copied",
    "DroppedSource",
    "Entry",
    "ErasurePreview",
    "Exported",
    "Finished",
    "ForgetRequest",
    "Forgotten",
    "Head",
    "HeldSource",
    "Ingested",
    "IssuedToken",
    "Keyring",
    "LedgerCheck",
    "LedgerCopy",
    "LedgerEntries",
    "OfferedArm",
    "OfferedArms",
    "PendingErasures",
    "Policy",
    "PolicyChange",
    "Preview",
    "PublicKeys",
    "Readmitted",
    "Rebuilt",
    "Restored",
    "Role",
    "Rotated",
    "RowsAtSource",
    "SavedCertificates",
    "Served",
    "ServedCheck",
    "ServedDecisions",
    "SignedDecisions",
    "SigningKey",
    "SourceErasure",
    "SourceErasures",
    "Status",
    "SubjectRequest",
    "Token",
    "Tokens",
    "TouchedDecision",
    "TrustedKeys",
    "UserType",
    "Vault",
    "VaultIdentity",
    "Verification",
    "known_addresses",
    "trusted_keys",
]
