"""Values as error messages show them."""

from collections.abc import Iterable, Sequence
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


def any_of(names: Sequence[str]) -> str:
    """Join alternatives by commas and "or".

    >>> any_of(["rollback", "gaussian", "tilt"]), any_of(["rollback"]), any_of([])
    ('rollback, gaussian or tilt', 'rollback', 'none')
    """
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "none"
