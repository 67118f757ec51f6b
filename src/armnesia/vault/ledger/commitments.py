"""Commitments: how the ledger refers to a request, and how it is opened for one name without the others.

Each name in a request has a salted commitment of its own; the ledger entry holds the root of the hash tree
over them. An opening is the salt, the name, and the hashes along the path to the root: it names nobody else.
With one name in the request the root is its commitment itself.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys.canonical_json import canonical, sha256_hex

LEFT, RIGHT = "left", "right"
_STEP = re.compile(rf"({LEFT}|{RIGHT}):[0-9a-f]{{64}}")


def commitment(salt: bytes, request: Mapping[str, Any]) -> str:
    """Hide a request behind a salt: SHA-256(salt ‖ canonical JSON), which only the salt opens.

    >>> commitment(bytes(16), {"users": ["ann"]}) == commitment(bytes(15) + b"1", {"users": ["ann"]})
    False
    """
    return sha256_hex(salt + canonical(request).encode("utf-8"))


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
    path = []
    for level in _levels(leaves)[:-1]:
        sibling = place ^ 1
        if sibling < len(level):
            path.append(f"{LEFT if sibling < place else RIGHT}:{level[sibling]}")
        place //= 2
    return path


def root_from_path(leaf: str, path: Sequence[str]) -> str:
    """The root that follows from a commitment and its path.

    >>> leaves = ["aa" * 32, "bb" * 32, "cc" * 32]
    >>> root_from_path(leaves[2], inclusion_path(leaves, 2)) == tree_root(leaves)
    True
    """
    for step in path:
        side, _, sibling = step.partition(":")
        leaf = _joined(sibling, leaf) if side == LEFT else _joined(leaf, sibling)
    return leaf


def is_path(path: Any) -> bool:
    """Whether this has the form of a path that `inclusion_path` returns."""
    return (
        isinstance(path, list)
        and bool(path)
        and all(isinstance(step, str) and _STEP.fullmatch(step) for step in path)
    )


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
