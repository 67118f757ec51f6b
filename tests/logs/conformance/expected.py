"""What a log must be: a loop over the rows as they were written, after docs/data.md, without the package."""

import datetime as dt
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

UNIT = 10**9
Range = tuple[float, float]
Totals = dict[str, tuple[int, ...]]
"""For each action: the number of rows, the sum of the units and the sum of their squares."""


def is_missing(value: Any) -> bool:
    return value is None or bool(value != value)  # noqa: PLR0124 (NaN)


def text_of(value: Any) -> str:
    """The text by which a value is known."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, bytes):  # printable ASCII as it is
        return "".join(chr(b) if 32 <= b < 127 and chr(b) not in "\"'\\" else f"\\x{b:02X}" for b in value)
    if isinstance(value, Decimal):
        text = format(value, "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text
    if isinstance(value, dt.datetime):
        utc = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        return _without_zeros(str(utc)) + ("" if value.tzinfo is None else "+00:00")
    return str(value)


def _without_zeros(text: str) -> str:
    return text.rstrip("0") if "." in text else text


def number_of(value: Any) -> float:
    """The number that a value reads as, as the nearest float."""
    words = {"true": 1.0, "false": 0.0}
    return words[value.lower()] if isinstance(value, str) and value.lower() in words else float(value)


@cache
def units_of(reward: Any, reward_range: Range) -> int:
    """Each operation is exact and rounded once; the last goes to the nearest integer, ties to even."""
    low, high = map(Fraction, reward_range)
    share = _rounded(_rounded(Fraction(number_of(reward)) - low) / _rounded(high - low))
    return round(_rounded(share * UNIT))


def _rounded(number: Fraction) -> Fraction:
    return Fraction(number.numerator / number.denominator)  # Python's division is correctly rounded


@dataclass(frozen=True)
class Where:
    """A condition as it is written, its column, and what it means for a value that is there."""

    text: str
    column: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Key:
    """A key as it is written, its column, and the key of a value."""

    text: str
    column: str
    of: Callable[[Any], str] = text_of


@dataclass
class Expected:
    """The statistics, the people and the decisions of a log."""

    totals: Totals
    users: Counter[str] = field(default_factory=Counter)
    of_user: dict[str, Totals] = field(default_factory=dict)
    of_key: dict[tuple[str, ...], Totals] = field(default_factory=dict)
    of_key_and_user: dict[str, dict[tuple[str, ...], Totals]] = field(default_factory=dict)
    rows: list[Totals] = field(default_factory=list)


def expected(
    columns: Mapping[str, Sequence[Any]],
    actions: Sequence[Any],
    roles: tuple[str, str, str | None],
    reward_range: Range,
    where: Sequence[Where] = (),
    by: Sequence[Key] = (),
) -> Expected:
    """Add up the rows one by one."""
    action, reward, user = roles
    names = [text_of(each) for each in actions]
    empty: Totals = dict.fromkeys(names, (0, 0, 0))
    found = Expected(dict(empty))
    for values in zip(*columns.values(), strict=True):
        row = dict(zip(columns, values, strict=True))
        if not all(not is_missing(row[each.column]) and each.holds(row[each.column]) for each in where):
            continue
        arm, units = text_of(row[action]), units_of(row[reward], reward_range)
        key = tuple(each.of(row[each.column]) for each in by)
        parts = [found.totals, found.of_key.setdefault(key, dict(empty))]
        if user is not None and not is_missing(row[user]):
            name = text_of(row[user])
            found.users[name] += 1
            parts.append(found.of_user.setdefault(name, dict(empty)))
            parts.append(found.of_key_and_user.setdefault(name, {}).setdefault(key, dict(empty)))
        found.rows.append(dict(empty))
        parts.append(found.rows[-1])
        for part in parts:
            count, total, squares = part[arm]
            part[arm] = (count + 1, total + units, squares + units**2)
    return found
