"""A table of exposures or of a metric: any source of a log, or JSON lines; its columns in SQL."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.messages import listed
from armnesia.core.urls import redacted
from armnesia.logs.columns import Columns
from armnesia.logs.conditions import Condition
from armnesia.logs.engine import PARAMETERS, Connection
from armnesia.logs.files import FileSource, find_files, stamp_of_file
from armnesia.logs.refusals import at_rows
from armnesia.logs.source import Scan, Source, source_at
from armnesia.logs.sql import INTEGERS, NUMERIC, Column, quoted
from armnesia.logs.statements import Reading, Relation

TIME_UNITS = {"s": "1000000", "ms": "1000", "us": "1", "ns": "0.001"}
"""Microseconds in a unit."""
VALUE_UNIT = 1_000_000_000
"""Values are added as whole multiples of 10⁻⁹: a sum of floats would depend on the order of the rows."""
_FLOATS = {"FLOAT", "DOUBLE"}
_NUMBERS = INTEGERS | _FLOATS | {"DECIMAL", "HUGEINT", "UHUGEINT", NUMERIC}
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999 in microseconds."""
_JSON_LINES = {".jsonl": "none", ".ndjson": "none", ".jsonl.gz": "gzip", ".ndjson.gz": "gzip"}


def opened(location: Any, what: str) -> Source:
    """The source that a caller names."""
    place = os.fspath(location) if isinstance(location, os.PathLike) else location
    if isinstance(place, str) and place.lower().endswith(tuple(_JSON_LINES)):
        return _json_lines(place)
    if isinstance(place, str) and place.startswith(("sqlite:", "postgres", "spark:")):
        raise InvalidInputError(
            f"{what} must be files, a dataframe or a table of a lake; write the table of a database to"
            f" Parquet first; got {redacted(place)!r}"
        )
    return source_at(place, Columns("", ""), None)


def _json_lines(location: str) -> Source:
    """Files of JSON lines; their columns are the keys of the first thousand lines, each value as its text."""
    paths = tuple(find_files(location, _JSON_LINES))
    kinds = {kind for suffix, kind in _JSON_LINES.items() for path in paths if path.lower().endswith(suffix)}
    if len(kinds) > 1:
        raise InvalidLogError("source must match files of one format; got compressed and plain files")
    rules = f"format = 'newline_delimited', compression = '{kinds.pop()}', hive_partitioning = false"
    first = f"SELECT json FROM read_json_objects($files, {rules}) LIMIT 1000"
    found = FileSource(location, Columns("", ""), paths=paths, stamps=tuple(map(stamp_of_file, paths)))
    with found.connection() as connection:
        sql = f"SELECT DISTINCT unnest(json_keys(json)) FROM ({first}) ORDER BY 1"
        keys = [key for (key,) in connection.rows(sql, dict(found.scan(connection).parameters))]
    types = ", ".join("'" + key.replace("'", "''") + "': 'JSON'" for key in keys)
    table = f"read_json($files, {rules}, records = true, auto_detect = false, columns = {{{types}}})"
    stored = {key: Column(f"({quoted(key)} ->> '$')", "VARCHAR", is_text=True) for key in keys}
    return replace(found, table_sql=table, stored=stored)


