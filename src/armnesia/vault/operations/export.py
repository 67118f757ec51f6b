"""Exporting: a file for an auditor, or one that brings a backup up to date."""

from pathlib import Path
from typing import Any

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.vault.keys import private_files
from armnesia.vault.keys.canonical_json import canonical, plain, read_json
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Erasure
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.ledger.ledger_copy import EXPORT_SCHEMA as SCHEMA
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.operations.certificates import covered_files
from armnesia.vault.operations.public_keys import read_public_keys
from armnesia.vault.results import Exported
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.transaction import CODE, Transaction
from armnesia.vault.storage import tables

_LARGEST = 1 << 32


def export_of(connection: VaultConnection, *, for_restore: bool = False) -> dict[str, Any]:
    """The ledger, the certificates without openings, public keys and parameters: no personal data.

    With `for_restore` also the suppression list and the answered requests, as keyed digests: whoever has the
    keys can test with them whether a person was forgotten. Protect such an export as you protect the vault.
    """
    with connection.reading() as transaction:
        state, session, ring = transaction.state, transaction.session, transaction.ring
        ledger = tables.read_ledger(session)
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "code": CODE,
            "vault": state.vault,
            "configuration": state.configuration.to_dict(),
            "head": str(state.head),
            "public_keys": [connection.keyring.public_key(v + 1) for v in range(state.signing_key)],
            "ledger": [{"sequence": n, "entry": entry, "hash": hash_} for n, entry, hash_ in ledger],
            "certificates": _certificates(connection, transaction, {n: entry for n, entry, _ in ledger}),
        }
        if for_restore:
            document["digest_key"] = state.digest_key
            for name, table in (("suppressed", "suppressed"), ("requests", "request")):
                rows = tables.read_table(session, table)
                document[name] = [[bytes(digest).hex(), *rest] for digest, *rest in rows]
            trees = tables.read_table(session, "tree")
            document["trees"] = [[sequence, bytes(leaves).hex()] for sequence, leaves in trees]
            document["seal"] = ring.seal(canonical(document)).hex()
    return document


def _certificates(
    connection: VaultConnection, transaction: Transaction, entries: dict[int, str]
) -> list[dict[str, Any]]:
    """The certificates of all entries; those that were never handed out are signed for the export."""
    erased_through, ring = transaction.state.erased_through, transaction.ring
    keys = read_public_keys(connection, transaction)
    written = []
    for sequence, body, signature in tables.stream_certificates(transaction.session):
        stored = StoredCertificate.read(sequence, body, signature, entries.get(sequence, ""), ring)
        certificate = stored.valid(keys)
        if certificate is None:
            erasure: Erasure = "complete" if erased_through >= sequence else "pending"
            certificate = stored.issue(ring, keys, erasure=erasure, covers=covered_files(connection, stored))
        written.append(
            {
                "sequence": sequence,
                "body": plain(certificate.body),
                "signature": certificate.signature.hex(),
            }
        )
    return written


def write_export(connection: VaultConnection, path: str | Path, *, for_restore: bool = False) -> Exported:
    """Write the export to a file that only its owner can read; an existing file must be an older export."""
    document = export_of(connection, for_restore=for_restore)
    if Path(path).exists() and not _is_export(path, document["vault"]):
        raise VaultError(f"{path} exists already and is no export of this vault; nothing was written")
    private_files.write(path, canonical(document) + "\n", replace=True)
    return Exported(
        Path(path),
        Head.parse(document["head"]),
        len(document["ledger"]),
        len(document["certificates"]),
        for_restore,
    )


def _is_export(path: str | Path, vault: str) -> bool:
    try:
        found = read_json(Path(path).read_text(encoding="utf-8"), str(path))
    except (OSError, ValueError, ArmnesiaError):
        return False
    return isinstance(found, dict) and (found.get("schema"), found.get("vault")) == (SCHEMA, vault)


def read_export(path: str | Path, keyring: Keyring) -> dict[str, Any]:
    """Read an export for restoring; refuse one of another vault, or one that was changed since."""
    document = read_json(private_files.read(path, largest=_LARGEST), str(path))
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise VaultError(f"{path} is not an export of a vault")
    if "suppressed" not in document:
        raise VaultError(f"{path} is an auditor's export, without the suppression list; restoring needs it")
    if document.get("vault") != keyring.vault:
        raise VaultError(f"{path} is the export of another vault")
    sealed = {name: value for name, value in document.items() if name != "seal"}
    version = document.get("digest_key")
    ring = keyring.at(digest_version=version if isinstance(version, int) else 0, signing_version=1)
    if document.get("seal") != ring.seal(canonical(sealed)).hex():
        raise VaultError(f"{path} was changed after it was exported")
    return document
