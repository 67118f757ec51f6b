"""Values as error messages show them."""

from collections.abc import Iterable
from typing import Any


def listed(labels: Iterable[Any], at_most: int = 8) -> str:
    """List labels for a message, shortened if there are many.

    >>> listed("ABCDEFGHIJ", at_most=3)
    "'A', 'B', 'C', … (10 in all)"
    """
    shown = [repr(label) for label in labels]
    if len(shown) <= at_most:
        return ", ".join(shown)
    return ", ".join([*shown[:at_most], f"… ({len(shown)} in all)"])