@dataclass(frozen=True)
class Table:
    """The columns of a table by their roles, and its conditions."""

    what: str
    """`exposures` or `metric`, for messages and for the names of parameters."""
    names: Mapping[str, str]
    where: tuple[Condition, ...]
    relation: Relation
    reading: Reading
    time_unit: str | None

    @classmethod
    def read(
        cls,
        source: Source,
        connection: Connection,
        what: str,
        names: Mapping[str, str],
        where: tuple[Condition, ...],
        time_unit: str | None,
    ) -> "Table":
        """Find the columns of a source, by their roles and of conditions."""
        names = {**names, **{f"where_{at}": each.column for at, each in enumerate(where)}}
        scan = source.scan(connection)
        paths: list[str] = []
        columns = {role: _column(source, scan, what, role, name, paths) for role, name in names.items()}
        selected = ", ".join(f"{column.sql} AS raw_{role}" for role, column in columns.items())
        raw = {role: column.named(f"raw_{role}") for role, column in columns.items()}
        parameters = {**scan.parameters, "paths": paths}
        relation = Relation(f"(SELECT {selected} FROM {scan.table}) AS log", raw, parameters)
        reading = Reading(connection, relation, where, (), source.position)
        reading.check_conditions()
        return cls(what, names, where, relation, reading, time_unit)

    def judged(self, values: Mapping[str, str]) -> str:
        """The rows with these values, the person and the time, and the first reason not to use each."""
        reasons = {"filtered": "NOT matches", "missing_user": "person IS NULL"}
        reasons |= {
            f"missing_{each}": f"{each} IS NULL" for each in ("experiment", "action") if each in values
        }
        reasons["missing_time"] = f"{self.present('time')} IS NULL"
        if "value" in self.names:
            reasons["missing_value"] = f"{self.present('value')} IS NULL"
        reasons |= {"unreadable_time": "time IS NULL"}
        reasons |= {"unreadable_value": "units IS NULL"} if "value" in self.names else {}
        cases = " ".join(f"WHEN {condition} THEN '{reason}'" for reason, condition in reasons.items())
        conditions = zip(self.where, self.relation.several("where"), strict=True)
        holds = [column.holds(each, f"where_{at}") for at, (each, column) in enumerate(conditions)]
        column = self.relation.columns["time"]
        is_date = f"strlen({column.sql}) = 10" if column.is_text else str(column.type == "DATE")
        selected = {
            "matches": " AND ".join(holds) or "true",
            "person": self.label("user"),
            "is_date": is_date,
        }
        selected |= {"time": f"CASE WHEN matches THEN {self.time()} END", **values}
        named = ", ".join(f"{sql} AS {name}" for name, sql in selected.items())
        table = f"(SELECT *, {named} FROM {self.relation.table})"
        sql = f"SELECT *, CASE {cases} ELSE 'used' END AS fate FROM {table}"
        return PARAMETERS.sub(lambda found: found[1] or f"${self.what}_{found[2]}", sql)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of this, whose names differ from those of another table."""
        compared = {f"where_{at}": list(each.values) for at, each in enumerate(self.where)}
        own = {**self.relation.parameters, **compared}
        return {f"{self.what}_{name}": value for name, value in own.items()}

    def label(self, role: str) -> str:
        """The text of a label; NULL if it is missing or empty."""
        return f"nullif({self.relation.columns[role].text()}, '')"

    def kept(self, role: str, *, as_text: bool) -> str:
        """A column that the log keeps: a number as it is, if not all is to be text."""
        is_number = self.relation.columns[role].type in _NUMBERS - {NUMERIC}
        return self.present(role) if is_number and not as_text else self.label(role)

    def present(self, role: str) -> str:
        """The value of a column; NULL for what stands for no value, NaN and empty text."""
        column = self.relation.columns[role]
        nothing = "'nan'::DOUBLE" if column.type in _FLOATS else "''" if column.is_text else "NULL"
        return f"nullif({column.sql}, {nothing})"

    def time(self) -> str:
        """Microseconds since 1970 in UTC; NULL if there is no time, or none of the years 1 to 9999."""
        column, time = self.relation.columns["time"], "NULL"
        if column.type in _NUMBERS and self.time_unit is None:
            raise InvalidInputError(
                f"{self.described('time')} holds numbers: say with time_unit (--time-unit) whether they count"
                " s, ms, us or ns since 1970"
            )
        if self.time_unit is not None and (column.is_text or column.type in _NUMBERS):
            exact = f"TRY_CAST({column.sql} AS DECIMAL(38, 9))"  # a float would lose digits
            scaled = f"TRY_CAST(floor({exact} * {TIME_UNITS[self.time_unit]}) AS BIGINT)"
            time = f"CASE WHEN abs({exact}) < {10**20} THEN {scaled} END"
        if column.type not in _NUMBERS:  # times without a zone are in that of the connection
            time = f"coalesce({time}, epoch_us(TRY_CAST({column.sql} AS TIMESTAMPTZ)))"
        return f"CASE WHEN {time} BETWEEN {_FIRST_TIME} AND {_LAST_TIME} THEN {time} END"

    def units(self, aggregate: str = "sum") -> str:
        """The value in whole multiples of 10⁻⁹, or for `any` whether it is not 0; without a column, 1.

        NULL if it is missing, no number, or too large.
        """
        if "value" not in self.names:
            return "1"
        column = self.relation.columns["value"]
        column.check("reward", self.described("value"))
        number = f"({column.reward()})"
        units = f"CAST(round_even({number} * {VALUE_UNIT}::DOUBLE, 0) AS HUGEINT)"
        is_any = f"CAST({number} <> 0 AS BIGINT)"
        return f"CASE WHEN abs({number}) <= 1e18 THEN {is_any if aggregate == 'any' else units} END"

    def refused(self, role: str) -> InvalidLogError:
        """Name the first rows with a time or a value that cannot be understood."""
        understood, rule = self.time(), "times of the years 1 to 9999, such as 2026-01-31T12:00:00Z"
        if role == "value":
            understood, rule = self.units(), "numbers from -1e18 to 1e18"
        shown = f"left(CAST({self.relation.columns[role].sql} AS VARCHAR), 100)"
        offences = self.reading.first(shown, f"{self.present(role)} IS NOT NULL AND ({understood}) IS NULL")
        return InvalidLogError(f"{self.described(role)} must hold {rule}; got {at_rows(offences)}")

    def described(self, role: str) -> str:
        """Name a column in a message."""
        return _described(self.what, role, self.names[role])


def _described(what: str, role: str, name: str) -> str:
    kind = {"where": "condition"}.get(role.partition("_")[0], role.partition("_")[0])
    return f"{kind} column {name!r} of the {what}"


def _column(source: Source, scan: Scan, what: str, role: str, name: str, paths: list[str]) -> Column:
    """The column of this name, or `column.property` of JSON objects; text may hold values of any type."""
    outer, _, inner = name.partition(".")
    found = name if name in scan.columns else outer
    if found not in scan.columns:
        option = f"--{'metric-' * (what == 'metric' and role != 'value')}{role}-column"
        hint = "" if role.startswith(("where", "keep")) else f"; name it with {option}"
        raise InvalidLogError(
            f"{_described(what, role, name)} is not in the source; it has {listed(scan.columns, 20)}{hint}"
        )
    column = scan.columns[found]
    if column.type != "JSON":
        column = source.typed("column", found, scan.columns)
    if found != name:
        if column.type not in ("VARCHAR", "JSON"):
            raise InvalidLogError(
                f"{_described(what, role, outer)} must hold JSON objects as text; it holds {column.type}"
            )
        paths.append("/" + inner.replace("~", "~0").replace("/", "~1"))
        column = Column(f"json_extract_string({column.sql}, $paths[{len(paths)}])", "VARCHAR")
    return replace(column, is_text=column.type == "VARCHAR")
