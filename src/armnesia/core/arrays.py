"""Array types and helpers. The last axis of an array is always the arms; leading axes are data sets."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

IntArray: TypeAlias = NDArray[np.int64]
FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]


def one_hot(index: IntArray, n_actions: int) -> FloatArray:
    """Put probability 1 on one arm per data set.

    >>> one_hot(np.array(1), 3)
    array([0., 1., 0.])
    """
    return np.asarray(index[..., None] == np.arange(n_actions), dtype=np.float64)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Copy an array and make the copy read-only: the values of armnesia are immutable."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def scalar_or_array(values: NDArray[Any]) -> Any:
    """Turn the result for a single data set into a scalar; return a batch unchanged."""
    return values.item() if values.ndim == 0 else values
