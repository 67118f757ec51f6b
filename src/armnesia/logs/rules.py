"""What a log must satisfy, stated once for all kinds of sources: the checks, and the messages of refusals."""

import os
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from itertools import islice
from numbers import Real
from types import NoneType
from typing import Any, TypeVar

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import Fault, InvalidInputError, InvalidLogError, UndeclaredActionError
from armnesia.core.identifiers import UserType
from armnesia.core.messages import listed, shown
from armnesia.logs.limits import LONGEST_TEXT, is_longer
from armnesia.logs.values import is_missing, label_text, python_values

Offences = Iterable[tuple[int, Any]]
"""Pairs of a row's position and the value that is wrong there."""
_Refusal = TypeVar("_Refusal", bound=InvalidLogError)
_MOST_SHOWN = 3
_NAMING = {"user", "id"}
"""Roles of columns whose values are in no message, because they name people and records."""


def described(role: str, column: Any) -> str:
    """Name a column in a message: by its role, and by its name where it has one.

    >>> described("reward", "clicked"), described("reward", [0, 1])
    ("reward column 'clicked'", 'reward')
    """
    return f"{role} column {column!r}" if isinstance(column, str) else role


def at_rows(offences: Offences, at_most: int = _MOST_SHOWN) -> str:
    """Say which values are wrong and where: the first few, with rows counted from 0.

    >>> at_rows([(4, "x"), (7, None)])
    "'x' at row 4, a missing value at row 7"
    >>> at_rows(enumerate("abcde"))
    "'a' at row 0, 'b' at row 1, 'c' at row 2, …"
    """
    first = list(islice(offences, at_most + 1))
    named = [
        f"{'a missing value' if is_missing(value) else shown(value)} at row {row}"
        for row, value in first[:at_most]
    ]
    return ", ".join([*named, "…"] if len(first) > at_most else named)


def refused(what: str, rule: str, offences: Offences, remedy: str = "") -> InvalidLogError:
    """Refuse rows in which a column breaks a rule.

    >>> error = refused("reward column 'paid'", "must hold numbers", [(4, "x")])
    >>> print(error, error.faults)
    reward column 'paid' must hold numbers; got 'x' at row 4 (Fault(role='reward', row=4, rule='must hold
    numbers'),)
    >>> print(refused("user column 'who'", "must hold integers", [(4, "ann")]))
    user column 'who' must hold integers; got a value of type str at row 4
    """
    return _placed(InvalidLogError, what, rule, offences, remedy)


def _placed(kind: type[_Refusal], what: str, rule: str, offences: Offences, remedy: str = "") -> _Refusal:
    first = list(islice(offences, _MOST_SHOWN + 1))
    role = what.partition(" ")[0]
    if role in _NAMING:
        first = [(row, None if is_missing(value) else _Unnamed(value)) for row, value in first]
    faults = [Fault(role, int(row), rule) for row, _ in first[:_MOST_SHOWN]]
    return kind(f"{what} {rule}; got {at_rows(first)}{remedy}").at(*faults)


class _Unnamed:
    """What a message shows of a value that names somebody."""

    def __init__(self, value: Any) -> None:
        self._type = type(value).__name__

    def __repr__(self) -> str:
        return f"a value of type {self._type}"


def label_texts(values: list[Any], what: str, positions: Sequence[int]) -> list[str | None]:
    """Write a column of labels as text, and refuse lists and other values that cannot be hashed.

    The text of a list or a mapping depends on the kind of source, so nobody would be found by it.

    >>> label_texts([7.0, None, "x"], "user", range(3))
    ['7', None, 'x']
    """
    types = set(map(type, values))
    if types <= {str, NoneType}:
        return values
    unhashable = tuple(kind for kind in types if kind.__hash__ is None)
    if unhashable:
        offences = ((positions[row], v) for row, v in enumerate(values) if isinstance(v, unhashable))
        raise unusable_labels(what, offences)
    return list(map(label_text, values))


def check_label_lengths(texts: Sequence[str | None], what: str, positions: Sequence[int]) -> None:
    """Refuse labels that are too long; `positions` says where each stands in the log.

    >>> check_label_lengths(["ann", "b" * 70_000], "user", range(100, 102))
    Traceback (most recent call last):
    armnesia.core.errors.InvalidLogError: user must hold labels of at most 65,536 bytes; got a longer one at
    row 101
    """
    if 4 * max(map(len, filter(None, texts)), default=0) > LONGEST_TEXT:
        for row, text in enumerate(texts):
            if is_longer(text, LONGEST_TEXT):
                raise long_label(what, positions[row])


