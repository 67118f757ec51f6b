"""Openings: what the vault keeps, so that each who was in a request can have its commitment opened.

For everybody a nonce, which can be erased, and their place; for a request of several the leaves of its hash
tree, once. A leaf alone tells nobody anything: it takes the keys and the nonce to make it from a name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from armnesia.core.randomness import secret_bytes
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.commitments import commitment, path_of, root_of
from armnesia.vault.state.records import Wanted
from armnesia.vault.state.sealed_state import State
from armnesia.vault.storage.database import Row, Session

HELD, NOTHING = "held", "nothing"
_LEAF_BYTES = 32


@dataclass(frozen=True)
class Opening:
    """What is kept for one person: the salt is made of the keys and the nonce.

    `held` says of one among several whether there was any record of theirs, `place` is that of their leaf.
    Vaults that began with schema version 1 may have the `path` to the root instead.

    >>> str(Opening("00ff", held=False, place=7))
    '00ff nothing 7'
    >>> Opening.read("00ff nothing 7").request({"users": ["ann"]})
    {'users': ['ann'], 'held': False}
    >>> Opening.read("00ff left:ab right:cd").path
    ('left:ab', 'right:cd')
    """

    nonce: str
    held: bool | None = None
    place: int | None = None
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = [] if self.held is None else [HELD if self.held else NOTHING]
        place = [] if self.place is None else [str(self.place)]
        return " ".join([self.nonce, *said, *place, *self.path])

    @classmethod
    def read(cls, text: str) -> "Opening":
        """The opening that is written so."""
        nonce, *rest = text.split()
        said = rest.pop(0) == HELD if rest and rest[0] in (HELD, NOTHING) else None
        place = int(rest.pop(0)) if rest and rest[0].isdecimal() else None
        return cls(nonce, said, place, tuple(rest))

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What is committed to."""
        return {**request} if self.held is None else {**request, "held": self.held}

    def path_in(self, session: Session, sequence: int) -> Sequence[str]:
        """The way from the leaf at the person's place to the root of the entry's tree."""
        assert self.place is not None
        ((leaves,),) = session.query("SELECT leaves FROM tree WHERE sequence = ?", sequence)
        data = bytes(leaves)
        hashes = [data[at : at + _LEAF_BYTES].hex() for at in range(0, len(data), _LEAF_BYTES)]
        return path_of(hashes, self.place)


@dataclass(frozen=True)
class Committed:
    """The commitment to a request, what opens it for each who is in it, and the tree of several."""

    root: str
    openings: list[Opening]
    trees: list[Row]
    """(sequence, leaves) as the table holds them; none where one person asked alone."""


def committed(ring: Keyring, before: State, wanted: Wanted, held: set[bytes]) -> Committed:
    """Commit to a request, of whose rows `held` are the keys.

    Of several people the entry says what was done for all of them: each one's own leaf says whether anything
    was held of theirs.
    """
    sequence, leaves, openings = before.head.sequence + 1, [], []
    alone = len(wanted.names) == 1
    for place, (one, key) in enumerate(zip(wanted.singly(), wanted.row_keys(ring), strict=True)):
        nonce = secret_bytes(16).hex()
        opening = Opening(nonce) if alone else Opening(nonce, key in held, place)
        salt = ring.salt(sequence, before.digest_key, one.name, nonce)
        leaves.append(commitment(salt, opening.request(one.request)))
        openings.append(opening)
    trees = [] if alone else [(sequence, bytes.fromhex("".join(leaves)))]
    return Committed(root_of(leaves), openings, trees)
