"""What leaves the vault: for an auditor, and for restoring a backup."""

import json
from pathlib import Path
from typing import Any

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.vault.keys import private_files
from armnesia.vault.keys.canonical_json import canonical, read_json
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.connection import CODE, Opened

SCHEMA = "armnesia.export/1"
_LARGEST = 1 << 32


def export_of(opened: Opened, *, for_restore: bool = False) -> dict[str, Any]:
    """The ledger, the certificates without their openings, public keys and parameters: no personal data.

    With `for_restore` also the suppression list and the answered requests, as keyed digests: whoever has the
    keys can test with them whether somebody was forgotten. Keep such an export as you keep the vault.
    """
    with opened.reading() as session:
        state = opened.load(session)
        document: dict[str, Any] = {
            "schema": SCHEMA,
            "code": CODE,
            "vault": state.vault,
            "configuration": state.configuration.to_facts(),
            "head": str(state.head),
            "public_keys": [opened.keyring.public_key(v + 1) for v in range(state.signing_key)],
            "ledger": [
                {"sequence": sequence, "entry": entry, "hash": hash_}
                for sequence, entry, hash_ in session.query(
                    "SELECT sequence, entry, hash FROM ledger ORDER BY sequence"
                )
            ],
            "certificates": [
                {"sequence": sequence, "body": json.loads(body), "signature": bytes(signature).hex()}
                for sequence, body, signature in session.query(
                    "SELECT sequence, body, signature FROM certificate ORDER BY sequence"
                )
            ],
        }
        if for_restore:
            document["digest_key"] = state.digest_key
            document["suppressed"] = [
                [bytes(digest).hex(), *rest]
                for digest, *rest in session.query(
                    "SELECT digest, kind, since, readmitted FROM suppressed ORDER BY digest"
                )
            ]
            document["requests"] = [
                [bytes(digest).hex(), *rest]
                for digest, *rest in session.query(
                    "SELECT digest, sequence, opening FROM request ORDER BY digest"
                )
            ]
            document["trees"] = [
                [sequence, bytes(leaves).hex()]
                for sequence, leaves in session.query("SELECT sequence, leaves FROM tree ORDER BY sequence")
            ]
            document["seal"] = opened.ring(state).seal(canonical(document)).hex()
    return document


def write_export(opened: Opened, path: str | Path, *, for_restore: bool = False) -> dict[str, Any]:
    """Write the export to a file, readable by its owner only; one that is there must be an older export."""
    document = export_of(opened, for_restore=for_restore)
    if Path(path).exists() and not _is_export(path, document["vault"]):
        raise VaultError(f"{path} exists already and is no export of this vault; nothing was written")
    private_files.write(path, canonical(document) + "\n", replace=True)
    return document


def _is_export(path: str | Path, vault: str) -> bool:
    try:
        found = read_json(Path(path).read_text(encoding="utf-8"), str(path))
    except (OSError, ValueError, ArmnesiaError):
        return False
    return isinstance(found, dict) and (found.get("schema"), found.get("vault")) == (SCHEMA, vault)


def read_export(path: str | Path, keyring: Keyring) -> dict[str, Any]:
    """Read an export that was made for restoring, by the vault of these keys, and not changed since."""
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
