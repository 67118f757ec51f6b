"""Conditions on the rows of a source: `read_log(where=...)`, `--where`, and those of `join`.

A condition is text that is parsed here into a value, which each kind of source applies: no text of a user
becomes SQL. It means the same on every kind of source, so it does not depend on how a value is stored: a
number is compared with whatever reads as a number, and a text with the text by which labels are known.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.identifiers import LARGEST_EXACT
from armnesia.core.messages import listed, shown
from armnesia.logs import refusals
from armnesia.logs.values import LONGEST_TEXT, NUMERAL, TRUE_OR_FALSE, is_unicode, label_text, number_of

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
IS_NOT_NULL = "is not null"
OPERATORS = (*_COMPARISONS, "in", IS_NOT_NULL)
_LITERAL_NUMBER = re.compile(f"[+-]?{NUMERAL}", re.IGNORECASE | re.ASCII)
_MOST_DIGITS = 300
"""More than any number that is compared has; Python refuses to read very long integers."""
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_CONDITION = re.compile(
    r"""\s* (?: "(?P<quoted>(?:[^"]|"")+)" | (?P<name>[^"'=<>!()\s](?:[^"'=<>!()]*?[^"'=<>!()\s])?) )
    (?: \s* (?P<operator><=|>=|!=|=|<|>) (?P<value>.*) | (?:\s+|(?<="))in \s* \((?P<list>.*)\) \s*
    | (?:\s+|(?<="))(?P<present>is\s+not\s+null) \s* )""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_LITERAL = re.compile(r"""\s*(?:'((?:[^']|'')*)'|"((?:[^"]|"")*)"|([^'",]*?))\s*(,|$)""", re.DOTALL)
_EXPECTED = "a condition such as country = DE, age >= 18, page in (home, cart) or reward is not null"


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
    """All numbers, or all texts; only `in` takes several, and `is not null` takes none."""

    def __post_init__(self) -> None:
        if not (isinstance(self.column, str) and self.column):
            raise InvalidInputError(f"a condition needs the name of a column; got {self.column!r}")
        if self.operator not in OPERATORS:
            raise InvalidInputError(
                f"the operator of a condition must be one of {' '.join(OPERATORS)}; got {self.operator!r}"
            )
        values = self.values if isinstance(self.values, tuple | list) else (self.values,)
        if len(values) != {"in": max(len(values), 1), IS_NOT_NULL: 0}.get(self.operator, 1):
            needed = {"in": "at least one value", IS_NOT_NULL: "no value"}.get(self.operator, "one value")
            raise InvalidInputError(
                f"a condition on {self.column!r} by {self.operator} needs {needed}; got {len(values)}"
            )
        if len({isinstance(value, str) for value in values}) > 1:
            raise InvalidInputError(
                f"the values of a condition must all be numbers or all be texts; got {listed(values, 5)}: put"
                " a number in quotes to compare it as text"
            )
        object.__setattr__(self, "values", tuple(map(self._checked, values)))

    def _checked(self, value: Any) -> str | float:
        if isinstance(value, str):
            if not is_unicode(value) or len(value.encode()) > LONGEST_TEXT:
                raise InvalidInputError(
                    f"a condition on {self.column!r} must compare with UTF-8 text of at most"
                    f" {LONGEST_TEXT:,} bytes; got {shown(value)}"
                )
            return value
        number = number_of(value) if isinstance(value, np.number | np.bool_ | int | float | Decimal) else None
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
        if found["present"] is not None:
            return cls(name, IS_NOT_NULL, ())
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
        return bool(self.values) and not isinstance(self.values[0], str)

    def is_satisfied(self, value: Any) -> bool | None:
        """Whether a value satisfies it; None for one that is no number where a number is needed.

        >>> [Condition.parse("age > 17").is_satisfied(value) for value in (18, "17.5", None, "old")]
        [True, True, False, None]
        """
        if not self.compares_numbers:
            text = label_text(value)
            return text is not None and (self.operator == IS_NOT_NULL or self._compares(text))
        number = number_of(value)
        return number if number is None else not math.isnan(number) and self._compares(number)

    def _compares(self, value: Any) -> bool:
        if self.operator == "in":
            return value in self.values
        return bool(_COMPARISONS[self.operator](value, self.values[0]))

    @property
    def described(self) -> str:
        """Name the column in a message."""
        return refusals.described("where", self.column)

    def no_numbers(self, offences: refusals.Offences) -> InvalidLogError:
        """Refuse values that cannot be compared with a number."""
        number = label_text(self.values[0])
        rule, remedy = f"must hold numbers to be compared with {number}", f": put {number} in quotes"
        return refusals.refused(self.described, rule, offences, f"{remedy} to compare it as text")

    def __str__(self) -> str:
        name = self.column if _PLAIN_NAME.fullmatch(self.column) else _quoted(self.column, '"')
        written = [_quoted(v, "'") if isinstance(v, str) else str(label_text(v)) for v in self.values]
        if not written:
            return f"{name} {self.operator}"
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
    if text.lower() in TRUE_OR_FALSE:
        return TRUE_OR_FALSE[text.lower()]
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
