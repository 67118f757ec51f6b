"""Certificates made by somebody who stole a signing key: any body, with a good signature."""

import json
from collections.abc import Mapping
from typing import Any

from armnesia.vault import Certificate, Keyring
from armnesia.vault.keys import signatures
from armnesia.vault.ledger.certificate import certificate_words
from armnesia.vault.ledger.certificate_text import claims_of
from armnesia.vault.ledger.ledger import Entry


def terms_of(kind: str, facts: Mapping[str, Any], covers: str) -> str:
    """The `terms` of an entry of this kind, whose certificate covers these files."""
    return certificate_words(tuple(claims_of(kind, facts).items()), covers).terms


def sign_again(certificate: Certificate, stolen: Keyring, version: int = 1, **changes: Any) -> Certificate:
    """The certificate with another body, signed with a stolen key; its opening stays."""
    seed = stolen.signing_keys[version - 1]
    body: dict[str, Any] = certificate.to_dict()["body"]
    body |= {"signing_key": {"version": version, "public": signatures.public_key(seed)}, **changes}
    body = {name: value for name, value in body.items() if value is not ...}  # `...` removes a part
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return Certificate(body, signatures.sign(text.encode(), seed), certificate.opening)


def about_another_entry(
    certificate: Certificate, stolen: Keyring, version: int = 1, *, issued_at: str | None = None, **facts: Any
) -> Certificate:
    """A certificate that is right in itself, about an entry that the ledger never had."""
    fields = {**certificate.body["entry"], **facts}
    covers = certificate.body["erasure"]["covers"]
    if "terms" in fields:
        fields["terms"] = terms_of(fields["kind"], fields, covers)
    entry = Entry(fields)
    changes: dict[str, Any] = {
        "claims": claims_of(entry.kind, entry.fields),
        "entry": dict(entry.fields),
        "entry_hash": entry.hash,
        "sequence": entry.sequence,
        "issued_at_head": issued_at or str(entry.head),
    }
    return sign_again(certificate, stolen, version, **changes)
