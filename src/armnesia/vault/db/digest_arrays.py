"""Many digests as one array of numpy: sorted and grouped without a Python object for each."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from armnesia.core.arrays import BoolArray, IntArray
from armnesia.vault.keys.keyring import DIGEST_BYTES

DIGEST: np.dtype[np.void] = np.dtype(f"V{DIGEST_BYTES}")
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


def _halves(digests: DigestArray) -> npt.NDArray[np.uint64]:
    return np.ascontiguousarray(digests).view(np.uint64).reshape(-1, 2)
