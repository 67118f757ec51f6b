"""Openings: what the vault keeps so that the commitment to a request can be opened for each name in it.

For each name a nonce, which can be erased, and its position; for a request with several names also the leaves
of its hash tree. A leaf reveals nothing by itself: making it from a name takes the keys and the nonce.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from armnesia.core.randomness import secret_bytes
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.commitments import commitment, inclusion_path, tree_root

HELD, NOTHING = "held", "nothing"
_LEAF_BYTES = 32


@dataclass(frozen=True)
class Opening:
    """What is kept for one name; the salt is made from the keys and the nonce.

    In a request with several names, `held` says whether the vault had records under this one, and `place` is
    the position of its leaf. Vaults created with schema version 1 may have the `path` to the root instead.

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
        held = [] if self.held is None else [HELD if self.held else NOTHING]
        place = [] if self.place is None else [str(self.place)]
        return " ".join([self.nonce, *held, *place, *self.path])

    @classmethod
    def read(cls, text: str) -> "Opening":
        """Read an opening from its text."""
        nonce, *rest = text.split()
        held = rest.pop(0) == HELD if rest and rest[0] in (HELD, NOTHING) else None
        place = int(rest.pop(0)) if rest and rest[0].isdecimal() else None
        return cls(nonce, held, place, tuple(rest))

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The request as it is committed to."""
        return {**request} if self.held is None else {**request, "held": self.held}

    def path_in(self, leaves: bytes) -> list[str]:
        """The path from this name's leaf to the root of the hash tree with these leaves."""
        assert self.place is not None
        hashes = [leaves[at : at + _LEAF_BYTES].hex() for at in range(0, len(leaves), _LEAF_BYTES)]
        return inclusion_path(hashes, self.place)


@dataclass(frozen=True)
class RequestCommitment:
    """The commitment to a request, and the openings of its names in their order."""

    root: str
    openings: list[Opening]
    leaves: bytes | None
    """The leaves of the hash tree; None for a request with one name."""


def commit_to(
    target: ErasureTarget, ring: Keyring, sequence: int, digest_key: int, held: set[bytes]
) -> RequestCommitment:
    """Commit to a request in the ledger entry `sequence`; `held` are the keys of the rows that were found.

    The entry states what was done for all names together, and each leaf whether its own name had records.
    """
    leaves, openings = [], []
    alone = len(target.names) == 1
    for place, (one, key) in enumerate(zip(target.each(), target.row_keys(ring), strict=True)):
        nonce = secret_bytes(16).hex()
        opening = Opening(nonce) if alone else Opening(nonce, key in held, place)
        salt = ring.salt(sequence, digest_key, one.name, nonce)
        leaves.append(commitment(salt, opening.request(one.request)))
        openings.append(opening)
    return RequestCommitment(tree_root(leaves), openings, None if alone else bytes.fromhex("".join(leaves)))
