"""The declared action set: distinct hashable labels in a fixed order."""

from collections.abc import Hashable, Iterable, Set
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidInputError


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


def _usable_label(label: Any) -> bool:
    try:
        return label is not None and hash(label) is not None and bool(label == label)  # noqa: PLR0124
    except TypeError:  # not hashable, or without a truth value, as pandas.NA
        return False
