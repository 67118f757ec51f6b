"""The persistent system: a log that can forget people, with a ledger and certificates."""

from armnesia.vault.certificate import Certificate
from armnesia.vault.configuration import Configuration, Policy
from armnesia.vault.forgetting import Forgotten, Preview
from armnesia.vault.ingesting import Ingested
from armnesia.vault.keyring import Keyring
from armnesia.vault.ledger import Entry, Head
from armnesia.vault.status import Served, Status
from armnesia.vault.vault import DEFAULT_URL, Vault
from armnesia.vault.verifying import Verification

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