def check_contents(texts: Sequence[str], positions: Sequence[int]) -> None:
    """Refuse rows without an id whose columns are too long together."""
    for row, text in enumerate(texts):
        if is_longer(text, LONGEST_TEXT):
            raise long_content(positions[row])


def reward_numbers(column: Any, what: str, positions: Sequence[int] | None = None) -> FloatArray:
    """Turn rewards into floats, a missing one into NaN; refuse what is not a number, text included.

    >>> reward_numbers([True, None, 0.25], "reward")
    array([1.  ,  nan, 0.25])
    """
    plain = isinstance(column, np.ndarray) and not isinstance(column, np.ma.MaskedArray)
    if plain and column.ndim == 1 and column.dtype.kind in "biuf":
        return np.asarray(column, dtype=np.float64)
    values = python_values(column, what)
    if set(map(type, values)) <= {float, bool, NoneType}:
        return np.array(values, dtype=np.float64)
    numbers = [_number(value) for value in values]
    if None in numbers:
        rows = range(len(values)) if positions is None else positions
        offences = ((rows[row], values[row]) for row, number in enumerate(numbers) if number is None)
        raise not_numbers(what, offences)
    return np.array(numbers, dtype=np.float64)


def _number(value: Any) -> float | None:
    if isinstance(value, np.bool_ | Decimal | Real):
        try:
            return float(value)
        except OverflowError:  # an integer beyond every float
            return float("inf")
    return float("nan") if is_missing(value) else None


def check_rewards(
    rewards: FloatArray, what: str, reward_range: tuple[float, float], positions: Sequence[int]
) -> None:
    """Refuse rewards that are not finite or not in the range; `positions` says where each stands in the log.

    >>> check_rewards(np.array([0.5, 7.0]), "reward", (0.0, 1.0), range(100, 102))
    Traceback (most recent call last):
    armnesia.core.errors.InvalidLogError: reward must lie in reward_range [0.0, 1.0]; got 7.0 at row 101:
    reward_range=… (--reward-range) declares another range, in a vault at init
    """
    low, high = reward_range
    infinite = np.flatnonzero(~np.isfinite(rewards))
    if infinite.size:
        raise not_finite(what, ((positions[int(row)], float(rewards[row])) for row in infinite))
    outside = np.flatnonzero((rewards < low) | (rewards > high))
    if outside.size:
        offences = ((positions[int(row)], float(rewards[row])) for row in outside)
        raise outside_range(what, offences, reward_range)


def check_lengths(length_of: dict[str, int]) -> None:
    """Refuse columns of different lengths; the keys name them in the message."""
    if len(set(length_of.values())) > 1:
        lengths = ", ".join(f"{length} in {name}" for name, length in length_of.items())
        raise InvalidLogError(f"columns must have the same number of rows; got {lengths}")


def refuse_table(table: str | None, path: str | os.PathLike[str] = "file.db") -> None:
    """Refuse the name of a table for a source that has no tables; `path` may be that of a SQLite file."""
    if table is not None:
        url = sqlite_url(path) or "sqlite:///file.db"
        raise InvalidInputError(f"table is for databases, such as {url}; got {table!r}")


def sqlite_url(path: str | os.PathLike[str]) -> str | None:
    """The URL of a file that looks like a database of SQLite by its name.

    >>> sqlite_url("logs/clicks.db"), sqlite_url("clicks.csv")
    ('sqlite:///logs/clicks.db', None)
    """
    text = os.fspath(path)
    return f"sqlite:///{text}" if text.lower().endswith((".db", ".db3", ".sqlite", ".sqlite3")) else None


def check_found(role: str, names: Iterable[str], available: Sequence[Any]) -> None:
    """Refuse the first of these columns that the source does not have."""
    for name in names:
        if name not in available:
            raise missing_column(role, name, available)


def missing_column(role: str, column: str, available: Sequence[Any]) -> InvalidLogError:
    """Refuse a column name that the source does not have."""
    option = f"; name it with {role} (--{role}-column)" if role in ("action", "reward", "user", "id") else ""
    return InvalidLogError(
        f"{described(role, column)} is not in the source; it has {listed(available, 20)}{option}"
    )


def empty_log(where: Sequence[Any] = ()) -> InvalidLogError:
    """Refuse a log with no rows; `where` are the conditions that rows had to satisfy."""
    if where:
        return InvalidLogError(f"no row of the source satisfies {' and '.join(map(str, where))}")
    return InvalidLogError("source holds no rows; a log needs at least one")


def missing_actions(what: str, offences: Offences) -> InvalidLogError:
    """Refuse rows that do not say which action was taken."""
    return refused(what, "must name an action in every row", offences)


