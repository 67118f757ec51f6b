"""Commitments: what the ledger says of a request, and how one person opens it without naming the others.

Everybody in a request has a salted commitment of their own; the ledger holds the root of the hash tree over
them. A person's opening is their salt, their name, and the hashes beside the way up: nobody else is named.
With one name in the request the root is that commitment itself.
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


def root_of(leaves: Sequence[str]) -> str:
    """The root of the tree over commitments, in their order.

    >>> root_of(["ab" * 32])[:8]
    'abababab'
    """
    return _levels(leaves)[-1][0]


def path_of(leaves: Sequence[str], place: int) -> list[str]:
    """The hashes beside the way of a commitment to the root, each with the side it stands on.

    >>> path_of(["aa" * 32, "bb" * 32], 1) == ["left:" + "aa" * 32]
    True
    """
    path = []
    for level in _levels(leaves)[:-1]:
        beside = place ^ 1
        if beside < len(level):
            path.append(f"{LEFT if beside < place else RIGHT}:{level[beside]}")
        place //= 2
    return path


def climbed(leaf: str, path: Sequence[str]) -> str:
    """The root that a commitment and its path lead to.

    >>> leaves = ["aa" * 32, "bb" * 32, "cc" * 32]
    >>> all(climbed(leaf, path_of(leaves, place)) == root_of(leaves) for place, leaf in enumerate(leaves))
    True
    """
    for step in path:
        side, _, beside = step.partition(":")
        leaf = _joined(beside, leaf) if side == LEFT else _joined(leaf, beside)
    return leaf


def is_path(path: Any) -> bool:
    """Whether this could be what `path_of` made of two commitments or more."""
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
        odd = below[-1:] if len(below) % 2 else []  # goes up alone
        levels.append([*(_joined(left, right) for left, right in pairs), *odd])
    return levels


def _joined(left: str, right: str) -> str:
    # The first byte keeps a pair of hashes apart from a salt and a name.
    return sha256_hex(b"\x01" + bytes.fromhex(left) + bytes.fromhex(right))
