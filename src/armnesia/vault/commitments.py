"""Commitments: what the ledger says of a request, and how one person opens it without naming the others.

Everybody in a request has a salted commitment of their own; the ledger holds the root of the hash tree over
them. A person's opening is their salt, their name, and the hashes beside the way up: nobody else is named.
With one name in the request the root is that commitment itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from armnesia.errors import InvalidInputError
from armnesia.vault.canonical import canonical, sha256_hex

LEFT, RIGHT = "left", "right"
HELD, NOTHING = "held", "nothing"


@dataclass(frozen=True)
class Opening:
    """What the vault keeps to open one person's commitment again: the salt is made of the keys and the nonce.

    `held` says of one among several whether there was any record of theirs.

    >>> str(Opening("00ff", held=False, path=["left:ab"]))
    '00ff nothing left:ab'
    >>> Opening.read("00ff nothing left:ab").request({"users": ["ann"]})
    {'users': ['ann'], 'held': False}
    """

    nonce: str
    held: bool | None = None
    path: Sequence[str] = ()

    def __str__(self) -> str:
        said = [] if self.held is None else [HELD if self.held else NOTHING]
        return " ".join([self.nonce, *said, *self.path])

    @classmethod
    def read(cls, text: str) -> "Opening":
        """The opening that is written so."""
        nonce, *rest = text.split()
        said = rest[0] if rest and rest[0] in (HELD, NOTHING) else None
        return cls(nonce, None if said is None else said == HELD, rest if said is None else rest[1:])

    def request(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What is committed to."""
        return {**request} if self.held is None else {**request, "held": self.held}


def commitment(salt: bytes, request: Mapping[str, Any]) -> str:
    """Hide a request behind a salt: SHA-256(salt ‖ canonical JSON), which only the salt opens.

    >>> commitment(bytes(16), {"users": ["ann"]}) == commitment(bytes(15) + b"1", {"users": ["ann"]})
    False
    """
    return sha256_hex(salt + canonical(request).encode("utf-8"))


def root_of(leaves: Sequence[str]) -> str:
    """The root of the tree over commitments, in their order.

    >>> root_of(["ab" * 32])[:8]
    'abababab'
    """
    return _levels(leaves)[-1][0]


def paths_of(leaves: Sequence[str]) -> list[list[str]]:
    """For each commitment the hashes beside its way to the root, each with the side it stands on.

    >>> paths_of(["aa" * 32, "bb" * 32])[1] == ["left:" + "aa" * 32]
    True
    """
    levels = _levels(leaves)
    return [_path(levels, place) for place in range(len(leaves))]


def climbed(leaf: str, path: Sequence[str]) -> str:
    """The root that a commitment and its path lead to.

    >>> leaves = ["aa" * 32, "bb" * 32, "cc" * 32]
    >>> all(climbed(leaf, path) == root_of(leaves) for leaf, path in zip(leaves, paths_of(leaves)))
    True
    """
    for step in path:
        side, _, beside = step.partition(":")
        leaf = _joined(beside, leaf) if side == LEFT else _joined(leaf, beside)
    return leaf


def _levels(leaves: Sequence[str]) -> list[list[str]]:
    if not leaves:
        raise InvalidInputError("a commitment must be to at least one name; got none")
    levels = [list(leaves)]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = zip(below[::2], below[1::2], strict=False)
        odd = below[-1:] if len(below) % 2 else []  # goes up alone
        levels.append([*(_joined(left, right) for left, right in pairs), *odd])
    return levels


def _path(levels: list[list[str]], place: int) -> list[str]:
    path = []
    for level in levels[:-1]:
        beside = place ^ 1
        if beside < len(level):
            path.append(f"{LEFT if beside < place else RIGHT}:{level[beside]}")
        place //= 2
    return path


def _joined(left: str, right: str) -> str:
    # The first byte keeps a pair of hashes apart from a salt and a name.
    return sha256_hex(b"\x01" + bytes.fromhex(left) + bytes.fromhex(right))
