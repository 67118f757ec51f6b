"""Certificates as the vault stores them: a sealed draft, or a certificate that was issued."""

from dataclasses import dataclass

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.vault.keys.canonical_json import read_json
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate, CertificateDraft, Erasure
from armnesia.vault.ledger.ledger import Entry


@dataclass(frozen=True)
class StoredCertificate:
    """What a row of the table `certificate` means; `issued` is None while it is a draft."""

    draft: CertificateDraft
    issued: Certificate | None = None

    @classmethod
    def read(
        cls, sequence: int, body: str, signature: bytes, entry: str, keyring: Keyring
    ) -> "StoredCertificate":
        """Read a row and the text of its ledger entry; refuse one that something else has changed."""
        try:
            stored = cls._parse(body, bytes(signature), keyring)
            if stored.draft.body["sequence"] != sequence:
                raise VaultError("it is stored under another entry than its own")
            if Entry(stored.draft.body["entry"]).text != entry:
                raise VaultError("its entry is not the one in the ledger")
        except (ArmnesiaError, KeyError, TypeError) as error:
            reason = str(error) if isinstance(error, ArmnesiaError) else "it lacks a part"
            raise VaultError(f"certificate {sequence}: {reason}") from None
        return stored

    @classmethod
    def _parse(cls, body: str, signature: bytes, keyring: Keyring) -> "StoredCertificate":
        fields = read_json(body, "its body")
        if not isinstance(fields, dict):
            raise VaultError("its body must be a JSON object")
        if "signing_key" in fields:
            issued = Certificate.from_stored(body, signature)
            keys = [keyring.public_key(version + 1) for version in range(keyring.signing_version)]
            for problem in issued.verify(keys):
                raise VaultError(problem)
            return cls(issued.draft, issued)
        draft = CertificateDraft(fields)
        if draft.text != body or draft.seal(keyring) != signature:
            raise VaultError("its seal does not match: the draft has been changed")
        return cls(draft)

    def issue(self, keyring: Keyring, *, erasure: Erasure) -> Certificate:
        """The certificate with this state of erasure: the one that was issued, or signed now."""
        if self.issued is not None and self.issued.erasure == erasure:
            return self.issued
        return self.draft.issue(keyring, erasure=erasure)
