"""The persistent system: a log that can forget people, with a ledger and certificates."""

from armnesia.vault.configuration import Configuration, Policy
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.ledger import Entry, Head
from armnesia.vault.operations.forget import Forgotten, Preview
from armnesia.vault.operations.ingest import Ingested
from armnesia.vault.operations.status import Served, Status
from armnesia.vault.operations.verify import Verification
from armnesia.vault.vault import DEFAULT_URL, Vault

__all__ = [
    "DEFAULT_URL",
    "Certificate",
    "Configuration",
    "Entry",
    "Forgotten",
    "Head",
    "Ingested",
    "Keyring",
    "Policy",
    "Preview",
    "Served",
    "Status",
    "Vault",
    "Verification",
]
