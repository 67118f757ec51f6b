"""A small ledger in memory, with certificates: the same in every run."""

from dataclasses import dataclass, field
from typing import Any

from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.keys.signatures import public_key
from armnesia.vault.ledger.certificate import Certificate, Logged
from armnesia.vault.ledger.checkpoint import Checkpoint, Note, origin_of
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.envelope import Envelope
from armnesia.vault.ledger.merkle import Tree
from armnesia.vault.ledger.people import (
    ACTOR,
    CASE,
    DELETED,
    NOTHING,
    RECORD,
    UNCOUNTED,
    USER,
    Mention,
    People,
)

SEED, OTHER = bytes(range(32)), bytes(range(1, 33))
KEYRING = Keyring("v-1", bytes(range(2, 34)), (SEED,))
PUBLIC = public_key(SEED)
FACTS: dict[str, Any] = {
    "level": "retained",
    "budget": {"epsilon": 0.5, "delta": 1e-05},
    "unlearner": {"name": "tilt"},
    "released": "B",
}
MENTIONS = (
    Mention(USER, DELETED, "416"),
    Mention(USER, UNCOUNTED, "bob"),
    Mention(USER, NOTHING, "zoé"),
    Mention(RECORD, DELETED, "r-7"),
    Mention(CASE, "", "DSR-2026/12"),
    Mention(ACTOR, "", "clerk@example.com"),
)


def entry_of(number: int, kind: str, **changes: Any) -> Entry:
    """An entry of the ledger's vault."""
    fields: dict[str, Any] = {
        "vault": "v-1",
        "organisation": "Example Ltd",
        "number": number,
        "time": f"2026-11-{17 + number:02d}T10:42:07.123456Z",
        "code": "armnesia 0.1.0",
        "signer": PUBLIC,
        "kind": kind,
        "subject": bytes(32),
    }
    if kind == "compacted":
        fields["facts"] = {"through": number - 1}
    return Entry(**{**fields, **changes})


@dataclass
class SmallLedger:
    """Envelopes in their order; entry 3 is a deletion."""

    envelopes: list[Envelope] = field(default_factory=list)
    people: People = field(init=False)

    def __post_init__(self) -> None:
        self.people = People.of(KEYRING, 3, MENTIONS)
        self.write(entry_of(1, "init"))
        self.write(entry_of(2, "policy"))
        self.write(
            entry_of(3, "forget", subject=self.people.root, facts=FACTS, time="2026-11-18T23:59:59.999999Z")
        )

    def write(self, entry: Entry, seed: bytes = SEED) -> None:
        """Append an entry."""
        self.envelopes.append(Envelope.signed(entry.payload, seed))

    @property
    def leaves(self) -> list[bytes]:
        """The leaves of its tree."""
        return [each.leaf for each in self.envelopes]

    def note(self, seed: bytes = SEED) -> Note:
        """The newest checkpoint."""
        return Checkpoint(origin_of("v-1"), len(self.leaves), Tree(self.leaves).root).signed(seed)

    def certificate(
        self, role: str = USER, text: str = "416", *, later: tuple[int, ...] = (), seed: bytes = SEED
    ) -> Certificate:
        """The certificate of entry 3 for one of its people, with these later entries."""
        names = ((role, text), (CASE, "DSR-2026/12"), (ACTOR, "clerk@example.com"))
        openings = tuple(self.people.opening(KEYRING, 3, *name) for name in names)
        first, *others = (
            Logged.of(self.envelopes[n - 1], Tree(self.leaves), self.note(seed)) for n in (3, *later)
        )
        return Certificate(first, openings, tuple(others))
