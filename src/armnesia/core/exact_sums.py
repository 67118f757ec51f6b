"""Reward sums as exact integers: int64 where every possible sum fits, Python integers otherwise."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.units import UNIT

LARGEST_INT64_COUNT = np.iinfo(np.int64).max // UNIT
"""Of records of an arm: every possible sum of their reward units fits into 64 bits."""

_WHOLE = (int, np.integer)


def exact_sums(sums: ArrayLike, counts: IntArray) -> NDArray[Any]:
    """Convert sums to int64 if every possible sum of these counts fits, to Python integers otherwise."""
    given = np.asarray(sums)
    if given.dtype.kind not in "iuO":
        raise InvalidInputError(f"sums must be whole numbers of reward units; got {given.dtype}")
    if given.dtype == object and not all(is_whole(value) for value in given.flat):
        raise InvalidInputError(f"sums must be whole numbers of reward units; got {given.tolist()}")
    fits = counts.size == 0 or int(counts.max()) <= LARGEST_INT64_COUNT
    if not fits:
        return np.array([int(value) for value in given.flat], dtype=object).reshape(given.shape)
    try:
        return given.astype(np.int64)
    except OverflowError:
        raise InvalidInputError(f"sums must lie between 0 and count · {UNIT}; got {given.tolist()}") from None


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or numpy, and not a truth value.

    >>> is_whole(np.int64(2)), is_whole(2.0), is_whole(True)
    (True, False, False)
    """
    return type(value) is int or (isinstance(value, _WHOLE) and not isinstance(value, bool))


def add_sums(left: NDArray[Any], right: NDArray[Any], counts: IntArray) -> NDArray[Any]:
    """Add sums, as Python integers where int64 could overflow."""
    if counts.size and int(counts.max()) > LARGEST_INT64_COUNT:
        left = left.astype(object)
    return np.asarray(left + right)
