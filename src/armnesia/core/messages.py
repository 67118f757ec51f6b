"""Values as error messages show them."""

from collections.abc import Iterable, Sequence
from typing import Any

_MOST_SHOWN = 100


def listed(labels: Iterable[Any], at_most: int = 8) -> str:
    """List labels for a message, shortened if there are many.

    >>> listed("ABCDEFGHIJ", at_most=3)
    "'A', 'B', 'C', … (10 in all)"
    """
    every = list(labels)
    named = ", ".join(map(shown, every[:at_most]))
    return named if len(every) <= at_most else f"{named}, … ({len(every)} in all)"


def shown(value: Any) -> str:
    """Write a value for a message as Python does, shortened if it is long.

    >>> shown("ann"), len(shown("a" * 1000))
    ("'ann'", 101)
    """
    written = repr(value[: 2 * _MOST_SHOWN] if isinstance(value, str | bytes) else value)
    return written if len(written) <= _MOST_SHOWN else f"{written[:_MOST_SHOWN]}…"


def any_of(names: Sequence[str]) -> str:
    """Join alternatives by commas and "or".

    >>> any_of(["rollback", "gaussian", "tilt"]), any_of(["rollback"]), any_of([])
    ('rollback, gaussian or tilt', 'rollback', 'none')
    """
    return " or ".join(filter(None, [", ".join(names[:-1]), *names[-1:]])) or "none"
