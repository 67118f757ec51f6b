"""Many digests as one array of numpy: sorted, grouped and combined without a Python object for each."""

from collections.abc import Sequence
from functools import reduce
from operator import xor
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armnesia.core.arrays import BoolArray, IntArray
from armnesia.vault.keys.keyring import DIGEST_BYTES

DIGEST: np.dtype[np.void] = np.dtype(f"V{DIGEST_BYTES}")
_MANY = 100
_FIRST_BITS = 21
"""Bits of a digest that have several times as many values as a large set has digests."""
_OTHER_BITS = np.uint64(64 - _FIRST_BITS)
NO_DIGEST = bytes(DIGEST_BYTES)
"""Stands for a digest that is missing, such as that of the owner of a row that has none."""

DigestArray: TypeAlias = npt.NDArray[np.void]
Columns: TypeAlias = dict[str, npt.NDArray[Any]]
"""Arrays of equal length by the names of their columns: digests, `int32` for INTEGER, `int64` for BIGINT."""


def packed(digests: Sequence[bytes]) -> DigestArray:
    """An array of digests.

    >>> len(packed([b"a" * 16, b"b" * 16]))
    2
    """
    return np.frombuffer(b"".join(digests), DIGEST)


def order_of(digests: DigestArray) -> IntArray:
    """The places of digests in their order, equal ones as they come.

    >>> order_of(packed([b"b" * 16, b"a" * 16, b"b" * 16])).tolist()
    [1, 0, 2]
    """
    halves = np.ascontiguousarray(digests).view(">u8").reshape(-1, 2)
    first = halves[:, 0].astype(np.uint64)
    order = np.argsort(first, kind="stable")
    ordered = first[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if (halves[order[again + 1], 1] != halves[order[again], 1]).any():  # only the first halves are equal
        order = np.lexsort((halves[:, 1].astype(np.uint64), first))
    return order.astype(np.int64, copy=False)


def is_given(digests: DigestArray) -> BoolArray:
    """Which digests are not `NO_DIGEST`.

    >>> is_given(packed([b"a" * 16, NO_DIGEST])).tolist()
    [True, False]
    """
    return np.asarray((_halves(digests) != 0).any(axis=1))


class DigestSet:
    """A set of digests that tells how many of others it has.

    >>> DigestSet(packed([b"c" * 16, b"b" * 16])).count(packed([b"a" * 16, b"b" * 16]))
    1
    """

    def __init__(self, digests: DigestArray) -> None:
        self._digests, self._halves = digests, np.sort(_halves(digests)[:, 0])
        self._first_bits = np.zeros(1 << _FIRST_BITS, bool)
        self._first_bits[self._halves >> _OTHER_BITS] = True

    def count(self, digests: DigestArray) -> int:
        """How many of these are in the set."""
        if not len(self._halves):
            return 0
        halves = _halves(digests)[:, 0]
        # A look at one place rules out nearly all; a search looks at many, far from each other.
        likely = np.flatnonzero(self._first_bits[halves >> _OTHER_BITS])
        digests, halves = digests[likely], halves[likely]
        places = np.minimum(np.searchsorted(self._halves, halves), len(self._halves) - 1)
        alike = digests[self._halves[places] == halves].tolist()
        return len(alike) and sum(map(set(self._digests.tolist()).__contains__, alike))


def starts_of_groups(ordered: DigestArray) -> IntArray:
    """Where in an ordered array each digest occurs first.

    >>> starts_of_groups(packed([b"a" * 16, b"a" * 16, b"b" * 16])).tolist()
    [0, 2]
    """
    halves = _halves(ordered)
    begins = np.ones(len(ordered), bool)
    begins[1:] = (halves[1:] != halves[:-1]).any(axis=1)
    return np.flatnonzero(begins)


def each_once(digests: DigestArray) -> DigestArray:
    """The digests in their order, each once.

    >>> each_once(packed([b"b" * 16, b"a" * 16, b"b" * 16])).tolist() == [b"a" * 16, b"b" * 16]
    True
    """
    ordered = digests[order_of(digests)]
    return ordered[starts_of_groups(ordered)]


def xor_of_groups(digests: DigestArray, starts: IntArray) -> DigestArray:
    """The exclusive or of the digests of each group, of which each begins where the one before ends.

    >>> both = packed([b"a" * 16, b"a" * 16, b"b" * 16])
    >>> xor_of_groups(both, np.array([0, 2])).tolist() == [bytes(16), b"b" * 16]
    True
    """
    if not len(starts):
        return digests[:0]
    found = np.bitwise_xor.reduceat(_halves(digests), starts, axis=0)
    return np.ascontiguousarray(found).view(DIGEST).reshape(-1)


def xor_of(digests: Sequence[bytes]) -> int:
    """The exclusive or of all digests, as an integer.

    >>> xor_of([b"a" * 16, b"b" * 16, b"a" * 16]) == int.from_bytes(b"b" * 16)
    True
    """
    if len(digests) < _MANY:  # making an array of them would take longer
        return reduce(xor, map(int.from_bytes, digests), 0)
    return int.from_bytes(np.bitwise_xor.reduce(_halves(packed(digests)), axis=0).tobytes())


def _halves(digests: DigestArray) -> npt.NDArray[np.uint64]:
    return np.ascontiguousarray(digests).view(np.uint64).reshape(-1, 2)
