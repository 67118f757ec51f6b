"""Conditions on the rows of a source: `read_log(where=...)`, `--where`, and those of `join`.

A condition is text that is parsed here into a value, which each kind of source applies: no text of a user
becomes SQL. It means the same on every kind of source, so it does not depend on how a value is stored: a
number is compared with whatever reads as a number, and a text with the text by which labels are known.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.identifiers import LARGEST_EXACT
from armnesia.core.messages import listed, shown
from armnesia.logs import refusals
from armnesia.logs.values import is_unicode, label_text, number_of

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_CONDITION = re.compile(
    r"""\s* (?: "(?P<quoted>(?:[^"]|"")+)" | (?P<name>[^"'=<>!()\s](?:[^"'=<>!()]*?[^"'=<>!()\s])?) )
    (?: \s* (?P<operator><=|>=|!=|=|<|>) (?P<value>.*) | (?:\s+|(?<="))in \s* \((?P<list>.*)\) \s*
    | (?:\s+|(?<="))(?P<present>is\s+not\s+null) \s* )""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_LITERAL = re.compile(r"""\s*(?:'((?:[^']|'')*)'|"((?:[^"]|"")*)"|([^'",=<>!()]+?))\s*(,|$)""", re.DOTALL)
_EXPECTED = "a condition such as country = DE, age >= 18, page in (home, cart) or reward is not null"


@dataclass(frozen=True)
class Condition:
    """A comparison of a column with a number or a text, or with any of several.

    It is made by `parse`. A missing value satisfies no condition. Numbers are compared as 64-bit floats;
    true is 1 and false is 0.

    >>> Condition.parse("age >= 18")
    Condition(column='age', operator='>=', values=(18.0,))
    >>> print(Condition.parse("page in (home, 'a, b')"))
    page in ('home', 'a, b')
    """

    column: str
    operator: str
    values: tuple[str | float, ...]
    """All numbers, or all texts; only `in` takes several, and `is not null` takes none."""

    @classmethod
    def parse(cls, text: "str | Condition") -> "Condition":
        """Read a condition; quotes are needed around a text that looks like a number or has special marks.

        >>> Condition.parse("user = '007'").values, Condition.parse('"my column" != x').column
        (('007',), 'my column')
        """
        if isinstance(text, Condition):
            return text
        found = _CONDITION.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise _refused(text)
        name = found["name"] or found["quoted"].replace('""', '"')
        if found["present"] is not None:
            return cls(name, "is not null", ())
        values = _literals(found["value"] if found["list"] is None else found["list"], text)
        if found["list"] is None and len(values) > 1:
            raise InvalidInputError(
                f"a condition on {name!r} by {found['operator']} needs one value; got {len(values)}: use in"
                " (…) for several, and put a text with a comma in quotes"
            )
        if len({isinstance(value, str) for value in values}) > 1:
            raise InvalidInputError(
                f"the values of a condition must all be numbers or all be texts; got {listed(values, 5)}: put"
                " a number in quotes to compare it as text"
            )
        return cls(name, found["operator"] or "in", tuple(_checked(name, value) for value in values))

    @property
    def compares_numbers(self) -> bool:
        """Whether it compares with numbers, not with texts."""
        return bool(self.values) and not isinstance(self.values[0], str)

    def no_numbers(self, offences: refusals.Offences) -> InvalidLogError:
        """Refuse values that cannot be compared with a number."""
        number = label_text(self.values[0])
        rule, remedy = f"must hold numbers to be compared with {number}", f": put {number} in quotes"
        what = f"where column {self.column!r}"
        return refusals.refused(what, rule, offences, f"{remedy} to compare it as text")

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
    if where is None or isinstance(where, str | Condition):
        return () if where is None else (Condition.parse(where),)
    if not isinstance(where, Iterable):
        raise _refused(where)
    return tuple(map(Condition.parse, where))


def _refused(condition: Any, hint: str = "") -> InvalidInputError:
    return InvalidInputError(f"where must be {_EXPECTED}; got {shown(condition)}{hint}")


def _literals(text: str, condition: str) -> list[str | float]:
    found: list[str | float] = []
    at, more = 0, True
    while more:
        literal = _LITERAL.match(text, at)
        if literal is None:
            raise _refused(
                condition,
                ": '' is the empty text; put a text with one of = < > ! ( ) , in quotes, write a quote inside"
                " quotes twice, and give several conditions one by one",
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
    if text.lower() in ("null", "nan"):
        hint = f": a missing value satisfies no condition; put {text} in quotes to compare with that text"
        raise _refused(condition, hint)
    number = number_of(text)
    if number is None or (math.isinf(number) and not text[-1].isdigit()):
        return text  # such as inf
    is_whole = text.lstrip("+-").isdecimal() and len(text) < 300  # Python refuses to read very long integers
    return int(text) if is_whole else number


def _checked(column: str, value: str | float) -> str | float:
    """A value that can be compared with exactly."""
    if isinstance(value, str):
        if not is_unicode(value):
            raise InvalidInputError(f"a condition must compare with text in UTF-8; got {shown(value)}")
        return value
    if not abs(value) < LARGEST_EXACT:
        raise InvalidInputError(
            f"a condition on {column!r} must compare with text or a finite number below"
            f" {LARGEST_EXACT:,}; got {shown(value)}: put it in quotes to compare it as text"
        )
    return float(value)


def _quoted(text: str, mark: str) -> str:
    return mark + text.replace(mark, 2 * mark) + mark
