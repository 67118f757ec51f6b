"""Conditions on the rows of a source: `read_log(where=...)`, `--where`, and those of `join`.

A condition is text that is parsed here into a value, which each kind of source applies: no text of a user
becomes SQL. It means the same on every kind of source, so it does not depend on how a value is stored: a
number is compared with whatever reads as a number, and a text with the text by which labels are known.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from armnesia.core.arrays import BoolArray
from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.identifiers import LARGEST_EXACT
from armnesia.core.messages import listed, shown
from armnesia.logs import rules
from armnesia.logs.limits import LONGEST_TEXT, is_longer
from armnesia.logs.values import label_text

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
OPERATORS = (*_COMPARISONS, "in")
NUMERAL = "([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?"
NUMBER = f" *[+-]?({NUMERAL}|inf|infinity|nan) *"
"""The texts that read as a number, in regular expressions of Python and DuckDB, in any case of letters."""

_TRUE_OR_FALSE = {"true": 1.0, "false": 0.0}
_NUMBER, _LITERAL_NUMBER = (
    re.compile(pattern, re.IGNORECASE | re.ASCII) for pattern in (NUMBER, f"[+-]?{NUMERAL}")
)
_MOST_DIGITS = 300
"""More than any number that is compared has; Python refuses to read very long integers."""
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_CONDITION = re.compile(
    r"""\s* (?: "(?P<quoted>(?:[^"]|"")+)" | (?P<name>[^"'=<>!()\s](?:[^"'=<>!()]*?[^"'=<>!()\s])?) )
    (?: \s* (?P<operator><=|>=|!=|=|<|>) (?P<value>.*) | (?:\s+|(?<="))in \s* \((?P<list>.*)\) \s* )""",
    re.VERBOSE | re.DOTALL,
)
_LITERAL = re.compile(r"""\s*(?:'((?:[^']|'')*)'|"((?:[^"]|"")*)"|([^'",]*?))\s*(,|$)""", re.DOTALL)
_EXPECTED = "a condition such as country = DE, age >= 18 or page in (home, cart)"


@dataclass(frozen=True)
class Condition:
    """A comparison of a column with a number or a text, or with any of several.

    A missing value satisfies no condition. Numbers are compared as 64-bit floats; true is 1 and false is 0.

    >>> Condition.parse("age >= 18")
    Condition(column='age', operator='>=', values=(18.0,))
    >>> print(Condition.parse("page in (home, 'a, b')"))
    page in ('home', 'a, b')
    """

    column: str
    operator: str
    values: tuple[str | float, ...]
    """All numbers, or all texts; only `in` takes several."""

    def __post_init__(self) -> None:
        if not (isinstance(self.column, str) and self.column):
            raise InvalidInputError(f"a condition needs the name of a column; got {self.column!r}")
        if self.operator not in OPERATORS:
            raise InvalidInputError(
                f"the operator of a condition must be one of {' '.join(OPERATORS)}; got {self.operator!r}"
            )
        values = self.values if isinstance(self.values, tuple | list) else (self.values,)
        if not values or (len(values) > 1 and self.operator != "in"):
            raise InvalidInputError(
                f"a condition on {self.column!r} by {self.operator} needs"
                f" {'at least one value' if self.operator == 'in' else 'one value'}; got {len(values)}"
            )
        if len({isinstance(value, str) for value in values}) > 1:
            raise InvalidInputError(
                f"the values of a condition must all be numbers or all be texts; got {listed(values, 5)}: put"
                " a number in quotes to compare it as text"
            )
        object.__setattr__(self, "values", tuple(map(self._checked, values)))

    def _checked(self, value: Any) -> str | float:
        if isinstance(value, str):
            if is_longer(value, LONGEST_TEXT) or (not value.isascii() and _has_surrogates(value)):
                raise InvalidInputError(
                    f"a condition on {self.column!r} must compare with UTF-8 text of at most"
                    f" {LONGEST_TEXT:,} bytes; got {shown(value)}"
                )
            return value
        number = (
            _number_of(value) if isinstance(value, np.number | np.bool_ | int | float | Decimal) else None
        )
        if number is None or not math.isfinite(number):
            raise InvalidInputError(
                f"a condition on {self.column!r} must compare with text or a finite number;"
                f" got {shown(value)}"
            )
        if abs(number) >= LARGEST_EXACT:
            raise InvalidInputError(
                f"a condition on {self.column!r} must compare with a number below {LARGEST_EXACT:,}, because"
                f" larger ones are not exact; got {label_text(value)}: put it in quotes to compare it as text"
            )
        return number

    @classmethod
    def parse(cls, text: "str | Condition") -> "Condition":
        """Read a condition; quotes are needed around a text that looks like a number or has special marks.

        >>> Condition.parse("user = '007'").values, Condition.parse('"my column" != x').column
        (('007',), 'my column')
        """
        if isinstance(text, Condition):
            return text
        if not isinstance(text, str):
            raise InvalidInputError(f"where must be {_EXPECTED}; got {text!r}")
        found = _CONDITION.fullmatch(text)
        if found is None:
            raise InvalidInputError(f"where must be {_EXPECTED}; got {shown(text)}")
        name = found["name"] or found["quoted"].replace('""', '"')
        if found["list"] is not None:
            return cls(name, "in", tuple(_literals(found["list"], text)))
        if found["operator"] == "=" and found["value"].startswith("="):
            raise InvalidInputError(f"where must be {_EXPECTED}; got {shown(text)}: use = for equality")
        literals = _literals(found["value"], text)
        if len(literals) > 1:
            raise InvalidInputError(
                f"{found['operator']} compares with one value; got {shown(text)}: use in (…) for several, or"
                " put a text with a comma in quotes"
            )
        return cls(name, found["operator"], tuple(literals))

    @property
    def compares_numbers(self) -> bool:
        """Whether it compares with numbers, not with texts."""
        return not isinstance(self.values[0], str)

    def holds(self, values: list[Any], positions: Sequence[int]) -> BoolArray:
        """Tell which values of the column satisfy it; refuse one that is no number where a number is needed.

        >>> Condition.parse("age > 17").holds([18, "17.5", None, float("nan"), 3], range(5))
        array([ True,  True, False, False, False])
        """
        if not self.compares_numbers:
            return self._texts_hold(rules.label_texts(values, self.described, positions))
        numbers = list(map(_number_of, values))
        if None in numbers:
            rows = [row for row, number in enumerate(numbers) if number is None]
            raise self.no_numbers((positions[row], label_text(values[row])) for row in rows)
        found = np.array(numbers, dtype=np.float64)
        if self.operator == "in":
            return np.isin(found, np.array(self.values, dtype=np.float64))
        compared = _COMPARISONS[self.operator](found, self.values[0])
        return np.asarray(compared & ~np.isnan(found), dtype=np.bool_)

    def _texts_hold(self, texts: list[str | None]) -> BoolArray:
        if self.operator == "in":
            chosen = set(self.values)
            return np.array([text in chosen for text in texts], dtype=np.bool_)
        compare, (value,) = _COMPARISONS[self.operator], self.values
        return np.array([text is not None and compare(text, value) for text in texts], dtype=np.bool_)

    @property
    def described(self) -> str:
        """Name the column in a message."""
        return rules.described("where", self.column)

    def no_numbers(self, offences: rules.Offences, described: str | None = None) -> InvalidLogError:
        """Refuse values that cannot be compared with a number; `described` names their column."""
        number = label_text(self.values[0])
        return InvalidLogError(
            f"{described or self.described} must hold numbers to be compared with {number};"
            f" got {rules.at_rows(offences)}: put {number} in quotes to compare it as text"
        )

    def __str__(self) -> str:
        name = self.column if _PLAIN_NAME.fullmatch(self.column) else _quoted(self.column, '"')
        written = [_quoted(v, "'") if isinstance(v, str) else str(label_text(v)) for v in self.values]
        value = f"({', '.join(written)})" if self.operator == "in" else written[0]
        return f"{name} {self.operator} {value}"


Where = str | Condition | Iterable[str | Condition]
"""One condition, or several that must all be satisfied."""


def conditions(where: Where | None) -> tuple[Condition, ...]:
    """Read the conditions that a caller gives.

    >>> [str(each) for each in conditions(["country = DE", "age < 30"])]
    ["country = 'DE'", 'age < 30']
    """
    if where is None:
        return ()
    if isinstance(where, str | Condition):
        return (Condition.parse(where),)
    if not isinstance(where, Iterable):
        raise InvalidInputError(f"where must be {_EXPECTED}; got {where!r}")
    return tuple(map(Condition.parse, where))


def rows_that_satisfy(
    where: Sequence[Condition], columns: Mapping[str, Sequence[Any]], positions: Sequence[int]
) -> list[int]:
    """The places of the rows that satisfy all conditions; a condition sees the rows that the last one left.

    >>> rows_that_satisfy(conditions("b < 5"), {"a": ["x", "x"], "b": [7, 3]}, range(2))
    [1]
    >>> where = conditions(["a = x", "b < 5"])
    >>> rows_that_satisfy(where, {"a": ["x", "y", "x"], "b": [3, "no number", 7]}, range(3))
    [0]
    """
    places = list(range(len(positions)))
    for condition in where:
        column = columns[condition.column]
        held = condition.holds([column[place] for place in places], [positions[place] for place in places])
        places = [place for place, holds in zip(places, held.tolist(), strict=True) if holds]
    return places


def _number_of(value: Any) -> float | None:
    """The number that a value reads as; NaN where it is missing, None where it is no number."""
    plain = value.item() if isinstance(value, np.bool_ | np.number) else value
    if isinstance(plain, int | float | Decimal):  # booleans too
        try:
            return float(plain)
        except OverflowError:  # an integer beyond every float
            return math.inf if plain > 0 else -math.inf
    text = label_text(plain)
    if text is None:
        return math.nan
    if text.lower() in _TRUE_OR_FALSE:
        return _TRUE_OR_FALSE[text.lower()]
    return float(text) if _NUMBER.fullmatch(text) else None


def _literals(text: str, condition: str) -> list[str | float]:
    found: list[str | float] = []
    at, more = 0, True
    while more:
        literal = _LITERAL.match(text, at)
        if literal is None:
            raise InvalidInputError(
                f"where must be {_EXPECTED}; got {shown(condition)}: write a quote inside quotes twice"
            )
        single, double, bare, end = literal.groups()
        if bare is None:
            found.append(single.replace("''", "'") if single is not None else double.replace('""', '"'))
        else:
            found.append(_bare(bare, condition))
        at, more = literal.end(), end == ","
    return found


def _bare(text: str, condition: str) -> str | float:
    """A literal without quotes: a number, true or false, or text."""
    if not text:
        raise InvalidInputError(
            f"where must be {_EXPECTED}; got {shown(condition)}, without a value: '' is the empty text"
        )
    if text.lower() in ("null", "nan"):
        raise InvalidInputError(
            f"a missing value satisfies no condition; got {shown(condition)}: put {text} in quotes to compare"
            " with that text"
        )
    if text.lower() in _TRUE_OR_FALSE:
        return _TRUE_OR_FALSE[text.lower()]
    if _LITERAL_NUMBER.fullmatch(text):
        whole = text.lstrip("+-").isdecimal() and len(text) < _MOST_DIGITS
        return int(text) if whole else float(text)
    if re.search("[=<>!()]", text):
        raise InvalidInputError(
            f"where must be {_EXPECTED}; got {shown(condition)}: put a text with one of = < > ! ( ) in"
            " quotes, and give several conditions one by one"
        )
    return text


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, 2 * mark) + mark


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)
