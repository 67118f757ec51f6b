"""The Merkle tree of RFC 6962, section 2.1: one hash for a list, and short proofs that something is in it.

A leaf is hashed behind a byte 0, a pair of hashes behind a byte 1, so that neither passes for the other. The
left half of a tree is its largest perfect part. Paired level by level, with an odd hash passed on unpaired,
a list gives that same tree.

>>> leaves = [leaf_hash(data) for data in (b"ann", b"bob", b"eve")]
>>> tree = Tree(leaves)
>>> root_from_proof(leaves[1], 1, 3, tree.proof(1)) == tree.root
True
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from hashlib import sha256

from armnesia.core.errors import InvalidInputError

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()


def leaf_hash(data: bytes) -> bytes:
    """The hash of one leaf.

    >>> leaf_hash(b"").hex()[:16]
    '6e340b9cffb37a98'
    """
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of two neighbours.

    >>> node_hash(b"N123", b"N456").hex()[:16]
    'aa217fe888e47007'
    """
    return sha256(b"\x01" + left + right).digest()


class Tree:
    """A whole tree.

    >>> Tree([]).root == EMPTY_ROOT
    True
    """

    def __init__(self, leaf_hashes: Sequence[bytes]) -> None:
        self._levels = [leaf_hashes]
        """The hashes, from the leaves to the root."""
        while len(level := self._levels[-1]) > 1:
            pairs = [node_hash(*pair) for pair in zip(level[::2], level[1::2], strict=False)]
            self._levels.append([*pairs, *level[2 * len(pairs) :]])

    @property
    def root(self) -> bytes:
        """The root."""
        return self._levels[-1][0] if self._levels[-1] else EMPTY_ROOT

    def proof(self, index: int) -> tuple[bytes, ...]:
        """The hashes beside the path from a leaf, counted from 0, up to the root.

        >>> Tree([leaf_hash(b"ann"), leaf_hash(b"bob")]).proof(0) == (leaf_hash(b"bob"),)
        True
        """
        _check_place(index, len(self._levels[0]))
        places = ((level, (index >> height) ^ 1) for height, level in enumerate(self._levels))
        return tuple(level[beside] for level, beside in places if beside < len(level))


def root_from_proof(leaf: bytes, index: int, size: int, proof: Sequence[bytes]) -> bytes:
    """The root of the tree of this size that has the leaf there, if the proof is right (RFC 9162, 2.1.3.2).

    >>> root_from_proof(leaf_hash(b"ann"), 0, 2, [])
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: a proof of leaf 0 of 2 must be of 1 hashes of 32 bytes; got 0
    """
    _check_place(index, size)
    last = size - 1
    # At each height, whether our hash is the right one of its pair; one without a neighbour is passed on.
    heights = range(last.bit_length())
    sides = [index >> height & 1 for height in heights if (index >> height) ^ 1 <= last >> height]
    if len(proof) != len(sides) or any(len(each) != HASH_BYTES for each in (leaf, *proof)):
        raise InvalidInputError(
            f"a proof of leaf {index} of {size} must be of {len(sides)} hashes of {HASH_BYTES} bytes;"
            f" got {len(proof)}"
        )
    for is_right, beside in zip(sides, proof, strict=True):
        leaf = node_hash(beside, leaf) if is_right else node_hash(leaf, beside)
    return leaf


@dataclass(frozen=True)
class Frontier:
    """What an append needs of a tree: the roots of its perfect parts, the largest first.

    There is one for each bit of the size that is 1.

    >>> leaves = [leaf_hash(data) for data in (b"ann", b"bob", b"eve")]
    >>> frontier = Frontier.of(leaves)
    >>> frontier.size, len(frontier.hashes), frontier.root == Tree(leaves).root
    (3, 2, True)
    """

    size: int = 0
    hashes: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, leaf_hashes: Iterable[bytes]) -> "Frontier":
        """The frontier of the tree over these leaves.

        >>> Frontier.of([]) == Frontier()
        True
        """
        return reduce(cls.append, leaf_hashes, cls())

    def append(self, leaf: bytes) -> "Frontier":
        """The frontier with one more leaf.

        >>> Frontier().append(leaf_hash(b"ann")).root == leaf_hash(b"ann")
        True
        """
        hashes, size = list(self.hashes), self.size
        while size & 1:
            leaf, size = node_hash(hashes.pop(), leaf), size >> 1
        return Frontier(self.size + 1, (*hashes, leaf))

    @property
    def root(self) -> bytes:
        """The root of the tree."""
        if not self.hashes:
            return EMPTY_ROOT
        return reduce(lambda right, left: node_hash(left, right), reversed(self.hashes))


def split(hashes: bytes) -> tuple[bytes, ...]:
    """The hashes that were stored one after another.

    >>> split(bytes(64)) == (bytes(32), bytes(32))
    True
    """
    return tuple(hashes[at : at + HASH_BYTES] for at in range(0, len(hashes), HASH_BYTES))


def _check_place(index: int, size: int) -> None:
    if not 0 <= index < size:
        raise InvalidInputError(f"a leaf of {size} must have a number from 0 below that; got {index}")
