"""How wrong rows and columns are told: the same sentences for every kind of source."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from armnesia.core.errors import ArmnesiaError, Fault, InvalidLogError
from armnesia.core.messages import listed, shown
from armnesia.logs.values import is_missing

Offences = Iterable[tuple[int, Any]]
"""Pairs of a row's position, counted from 1, and the value that is wrong there."""
_Refusal = TypeVar("_Refusal", bound=InvalidLogError)
_MOST_SHOWN = 3
_NAMING = {"user", "id", "where"}
"""Roles of columns whose values are in no message, because they name people and records, or may."""


@contextmanager
def in_words(said: str, failed: str, reasons: Mapping[str, str] | None = None) -> Iterator[None]:
    """Say in a sentence that a library failed: its own words may quote a row, or a password.

    `reasons` are those of errors by their class, or by Spark's name for them; `failed` takes other names.

    >>> with in_words("source 'clicks' cannot be read", "the reader failed ({})"):
    ...     raise EOFError("after 'ann'")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidLogError: source 'clicks' cannot be read: the reader failed (EOFError)
    """
    try:
        yield
    except ArmnesiaError:
        raise
    except Exception as error:
        name = getattr(error, "getCondition", lambda: None)() or type(error).__name__
        raise InvalidLogError(f"{said}: {(reasons or {}).get(name, failed.format(name))}") from None


def at_rows(offences: Offences, *, hidden: bool = False) -> str:
    """Say which values are wrong and where: the first few; 0 stands for a row without a position.

    >>> at_rows([(4, "x"), (7, None)]), at_rows([(4, "ann")], hidden=True)
    ("'x' at row 4, a missing value at row 7", 'another value at row 4')
    >>> at_rows(enumerate("abcde", 1))
    "'a' at row 1, 'b' at row 2, 'c' at row 3, …"
    """
    first = list(islice(offences, _MOST_SHOWN + 1))
    named = [
        ("a missing value" if is_missing(value) else "another value" if hidden else shown(value))
        + (f" at row {row}" if row else "")
        for row, value in first[:_MOST_SHOWN]
    ]
    return ", ".join([*named, "…"] if len(first) > _MOST_SHOWN else named)


def refused(
    what: str,
    rule: str,
    offences: Offences,
    remedy: str = "",
    *,
    hidden: bool = False,
    kind: type[_Refusal] = InvalidLogError,  # type: ignore[assignment]
) -> _Refusal:
    """Refuse rows in which a column breaks a rule; `hidden` values may name somebody.

    >>> error = refused("reward column 'paid'", "must hold numbers", [(4, "x")])
    >>> print(error, error.faults)
    reward column 'paid' must hold numbers; got 'x' at row 4 (Fault(role='reward', row=4, rule='must hold
    numbers'),)
    >>> print(refused("user column 'who'", "must hold integers", [(4, "ann")]))
    user column 'who' must hold integers; got another value at row 4
    """
    first, role = list(islice(offences, _MOST_SHOWN + 1)), what.partition(" ")[0]
    faults = [Fault(role, int(row), rule) for row, _ in first[:_MOST_SHOWN]]
    got = at_rows(first, hidden=hidden or role in _NAMING)
    return kind(f"{what} {rule}; got {got}{remedy}").at(*faults)


def missing_column(role: str, column: str, available: Sequence[Any]) -> InvalidLogError:
    """Refuse a column name that the source does not have."""
    option = f"; name it with {role} (--{role}-column)" if role in ("action", "reward", "user", "id") else ""
    if len(available) == 1:
        option = "; if another mark parts the fields of its lines, name it with delimiter (--delimiter)"
    return InvalidLogError(
        f"{role} column {column!r} is not in the source; it has {listed(available, 20)}{option}"
    )


def repeated_column(column: str) -> InvalidLogError:
    """Refuse a column that the source has several times, or that differs from another by its case only."""
    return InvalidLogError(
        f"column {column!r} is in the source more than once, or differs from another in upper and lower case"
        " only; give each column a name of its own"
    )


def empty_log(where: Sequence[Any] = ()) -> InvalidLogError:
    """Refuse a log with no rows; `where` are the conditions that rows had to satisfy."""
    if where:
        return InvalidLogError(f"no row of the source satisfies {' and '.join(map(str, where))}")
    return InvalidLogError("source holds no rows; a log needs at least one")
