"""What a value of a log means, in SQL: the rules of `values.py` for every type of DuckDB."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from armnesia.core.errors import InvalidLogError
from armnesia.core.identifiers import LARGEST_EXACT, PLAIN, SHORT_FLOATS_EXACT_BELOW, UserType
from armnesia.core.units import UNIT
from armnesia.logs import refusals
from armnesia.logs.conditions import Condition
from armnesia.logs.values import is_unicode

NUMERIC = "NUMERIC"
"""Of a number without a fixed precision, which comes as text: DuckDB would make a float of it."""
ADDRESS = "INET"
"""Of a network address of PostgreSQL, which comes as text."""
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
_LABELS = _NUMBERS | {"VARCHAR", "ENUM", "DATE", "UUID", "BLOB", ADDRESS}
_LABELS |= {*_MOMENTS, "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_READABLE = {
    **dict.fromkeys(INTEGERS, "0|-?[1-9][0-9]*"),
    "UUID": "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
}
"""Types whose values DuckDB looks up by the bounds of files, and the texts that are such values."""


def quoted(name: str) -> str:
    """Quote an identifier for SQL.

    >>> print(quoted('my "own" table'))
    "my ""own"" table"
    """
    return '"' + name.replace('"', '""') + '"'


def qualified(name: str) -> str:
    """Write the name of a column of a source in SQL.

    By the table's name too: DuckDB takes "user" for its own user where a table has no such column.

    >>> print(qualified("user"))
    stored."user"
    """
    return f"stored.{quoted(name)}"


def literal(text: str) -> str:
    """Write a text in SQL, where a statement takes no parameter.

    >>> print(literal("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


@dataclass(frozen=True)
class Column:
    """An expression with its type, and other expressions over it.

    >>> Column("won", "BOOLEAN").text()
    "CASE WHEN won THEN 'True' WHEN NOT won THEN 'False' END"
    """

    sql: str
    full_type: str
    fault: InvalidLogError | None = None
    """Why it cannot be read."""
    wrong: str | None = None
    """Of the names of people: whether a value is there and names nobody."""

    half_even: ClassVar[str] = "round_even({}, 0)"
    """A float as the nearest whole float, ties to even."""
    number_of_text: ClassVar[str] = "TRY_CAST({} AS DOUBLE)"
    is_finite: ClassVar[str] = "isfinite({})"
    total: ClassVar[str] = "sum({})"
    """The exact sum of integers: DuckDB adds those of 64 bits up in 128."""
    matches: ClassVar[str] = "regexp_full_match({}, '{}', 'i')"
    """Whether a text matches a pattern as a whole, in any case of letters."""
    list_of: ClassVar[str] = "CAST(${} AS {}[])"
    """A parameter, which is a list, with the type of its values, and its first value."""
    first_of: ClassVar[str] = "{}[1]"
    each_of: ClassVar[str] = "SELECT unnest(${})"
    """The values of a parameter as a table: names of people are never in the text of a statement."""
    n_bytes: ClassVar[str] = "strlen({})"
    last: ClassVar[str] = "{}[-1]"
    """The last character of a text."""
    composed: ClassVar[str] = (
        "CASE WHEN contains({0}, chr(0)) THEN array_to_string(list_transform(string_split({0}, chr(0)),"
        " lambda each: nfc_normalize(each)), chr(0)) ELSE nfc_normalize({0}) END"
    )
    """A text in Unicode's normal form C: DuckDB's own function ends at a null character."""

    @property
    def type(self) -> str:
        """The type without parameters: DECIMAL(9,2) is a DECIMAL."""
        return self.full_type if self.full_type.endswith("]") else self.full_type.partition("(")[0]

    def named(self, sql: str) -> Self:
        """The same column by another expression."""
        return replace(self, sql=sql)

    def check(self, role: str, what: str) -> None:
        """Refuse what cannot be read, and a type that cannot hold rewards, or labels."""
        if self.fault is not None:
            raise InvalidLogError(str(self.fault))  # a new one each time: threads share the column
        if role == "reward" and self.type not in _NUMBERS | {"VARCHAR"}:
            raise InvalidLogError(f"{what} must hold numbers; it holds {self.type}")
        if role != "reward" and self.type not in _LABELS:
            raise InvalidLogError(
                f"{what} must hold single values, such as text or numbers; it holds {self.type}"
            )

    def text(self) -> str:
        """The text that `label_text` writes; NULL where the value is missing."""
        plain, type_ = f"CAST({self.sql} AS VARCHAR)", self.type
        if type_ == "VARCHAR":
            return self.sql
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
            if len(set(re.findall("[0-9]+", self.full_type))) == 1:  # DECIMAL(2,2) is written as .25
                plain = f"regexp_replace({plain}, '^(-?)[.]', '\\10.')"
            point = f"CASE WHEN contains({plain}, '.') THEN rtrim(rtrim({plain}, '0'), '.') ELSE {plain} END"
            return f"nullif({point}, 'NaN')" if type_ == NUMERIC else point
        if type_ in _MOMENTS:  # not DuckDB's own text, which is in the zone of the machine
            moment = f"CAST({_MOMENTS[type_].format(self.sql)} AS VARCHAR)"
            plain = f"coalesce({moment} || '+00:00', {plain})"  # infinity is no moment
        return plain

    def is_wrong(self) -> str:
        """Whether a value can name nobody: a float that may stand for several integers."""
        if self.wrong is not None:
            return self.wrong
        bound = {"FLOAT": SHORT_FLOATS_EXACT_BELOW, "DOUBLE": LARGEST_EXACT}.get(self.type)
        is_large = f"{self.is_finite.format(self.sql)} AND abs({self.sql}) >= {bound}"
        return f"coalesce({is_large}, false)" if bound else "false"

    @property
    def holds_numbers(self) -> bool:
        """Whether every value is a number, or missing."""
        return self.type in _NUMBERS

    def number(self) -> str:
        """The number that a value reads as, whatever its type, as a float; NULL where it is none."""
        if self.type in _WIDE_NUMBERS:  # text is rounded correctly whatever the number of digits
            return f"CAST(CAST({self.sql} AS VARCHAR) AS DOUBLE)"
        if self.holds_numbers:
            return f"CAST({self.sql} AS DOUBLE)"
        text = self.text()
        number = self.number_of_text.format(text)
        return f"CASE lower({text}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE {number} END"

    def units(self, reward_range: tuple[float, float]) -> str:
        """The reward in units, as `core.units.to_units`; NULL where it is no number of the range."""
        low, high = (f"CAST('{bound!r}' AS DOUBLE)" for bound in map(float, reward_range))
        share = f"({self.number()})"
        within = f"{share} BETWEEN {low} AND {high}"
        if reward_range != (0, 1):  # where the next line would change nothing, and take a tenth of the time
            share = f"({share} - {low}) / ({high} - {low})"
        scaled = self.half_even.format(f"{share} * {float(UNIT)!r}::DOUBLE")
        return f"CASE WHEN {within} THEN CAST({scaled} AS BIGINT) END"

    def holds(self, condition: Condition, parameter: str) -> str:
        """Whether a value satisfies a condition, whose values are given as a list in a parameter.

        >>> Column("page", "VARCHAR").holds(Condition.parse("page = home"), "where_0")
        'coalesce(page = CAST($where_0 AS VARCHAR[])[1], false)'
        """
        if not condition.values:
            return f"{self.text()} IS NOT NULL"
        value, type_ = (self.number(), "DOUBLE") if condition.compares_numbers else (self.text(), "VARCHAR")
        values = self.list_of.format(parameter, type_)
        compared = f"{value} {condition.operator} {self.first_of.format(values)}"
        if condition.operator == "in":
            compared = f"array_contains({values}, {value})"
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
        wanted = sorted(text for text in texts if is_unicode(text))
        compared, cast = self.text(), "{}"
        if self.type in _READABLE:
            compared, cast = self.sql, f"TRY_CAST({{}} AS {self.type})"
            wanted = [text for text in wanted if re.fullmatch(_READABLE[self.type], text)]
        if not wanted:
            return "false", []
        if len(wanted) == 1:
            return f"{compared} = {cast.format(f'${parameter}[1]')}", wanted
        return f"{compared} IN (SELECT {cast.format(f'unnest(${parameter})')})", wanted

    def is_in(self, parameter: str) -> str:
        """Whether the expression, a text, is one of a list."""
        return f"{self.sql} IN ({self.each_of.format(parameter)})"

    def as_name(self, user_type: UserType) -> Self:
        """The name of a person in the one spelling of a vault: `UserType.normalised`; NULL where is none.

        Values of other types than text have one spelling only. A text is nearly always plain, which is
        quickly seen: only others are looked at closely.
        """
        text, wrong = self.text(), self.is_wrong()
        if self.type not in _TEXTS:
            if user_type is UserType.INTEGER and self.type not in INTEGERS:
                wrong = f"coalesce(NOT {self.matches.format(text, '-?[0-9]+')} OR {wrong}, false)"
            return replace(self, wrong=wrong)
        if user_type is UserType.INTEGER:
            is_plain = f"coalesce(CAST(TRY_CAST({text} AS BIGINT) AS STRING) = {text}, false)"
            rewritten = self._as_integer(_trimmed(text))
            is_none = f"{_trimmed(text)} <> '' AND {rewritten} IS NULL"
            wrong = f"coalesce(NOT {is_plain} AND {is_none}, false)"
        else:  # ASCII without blanks around it
            is_ascii = f"{self.n_bytes.format(text)} = length({text})"
            is_plain = f"({is_ascii} AND {text} >= '!' AND {self.last.format(text)} >= '!')"
            rewritten = f"nullif({_trimmed(self.composed.format(text))}, '')"
        normal = f"CASE WHEN {is_plain} THEN {text} ELSE {rewritten} END"
        return replace(self, sql=normal, full_type="VARCHAR", wrong=wrong)

    def _as_integer(self, trimmed: str) -> str:
        """The usual spelling of an integer in a text; NULL where is none."""
        digits = f"trim(LEADING '0' FROM regexp_extract({trimmed}, '[0-9]+', 0))"
        exact = f"NOT contains({trimmed}, '.') OR (length({digits}), {digits}) < (16, '{LARGEST_EXACT}')"
        sign = f"CASE WHEN left({trimmed}, 1) = '-' AND {digits} <> '' THEN '-' ELSE '' END"
        is_integer = f"{self.matches.format(trimmed, '[+-]?[0-9]+([.]0*)?')} AND ({exact})"
        return f"CASE WHEN {is_integer} THEN {sign} || coalesce(nullif({digits}, ''), '0') END"

    def is_usual_integer(self) -> str:
        """Whether a value is an integer as it is usually written, of at most 38 digits."""
        if self.type in INTEGERS:
            return "true"
        text = self.text()
        return f"({self.matches.format(text, PLAIN[UserType.INTEGER])} AND length({text}) < 39)"


_TEXTS = {"VARCHAR", "ENUM", "BLOB"}
_BLANKS = "".join(character for character in map(chr, range(0x3001)) if character.isspace())
"""What `str.strip` removes."""


def by_name(names: Sequence[str], columns: Iterable[Column]) -> dict[str, Column]:
    """Columns by their names; a name that is there more than once cannot be read."""
    return {
        name: replace(column, fault=refusals.repeated_column(name) if names.count(name) > 1 else column.fault)
        for name, column in zip(names, columns, strict=True)
    }


def _trimmed(text: str) -> str:
    return f"trim(BOTH '{_BLANKS}' FROM {text})"
