"""What a log must satisfy: the sentences of refusals, the same for every kind of source."""

import re
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice
from typing import Any, TypeVar

from armnesia.core.errors import Fault, InvalidInputError, InvalidLogError, UndeclaredActionError
from armnesia.core.messages import listed, shown
from armnesia.logs.values import is_missing

Offences = Iterable[tuple[int, Any]]
"""Pairs of a row's position, counted from 1, and the value that is wrong there."""
_Refusal = TypeVar("_Refusal", bound=InvalidLogError)
_MOST_SHOWN = 3
_NUMERAL = re.compile(r"\s*[+-]?\d+([.]\d*)?(e[+-]?\d+)?\s*", re.IGNORECASE)
_NAMING = {"user", "id", "where"}
"""Roles of columns whose values are in no message, because they name people and records, or may."""


def described(role: str, column: Any) -> str:
    """Name a column in a message: by its role, and by its name where it has one.

    >>> described("reward", "clicked"), described("reward", [0, 1])
    ("reward column 'clicked'", 'reward')
    """
    return f"{role} column {column!r}" if isinstance(column, str) else role


def at_rows(offences: Offences) -> str:
    """Say which values are wrong and where: the first few; 0 stands for a row without a position.

    >>> at_rows([(4, "x"), (7, None)])
    "'x' at row 4, a missing value at row 7"
    >>> at_rows(enumerate("abcde", 1))
    "'a' at row 1, 'b' at row 2, 'c' at row 3, …"
    """
    first = list(islice(offences, _MOST_SHOWN + 1))
    named = [
        f"{'a missing value' if is_missing(value) else shown(value)}{f' at row {row}' if row else ''}"
        for row, value in first[:_MOST_SHOWN]
    ]
    return ", ".join([*named, "…"] if len(first) > _MOST_SHOWN else named)


def refused(what: str, rule: str, offences: Offences, remedy: str = "") -> InvalidLogError:
    """Refuse rows in which a column breaks a rule.

    >>> error = refused("reward column 'paid'", "must hold numbers", [(4, "x")])
    >>> print(error, error.faults)
    reward column 'paid' must hold numbers; got 'x' at row 4 (Fault(role='reward', row=4, rule='must hold
    numbers'),)
    >>> print(refused("user column 'who'", "must hold integers", [(4, "ann")]))
    user column 'who' must hold integers; got another value at row 4
    """
    return _placed(InvalidLogError, what, rule, offences, remedy)


def _placed(kind: type[_Refusal], what: str, rule: str, offences: Offences, remedy: str = "") -> _Refusal:
    first = list(islice(offences, _MOST_SHOWN + 1))
    role = what.partition(" ")[0]
    if role in _NAMING:
        first = unnamed(first)
    faults = [Fault(role, int(row), rule) for row, _ in first[:_MOST_SHOWN]]
    return kind(f"{what} {rule}; got {at_rows(first)}{remedy}").at(*faults)


def unnamed(offences: Offences) -> list[tuple[int, Any]]:
    """The same without the values, which may name somebody; a second time changes nothing.

    >>> unnamed([(4, "ann"), (7, None)])
    [(4, another value), (7, None)]
    """
    return [
        (row, value if isinstance(value, _Unnamed) else None if is_missing(value) else _Unnamed(value))
        for row, value in offences
    ]


class _Unnamed:
    """What a message shows of a value that names somebody."""

    def __init__(self, value: Any) -> None:
        # What a source gives of a name is text, whatever type it has there.
        self._shown = "another value" if isinstance(value, str) else f"a value of type {type(value).__name__}"

    def __repr__(self) -> str:
        return self._shown


def missing_column(role: str, column: str, available: Sequence[Any]) -> InvalidLogError:
    """Refuse a column name that the source does not have."""
    option = f"; name it with {role} (--{role}-column)" if role in ("action", "reward", "user", "id") else ""
    if len(available) == 1:
        option = "; if another mark parts the fields of its lines, name it with delimiter (--delimiter)"
    return InvalidLogError(
        f"{described(role, column)} is not in the source; it has {listed(available, 20)}{option}"
    )


