"""What a value of a CSV or Parquet file means, in DuckDB's SQL: the rules of `values.py`, type by type."""

from dataclasses import dataclass

from armnesia.core.errors import InvalidLogError
from armnesia.core.identifiers import LARGEST_EXACT
from armnesia.logs.conditions import NUMBER, Condition

_NOTHING = '"NULL"'  # the type of a Parquet column without any value
FLOATS = {"FLOAT", "DOUBLE"}
SIGNED_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT"}
INTEGERS = SIGNED_INTEGERS | {"UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"}
MOST_DIGITS = 38
"""Of a decimal that DuckDB has; one with more it reads as a float."""
_WIDE_NUMBERS = {"HUGEINT", "UHUGEINT", "DECIMAL"}
_MOMENTS = {
    "TIMESTAMP WITH TIME ZONE": "make_timestamp(epoch_us({}))",
    "TIMESTAMPTZ_NS": "make_timestamp_ns(epoch_ns({}))",
}
"""The types of times with a date and a zone, and the same moment in UTC."""
_NUMBERS = FLOATS | INTEGERS | _WIDE_NUMBERS
_PYTHON_LABELS = _NUMBERS | {"VARCHAR", "ENUM", "BOOLEAN", "DATE", "UUID", _NOTHING}
"""Types whose values a log shows as Python values."""
_TEXT_LABELS = {"BLOB", "TIME", "TIME_NS", "TIME WITH TIME ZONE", *_MOMENTS} | {
    f"TIMESTAMP{unit}" for unit in ("", "_S", "_MS", "_NS")
}
"""Types whose values a log shows as text."""


