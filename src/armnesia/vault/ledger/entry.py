"""Entries: what the vault did and when, each as an in-toto statement (in-toto.io/Statement/v1).

The subject is a digest: of the people of a request (`people.py`), or of the vault's configuration. The
predicate holds the facts, and no name of a person. The statement is signed as an envelope, whose bytes are a
leaf of the ledger.

>>> entry = Entry(
...     vault="v-1", organisation="Example Ltd", number=7, time="2026-11-18T10:42:07.123456Z",
...     code="armnesia 0.1.0", signer=public_key(bytes(32)), kind="forget", subject=bytes(32),
...     facts={
...         "level": "retained", "budget": {"epsilon": 0.0, "delta": 0.0}, "unlearner": {"name": "rollback"},
...     },
... )
>>> envelope = entry.signed(bytes(32))
>>> Entry.of(envelope) == entry, envelope.is_signed_by(entry.signer)
(True, True)
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from armnesia.core.errors import InvalidInputError, refuse_first
from armnesia.core.messages import shown
from armnesia.privacy import Level
from armnesia.vault.keys.canonical_json import canonical, parse_time, read_object
from armnesia.vault.keys.signatures import checked_public_key, public_key
from armnesia.vault.ledger.envelope import STATEMENT, Envelope
from armnesia.vault.ledger.merkle import HASH_BYTES

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:armnesia:entry:v1"
KINDS = (
    *("init", "configured", "arms", "correct", "forget", "readmit", "policy", "signing_key", "token_revoked"),
    *("compacted", "erased", "restored", "without_journal"),
)
ABOUT_PEOPLE = ("forget", "readmit")
"""The kinds whose subject is the people of a request; that of all others is the configuration."""
REQUIRED: Mapping[str, Mapping[str, type]] = {
    "forget": {"level": str, "budget": dict, "unlearner": dict},
    "readmit": {"ends": list},
    "erased": {"source": str, "through": int},
    "compacted": {"through": int},
}
"""The facts that certificates show: `ends` are the entries that a readmission ends; after an erasure nobody
who was forgotten up to the entry `through` has rows at the source."""
OF_A_FORGET = {"unlearner", "learner", "penalty", "budget", "level", "released", "by", "sources"}
OF_ITS_SHAPE = {"counts", "decisions"}
"""Facts that say how many records were deleted, or which decisions had them: only at levels that allow it."""


@dataclass(frozen=True)
class Entry:
    """One entry of the ledger: who wrote it, when, and what was done."""

    vault: str
    organisation: str | None
    number: int
    """Its place in the ledger, from 1."""
    time: str
    """In UTC, by the clock of the machine that wrote it."""
    code: str
    """The program that wrote it, with its version."""
    signer: str
    """The public key that signs the entry, as 64 hexadecimal digits."""
    kind: str
    subject: bytes
    """The root over the people of a request, or the digest of the configuration."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else is to be said, by the kind."""

    def __post_init__(self) -> None:
        refuse_first(self._problems(), "an entry's {}", InvalidInputError)

    def to_dict(self) -> dict[str, Any]:
        """The statement."""
        name = "people" if self.kind in ABOUT_PEOPLE else "configuration"
        own = {name: getattr(self, name) for name in _OWN}
        return {
            "_type": STATEMENT_TYPE,
            "subject": [{"name": name, "digest": {"sha256": self.subject.hex()}}],
            "predicateType": PREDICATE_TYPE,
            "predicate": {**self.facts, **own},
        }

    @cached_property
    def payload(self) -> bytes:
        """The statement in JSON, as it is signed."""
        return canonical(self.to_dict()).encode()

    def signed(self, seed: bytes) -> Envelope:
        """The entry in its envelope; the seed is that of the signer."""
        if public_key(seed) != self.signer:
            raise InvalidInputError("an entry must be signed with the key that it names")
        return Envelope.signed(self.payload, seed)

    @classmethod
    def of(cls, envelope: Envelope) -> "Entry":
        """The entry in an envelope, whoever signed it.

        >>> Entry.of(Envelope.signed(b"[]", bytes(32)))
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: an entry must be a JSON object
        """
        if envelope.payload_type != STATEMENT:
            raise InvalidInputError(
                f"an entry must be of the type {STATEMENT}; got {shown(envelope.payload_type)}"
            )
        statement = read_object(envelope.payload, "an entry")
        try:
            predicate, (subject,) = statement["predicate"], statement["subject"]
            own = {name: predicate[name] for name in _OWN}
            facts = {name: value for name, value in predicate.items() if name not in own}
            entry = cls(subject=bytes.fromhex(subject["digest"]["sha256"]), facts=facts, **own)
        except InvalidInputError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError):
            entry = None
        if entry is None or entry.to_dict() != statement:
            raise InvalidInputError(
                f"an entry must be a statement with one subject and a predicate {PREDICATE_TYPE}"
            )
        return entry

    def _problems(self) -> Iterator[str]:
        """The fields that are not as they must be."""
        if self.kind not in KINDS:
            yield f"kind must be one of {', '.join(KINDS)}; got {shown(self.kind)}"
        if type(self.number) is not int or self.number < 1 or (self.kind == "init") != (self.number == 1):
            yield f"number must be 1 for init and more for others; got {shown(self.number)}"
        organisation = "none" if self.organisation is None else self.organisation
        for name, value in (("vault", self.vault), ("code", self.code), ("organisation", organisation)):
            if not isinstance(value, str) or not value:
                yield f"{name} must be text; got {shown(value)}"
        parse_time(self.time)
        checked_public_key(self.signer)
        taken = sorted(self.facts.keys() & set(_OWN))
        if taken:
            yield f"facts must not be named {taken[0]}: every entry has that field"
        if len(self.subject) != HASH_BYTES:
            yield f"subject must be of {HASH_BYTES} bytes; got {len(self.subject)}"
        for name, form in REQUIRED.get(self.kind, {}).items():
            if type(self.facts.get(name)) is not form:
                yield f"facts must have {name} if its kind is {self.kind}; got {shown(self.facts.get(name))}"
        if self.kind == "forget":
            yield from self._claimed_too_much()
        try:
            _ = self.payload
        except InvalidInputError:
            yield "facts must be plain JSON"

    def _claimed_too_much(self) -> Iterator[str]:
        """Facts of a deletion that its level conceals."""
        level = Level.named(self.facts["level"])
        allowed = OF_A_FORGET | (OF_ITS_SHAPE if level.sees_shape else set())
        for name in sorted(self.facts.keys() - allowed):
            yield f"facts of a deletion at level {level} must not have {name}"


_OWN = ("vault", "organisation", "number", "time", "code", "signer", "kind")
