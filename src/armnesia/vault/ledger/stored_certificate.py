"""Certificates as the vault stores them: a sealed draft, or a signed certificate."""

from dataclasses import dataclass

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.vault.keys.canonical_json import read_json
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate, CertificateDraft, Erasure
from armnesia.vault.ledger.ledger import Entry


@dataclass(frozen=True)
class StoredCertificate:
    """A row of the table `certificate`; `issued` is None if the row is a draft."""

    draft: CertificateDraft
    issued: Certificate | None = None

    @classmethod
    def read(
        cls, sequence: int, body: object, signature: object, entry: str, ring: Keyring
    ) -> "StoredCertificate":
        """Read a row and the text of its ledger entry; refuse one that something else has changed."""
        try:
            if not isinstance(body, str) or not isinstance(signature, bytes | memoryview):
                raise VaultError("its body or its signature has another type")
            stored = cls._parse(body, bytes(signature), ring)
            if stored.draft.body["sequence"] != sequence:
                raise VaultError("it is stored under another entry than its own")
            if Entry(stored.draft.body["entry"]).text != entry:
                raise VaultError("its entry is not the one in the ledger")
        except (ArmnesiaError, KeyError, TypeError, ValueError) as error:
            reason = str(error) if isinstance(error, ArmnesiaError) else "a part is missing or invalid"
            raise VaultError(f"certificate {sequence}: {reason}") from None
        return stored

    @classmethod
    def _parse(cls, body: str, signature: bytes, ring: Keyring) -> "StoredCertificate":
        fields = read_json(body, "its body")
        if not isinstance(fields, dict):
            raise VaultError("its body must be a JSON object")
        if "signing_key" in fields:
            issued = Certificate.from_stored(body, signature)
            keys = [ring.public_key(version + 1) for version in range(ring.signing_version)]
            for problem in issued.verify(keys):
                raise VaultError(problem)
            return cls(issued.draft, issued)
        draft = CertificateDraft(fields)
        if draft.text != body or draft.seal(ring) != signature:
            raise VaultError("its seal does not match: the draft has been changed")
        return cls(draft)

    def issue(self, keyring: Keyring, *, erasure: Erasure) -> Certificate:
        """The certificate with this state of erasure: the stored one, or one that is signed now."""
        if self.issued is not None and self.issued.erasure == erasure:
            return self.issued
        return self.draft.issue(keyring, erasure=erasure)
