"""What a log must satisfy, said once for arrays, frames and files: the refusals and their sentences."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from armnesia.core.errors import InvalidLogError
from armnesia.core.messages import listed
from armnesia.logs.columns import at_rows

Offences = Iterable[tuple[int, Any]]
"""Pairs of a row position and the value that is wrong there."""


def described(role: str, column: Any) -> str:
    """Name a column in a message: by its role, and by its name where it has one.

    >>> described("reward", "clicked"), described("reward", [0, 1])
    ("reward column 'clicked'", 'reward')
    """
    return f"{role} column {column!r}" if isinstance(column, str) else role


def missing_column(role: str, column: str, available: Sequence[Any]) -> InvalidLogError:
    """Refuse a column name that the source does not have."""
    return InvalidLogError(f"{described(role, column)} is not in the source; it has {listed(available, 20)}")


def empty_log() -> InvalidLogError:
    """Refuse a log with no rows."""
    return InvalidLogError("source holds no rows; a log needs at least one")


def missing_actions(what: str, offences: Offences) -> InvalidLogError:
    """Refuse rows that do not say which action was taken."""
    return InvalidLogError(f"{what} must name an action in every row; got {at_rows(offences)}")


def missing_ids(what: str, offences: Offences) -> InvalidLogError:
    """Refuse rows without the id that their source promises."""
    return InvalidLogError(f"{what} must name every row; got {at_rows(offences)}")


def contradicting_ids(what: str, rows: tuple[int, int]) -> InvalidLogError:
    """Refuse an id that stands for two different decisions."""
    return InvalidLogError(
        f"{what} must name each decision by an id of its own; rows {rows[0]} and {rows[1]} share one,"
        " with another action, reward or user"
    )


def undeclared_actions(what: str, offences: Offences, actions: Sequence[Hashable]) -> InvalidLogError:
    """Refuse actions that are not in the declared set."""
    return InvalidLogError(
        f"{what} must hold declared actions only, {listed(actions)}; got {at_rows(offences)}"
    )


def not_numbers(what: str, offences: Offences) -> InvalidLogError:
    """Refuse rewards that are not numbers at all."""
    return InvalidLogError(f"{what} must hold numbers; got {at_rows(offences)}")


def not_finite(what: str, offences: Offences) -> InvalidLogError:
    """Refuse rewards that are missing, NaN or infinite."""
    return InvalidLogError(f"{what} must hold a finite number in every row; got {at_rows(offences)}")


def outside_range(what: str, offences: Offences, reward_range: tuple[float, float]) -> InvalidLogError:
    """Refuse rewards outside the declared range."""
    low, high = reward_range
    return InvalidLogError(f"{what} must lie in reward_range [{low!r}, {high!r}]; got {at_rows(offences)}")