def undeclared_actions(what: str, offences: Offences, actions: Sequence[Hashable]) -> UndeclaredActionError:
    """Refuse actions that are not in the declared set."""
    rule = f"must hold declared actions only, {listed(actions)}"
    return _placed(UndeclaredActionError, what, rule, offences)


def unusable_labels(what: str, offences: Offences) -> InvalidLogError:
    """Refuse labels that are not single values."""
    return refused(what, "must hold hashable labels, such as text or numbers", offences)


def long_label(what: str, row: int) -> InvalidLogError:
    """Refuse a label that is longer than any sensible one."""
    rule = f"must hold labels of at most {LONGEST_TEXT:,} bytes"
    error = InvalidLogError(f"{what} {rule}; got a longer one at row {row}")
    return error.at(Fault(what.partition(" ")[0], row, rule))


def long_content(row: int) -> InvalidLogError:
    """Refuse a row without an id whose columns are too long together."""
    return InvalidLogError(
        f"rows without an id are known by all their columns, which must have at most {LONGEST_TEXT:,}"
        f" bytes together; row {row} has more: name a column of ids with id=... (--id-column)"
    )


def missing_ids(what: str, offences: Offences) -> InvalidLogError:
    """Refuse rows without an id in a source that has an id column."""
    return refused(what, "must name every row", offences)


def contradicting_ids(what: str, rows: tuple[int, int]) -> InvalidLogError:
    """Refuse an id that stands for two different decisions."""
    rule = "must give each decision an id of its own"
    return InvalidLogError(
        f"{what} {rule}; rows {rows[0]} and {rows[1]} share one, with another action, reward or user"
    ).at(*(Fault("id", int(row), rule) for row in rows))


def repeated_user_ids(what: str, row: int) -> InvalidLogError:
    """Refuse a second row of a person where the user column gives the ids: equal rows would be one row."""
    return InvalidLogError(
        f"{what} is the user column as well, so each person must have one row; row {row} is a second one of"
        " the same person: name another column of ids, or none"
    )


def changed_rows(what: str) -> InvalidLogError:
    """Refuse rows that were checked before and are not as they were."""
    return InvalidLogError(
        f"rows that were found by the {what} have an action, a reward or a key that they cannot have had when"
        " they were counted: the source has changed"
    )


def not_numbers(what: str, offences: Offences) -> InvalidLogError:
    """Refuse rewards that are not numbers."""
    return refused(what, "must hold numbers", offences)


def not_finite(what: str, offences: Offences) -> InvalidLogError:
    """Refuse rewards that are missing, NaN or infinite."""
    remedy = ": a condition such as where='reward >= 0' (--where) leaves out rows without one"
    return refused(what, "must hold a finite number in every row", offences, remedy)


def outside_range(what: str, offences: Offences, reward_range: tuple[float, float]) -> InvalidLogError:
    """Refuse rewards outside the declared range."""
    low, high = reward_range
    remedy = ": reward_range=… (--reward-range) declares another range, in a vault at init"
    return refused(what, f"must lie in reward_range [{low!r}, {high!r}]", offences, remedy)


def integer_of(user: Any) -> str | None:
    """The integer that a user is in any spelling, as it is usually written; None if it is none.

    >>> integer_of("116.0"), integer_of(116), integer_of(" 0116"), integer_of("ann")
    ('116', '116', '116', None)
    """
    return UserType.INTEGER.normalised(label_text(user) or "") or None


def other_spellings(users: Iterable[Hashable]) -> set[str]:
    """The integers among these users, as programs spell them.

    >>> sorted(other_spellings(["116", "7.0", "ann"]))
    ['116', '116.0', '7', '7.0']
    """
    integers = [integer for integer in map(integer_of, users) if integer is not None]
    return {text for integer in integers for text in (integer, f"{integer}.0")}


def unknown_users(users: Iterable[Hashable], labels: Iterable[Any] = ()) -> InvalidInputError:
    """Refuse a request for users of whom the log has no rows; `labels` are users that it may have instead.

    >>> str(unknown_users(["116", "ann"], [115, 116]))
    "the log has no rows of user '116', 'ann'; it has the integer 116"
    """
    unknown = list(users)
    asked = {integer_of(user) for user in unknown} - {None}
    near = [label for label in labels if integer_of(label) in asked]
    named = [f"the integer {label}" if isinstance(label, int) else shown(label) for label in near[:3]]
    has = f"; it has {', '.join(named)}" if named else ""
    return InvalidInputError(f"the log has no rows of user {listed(unknown, at_most=3)}{has}")


def changed_source() -> InvalidLogError:
    """Refuse a source whose rows are no longer those of its log."""
    return InvalidLogError("the source has changed since the log was read; read it again")
