"""What a value of a log means, in SQL: the rules of `values.py` for every type of DuckDB."""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from armnesia.core.errors import InvalidLogError
from armnesia.core.identifiers import LARGEST_EXACT
from armnesia.core.units import UNIT
from armnesia.logs.conditions import Condition
from armnesia.logs.values import NUMBER

NUMERIC = "NUMERIC"
"""Of a number without a fixed precision, which comes as text: DuckDB would make a float of it."""
_NOTHING = '"NULL"'  # the type of a Parquet column without any value
_FLOATS = {"FLOAT", "DOUBLE"}
INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
_WIDE_NUMBERS = {"HUGEINT", "UHUGEINT", "DECIMAL", NUMERIC}
_NUMBERS = _FLOATS | INTEGERS | _WIDE_NUMBERS | {"BOOLEAN", _NOTHING}
_MOMENTS = {
    "TIMESTAMP WITH TIME ZONE": "make_timestamp(epoch_us({}))",
    "TIMESTAMPTZ_NS": "make_timestamp_ns(epoch_ns({}))",
}
"""The types of times with a date and a zone, and the same moment in UTC."""
_LABELS = _NUMBERS | {"VARCHAR", "ENUM", "DATE", "UUID", "BLOB", "TIME", "TIME_NS", "TIME WITH TIME ZONE"}
_LABELS |= {*_MOMENTS, "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_READABLE = {
    **dict.fromkeys(INTEGERS, "0|-?[1-9][0-9]*"),
    "UUID": "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
}
"""Types in which a label is looked up as a value, so that files can be left out, and the texts of values."""