@dataclass(frozen=True)
class FileColumn:
    """A column of the files, and expressions over it.

    >>> FileColumn("c0", "BOOLEAN", is_text=False).text()
    "CASE WHEN c0 THEN 'True' WHEN NOT c0 THEN 'False' END"
    """

    name: str
    full_type: str
    is_text: bool
    """Whether it is of a CSV file, where every value is text."""
    decimals_as_written: bool = False
    """Whether the text of a decimal keeps the zeros at its end; see `Source.decimals_as_written`."""
    signed_bounds: bool = False
    """Whether a file has its lowest and highest value in the order of signed bytes; see `LogFiles`."""

    is_rounded: bool = False
    """Whether it has decimals that DuckDB reads as floats; see `LogFiles`."""

    @property
    def type(self) -> str:
        """The type without parameters: DECIMAL(9,2) is a DECIMAL."""
        return self.full_type if self.full_type.endswith("]") else self.full_type.partition("(")[0]

    @property
    def misleads(self) -> bool:
        """Whether DuckDB would leave rows out by the bounds of a file, because it takes another order."""
        return self.signed_bounds and self.type not in SIGNED_INTEGERS

    def check(self, role: str, what: str) -> None:
        """Refuse a type that cannot hold rewards, or labels."""
        if role != "reward" and self.is_rounded:
            raise InvalidLogError(
                f"{what} must hold decimals of at most {MOST_DIGITS} digits; it is declared with more, which"
                " would be read as floats, and several values as one: write it as text"
            )
        if role != "reward" and self.type not in _PYTHON_LABELS | _TEXT_LABELS:
            raise InvalidLogError(
                f"{what} must hold single values, such as text or numbers; it holds {self.type}"
            )
        if role == "reward" and not self.is_text and self.type not in _NUMBERS | {"BOOLEAN", _NOTHING}:
            raise InvalidLogError(f"{what} must hold numbers; it holds {self.type}")

    def size(self) -> str | None:
        """The number of bytes of its text, or for binary data fewer; None where a text is never long."""
        if self.type == "VARCHAR":
            return f"strlen({self.name})"
        if self.type == "BLOB":
            return f"octet_length({self.name})"
        return None if self.type in _PYTHON_LABELS | _TEXT_LABELS else f"strlen({self.text()})"

    def label(self) -> str:
        """The label as a log shows it; NULL where it is missing."""
        if self.type in _TEXT_LABELS or (self.type == "DECIMAL" and self.decimals_as_written):
            return self.text()
        if self.type in FLOATS:
            return f"CASE WHEN NOT isnan({self.name}) THEN CAST({self.name} AS DOUBLE) END"
        return self.name

    def text(self) -> str:
        """The text that `label_text` writes; NULL where the value is missing."""
        plain = f"CAST({self.name} AS VARCHAR)"
        if self.type == "BOOLEAN":
            return f"CASE WHEN {self.name} THEN 'True' WHEN NOT {self.name} THEN 'False' END"
        if self.type in FLOATS:
            number = f"CAST({self.name} AS DOUBLE)"
            whole = f"{number} = trunc({number}) AND abs({number}) < {LARGEST_EXACT}"
            return (
                f"CASE WHEN isnan({self.name}) THEN NULL"
                f" WHEN {whole} THEN CAST(CAST({number} AS BIGINT) AS VARCHAR)"
                f" ELSE CAST({number} AS VARCHAR) END"
            )
        if self.type == "DECIMAL":
            whole = f"{self.name} = trunc({self.name})"
            other = plain if self.decimals_as_written else f"rtrim({plain}, '0')"
            return f"CASE WHEN {whole} THEN CAST(CAST({self.name} AS HUGEINT) AS VARCHAR) ELSE {other} END"
        if self.type in _MOMENTS:  # not DuckDB's own text, which is in the zone of the machine
            return f"CAST({_MOMENTS[self.type].format(self.name)} AS VARCHAR) || '+00:00'"
        if self.type == "TIME WITH TIME ZONE":  # DuckDB writes a whole hour of the zone without minutes
            return f"regexp_replace({plain}, '([+-][0-9][0-9])$', '\\1:00')"
        # A copy of a text has no bounds that could mislead.
        copied = f"CASE WHEN {self.name} IS NOT NULL THEN concat({self.name}, '') END"
        return copied if self.type == "VARCHAR" and self.misleads else plain

    def reward(self) -> str:
        """The reward as a float; NULL where it is no number."""
        if self.is_text:
            number = f"TRY_CAST({self.name} AS DOUBLE)"
            return f"CASE lower({self.name}) WHEN 'true' THEN 1 WHEN 'false' THEN 0 ELSE {number} END"
        if self.type in _WIDE_NUMBERS:  # text is rounded correctly whatever the number of digits
            return f"CAST(CAST({self.name} AS VARCHAR) AS DOUBLE)"
        return f"CAST({self.name} AS DOUBLE)"

    def number(self) -> str:
        """The number that a value reads as, whatever its type; NULL where it is missing or no number."""
        if not self.is_text and self.type in _NUMBERS | {"BOOLEAN"}:
            return self.reward()
        text = self.text()
        return (
            f"CASE lower({text}) WHEN 'true' THEN 1 WHEN 'false' THEN 0"
            f" ELSE CASE WHEN regexp_full_match({text}, '{NUMBER}', 'i') THEN CAST({text} AS DOUBLE) END END"
        )

    def holds(self, condition: Condition, parameter: str) -> str:
        """Whether a value satisfies a condition, whose values are given as a list in a parameter.

        >>> FileColumn("c0", "VARCHAR", is_text=False).holds(Condition.parse("page = home"), "where_0")
        'coalesce(CAST(c0 AS VARCHAR) = CAST($where_0 AS VARCHAR[])[1], false)'
        """
        value, type_ = (self.number(), "DOUBLE") if condition.compares_numbers else (self.text(), "VARCHAR")
        values = f"CAST(${parameter} AS {type_}[])"
        if condition.operator == "in":
            compared = f"list_contains({values}, {value})"
        else:
            compared = f"{value} {condition.operator} {values}[1]"
        # DuckDB takes NaN for a number that is equal to itself.
        return f"coalesce({f'NOT isnan({value}) AND ' * condition.compares_numbers}{compared}, false)"

    def propensity(self) -> str:
        """The value as a float; NULL where it is no finite number."""
        if not self.is_text and self.type not in _NUMBERS:
            return "NULL::DOUBLE"
        return f"CASE WHEN isfinite({self.reward()}) THEN {self.reward()} END"
