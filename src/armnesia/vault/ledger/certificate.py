"""Certificates: what the ledger says of one person, for anybody with a public key to check.

A certificate is an entry's envelope, the proof that the entry is in the ledger of a signed checkpoint, and
the opening of one person of the request, in one JSON file of any layout. Later entries that concern it come
with their own proofs for the same checkpoint.

What counts is the checkpoint: it must be signed by a key that the verifier has. An entry that an older key
has signed stands under it like all others. The signature of an envelope only shows that nobody else wrote
the entry, to any tool that reads DSSE.

>>> from armnesia.vault.keys.keyring import Keyring
>>> from armnesia.vault.ledger.people import DELETED, People
>>> keyring, number = Keyring.create("v-1"), 2
>>> people = People.of(keyring, number, [Mention(USER, DELETED, "416")])
>>> entry = Entry(
...     vault="v-1", organisation="Example Ltd", number=number, time="2026-11-18T10:42:07.123456Z",
...     code="armnesia 0.1.0", signer=keyring.public_key(), kind="forget", subject=people.root,
...     facts={
...         "level": "retained", "budget": {"epsilon": 0.0, "delta": 0.0}, "unlearner": {"name": "rollback"},
...     },
... )
>>> envelope = entry.signed(keyring.signing_keys[-1])
>>> leaves = [bytes(32), envelope.leaf]
>>> note = Checkpoint(origin_of("v-1"), 2, Tree(leaves).root).signed(keyring.signing_keys[-1])
>>> opening = people.opening(keyring, number, USER, "416")
>>> file = Certificate(Logged.of(envelope, Tree(leaves), note), (opening,)).to_json()
>>> Certificate.read(file).verify(keyring.public_key())
[]
>>> print(*Certificate.read(file).words().said)
On 18 November 2026 Example Ltd deleted the records held under the identifier 416, and decided again without
them.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys.canonical_json import read_object
from armnesia.vault.keys.signatures import checked_public_key
from armnesia.vault.ledger.checkpoint import Checkpoint, Note, Proof, origin_of
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.envelope import Envelope
from armnesia.vault.ledger.merkle import Tree
from armnesia.vault.ledger.people import RECORD, USER, Mention, Opening
from armnesia.vault.ledger.words import Words


@dataclass(frozen=True)
class PublicKeys:
    """The public keys of a vault that count, the one in use last.

    One that was compromised is not among them: a thief may sign a ledger of any size. What it signed before
    is believed under a checkpoint of a newer key.

    >>> keys = PublicKeys("v-1", ("ab" * 32,))
    >>> PublicKeys.read(json.dumps(keys.to_dict())) == keys
    True
    """

    vault: str
    keys: tuple[str, ...]

    def __post_init__(self) -> None:
        for key in self.keys:
            checked_public_key(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys)

    def to_dict(self) -> dict[str, Any]:
        """The keys `vault` and `keys`."""
        return {"vault": self.vault, "keys": list(self.keys)}

    @classmethod
    def read(cls, text: str) -> "PublicKeys":
        """Read what `armnesia public-key --json` prints, or public keys, one per line."""
        if not text.lstrip().startswith("{"):
            return cls("", tuple(text.split()))
        document = read_object(text, "the list of public keys")
        try:
            return cls(document["vault"], tuple(document["keys"]))
        except (KeyError, TypeError):
            raise InvalidInputError("a list of public keys must have vault and keys") from None


@dataclass(frozen=True)
class Logged:
    """An entry in its envelope, and the proof that it is in the ledger."""

    envelope: Envelope
    proof: Proof

    @classmethod
    def of(cls, envelope: Envelope, ledger: Tree, note: Note) -> "Logged":
        """The entry with its proof for a checkpoint of this ledger."""
        index = Entry.of(envelope).number - 1
        return cls(envelope, Proof(index, ledger.proof(index), note))

    @cached_property
    def entry(self) -> Entry:
        """The entry, whoever signed it."""
        return Entry.of(self.envelope)

    def to_dict(self) -> dict[str, Any]:
        """The entry as a certificate has it."""
        return {"envelope": self.envelope.to_dict(), "proof": str(self.proof)}

    @classmethod
    def from_dict(cls, document: Any) -> "Logged":
        """Read an entry with its proof."""
        logged = cls(Envelope.from_dict(document["envelope"]), Proof.read(document["proof"]))
        _ = logged.entry  # refused here if it is none
        return logged

    def problems(self) -> Iterator[str]:
        """What is wrong with it, apart from who signed the checkpoint."""
        entry, proof = self.entry, self.proof
        if not self.envelope.is_signed_by(entry.signer):
            yield f"entry {entry.number} is not signed by the key that it names"
        if proof.index != entry.number - 1 or not proof.includes(self.envelope.leaf):
            yield f"entry {entry.number} is not in the ledger of its checkpoint"
        if proof.checkpoint.origin != origin_of(entry.vault):
            yield f"entry {entry.number} and its checkpoint are of different vaults"


@dataclass(frozen=True)
class Certificate:
    """A deletion as the ledger has it, the openings of one person and of the request, and later entries.

    Without an opening of a person it is that of the entry, for whoever must not know whom it is about.
    """

    logged: Logged
    openings: tuple[Opening, ...]
    later: tuple[Logged, ...] = ()

    def __post_init__(self) -> None:
        roles = [each.mention.role for each in self.openings]
        people = [role for role in roles if role in (USER, RECORD)]
        if self.entry.kind != "forget" or len(people) > 1 or len(set(roles)) != len(roles):
            raise InvalidInputError(
                "a certificate must be of a deletion, opened for at most one person, a case and an actor"
            )
        for later in self.later:
            if not concerns(later.entry, self.entry.number):
                raise InvalidInputError(
                    f"entry {later.entry.number} does not concern the deletion of entry {self.entry.number}"
                )

    @classmethod
    def read(cls, text: str | bytes) -> "Certificate":
        """Read a certificate; `verify` says whether to believe it.

        >>> Certificate.read("{}")
        Traceback (most recent call last):
        armnesia.core.errors.InvalidInputError: a certificate must have envelope, proof, opening and later,
        and nothing else
        """
        document = read_object(text, "a certificate")
        try:
            openings = tuple(map(Opening.from_dict, document["opening"]))
            later = tuple(map(Logged.from_dict, document["later"]))
            certificate = cls(Logged.from_dict(document), openings, later)
        except (KeyError, TypeError, AttributeError):
            certificate = None
        # Nothing is passed over: what is not read back as it stands there could be meant to mislead.
        if certificate is None or certificate.to_dict() != document:
            raise InvalidInputError(
                "a certificate must have envelope, proof, opening and later, and nothing else"
            )
        return certificate

    def to_dict(self) -> dict[str, Any]:
        """The certificate as JSON has it."""
        opening, later = ([each.to_dict() for each in some] for some in (self.openings, self.later))
        return {**self.logged.to_dict(), "opening": opening, "later": later}

    def to_json(self) -> str:
        """The file that is handed out."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    @property
    def entry(self) -> Entry:
        """The entry of the request."""
        return self.logged.entry

    @property
    def checkpoint(self) -> Checkpoint:
        """The ledger as of which the certificate holds."""
        return self.logged.proof.checkpoint

    @property
    def person(self) -> Mention | None:
        """The person, or the record, that the certificate is about."""
        people = (each.mention for each in self.openings if each.mention.role in (USER, RECORD))
        return next(people, None)

    def verify(self, keys: str | Iterable[str], checkpoint: str | Checkpoint | None = None) -> list[str]:
        """What is wrong with the certificate, a sentence each; an empty list if nothing is.

        `keys` is a public key as 64 hexadecimal digits, or the keys that the vault publishes. `checkpoint` is
        one that the verifier kept, as a signed note, or computed from a copy of the ledger.
        """
        trusted = [keys] if isinstance(keys, str) else list(keys)
        kept = [] if checkpoint is None else self._problems_with_kept(checkpoint, trusted)
        return [
            *self.logged.problems(),
            *_problems_with_key(self.logged.proof.note, trusted),
            *self._problems_with_openings(),
            *(problem for each in self.later for problem in self._problems_with_later(each)),
            *kept,
        ]

    def _problems_with_openings(self) -> Iterator[str]:
        """The openings must be of this entry."""
        for each in self.openings:
            try:
                root = each.root
            except InvalidInputError:
                root = None
            if root != self.entry.subject:
                yield f"the opening of the {each.mention.role} is not of entry {self.entry.number}"

    def _problems_with_later(self, later: Logged) -> Iterator[str]:
        """A later entry must be in the ledger of the same checkpoint."""
        yield from later.problems()
        if later.proof.note != self.logged.proof.note:
            yield f"entry {later.entry.number} comes with another checkpoint"

    def _problems_with_kept(self, kept: str | Checkpoint, keys: Sequence[str]) -> Iterator[str]:
        """The ledger of a kept checkpoint must be this one."""
        own = self.checkpoint
        if isinstance(kept, str):
            note = Note.read(kept)
            yield from _problems_with_key(note, keys, "the checkpoint that was kept")
            kept = Checkpoint.of(note)
        if kept.origin != own.origin:
            yield "the checkpoint that was kept is of another vault"
        elif kept.size != own.size:
            yield (
                f"the checkpoint that was kept has {kept.size} entries, that of the certificate {own.size}:"
                " compare with an export of the ledger instead (armnesia export)"
            )
        elif kept.root != own.root:
            yield "the ledger has changed since the checkpoint was kept, or it is another one"

    def summary(self) -> dict[str, Any]:
        """The main facts, for a table."""
        names = ("number", "kind", "time", "vault", "organisation")
        facts = {name: self.entry.facts.get(name) for name in ("level", "budget", "unlearner", "released")}
        own = {name: getattr(self.entry, name) for name in names}
        outcome = None if self.person is None else self.person.outcome
        later = [each.entry.kind for each in self.later]
        return {"entry": own.pop("number"), **own, "outcome": outcome, **facts, "later": later}

    def words(self) -> Words:
        """What it says, in words; `verify` says whether to believe them."""
        others = [each.mention for each in self.openings if each.mention.role not in (USER, RECORD)]
        later = [each.entry for each in self.later]
        return Words.of(self.entry, self.person, others, later, self.checkpoint)


def concerns(later: Entry, number: int) -> bool:
    """Whether an entry belongs into the certificate of the entry of this number."""
    match later.kind:
        case "compacted" | "erased":
            return later.number > number and bool(later.facts["through"] >= number)
        case "readmit":
            return later.number > number and number in later.facts["ends"]
    return False


def _problems_with_key(note: Note, keys: Sequence[str], what: str = "the checkpoint") -> Iterator[str]:
    """A checkpoint must be signed by a given key."""
    origin = Checkpoint.of(note).origin
    if not any(note.is_signed_by(origin, key) for key in keys):
        yield (
            f"{what} is signed by another key: a newer public key of this vault, or a newer certificate, is"
            " needed; or it is not its certificate"
        )
