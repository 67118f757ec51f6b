"""Certificates: signed statements about deletions, which anyone can check with the file and a public key.

The signature (Ed25519) covers the canonical JSON of the body, which contains the ledger entry and its hash.
The opening (salt and request) is neither signed nor stored by the vault. It is part of the file that is
handed out, and is checked against the commitment in the signed entry.

A deletion stores a draft of its certificate: everything except the time and the head of issue, the signing
key, whether the deleted bytes have left the files, and how far rows are erased at their sources. The draft
is sealed in the transaction of the deletion, and signed when the certificate is handed out. The ledger entry
has the hash of the words of its certificate (`terms`), so that no key can sign other words.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from os import PathLike
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from armnesia.core.errors import InvalidInputError, VaultError, refuse_first
from armnesia.core.files import read_plain
from armnesia.vault.keys import private_files, signatures
from armnesia.vault.keys.canonical_json import (
    canonical,
    plain,
    plain_and_text,
    read_json,
    sha256_hex,
    text_of_object,
    text_of_plain,
    unambiguous_json,
    utc_now,
)
from armnesia.vault.keys.keyring import DIGEST_BYTES, Keyring
from armnesia.vault.ledger.certificate_check import (
    INTEGRITY_ONLY,
    OTHER_LAYOUT,
    CertificateCheck,
    check_issue,
    vault_problems,
)
from armnesia.vault.ledger.certificate_text import CERTIFIED, NOT_COVERED, PROVES, claims_of, words_of
from armnesia.vault.ledger.commitments import commitment, is_path, root_from_path
from armnesia.vault.ledger.ledger import Entry, Head
from armnesia.vault.ledger.ledger_copy import LedgerCopy
from armnesia.vault.ledger.public_keys import BareKeys, TrustedKeys
from armnesia.vault.ledger.source_claim import form_problems, nothing_due
from armnesia.vault.storage.database import EVERY_BYTE, EVERY_ROW

SCHEMA = "armnesia.certificate/1"
Erasure = Literal["pending", "complete"]
ERASURE = ("pending", "complete")
_SALT = re.compile(rf"[0-9a-f]{{{2 * DIGEST_BYTES}}}")
_ON_ISSUE = ("issued", "issued_at_head", "signing_key", "source")
_PARTS = {"erasure": {"state", "covers"}, "signing_key": {"version", "public"}}
_BODY = {
    *("schema", "vault", "sequence", "entry", "entry_hash", "claims", "not_covered", "proves", "erasure"),
    *("issued", "issued_at_head", "signing_key"),
}
"""Of an external vault also `source`."""


class CertificateWords(NamedTuple):
    """The words of a certificate: its claims, and what all certificates say."""

    terms: str
    """Their hash, which the ledger entry of the certificate has as `terms`."""
    parts: Mapping[str, str]
    """The parts of the draft that they are, each as canonical JSON."""


@lru_cache(maxsize=256)  # most requests have the same words, and a deletion waits for them
def certificate_words(claims: tuple[tuple[str, str], ...], covers: str) -> CertificateWords:
    """The words for some claims; `covers` describes the files that erasure is about.

    >>> words = certificate_words(tuple(claims_of("nothing_held", {}).items()), "nothing had to be erased")
    >>> len(words.terms), words.parts["erasure"]
    (64, '{"covers":"nothing had to be erased"}')
    """
    parts = {
        "schema": SCHEMA,
        "claims": dict(claims),
        "not_covered": NOT_COVERED,
        "proves": PROVES,
        "erasure": {"covers": covers},
    }
    terms = sha256_hex(text_of_plain((dict(claims), NOT_COVERED, PROVES, covers)))
    return CertificateWords(terms, {name: text_of_plain(value) for name, value in parts.items()})


def terms_problems(body: Mapping[str, Any], entry: Entry) -> Iterator[str]:
    """Whether the words of a certificate, or of its draft, are those that its entry fixes."""
    erasure = body.get("erasure")
    covers = erasure.get("covers") if isinstance(erasure, Mapping) else None
    words = (body.get("claims"), body.get("not_covered"), body.get("proves"), covers)
    if entry.fields.get("terms") != sha256_hex(text_of_plain(words)):
        yield "the certificate's words are not those that its ledger entry fixes"


@dataclass(frozen=True)
class CertificateDraft:
    """The body of a certificate before it is issued."""

    body: Mapping[str, Any]

    @cached_property
    def parts(self) -> Mapping[str, str]:
        """The canonical JSON of each part of the body; those of a new draft are mostly known before."""
        return {name: text_of_plain(value) for name, value in self.body.items()}

    @property
    def text(self) -> str:
        """The canonical JSON of the body, which the digest key in use seals; a new one seals it again."""
        return text_of_object(self.parts)

    @classmethod
    def of(cls, entry: Entry, covers: str, claims: Mapping[str, str] | None = None) -> "CertificateDraft":
        """The draft for a ledger entry; `covers` describes the files that erasure is about.

        The guarantee that it claims is the entry's `level` and `budget`; `claims` are what `claims_of` makes
        of them, if the caller has it.
        """
        claims = claims_of(entry.kind, entry.fields) if claims is None else claims
        body = {
            "schema": SCHEMA,
            "vault": entry.vault,
            "sequence": entry.sequence,
            "entry": dict(entry.fields),
            "entry_hash": entry.hash,
            "claims": dict(claims),
            "not_covered": list(NOT_COVERED),
            "proves": PROVES,
            "erasure": {"covers": covers},
        }
        draft = cls(body)
        words = certificate_words(tuple(claims.items()), covers)
        own = {"vault": text_of_plain(entry.vault), "sequence": str(entry.sequence), "entry": entry.text}
        draft.__dict__["parts"] = {**words.parts, **own, "entry_hash": f'"{entry.hash}"'}
        return draft

    @classmethod
    def for_reissue(cls, entry: Entry, body: Mapping[str, Any], covers: str) -> "CertificateDraft":
        """The draft for an entry whose certificate, with this body, was issued before.

        It has the words that the entry fixes. Entries of 0.1.0 fix none: then it is drafted like a new one,
        because words that were signed with a key that may be stolen must not be signed again.
        """
        if "terms" not in entry.fields:
            return cls.of(entry, covers)
        refuse_first(terms_problems(body, entry), f"certificate {entry.sequence}: {{}}")
        return Certificate(body, b"").draft

    def issue(
        self,
        keyring: Keyring,
        *,
        head: Head,
        erasure: Erasure,
        searched: str | None = None,
        source: Mapping[str, Any] | None = None,
        issued: str | None = None,
        opening: Mapping[str, Any] | None = None,
    ) -> "Certificate":
        """Sign the certificate, with this state of erasure and the current time.

        `searched` says what was searched for everybody in the request, where nothing was found. `head` is the
        head of the ledger in the same state that says which key is in use; `source` is what the ledger up to
        it says of the sources (`source_claim`).
        """
        if erasure not in ERASURE:
            raise InvalidInputError(f"erasure must be {' or '.join(ERASURE)}; got {erasure!r}")
        if self.body["vault"] != keyring.vault:
            raise VaultError("the keyring and the entry belong to different vaults")
        seeds = keyring.signing_keys
        version, public = len(seeds), signatures.public_key(seeds[-1])
        on_issue = {
            "erasure": {
                "state": erasure,
                **self.body["erasure"],
                **({} if searched is None else {"searched": searched}),
            },
            "issued": issued or utc_now(),
            "issued_at_head": str(head),
            "signing_key": {"version": version, "public": public},
        }
        if source is not None:
            on_issue["source"] = source
        body = {**self.body, **on_issue}
        text = text_of_object(
            {**self.parts, **{name: text_of_plain(value) for name, value in on_issue.items()}}
        )
        certificate = object.__new__(Certificate)  # __init__ would copy and serialise the body again
        certificate.__dict__.update(
            body=MappingProxyType(body),
            text=text,
            signature=signatures.sign(text.encode("utf-8"), seeds[-1]),
            opening=opening,
        )
        return certificate


@dataclass(frozen=True)
class Certificate:
    """A signed statement about one deletion; its opening, if it has one, names the person or record.

    >>> keyring = Keyring.create("v-1")
    >>> from armnesia.vault.ledger.commitments import commitment
    >>> request = {"users": ["ann"]}
    >>> entry = Entry.next_after(
    ...     6, "ab" * 32, vault="v-1", kind="nothing_held", time="2026-11-15T10:42:07.123456Z",
    ...     code="armnesia 0.1.0", commitment=commitment(keyring.salt(7, 1), request), salt_key=1,
    ...     terms=certificate_words(
    ...         tuple(claims_of("nothing_held", {}).items()), "nothing had to be erased"
    ...     ).terms,
    ... )
    >>> draft = CertificateDraft.of(entry, "nothing had to be erased")
    >>> signed = draft.issue(keyring, head=entry.head, erasure="complete")
    >>> file = signed.with_opening(keyring.salt(7, 1), request).to_json()
    >>> Certificate.from_json(file).verify(keyring.public_key())
    []
    >>> Certificate.from_json(file).verify(Keyring.create("v-1").public_key())
    ['the certificate is signed with a key that is not among the public keys given: ...']
    """

    body: Mapping[str, Any]
    signature: bytes
    opening: Mapping[str, Any] | None = None
    text: str = field(init=False, repr=False, compare=False)
    """What is signed: the canonical JSON of the body."""
    own_layout: bool = field(default=True, init=False, repr=False, compare=False)
    """Whether the file that it was read from is, byte for byte, one that armnesia writes."""

    def __post_init__(self) -> None:
        body, text = plain_and_text(self.body)
        object.__setattr__(self, "body", MappingProxyType(body))
        object.__setattr__(self, "text", text)
        if self.opening is not None:
            object.__setattr__(self, "opening", MappingProxyType(plain_and_text(self.opening)[0]))

    @property
    def draft(self) -> CertificateDraft:
        """The draft of the certificate."""
        body = {name: value for name, value in self.body.items() if name not in _ON_ISSUE}
        return CertificateDraft({**body, "erasure": {"covers": self.body["erasure"]["covers"]}})

    @property
    def erasure(self) -> Erasure:
        """Whether the deleted bytes had left the database's files when the certificate was issued."""
        return "complete" if self.body["erasure"]["state"] == "complete" else "pending"

    @property
    def searched(self) -> str | None:
        """What of the vault was searched for the people or records after the deletion; None if nothing."""
        found: str | None = self.body["erasure"].get("searched")
        return found

    @property
    def source(self) -> Mapping[str, Any] | None:
        """How far the rows were erased at the sources of an external vault; None of other certificates."""
        found: Mapping[str, Any] | None = self.body.get("source")
        return found

    @property
    def nothing_due(self) -> bool:
        """Whether the rows have left the database's files and, of an external vault, those of all sources."""
        return self.erasure == "complete" and nothing_due(self.source)

    @property
    def held(self) -> bool:
        """Whether the vault held anything of the name that the certificate is opened for, or else of any."""
        opened = None if self.opening is None else self.opening["request"]
        nothing = isinstance(opened, Mapping) and opened.get("held") is False
        return self.body["entry"]["kind"] == "forget" and not nothing

    def with_opening(
        self, salt: bytes, request: Mapping[str, Any], path: Sequence[str] = ()
    ) -> "Certificate":
        """The certificate with the opening of its commitment, which names only those in `request`."""
        opening = {"salt": salt.hex(), "request": request} | ({"path": list(path)} if path else {})
        opened = Certificate(self.body, self.signature, opening)
        if any(opened._opening_problems()):
            raise InvalidInputError("the certificate is about another request")
        return opened

    @classmethod
    def from_stored(cls, body: str, signature: bytes) -> "Certificate":
        """Read a certificate as the vault's table stores it: the canonical text of its body, the signature.

        >>> Certificate.from_stored("{ }", bytes(64))
        Traceback (most recent call last):
        armnesia.core.errors.VaultError: the certificate's body has been changed: it is not canonical JSON
        """
        try:
            certificate = cls(_read(body, "the certificate's body"), signature)
        except InvalidInputError as error:
            raise VaultError(f"the certificate's body has been changed: {error}") from None
        if certificate.text != body:
            raise VaultError("the certificate's body has been changed: it is not canonical JSON")
        return certificate

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "Certificate":
        """Read a certificate from what `to_dict` returned.

        >>> Certificate.from_dict({"body": {}})
        Traceback (most recent call last):
        armnesia.core.errors.VaultError: a certificate must have a body, a signature and, optionally, an
        opening
        """
        body, signature, opening = (document.get(name) for name in ("body", "signature", "opening"))
        unknown = document.keys() - {"body", "signature", "opening"}
        if unknown or not isinstance(body, Mapping) or not isinstance(signature, str):
            raise VaultError("a certificate must have a body, a signature and, optionally, an opening")
        if opening is not None and not isinstance(opening, Mapping):
            raise VaultError("the opening of a certificate must have a salt and a request")
        try:
            return cls(body, bytes.fromhex(signature), opening)
        except InvalidInputError as error:
            raise VaultError(f"a certificate must be plain JSON: {error}") from None
        except ValueError:
            raise VaultError("the signature of a certificate must be hexadecimal") from None

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Certificate":
        """Read a certificate from its file, as `from_json` does."""
        return cls.from_json(read_plain(path))

    @classmethod
    def from_json(cls, file: str | bytes) -> "Certificate":
        """Read the file of a certificate, in any layout of the same document; `own_layout` says in which.

        Refused is what readers of JSON may understand in two ways: a name that is there twice, NaN and
        infinities, and numbers that are not written as they are read back.

        >>> Certificate.from_json("{")
        Traceback (most recent call last):
        armnesia.core.errors.VaultError: the certificate must be valid JSON; it is invalid or truncated
        """
        try:
            text = file.decode("utf-8") if isinstance(file, bytes) else file
        except UnicodeDecodeError:
            raise VaultError("the certificate must be text in UTF-8") from None
        document = _read(text, "the certificate", unambiguous_json)
        certificate = cls.from_dict(document)
        if certificate.signature.hex() != document["signature"]:
            raise VaultError("the signature of a certificate must be lower-case hexadecimal, without spaces")
        documents = [certificate.to_dict()]
        if certificate.opening is None:  # older files leave it out
            documents.append({name: part for name, part in documents[0].items() if name != "opening"})
        own = text in [written for one in documents for written in (_pretty(one), canonical(one))]
        object.__setattr__(certificate, "own_layout", own)
        return certificate

    def to_dict(self) -> dict[str, Any]:
        """The certificate as its file has it; the opening is None if the certificate names nobody."""
        opening = None if self.opening is None else plain(self.opening)
        return {"body": plain(self.body), "signature": self.signature.hex(), "opening": opening}

    def to_json(self) -> str:
        """The text of the certificate's file, indented."""
        return _pretty(self.to_dict())

    def verify(
        self,
        public_key: str | Sequence[str] | None,
        *,
        ledger: LedgerCopy | None = None,
        head: Head | None = None,
    ) -> list[str]:
        """The problems that `check` finds; one sentence per problem."""
        return list(self.check(public_key, ledger=ledger, head=head).problems)

    def check(
        self,
        public_key: str | Sequence[str] | None,
        *,
        ledger: LedgerCopy | None = None,
        head: Head | None = None,
    ) -> CertificateCheck:
        """Check the certificate, and say what could not be checked.

        By the file alone: the signature, the entry against its hash, the body against the entry, and the
        opening against the commitment. Without a public key, the key inside the certificate is used: then no
        problem means that the certificate is unchanged, but not who signed it (`INTEGRITY_ONLY`).

        With a `PublicKeys` list also whether the key was in use when the certificate was issued. With a
        `ledger` also whether its entry, and the one that it was issued at, are in it. `head` is a head that
        was kept elsewhere, to compare the ledger or, without one, the certificate with.
        """
        keys = _checked_keys(public_key)
        if keys is None and (ledger is not None or head is not None):
            raise InvalidInputError("a ledger or a head must be given together with a public key")
        problems = (*self._signature_problems(keys), *self._body_problems(), *self._opening_problems())
        notes: tuple[str, ...] = () if problems else (INTEGRITY_ONLY,)
        layout = () if self.own_layout else (OTHER_LAYOUT,)
        if keys is not None:
            vault = self.body.get("vault")
            if not problems:
                problems, notes = check_issue(self.body, keys, ledger, head)
            elif isinstance(vault, str):
                problems += tuple(vault_problems(vault, keys, ledger))
        return CertificateCheck(
            problems, (*notes, *layout), keys is not None, ledger is not None, self._summary_if_complete()
        )

    @classmethod
    def check_file(
        cls,
        path: str | PathLike[str],
        public_key: str | Sequence[str] | None,
        *,
        ledger: str | PathLike[str] | None = None,
        head: Head | None = None,
    ) -> "tuple[Certificate | None, CertificateCheck]":
        """Read a certificate and check it against the file of a ledger; None for one that cannot be read.

        What is wrong with the certificate's file, or with that of the ledger, is a problem of the check; only
        a file that is not there is an error.
        """
        keys = _checked_keys(public_key)
        found = summary = None
        try:
            certificate = cls.read(path)
            certificate.words()
            found, summary = certificate, certificate._summary_if_complete()
            copy = None if ledger is None else LedgerCopy.read(ledger)
        except VaultError as error:
            given = (keys is not None, ledger is not None)
            return found, CertificateCheck((str(error),), (), *given, summary)
        return found, found.check(keys, ledger=copy, head=head)

    def _signature_problems(self, keys: TrustedKeys | None) -> Iterator[str]:
        signing_key = self.body.get("signing_key")
        public = signing_key.get("public") if isinstance(signing_key, Mapping) else None
        try:
            signed = signatures.is_signed(self.text.encode("utf-8"), self.signature, str(public))
        except InvalidInputError:
            yield "the certificate names no valid signing key"
            return
        if not signed:
            yield "the signature does not match: the certificate has been changed"
        if keys is not None and public not in keys:
            yield (
                "the certificate is signed with a key that is not among the public keys given: if the list is"
                " an old one, get the newest"
            )

    def _body_problems(self) -> Iterator[str]:
        if self.body.get("schema") != SCHEMA:
            yield f"the certificate's schema must be {SCHEMA}; got {self.body.get('schema')!r}"
        erasure = self.body.get("erasure")
        if not isinstance(erasure, Mapping) or erasure.get("state") not in ERASURE:
            yield f"the certificate's erasure must be {' or '.join(ERASURE)}"
        elif erasure.get("searched", EVERY_BYTE) not in (EVERY_BYTE, EVERY_ROW):
            yield f"the certificate's erasure.searched must be {EVERY_BYTE!r} or {EVERY_ROW!r}, or missing"
        try:
            entry = self._entry()
        except InvalidInputError as error:
            yield f"the certificate's ledger entry cannot be read: {error}"
            return
        if entry.kind not in CERTIFIED:
            yield f"the certificate's ledger entry must be {' or '.join(CERTIFIED)}; got {entry.kind!r}"
        for name, of_entry in (
            ("entry_hash", entry.hash),
            ("vault", entry.vault),
            ("sequence", entry.sequence),
        ):
            if self.body.get(name) != of_entry or type(self.body[name]) is not type(of_entry):
                yield f"the certificate's {name} is not that of its ledger entry"
        if "terms" in entry.fields:  # entries of 0.1.0 lack it, and their certificates the head of issue
            yield from terms_problems(self.body, entry)
            yield from self._form_problems()
            yield from form_problems(self.body.get("source"), entry.fields)
        if "issued_at_head" in self.body:
            yield from self._issue_problems(entry)

    def _form_problems(self) -> Iterator[str]:
        """Parts that are missing, or that the entry does not fix: a stolen key could add words there."""
        parts = {"": (self.body, _BODY)} | {
            f"{name}.": (self.body.get(name), known) for name, known in _PARTS.items()
        }
        optional = {"": {"source"}, "erasure.": {"searched"}}  # which are checked by themselves
        for prefix, (part, known) in parts.items():
            found = set(part) if isinstance(part, Mapping) else known
            found = found - optional.get(prefix, set())
            for name in sorted(found ^ known):
                yield f"the certificate {'must not have' if name in found else 'lacks'} {prefix}{name}"

    def _issue_problems(self, entry: Entry) -> Iterator[str]:
        at = self.body["issued_at_head"]
        try:
            head = Head.parse(at if isinstance(at, str) else "")
        except InvalidInputError:
            head = None
        if head is None or str(head) != at or head.sequence < entry.sequence:
            yield f"the certificate's issued_at_head must be a head at entry {entry.sequence} or later"
        elif head.sequence == entry.sequence and head != entry.head:
            yield "the certificate's issued_at_head is not that of its ledger entry"

    def _opening_problems(self) -> Iterator[str]:
        if self.opening is None:
            return
        salt, request, path = (self.opening.get(name) for name in ("salt", "request", "path"))
        entry = self.body.get("entry")
        committed = entry.get("commitment") if isinstance(entry, Mapping) else None
        # The opening is not signed: the parts that the commitment does not cover must have exactly one form.
        if (
            self.opening.keys() - {"path"} != {"salt", "request"}
            or not (isinstance(salt, str) and _SALT.fullmatch(salt))
            or not isinstance(request, Mapping)
            or ("path" in self.opening and not is_path(path))
        ):
            yield (
                f"the opening must have a salt of {2 * DIGEST_BYTES} hexadecimal digits, a request and,"
                " optionally, a path"
            )
        elif root_from_path(commitment(bytes.fromhex(salt), request), path or ()) != committed:
            yield "the opening does not match the commitment: the certificate is about another request"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the certificate to a new file that only its owner can read."""
        private_files.write(path, self.to_json())

    def summary(self) -> dict[str, Any]:
        """The main facts; level and budget are None if nothing was held."""
        entry: Mapping[str, Any] = self.body["entry"]
        return {
            "sequence": self.body["sequence"],
            "kind": entry["kind"],
            "unlearner": entry.get("unlearner", {}).get("name"),
            "level": entry.get("level"),
            "budget": entry.get("budget"),
            "erasure": self.body["erasure"]["state"],
            "searched": self.searched is not None,
            **({"source": self.body["source"]["state"]} if "source" in self.body else {}),
        }

    def _summary_if_complete(self) -> dict[str, Any] | None:
        try:
            return self.summary()
        except (KeyError, TypeError, AttributeError):  # a part is not there, or is something else
            return None

    def words(self) -> str:
        """The certificate as text, in the words that were signed; `verify` checks the signature."""
        try:
            return words_of(self.body, self.opening)
        except (KeyError, TypeError):
            raise VaultError("the certificate lacks a part that is required") from None

    def _entry(self) -> Entry:
        fields = self.body.get("entry")
        if not isinstance(fields, Mapping):
            raise InvalidInputError("it must be a JSON object")
        return Entry(fields)


def _checked_keys(given: str | Sequence[str] | None) -> TrustedKeys | None:
    """The keys as one value; texts that are no keys are refused."""
    if given is None or isinstance(given, TrustedKeys):
        return given
    if not given:
        raise InvalidInputError("public_key must name at least one key, or be None; got an empty list")
    return BareKeys((given,) if isinstance(given, str) else tuple(given))


def _pretty(document: Mapping[str, Any]) -> str:
    return json.dumps(document, sort_keys=True, indent=2, ensure_ascii=False) + "\n"


def _read(text: str, what: str, reader: Callable[[str, str], Any] = read_json) -> dict[str, Any]:
    try:
        found = reader(text, what)
    except InvalidInputError as error:
        raise VaultError(str(error)) from None
    if not isinstance(found, dict):
        raise VaultError(f"{what} must be a JSON object")
    return found
