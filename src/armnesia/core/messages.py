"""Values as messages show them: lists, alternatives, numbers with their nouns."""

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


def without_unchanged(message: str) -> str:
    """A message that becomes part of another one, which says itself what was changed.

    >>> without_unchanged("the file is gone; nothing was changed; restore it")
    'the file is gone; restore it'
    """
    return message.replace("; nothing was changed", "")


def system_failure(error: OSError) -> str:
    """What the operating system did not grant.

    >>> system_failure(PermissionError(13, "Permission denied", "log.parquet"))
    "'log.parquet' cannot be used: Permission denied"
    """
    named = error.filename is not None and error.strerror is not None
    return f"{error.filename!r} cannot be used: {error.strerror}" if named else str(error)


def printable(text: str, *, keep: str = "") -> str:
    """Escape characters that would move the cursor or hide text, line breaks too, except those to keep.

    >>> print(printable("a" + chr(27) + "[2Jb"))
    a\\x1b[2Jb
    """
    return "".join(each if each.isprintable() or each in keep else repr(each)[1:-1] for each in text)
