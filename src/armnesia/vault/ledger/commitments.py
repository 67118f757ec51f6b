"""Commitments: how the ledger refers to a request without naming anyone, and how one name is opened.

Each name in a request has a salted commitment. The ledger entry has the root of the hash tree over them; with
one name, the root is the commitment itself. An opening is the salt, the name, and the hashes on the path to
the root: it names nobody else.

The vault stores an `Opening` per name: a nonce, which can be erased, and the position of the name's leaf.
For a request with several names it also stores the leaves. A leaf alone reveals nothing: computing it from a
name takes the keys and the nonce.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.core.randomness import secret_bytes
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.canonical_json import sha256_hex, text_of_plain
from armnesia.vault.keys.keyring import Keyring

LEFT, RIGHT = "left", "right"
HELD, NOTHING = "held", "nothing"
_LEAF_BYTES = 32
_STEP = re.compile(rf"({LEFT}|{RIGHT}):[0-9a-f]{{64}}")


def commitment(salt: bytes, request: Mapping[str, Any]) -> str:
    """The commitment to a request, SHA-256(salt ‖ canonical JSON): it can be tested only with the salt.

    >>> commitment(bytes(16), {"users": ["ann"]}) == commitment(bytes(15) + b"1", {"users": ["ann"]})
    False
    """
    return sha256_hex(salt + text_of_plain(request).encode("utf-8"))


def tree_root(leaves: Sequence[str]) -> str:
    """The root of the hash tree over commitments, in their order.

    >>> tree_root(["ab" * 32])[:8]
    'abababab'
    """
    return _levels(leaves)[-1][0]


def inclusion_path(leaves: Sequence[str], place: int) -> list[str]:
    """The sibling hashes on the path from a commitment to the root, each with its side.

    >>> inclusion_path(["aa" * 32, "bb" * 32], 1) == ["left:" + "aa" * 32]
    True
    """
    return HashTree(leaves).path(place)


class HashTree:
    """All hashes of the tree over commitments, for the paths of many of them.

    >>> HashTree(["aa" * 32, "bb" * 32]).path(0) == ["right:" + "bb" * 32]
    True
    """

    def __init__(self, leaves: Sequence[str]) -> None:
        self._levels = _levels(leaves)

    @classmethod
    def of_bytes(cls, leaves: bytes) -> "HashTree":
        """The tree over commitments as the vault stores them: one after another."""
        places = range(0, len(leaves), _LEAF_BYTES)
        return cls([leaves[at : at + _LEAF_BYTES].hex() for at in places])

    @property
    def root(self) -> str:
        """The root, which the ledger holds."""
        return self._levels[-1][0]

    @property
    def size(self) -> int:
        """How many commitments there are."""
        return len(self._levels[0])

    def path(self, place: int) -> list[str]:
        """The sibling hashes on the path from the commitment at this place to the root."""
        path = []
        for level in self._levels[:-1]:
            sibling = place ^ 1
            if sibling < len(level):
                path.append(f"{LEFT if sibling < place else RIGHT}:{level[sibling]}")
            place //= 2
        return path


def root_from_path(leaf: str, path: Sequence[str]) -> str:
    """The root, computed from a commitment and its path.

    >>> leaves = ["aa" * 32, "bb" * 32, "cc" * 32]
    >>> root_from_path(leaves[2], inclusion_path(leaves, 2)) == tree_root(leaves)
    True
    """
    for step in path:
        side, _, sibling = step.partition(":")
        leaf = _joined(sibling, leaf) if side == LEFT else _joined(leaf, sibling)
    return leaf


def is_path(path: Any) -> bool:
    """Whether this has the form of what `inclusion_path` returns, and is not empty."""
    return (
        isinstance(path, list)
        and bool(path)
        and all(isinstance(step, str) and _STEP.fullmatch(step) for step in path)
    )


@dataclass(frozen=True)
class Opening:
    """What the vault stores per name of a request; the salt is computed from the keys and the nonce.

    In a request with several names, `held` says whether the vault had records of this one, and `place` is the
    position of its leaf. Vaults created with schema version 1 may have the `path` to the root instead.

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

    @property
    def is_of_whole_request(self) -> bool:
        """Whether the request has no other name."""
        return self.place is None and not self.path

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
        """The request in the form that the commitment hashes."""
        return {**request} if self.held is None else {**request, "held": self.held}

    def path_in(self, tree: HashTree | None) -> Sequence[str]:
        """The path from this name's leaf to the root of its hash tree, if there is one."""
        return self.path if self.place is None or tree is None else tree.path(self.place)


@dataclass(frozen=True)
class RequestCommitment:
    """The commitment to a request, and the openings of its names in their order."""

    root: str
    openings: list[Opening]
    leaves: bytes | None
    """The leaves of the hash tree; None for a request with one name."""
    revealed: dict[str, Any] | None
    """The opening of a request with one name, as its certificate has it."""


def commit_to(
    target: ErasureTarget, keyring: Keyring, sequence: int, digest_key: int, held: set[bytes]
) -> RequestCommitment:
    """Commit to a request in the ledger entry `sequence`; `held` are the row keys that had records.

    The entry is about all names together; each leaf says whether its own name had records.
    """
    leaves, openings, revealed = [], [], None
    alone = len(target.names) == 1
    for place, (one, key) in enumerate(zip(target.one_by_one(), target.row_keys(keyring), strict=True)):
        nonce = secret_bytes(16).hex()
        opening = Opening(nonce) if alone else Opening(nonce, key in held, place)
        salt, request = (
            keyring.salt(sequence, digest_key, one.names[0], nonce),
            opening.request(one.to_dict()),
        )
        leaves.append(commitment(salt, request))
        openings.append(opening)
        revealed = {"salt": salt.hex(), "request": request} if alone else None
    root = leaves[0] if alone else tree_root(leaves)
    return RequestCommitment(root, openings, None if alone else bytes.fromhex("".join(leaves)), revealed)


def _levels(leaves: Sequence[str]) -> list[list[str]]:
    if not leaves:
        raise InvalidInputError("a commitment must be to at least one name; got none")
    levels = [list(leaves)]
    while len(levels[-1]) > 1:
        below = levels[-1]
        pairs = zip(below[::2], below[1::2], strict=False)
        odd = below[-1:] if len(below) % 2 else []  # passes to the next level unpaired
        levels.append([*(_joined(left, right) for left, right in pairs), *odd])
    return levels


def _joined(left: str, right: str) -> str:
    # The first byte separates a pair of hashes from a salt and a name.
    return sha256_hex(b"\x01" + bytes.fromhex(left) + bytes.fromhex(right))
