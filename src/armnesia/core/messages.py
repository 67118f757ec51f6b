"""Values as messages show them: lists, alternatives, numbers with their nouns."""

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


def all_of(names: Iterable[str]) -> str:
    """Join names by commas and "and".

    >>> all_of(["rollback", "gaussian", "tilt"]), all_of(["rollback"])
    ('rollback, gaussian and tilt', 'rollback')
    """
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Write a number with its noun; the plural is the noun with an "s" if not given.

    >>> counted(1, "record"), counted(2, "record"), counted(0, "entry", "entries")
    ('1 record', '2 records', '0 entries')
    """
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def printable(text: str, *, keep: str = "") -> str:
    """Escape characters that would move the cursor or hide text, line breaks too, except those to keep.

    >>> print(printable("a" + chr(27) + "[2Jb"))
    a\\x1b[2Jb
    """
    return "".join(each if each.isprintable() or each in keep else repr(each)[1:-1] for each in text)
