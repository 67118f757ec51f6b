"""Certificates as the vault stores them: a sealed draft, or a signed certificate."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from armnesia.core.errors import ArmnesiaError, VaultError, refuse_first
from armnesia.vault.keys.canonical_json import read_json
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate, CertificateDraft, Erasure, terms_problems
from armnesia.vault.ledger.certificate_check import Issue
from armnesia.vault.ledger.ledger import Entry, Head
from armnesia.vault.ledger.public_keys import PublicKeys
from armnesia.vault.ledger.source_claim import source_claim

_WITHHELD = '"withheld":true'
"""In the canonical JSON of a draft, and of no signed body; text inside it has escaped quotation marks."""
_COMPLETE = '"state":"complete"},"issued":'
"""In the canonical JSON of a signed body, and of no draft; text inside it has escaped quotation marks."""


@dataclass(frozen=True)
class StoredCertificate:
    """A row of the table `certificate`; `issued` is None if the row is a draft."""

    draft: CertificateDraft
    issued: Certificate | None = None

    @classmethod
    def read(
        cls, sequence: int, body: object, signature: object, entry: str, keyring: Keyring
    ) -> "StoredCertificate":
        """Read a row and the text of its ledger entry; refuse one that something else has changed."""
        try:
            if not isinstance(body, str) or not isinstance(signature, bytes | memoryview):
                raise VaultError("its body or its signature has another type")
            stored = cls._parse(body, bytes(signature), keyring)
            if stored.draft.body["sequence"] != sequence:
                raise VaultError("it is stored under another entry than its own")
            own = Entry(stored.draft.body["entry"])
            if own.text != entry:
                raise VaultError("its entry is not the one in the ledger")
            if "terms" in own.fields:
                refuse_first(terms_problems(stored.draft.body, own))
        except (ArmnesiaError, KeyError, TypeError, ValueError) as error:
            reason = str(error) if isinstance(error, ArmnesiaError) else "a part is missing or invalid"
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
            refuse_first(issued.verify(keys))
            return cls(issued.draft, issued)
        draft = CertificateDraft(fields)
        if draft.text != body or keyring.seal(body) != signature:
            raise VaultError("its seal does not match: the draft has been changed")
        return cls(draft)

    @staticmethod
    def says_complete(body: str) -> bool:
        """Whether the text of a body, as it is stored, says that erasure is complete; a draft does not."""
        return _COMPLETE in body

    @staticmethod
    def says_withheld(body: str) -> bool:
        """Whether the text of a body, as it is stored, is a draft that must not be signed (`withheld`)."""
        return _WITHHELD in body

    @staticmethod
    def says_of_source(body: str, erasures: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the text of a body, as it is stored, says of the sources what the ledger says now."""
        fields = json.loads(body)
        return bool(fields.get("source") == source_claim(fields["entry"], erasures))

    @property
    def kind(self) -> str:
        """The kind of its ledger entry."""
        return str(self.draft.body["entry"]["kind"])

    @property
    def is_withheld(self) -> bool:
        """Whether a search has found what was to be deleted, so that no certificate is signed."""
        return "withheld" in self.draft.body["erasure"]

    def withheld(self, covers: str) -> CertificateDraft:
        """A draft that is not signed before a search finds nothing, or the vault is restored."""
        draft = self.reissue_draft(covers)
        return CertificateDraft({**draft.body, "erasure": {**draft.body["erasure"], "withheld": True}})

    @property
    def issued_at(self) -> Head | None:
        """The head of the ledger at which it was signed; None for a draft, and for certificates of 0.1.0."""
        return None if self.issued is None else Issue.of(self.issued.body).issued_at

    def range_problems(self, keys: PublicKeys) -> list[str]:
        """Where a signed certificate contradicts the range of its key."""
        if self.issued is None:
            return []
        issue = Issue.of(self.issued.body)
        key = keys.named(issue.public)
        return [] if key is None else list(issue.range_problems(key))

    def valid(self, keys: PublicKeys) -> Certificate | None:
        """The signed certificate, if it says at which head it was issued, and its key is not compromised."""
        if self.issued is None:
            return None
        issue = Issue.of(self.issued.body)
        key = keys.named(issue.public)
        if issue.issued_at is None or key is None or any(issue.key_problems(key, with_ledger=False)):
            return None
        return self.issued

    def issue(
        self,
        keyring: Keyring,
        keys: PublicKeys,
        *,
        erasure: Erasure,
        covers: str,
        erasures: Sequence[Mapping[str, Any]] = (),
        searched: str | None = None,
    ) -> Certificate:
        """The certificate with this state of erasure: the stored one if it is valid, or one signed now.

        One whose key was compromised is never returned. `keys` are those of the present head, and `erasures`
        the entries of the ledger up to it that say how far rows are erased at their sources. `searched` is
        what was just searched; what a valid one says of an earlier search stays.
        """
        if self.is_withheld and searched is None:
            raise VaultError(
                f"certificate {self.draft.body['sequence']} is withheld: a search of the whole vault has"
                " found what was to be deleted; run armnesia verify and repair what it finds (armnesia"
                " rebuild, or restore a backup; armnesia compact if it finds nothing), then run armnesia"
                " forget with the same names again"
            )
        valid, source = self.valid(keys), source_claim(self.draft.body["entry"], erasures)
        if valid is not None and valid.erasure == erasure and valid.source == source and searched is None:
            return valid
        return self.reissue_draft(covers).issue(
            keyring,
            head=keys.head,
            erasure=erasure,
            source=source,
            searched=searched or (None if valid is None else valid.searched),
        )

    def reissue_draft(self, covers: str) -> CertificateDraft:
        """What is signed if it is issued again."""
        if self.issued is None:
            body = self.draft.body
            return CertificateDraft({**body, "erasure": {"covers": body["erasure"]["covers"]}})
        return CertificateDraft.for_reissue(Entry(self.issued.body["entry"]), self.issued.body, covers)