def quoted(name: str) -> str:
    """Quote an identifier for SQL.

    >>> print(quoted('my "own" table'))
    "my ""own"" table"
    """
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class Column:
    """An expression with its type, and other expressions over it.

    >>> Column("won", "BOOLEAN").text()
    "CASE WHEN won THEN 'True' WHEN NOT won THEN 'False' END"
    """

    sql: str
    full_type: str
    is_text: bool = False
    """Whether it has text for values of every type, as in CSV files and names of folders."""
    misleads: bool = False
    """Whether DuckDB would leave rows out by the bounds of a file, because it takes another order."""

    half_even: ClassVar[str] = "round_even({}, 0)"
    """A float as the nearest whole float, ties to even."""
    is_finite: ClassVar[str] = "isfinite({})"
    total: ClassVar[str] = "sum({})"
    """The exact sum of integers: DuckDB adds those of 64 bits up in 128."""

    @property
    def type(self) -> str:
        """The type without parameters: DECIMAL(9,2) is a DECIMAL."""
        return self.full_type if self.full_type.endswith("]") else self.full_type.partition("(")[0]

    def named(self, sql: str) -> Self:
        """The same column by another expression."""
        return replace(self, sql=sql)

    def check(self, role: str, what: str) -> None:
        """Refuse a type that cannot hold rewards, or labels."""
        if role != "reward" and self.type not in _LABELS:
            raise InvalidLogError(
                f"{what} must hold single values, such as text or numbers; it holds {self.type}"
            )
        if role == "reward" and not self.is_text and self.type not in _NUMBERS:
            raise InvalidLogError(f"{what} must hold numbers; it holds {self.type}")

    def text(self) -> str:
        """The text that `label_text` writes; NULL where the value is missing."""
        plain, type_ = f"CAST({self.sql} AS VARCHAR)", self.type
        if type_ == "VARCHAR":  # a copy of a text has no bounds that could mislead
            return f"{self.sql} || ''" if self.misleads else self.sql
        if type_ == "BOOLEAN":
            return f"CASE WHEN {self.sql} THEN 'True' WHEN NOT {self.sql} THEN 'False' END"
        if type_ in _FLOATS:
            number = f"CAST({self.sql} AS DOUBLE)"
            whole = f"{number} = trunc({number}) AND abs({number}) < {LARGEST_EXACT}"
            return (
                f"CASE WHEN isnan({self.sql}) THEN NULL"
                f" WHEN {whole} THEN CAST(CAST({number} AS BIGINT) AS VARCHAR)"
                f" ELSE CAST({number} AS VARCHAR) END"
            )
        if type_ in ("DECIMAL", NUMERIC):
            point = f"CASE WHEN contains({plain}, '.') THEN rtrim(rtrim({plain}, '0'), '.') ELSE {plain} END"
            return f"nullif({point}, 'NaN')" if type_ == NUMERIC else point
        if type_ in _MOMENTS:  # not DuckDB's own text, which is in the zone of the machine
            return f"CAST({_MOMENTS[type_].format(self.sql)} AS VARCHAR) || '+00:00'"
        if type_ == "TIME WITH TIME ZONE":  # DuckDB writes a whole hour of the zone without minutes
            return f"regexp_replace({plain}, '([+-][0-9][0-9])$', '\\1:00')"
        return plain

    def reward(self) -> str:
        """The reward as a float; NULL where it is no number."""
        if self.is_text:
            number = f"TRY_CAST({self.sql} AS DOUBLE)"
            return f"CASE lower({self.sql}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE {number} END"
        if self.type in _WIDE_NUMBERS:  # text is rounded correctly whatever the number of digits
            return f"CAST(CAST({self.sql} AS VARCHAR) AS DOUBLE)"
        return f"CAST({self.sql} AS DOUBLE)"

    def units(self) -> str:
        """The reward in units, as `core.units.to_units`; NULL where it is no number of the range."""
        scaled = f"(({self.reward()}) - $low) / ($high - $low) * {float(UNIT)!r}::DOUBLE"
        within = f"({self.reward()}) BETWEEN $low AND $high"
        return f"CASE WHEN {within} THEN CAST({self.half_even.format(scaled)} AS BIGINT) END"

    @property
    def holds_numbers(self) -> bool:
        """Whether every value is a number, or missing."""
        return not self.is_text and self.type in _NUMBERS

    def number(self) -> str:
        """The number that a value reads as, whatever its type; NULL where it is missing or no number."""
        if self.holds_numbers:
            return self.reward()
        text = self.text()
        number = f"CASE WHEN {self._is_numeral()} THEN CAST({text} AS DOUBLE) END"
        return f"CASE lower({text}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE {number} END"

    def is_no_number(self) -> str:
        """Whether a value is there and does not read as a number."""
        if self.holds_numbers:
            return "false"
        return f"coalesce(NOT ({self._is_numeral()} OR lower({self.text()}) IN ('true', 'false')), false)"

    def _is_numeral(self) -> str:
        return f"regexp_full_match({self.text()}, '{NUMBER}', 'i')"

    def holds(self, condition: Condition, parameter: str) -> str:
        """Whether a value satisfies a condition, whose values are given as a list in a parameter.

        >>> Column("page", "VARCHAR").holds(Condition.parse("page = home"), "where_0")
        'coalesce(page = CAST($where_0 AS VARCHAR[])[1], false)'
        """
        if not condition.values:
            return f"{self.text()} IS NOT NULL"
        value, type_ = (self.number(), "DOUBLE") if condition.compares_numbers else (self.text(), "VARCHAR")
        values = f"CAST(${parameter} AS {type_}[])"
        compared = f"{value} {condition.operator} {values}[1]"
        if condition.operator == "in":
            compared = f"list_contains({values}, {value})"
        # DuckDB takes NaN for a number that is equal to itself.
        return f"coalesce({f'NOT isnan({value}) AND ' * condition.compares_numbers}{compared}, false)"

    def among(self, parameter: str, texts: Collection[str]) -> tuple[str, list[str]]:
        """Whether the label is one of these, in SQL, and the parameter.

        Values of the column's own type are compared where a value has one text: then DuckDB leaves out what
        cannot hold them by the bounds and bloom filters of files.

        >>> Column("who", "BIGINT").among("names", ["7", "07", "ann"])
        ('who = TRY_CAST($names[1] AS BIGINT)', ['7'])
        >>> Column("who", "VARCHAR").among("names", ["bob", "ann"])
        ('who IN (SELECT unnest($names))', ['ann', 'bob'])
        """
        wanted = sorted(text for text in texts if text.isascii() or _is_unicode(text))
        compared, type_ = self.text(), None
        if (type_ := self.type if self.type in _READABLE else None) and not self.misleads:
            compared = self.sql
            wanted = [text for text in wanted if re.fullmatch(_READABLE[type_], text)]
        cast = f"TRY_CAST({{}} AS {type_})" if compared == self.sql and type_ else "{}"
        if not wanted:
            return "false", []
        if len(wanted) == 1:
            return f"{compared} = {cast.format(f'${parameter}[1]')}", wanted
        return f"{compared} IN (SELECT {cast.format(f'unnest(${parameter})')})", wanted

    def is_in(self, parameter: str) -> str:
        """Whether the expression, a text, is one of a list."""
        return f"{self.sql} IN (SELECT unnest(${parameter}))"

    def propensity(self) -> str:
        """The value as a float; NULL where it is no finite number."""
        if not self.is_text and self.type not in _NUMBERS:
            return "CAST(NULL AS DOUBLE)"
        return f"CASE WHEN isfinite({self.reward()}) THEN {self.reward()} END"


def _is_unicode(text: str) -> bool:
    """Whether a text can be stored at all: half of a surrogate pair cannot, so no row has it."""
    return not any("\ud800" <= character <= "\udfff" for character in text)
