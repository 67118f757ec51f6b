"""Reward units: how rewards of a declared range become exact integers, and back."""

import math

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import listed

UNIT = 1_000_000_000
"""The number of units in the whole reward range."""


def checked_reward_range(reward_range: tuple[float, float]) -> tuple[float, float]:
    """Check a declared reward range: two finite numbers, the smaller one first.

    >>> checked_reward_range((1, 5))
    (1.0, 5.0)
    """
    try:
        low, high = (float(bound) for bound in reward_range if not isinstance(bound, str))
    except (TypeError, ValueError, OverflowError):
        raise InvalidInputError(
            f"reward_range must be two numbers (low, high); got {reward_range!r}"
        ) from None
    if not (low < high and math.isfinite(high - low)):
        raise InvalidInputError(
            f"reward_range must be finite and of finite width, low < high; got {reward_range!r}"
        )
    return low, high


def to_units(rewards: ArrayLike, reward_range: tuple[float, float]) -> IntArray:
    """Turn rewards into units of 10⁻⁹ of the range: nearest integer, ties to even.

    >>> to_units([0.1, 1.0, 2.5e-9], (0, 1))
    array([ 100000000, 1000000000,          2])
    """
    low, high = checked_reward_range(reward_range)
    values = np.asarray(rewards)
    if values.size and values.dtype.kind not in "biuf":
        raise InvalidInputError(f"rewards must be numbers; got {listed(values.ravel().tolist(), at_most=3)}")
    values = values.astype(np.float64)
    outside = np.flatnonzero(~((values >= low) & (values <= high)))  # also true for NaN
    if outside.size:
        raise InvalidInputError(
            f"rewards must lie in reward_range [{low:g}, {high:g}]; got"
            f" {', '.join(f'{values.flat[row]:g} at position {row}' for row in outside[:3])}"
        )
    return np.rint((values - low) / (high - low) * UNIT).astype(np.int64)


def from_unit_scale(values: FloatArray, reward_range: tuple[float, float]) -> FloatArray:
    """Bring values of the [0, 1] scale of the theory to the scale of the rewards.

    >>> from_unit_scale(np.array([0.0, 0.5, -1.0]), (1, 5))
    array([ 1.,  3., -3.])
    """
    low, high = reward_range
    return low + (high - low) * values
