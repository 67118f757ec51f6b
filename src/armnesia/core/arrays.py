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


def sums_of_arms(values: NDArray[Any]) -> NDArray[Any]:
    """The sum over the arms of each data set.

    >>> sums_of_arms(np.array([[0.5, 0.25], [1.0, 2.0]]))
    array([0.75, 3.  ])
    """
    return _over_arms(np.add, values)


def numbers_of_arms(marks: BoolArray) -> IntArray:
    """How many arms of each data set are marked.

    >>> numbers_of_arms(np.array([[True, False], [True, True]]))
    array([1, 2])
    """
    return _over_arms(np.add, marks, np.dtype(np.int64))


def highest_of_arms(values: FloatArray) -> FloatArray:
    """The highest value of each data set.

    >>> highest_of_arms(np.array([[0.5, 0.25], [1.0, 2.0]]))
    array([0.5, 2. ])
    """
    return _over_arms(np.maximum, values)


_FEW_ARMS, _MANY_ROWS = 8, 500


def _over_arms(
    operation: np.ufunc, values: NDArray[Any], dtype: "np.dtype[Any] | None" = None
) -> NDArray[Any]:
    """One number per data set; arm by arm for few arms of many data sets, which is many times faster."""
    n_arms = values.shape[-1]
    if not (0 < n_arms <= _FEW_ARMS and values.size >= n_arms * _MANY_ROWS):
        return np.asarray(operation.reduce(values, axis=-1, dtype=dtype))
    total = values[..., 0].astype(dtype or values.dtype)
    for arm in range(1, n_arms):
        operation(total, values[..., arm], out=total)
    return total


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Copy an array and make the copy read-only: the values of armnesia are immutable."""
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def scalar_or_array(values: NDArray[Any]) -> Any:
    """Turn the result for a single data set into a scalar; return a batch unchanged."""
    return values.item() if values.ndim == 0 else values
