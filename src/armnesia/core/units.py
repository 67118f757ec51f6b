"""The declared scale: which actions there are, in which order, and how rewards become exact integers."""

import math
from collections.abc import Hashable, Iterable, Set
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError

UNIT = 1_000_000_000
"""How many units the whole reward range is divided into."""


def checked_actions(actions: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Check a declared action set: one or more distinct hashable labels, in order.

    >>> checked_actions(["A", ("B", 2), 3])
    ('A', ('B', 2), 3)
    """
    if isinstance(actions, str | bytes | Set) or not isinstance(actions, Iterable):
        raise InvalidInputError(
            f"actions must be a list of labels, in order, such as ['A', 'B']; got {actions!r}"
        )
    labels = tuple(label.item() if isinstance(label, np.generic) else label for label in actions)
    if not labels:
        raise InvalidInputError("actions must name at least one action; got none")
    for label in labels:
        if not _usable_label(label):
            raise InvalidInputError(
                f"an action must be a hashable label, not None and not NaN; got {label!r}"
            )
    if len(set(labels)) != len(labels):
        repeated = next(label for label in labels if labels.count(label) > 1)
        raise InvalidInputError(f"actions must be distinct; {repeated!r} is there more than once")
    return labels


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


def listed(labels: Iterable[Any], at_most: int = 8) -> str:
    """Show labels in a message, shortened.

    >>> listed("ABCDEFGHIJ", at_most=3)
    "'A', 'B', 'C', … (10 in all)"
    """
    shown = [repr(label) for label in labels]
    if len(shown) <= at_most:
        return ", ".join(shown)
    return ", ".join([*shown[:at_most], f"… ({len(shown)} in all)"])


def _usable_label(label: Any) -> bool:
    try:
        return label is not None and hash(label) is not None and bool(label == label)  # noqa: PLR0124
    except TypeError:  # not hashable, or no truth in comparing it, as for a missing value of pandas
        return False
