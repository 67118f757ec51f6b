"""A table of exposures or of metric values in files, and what its columns mean in DuckDB's SQL."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.messages import listed
from armnesia.joining.json_lines import is_json_lines, open_json_lines
from armnesia.joining.options import TIME_UNITS
from armnesia.logs import rules
from armnesia.logs.conditions import Condition
from armnesia.logs.files.conditions import FileConditions
from armnesia.logs.files.duckdb_engine import unreadable
from armnesia.logs.files.duckdb_values import FileColumn
from armnesia.logs.files.formats import LogFiles, open_files
from armnesia.logs.urls import redacted

_NUMBERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"} | {
    "FLOAT",
    "DOUBLE",
    "DECIMAL",
    "HUGEINT",
}
_NOTHING = '"NULL"'  # the type of a Parquet column without any value
_LOCAL_TIMES = {"DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"}
_MOMENTS = {"TIMESTAMP WITH TIME ZONE": "epoch_us({})", "TIMESTAMPTZ_NS": "epoch_ns({}) // 1000"}
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_800_000_000
"""The years 1 to 9999 in microseconds; the last one is excluded."""
VALUE_UNIT = 1_000_000_000
"""Values are added as whole multiples of 10⁻⁹: a sum of floats would depend on the order of the rows."""
_LARGEST_VALUE = 10**18
_LENGTH_OF_A_DATE = 10
_LARGEST_NUMBER = 10**20
"""No time is as large in any unit, and a product with it overflows no decimal."""


@dataclass(frozen=True)
class EventTable:
    """Opened files and their columns; the parameters of its expressions are collected in `parameters`."""

    role: str
    """`exposures` or `metric`, for messages and for the names of parameters."""
    files: LogFiles
    parameters: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def open(cls, source: str | os.PathLike[str], role: str, wanted: Iterable[str]) -> "EventTable":
        """Open CSV, Parquet or JSON lines, by a path or glob, of which the wanted columns are read."""
        if not isinstance(source, str | os.PathLike):
            raise InvalidInputError(
                f"{role} must be the path or glob of CSV, Parquet or JSON lines files;"
                f" got {type(source).__name__}"
            )
        if "://" in str(source) or str(source).startswith(("delta:", "iceberg:", "spark:")):
            raise InvalidInputError(
                f"{role} must be the path or glob of files; write the table of a database or lake to Parquet"
                f" first; got {redacted(str(source))!r}"
            )
        names = {part for name in wanted for part in (name, name.partition(".")[0])}
        files = open_json_lines(source, names) if is_json_lines(source) else open_files(source, names)
        files.partitions.check(names)
        table = cls(role, files)
        table.parameters.update(files.parameters_of(role))
        return table

    @property
    def sql(self) -> str:
        """The table in SQL."""
        return self.files.table_of(self.role)

    @property
    def failed(self) -> str:
        """The beginning of a message about a failure."""
        return unreadable(self.files.paths[0], self.files.format.name)

    def column(self, what: str, name: str) -> FileColumn:
        """The column of this name, or `column.property` for a property of JSON objects."""
        names = [each for each, _ in self.files.columns]
        if names.count(name) > 1:
            raise InvalidLogError(f"{self._described(what, name)} is in the source more than once")
        if name in names:
            at = names.index(name)
            kind = self.files.columns[at][1]
            found = FileColumn(
                f"c{at}",
                kind,
                is_text=kind == "VARCHAR",
                signed_bounds=name in self.files.signed_bounds,
                is_rounded=name in self.files.rounded,
            )
        else:
            outer, dot, inner = name.partition(".")
            if not dot or outer not in names:
                raise InvalidLogError(
                    f"{self._described(what, name)} is not in the source; it has {listed(names, 20)}"
                    f"{self._named_with(what)}"
                )
            at = names.index(outer)
            if self.files.columns[at][1] not in {"VARCHAR", "JSON"}:
                raise InvalidLogError(
                    f"{self._described(what, outer)} must hold JSON objects as text;"
                    f" it holds {self.files.columns[at][1]}"
                )
            path = self._parameter("/" + inner.replace("~", "~0").replace("/", "~1"))
            found = FileColumn(f"json_extract_string(c{at}, {path})", "VARCHAR", is_text=True)
        return found

    def _named_with(self, what: str) -> str:
        """The option that names a column of this table; conditions and kept columns were named."""
        if what in ("condition", "keep"):
            return ""
        metric = self.role == "metric" and what != "value"
        return f"; name it with --{'metric-' * metric}{what}-column"

    def label(self, what: str, name: str) -> str:
        """The text of a label, NULL if it is missing or empty."""
        column = self.column(what, name)
        column.check("label", self._described(what, name))
        return f"nullif({column.text()}, '')"

    def kept(self, name: str, *, as_text: bool) -> str:
        """The value of a column that the log keeps: its text, or as it is if it is a number."""
        column = self.column("keep", name)
        return _present(column) if column.type in _NUMBERS and not as_text else self.label("keep", name)

    def select(self, where: tuple[Condition, ...]) -> FileConditions:
        """Find the columns of the conditions that rows must satisfy."""
        columns = tuple(self.column("condition", condition.column) for condition in where)
        for column, condition in zip(columns, where, strict=True):
            column.check("label", self._described("condition", condition.column))
        selection = FileConditions(where, columns, f"{self.role}_where")
        self.parameters.update(selection.parameters)
        return selection

    def refused_conditions(self, selection: FileConditions) -> InvalidLogError:
        """Name the first values that a condition cannot compare with a number."""
        place, offences = next(
            (place, found)
            for place, has_no_number in selection.no_numbers().items()
            if (found := self.first_rows(f"left({selection.columns[place].text()}, 100)", has_no_number))
        )
        condition = selection.where[place]
        return condition.no_numbers(offences, self._described("condition", condition.column))

    def time(self, name: str, unit: str | None, time_zone: str) -> "TimeColumn":
        """The times of a column, in microseconds since 1970 in UTC."""
        column = self.column("time", name)
        described = self._described("time", name)
        if column.type == _NOTHING:
            return TimeColumn(described, column, "NULL::BIGINT", "false")
        numbers = column.type in _NUMBERS
        option = "time_unit" if self.role == "exposures" else "metric_time_unit"
        if numbers and unit is None:
            raise InvalidInputError(
                f"{described} holds numbers: say with {option} whether they count s, ms, us or ns since 1970"
            )
        if unit is not None:
            if not numbers and not column.is_text:
                raise InvalidInputError(
                    f"{option} is for times that are numbers; {described} holds {column.type}"
                )
            return TimeColumn(described, column, _from_number(column.name, unit), "false")
        if column.is_text:
            return TimeColumn(
                described,
                column,
                f"epoch_us(TRY_CAST({column.name} AS TIMESTAMP WITH TIME ZONE))",
                f"strlen({column.name}) = {_LENGTH_OF_A_DATE}",
            )
        if column.type in _MOMENTS:
            return TimeColumn(described, column, _MOMENTS[column.type].format(column.name), "false")
        if column.type in _LOCAL_TIMES:
            local = f"CAST({column.name} AS TIMESTAMP)"
            if time_zone != "UTC":  # the cast takes three times as long
                local = f"CAST({local} AS TIMESTAMP WITH TIME ZONE)"
            return TimeColumn(described, column, f"epoch_us({local})", str(column.type == "DATE").lower())
        raise InvalidLogError(f"{described} must hold times or dates; it holds {column.type}")

    def value(self, name: str) -> "ValueColumn":
        """The values of a column as numbers."""
        column = self.column("value", name)
        described = self._described("value", name)
        column.check("reward", described)
        return ValueColumn(described, column)

    def first_rows(self, value: str, condition: str) -> list[tuple[int, Any]]:
        """Find the first rows that satisfy a condition, and a value there; rows are counted from 0."""
        numbered = f"SELECT *, row_number() OVER () - 1 AS position FROM {self.files.table}"
        others = {name: given for name, given in self.parameters.items() if name != self.role}
        sql = f"SELECT position, {value} FROM ({numbered}) WHERE {condition} ORDER BY position LIMIT 4"
        return [(row, found) for row, found in self.files.query(sql, **_used(sql, others))]

    def used_in(self, sql: str) -> dict[str, Any]:
        """Those parameters that a statement has: DuckDB refuses others."""
        return _used(sql, self.parameters)

    def _parameter(self, value: str) -> str:
        name = f"{self.role}_{len(self.parameters)}"
        self.parameters[name] = value
        return f"${name}"

    def _described(self, what: str, name: str) -> str:
        return f"{what} column {name!r} of the {self.role}"


@dataclass(frozen=True)
class TimeColumn:
    """A column of times: as it is, and in microseconds."""

    described: str
    column: FileColumn
    unchecked: str
    is_date: str
    """Whether a time is a date without a time of day."""

    @property
    def is_missing(self) -> str:
        """Whether there is no time."""
        return f"{_present(self.column)} IS NULL"

    @property
    def microseconds(self) -> str:
        """The time; NULL if it is missing, no time, or outside the years 1 to 9999."""
        inside = f"{self.unchecked} >= {_FIRST_TIME} AND {self.unchecked} < {_LAST_TIME}"
        return f"CASE WHEN {inside} THEN {self.unchecked} END"

    def refused(self, table: EventTable, matches: str) -> InvalidLogError:
        """Name the first times that cannot be read."""
        condition = f"{matches} AND NOT ({self.is_missing}) AND ({self.microseconds}) IS NULL"
        offences = table.first_rows(f"left(CAST({self.column.name} AS VARCHAR), 100)", condition)
        return InvalidLogError(
            f"{self.described} must hold times of the years 1 to 9999, such as 2026-01-31T12:00:00Z; got"
            f" {rules.at_rows(offences)}"
        )


@dataclass(frozen=True)
class ValueColumn:
    """A column of values: as it is, and in whole multiples of 10⁻⁹."""

    described: str
    column: FileColumn

    @property
    def is_missing(self) -> str:
        """Whether there is no value."""
        return f"{_present(self.column)} IS NULL"

    @property
    def units(self) -> str:
        """The value; NULL if it is missing, no number, or too large."""
        number = self.column.reward()
        return (
            f"CASE WHEN abs({number}) <= {_LARGEST_VALUE}"
            f" THEN CAST(round_even({number} * {VALUE_UNIT}::DOUBLE, 0) AS HUGEINT) END"
        )

    @property
    def nonzero(self) -> str:
        """1 if the value is not 0, however small it is; NULL as in `units`."""
        return f"CASE WHEN {self.units} IS NOT NULL THEN CAST({self.column.reward()} <> 0 AS INTEGER) END"

    def refused(self, table: EventTable, matches: str) -> InvalidLogError:
        """Name the first values that are no numbers."""
        condition = f"{matches} AND NOT ({self.is_missing}) AND ({self.units}) IS NULL"
        offences = table.first_rows(f"left(CAST({self.column.name} AS VARCHAR), 100)", condition)
        return InvalidLogError(
            f"{self.described} must hold numbers from -1e18 to 1e18; got {rules.at_rows(offences)}"
        )


def _present(column: FileColumn) -> str:
    """A column in SQL with NULL for what stands for no value: NaN and empty text."""
    if column.is_text:
        return f"nullif({column.name}, '')"
    return f"nullif({column.name}, 'nan'::DOUBLE)" if column.type in {"FLOAT", "DOUBLE"} else column.name


def _from_number(name: str, unit: str) -> str:
    """Microseconds from a number or its text, exactly: a float would lose digits."""
    exact = f"TRY_CAST({name} AS DECIMAL(38, 9))"
    scaled = f"{exact} * {'0.001' if unit == 'ns' else TIME_UNITS[unit]}"
    return f"CASE WHEN abs({exact}) < {_LARGEST_NUMBER} THEN TRY_CAST(floor({scaled}) AS BIGINT) END"


def _used(sql: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that a statement has."""
    return {name: value for name, value in parameters.items() if re.search(rf"\${name}(?!\w)", sql)}
