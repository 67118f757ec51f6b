"""The served arms under the signing key: anyone can check, offline, what a vault serves at a head."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from types import MappingProxyType
from typing import Any

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.files import read_plain
from armnesia.core.messages import counted
from armnesia.vault.keys import signatures
from armnesia.vault.keys.canonical_json import plain, plain_and_text, read_json, utc_now
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.ledger.ledger_copy import LedgerCopy
from armnesia.vault.ledger.public_keys import PublicKeys, SigningKey

SCHEMA = "armnesia.served/1"
_BODY = {"schema", "vault", "head", "issued", "by", "decisions", "signing_key"}

INTEGRITY_ONLY = (
    "No public key was given: the served arms were checked with the key inside them, which shows that they"
    " are unchanged, but not who signed them."
)
NO_LEDGER = (
    "No ledger was given: whether it has the head of the served arms, and what was written since, was not"
    " checked."
)
MAY_HAVE_CHANGED = (
    "Other arms may be served by now: new rows change them without an entry in the ledger. See when the table"
    " was signed, and ask for a new one."
)

_LARGEST = 1 << 28
"""Bytes of a file: the served arms of a million decisions are smaller."""


@dataclass(frozen=True)
class ServedCheck:
    """What was found about a table of served arms: problems, and notes on what it does not show."""

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    signer_checked: bool
    """Whether public keys were given."""
    ledger_checked: bool
    """Whether a ledger was given."""
    entries_since: int | None
    """How many entries the ledger given has after the head of the table; None if that is not known."""
    head: str | None
    issued: str | None
    """When the table was signed."""
    decisions: int
    """The number of decisions in the table."""

    @property
    def valid(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """All fields and `valid`."""
        fields = {**vars(self), "problems": list(self.problems), "notes": list(self.notes)}
        return {"valid": self.valid, **fields}


@dataclass(frozen=True)
class SignedDecisions:
    """What every decision of a vault served at a head of its ledger, signed.

    >>> keyring = Keyring.create("v-1")
    >>> served = [{"key": {"country": "DE"}, "action": "B"}]
    >>> signed = SignedDecisions.issue(keyring, Head(3, "ab" * 32), ["country"], served)
    >>> SignedDecisions.from_dict(signed.to_dict()).verify(keyring.public_key())
    []
    >>> signed.verify(Keyring.create("v-1").public_key())
    ['the served arms are signed with a key that is not among the public keys given']
    """

    body: Mapping[str, Any]
    signature: bytes
    text: str = field(init=False, repr=False, compare=False)
    """What is signed: the canonical JSON of the body."""

    def __post_init__(self) -> None:
        body, text = plain_and_text(self.body)
        object.__setattr__(self, "body", MappingProxyType(body))
        object.__setattr__(self, "text", text)

    @classmethod
    def issue(
        cls, keyring: Keyring, head: Head, by: Sequence[str], decisions: Sequence[Mapping[str, Any]]
    ) -> "SignedDecisions":
        """Sign the served arms, each with the key of its decision, at a head of the ledger."""
        body = {
            "schema": SCHEMA,
            "vault": keyring.vault,
            "head": str(head),
            "issued": utc_now(),
            "by": list(by),
            "decisions": [dict(each) for each in decisions],
            "signing_key": {"version": keyring.signing_version, "public": keyring.public_key()},
        }
        return cls(body, keyring.sign(plain_and_text(body)[1].encode("utf-8")))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "SignedDecisions | None":
        """Read a file of served arms, in any formatting of the same JSON; None if it is another file."""
        try:
            document = read_json(read_plain(path, _LARGEST).decode("utf-8"), "the file")
        except (UnicodeDecodeError, InvalidInputError):
            return None
        body = document.get("body") if isinstance(document, dict) else None
        is_one = isinstance(body, dict) and body.get("schema") == SCHEMA
        return cls.from_dict(document) if is_one else None

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> "SignedDecisions":
        """Read what `to_dict` returned."""
        if not isinstance(document, Mapping) or set(document) != {"body", "signature"}:
            raise VaultError("a table of served arms must have a body and a signature")
        body, signature = document["body"], document["signature"]
        if not isinstance(body, Mapping) or not isinstance(signature, str):
            raise VaultError("a table of served arms must have a body and a signature")
        try:
            return cls(body, bytes.fromhex(signature))
        except InvalidInputError as error:
            raise VaultError(f"a table of served arms must be plain JSON: {error}") from None
        except ValueError:
            raise VaultError("the signature of a table of served arms must be hexadecimal") from None

    def to_dict(self) -> dict[str, Any]:
        """The keys `body` and `signature`."""
        return {"body": plain(self.body), "signature": self.signature.hex()}

    def check(
        self,
        public_key: str | Sequence[str] | None,
        *,
        ledger: str | PathLike[str] | None = None,
        head: Head | None = None,
    ) -> ServedCheck:
        """Check it as `verify` does, against the file of a ledger, and say what could not be checked."""
        copy = None if ledger is None else LedgerCopy.read(ledger)
        problems, decisions = self.verify(public_key, ledger=copy, head=head), self.body.get("decisions")
        since = None
        if copy is not None and not problems:
            since = copy.head.sequence - Head.parse(self.body["head"]).sequence
        return ServedCheck(
            problems=tuple(problems),
            notes=() if problems else tuple(_notes(public_key is not None, since)),
            signer_checked=public_key is not None,
            ledger_checked=ledger is not None,
            entries_since=since,
            head=self.body.get("head"),
            issued=self.body.get("issued"),
            decisions=len(decisions) if isinstance(decisions, list) else 0,
        )

    def verify(
        self,
        public_key: str | Sequence[str] | None,
        *,
        ledger: LedgerCopy | None = None,
        head: Head | None = None,
    ) -> list[str]:
        """What is wrong with it, a sentence each; with a list of keys and a ledger more can be checked.

        Without a public key, the key inside it is used: then no problem means that it is unchanged, but not
        who signed it.
        """
        if public_key is None:
            if ledger is not None or head is not None:
                raise InvalidInputError("a ledger or a head must be given together with a public key")
            return [*self._signature_problems(None), *self._body_problems()]
        keys = [public_key] if isinstance(public_key, str) else public_key
        problems = [*self._signature_problems(keys), *self._body_problems()]
        return problems or list(self._issue_problems(keys, ledger, head))

    def _signature_problems(self, keys: Sequence[str] | None) -> Iterator[str]:
        signing_key = self.body.get("signing_key")
        public = signing_key.get("public") if isinstance(signing_key, Mapping) else None
        try:
            signed = signatures.is_signed(self.text.encode("utf-8"), self.signature, str(public))
        except InvalidInputError:
            yield "the served arms name no valid signing key"
            return
        if not signed:
            yield "the signature does not match: the served arms have been changed"
        if keys is not None and public not in [signatures.checked_public_key(key) for key in keys]:
            yield "the served arms are signed with a key that is not among the public keys given"

    def _body_problems(self) -> Iterator[str]:
        if set(self.body) != _BODY or self.body["schema"] != SCHEMA:
            yield f"the served arms must have the parts of {SCHEMA}: {', '.join(sorted(_BODY))}"
            return
        try:
            Head.parse(str(self.body["head"]))
        except InvalidInputError as error:
            yield f"the served arms name no head: {error}"

    def _issue_problems(
        self, keys: Sequence[str], ledger: LedgerCopy | None, head: Head | None
    ) -> Iterator[str]:
        at = Head.parse(self.body["head"])
        if head is not None and head.sequence == at.sequence and head != at:
            yield "the head of the served arms is not the head given"
        for known in (ledger.keys if ledger is not None else None, keys):
            if not isinstance(known, PublicKeys):
                continue
            if known.vault != self.body["vault"]:
                yield "the served arms are of another vault"
                continue
            yield from self._key_problems(known.named(self.body["signing_key"]["public"]), at)
        if ledger is not None and not ledger.has(at):
            yield f"the head of the served arms, entry {at.sequence}, is not in the ledger given"

    def _key_problems(self, key: SigningKey | None, at: Head) -> Iterator[str]:
        if key is None:
            yield "the ledger does not name the key that signed the served arms"
            return
        if at.sequence < key.first_entry or (key.last_entry is not None and at.sequence > key.last_entry):
            yield f"the served arms are of entry {at.sequence}, but their key signed {key.range_words}"
        if key.compromised_since is not None and at.sequence >= key.compromised_since:
            yield f"key {key.version} was compromised since entry {key.compromised_since}: ask for new ones"


def _notes(signer_checked: bool, since: int | None) -> Iterator[str]:
    """What the check of a valid table does not show."""
    if not signer_checked:
        yield INTEGRITY_ONLY
    if since is None:
        yield NO_LEDGER
    elif since:
        entries = counted(since, "entry", "entries")
        yield f"The ledger given has {entries} after the head of the served arms."
    yield MAY_HAVE_CHANGED