def repeated_column(column: str, alike: Sequence[str] = ()) -> InvalidLogError:
    """Refuse a column that the source has several times, or that differs from another by its case only."""
    for other in alike:
        if other != column:
            return InvalidLogError(
                f"column {column!r} cannot be told from {other!r}, which differs from it in upper and lower"
                " case only; rename one of them"
            )
    return InvalidLogError(f"column {column!r} is in the source more than once; name each column once")


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


def missing_keys(what: str, offences: Offences) -> InvalidLogError:
    """Refuse rows that belong to no decision."""
    return refused(what, "must have a value in every row", offences)


def missing_ids(what: str, offences: Offences) -> InvalidLogError:
    """Refuse rows without an id in a source that has an id column."""
    return refused(what, "must name every row", offences)


def contradicting_ids(what: str, rows: tuple[int, int]) -> InvalidLogError:
    """Refuse an id that stands for two different decisions."""
    rule = "must give each decision an id of its own"
    return InvalidLogError(
        f"{what} {rule}; rows {rows[0]} and {rows[1]} share one, with another action, reward or user"
    ).at(*(Fault("id", row, rule) for row in rows))


def repeated_user_ids(what: str, row: int) -> InvalidLogError:
    """Refuse several rows of a person where the user column gives the ids: equal rows would be one row."""
    return InvalidLogError(
        f"{what} is the user column as well, so each person must have one row; row {row} is the first of a"
        " person with several: name another column of ids, or none"
    )


def not_numbers(what: str, offences: Offences) -> InvalidLogError:
    """Refuse rewards that are not numbers.

    >>> print(not_numbers("reward column 'won'", [(1, "0,5")]))
    reward column 'won' must hold numbers; got '0,5' at row 1: write a decimal point, not a comma
    """
    first = list(islice(offences, _MOST_SHOWN + 1))
    texts = [value for _, value in first if isinstance(value, str)]
    remedy = ""
    if any("," in text and _NUMERAL.fullmatch(text.replace(",", ".", 1)) for text in texts):
        remedy = ": write a decimal point, not a comma"
    elif any(map(_NUMERAL.fullmatch, texts)):
        remedy = f": {AS_NUMBERS}"
    return refused(what, "must hold numbers", first, remedy)


AS_NUMBERS = "this is text, so convert the column to numbers first"
"""What to do with texts of numbers, which are taken for numbers in CSV files only."""


def not_finite(what: str, column: str, offences: Offences) -> InvalidLogError:
    """Refuse rewards that are missing, NaN or infinite.

    >>> print(not_finite("reward column 'won'", "won", [(7, None)]))
    reward column 'won' must hold a finite number in every row; got a missing value at row 7: leave rows
    without one out with where='won is not null' (--where)
    """
    remedy = f": leave rows without one out with where={f'{column} is not null'!r} (--where)"
    return refused(what, "must hold a finite number in every row", offences, remedy)


def not_integers(what: str, offences: Offences) -> InvalidLogError:
    """Refuse users who are no integers in a vault whose people are named by integers."""
    remedy = (
        ": init --user-type text makes a vault that names them by text; floats are integers below 2**53"
        " (2**24 in 32 bits) only, from where one may stand for several"
    )
    return refused(what, "must hold integers, by which this vault names people", offences, remedy)


def outside_range(what: str, offences: Offences, reward_range: tuple[float, float]) -> InvalidLogError:
    """Refuse rewards outside the declared range."""
    low, high = reward_range
    remedy = ": reward_range=… (--reward-range) declares another range, in a vault at init"
    return refused(what, f"must lie in reward_range [{low!r}, {high!r}]", offences, remedy)


def unknown_users(users: Iterable[Hashable], known: Iterable[str] = ()) -> InvalidInputError:
    """Refuse a request for users of whom the log has no rows; `known` are spellings that it has instead.

    >>> str(unknown_users(["0116", "ann"], ["116"]))
    "the log has no rows of user '0116', 'ann'; it has '116'"
    """
    has = f"; it has {listed(sorted(known), 3)}" if known else ""
    return InvalidInputError(f"the log has no rows of user {listed(users, at_most=3)}{has}")


def no_order() -> InvalidInputError:
    """Refuse positions in a source that gives its rows in any order."""
    return InvalidInputError("rows of this source have no fixed order, so positions name none: name users")


def changed_source() -> InvalidLogError:
    """Refuse a source whose rows are no longer those of its log."""
    return InvalidLogError("the source has changed since the log was read; read it again")
