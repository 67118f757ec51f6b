"""A table of exposures or of a metric: a source of a log, or JSON; its columns in SQL."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.messages import listed
from armnesia.core.urls import redacted
from armnesia.logs.columns import Columns
from armnesia.logs.conditions import Condition
from armnesia.logs.engine import Connection
from armnesia.logs.files import FileSource, find_files, stamp_of_file
from armnesia.logs.refusals import at_rows, repeated_column
from armnesia.logs.source import Source, source_at
from armnesia.logs.sql import Column, literal, qualified
from armnesia.logs.statements import Reading

VALUE_UNIT = 1_000_000_000
"""Values are added as whole multiples of 10⁻⁹: a sum of floats would depend on the order of the rows."""
_FLOATS = {"FLOAT", "DOUBLE"}
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999 in microseconds."""
_JSON = tuple(suffix + gz for suffix in (".json", ".jsonl", ".ndjson") for gz in ("", ".gz"))


def opened(location: Any, what: str, out: Path) -> Source:
    """The source that a caller names; refuse one that the log would replace."""
    place = os.fspath(location) if isinstance(location, os.PathLike) else location
    if isinstance(place, str) and place.startswith(("sqlite:", "postgres", "spark:")):
        raise InvalidInputError(
            f"{what} must be files, a dataframe or a table of a lake; write the table of a database to"
            f" Parquet first; got {redacted(place)!r}"
        )
    is_json = isinstance(place, str) and place.lower().endswith(_JSON)
    found = _json(place) if is_json else source_at(place, Columns("", ""), None)
    for path in getattr(found, "paths", ()):
        if out.exists() and os.path.exists(path) and os.path.samefile(out, path):
            raise InvalidInputError(
                f"out must not be a file that is read; {str(out)!r} is {path!r} of the {what}: choose another"
            )
    return found


def _json(location: str) -> Source:
    """Files of JSON objects, one per line or in one array; their columns are the keys of the first 1000."""
    paths = tuple(find_files(location, _JSON))
    found = FileSource(location, Columns("", ""), paths=paths, stamps=tuple(map(stamp_of_file, paths)))
    with found.connection() as connection:
        first = "SELECT json FROM read_json_objects($files, format = 'auto') LIMIT 1000"
        sql = f"SELECT DISTINCT unnest(json_keys(json)) FROM ({first}) ORDER BY 1"
        keys = [key for (key,) in connection.rows(sql, dict(found.scan(connection).parameters))]
    stored: dict[str, Column] = {}
    for key in keys:
        alike = [each for each in keys if each.casefold() == key.casefold()]
        fault = repeated_column(key) if alike[1:] else None
        stored[key] = Column(f"({qualified(key)} ->> '$')", "VARCHAR", fault=fault)
    types = ", ".join(f"{literal(key)}: 'JSON'" for key, column in stored.items() if column.fault is None)
    rules = "format = 'auto', records = true, auto_detect = false, hive_partitioning = false"
    return replace(found, table_sql=f"read_json($files, {rules}, columns = {{{types}}})", stored=stored)


@dataclass(frozen=True)
class Table:
    """The columns of a table by their roles, and its conditions."""

    what: str
    """`exposures` or `metric`, for messages."""
    names: Mapping[str, str]
    reading: Reading

    @classmethod
    def read(
        cls,
        source: Source,
        connection: Connection,
        what: str,
        names: Mapping[str, str],
        where: tuple[Condition, ...],
    ) -> "Table":
        """Find the columns of a source, by their roles and of conditions, and check their types."""
        names = {**names, **{f"where_{at}": each.column for at, each in enumerate(where)}}
        scan = source.scan(connection)
        paths: list[str] = []
        columns = {role: _column(scan.columns, what, role, name, paths) for role, name in names.items()}
        selected = ", ".join(f"{column.sql} AS raw_{role}" for role, column in columns.items())
        raw = {role: column.named(f"raw_{role}") for role, column in columns.items()}
        parameters = {**scan.parameters, "paths": paths}
        parameters |= {f"where_{at}": list(each.values) for at, each in enumerate(where)}
        table = f"(SELECT {selected} FROM {scan.table} AS stored) AS log"
        reading = Reading(connection, table, raw, parameters, where)
        reading.check_conditions()
        return cls(what, names, reading)

    def judged(self, values: Mapping[str, str]) -> str:
        """The rows with these values, the person and the time, and the first reason not to use each."""
        reasons = {"filtered": "NOT matches", "missing_user": "person IS NULL"}
        reasons |= {
            f"missing_{each}": f"{each} IS NULL" for each in ("experiment", "action") if each in values
        }
        valued = {"time": "time", **({"value": "units"} if "value" in self.names else {})}
        reasons |= {f"missing_{role}": f"{self.present(role)} IS NULL" for role in valued}
        reasons |= {f"unreadable_{role}": f"{name} IS NULL" for role, name in valued.items()}
        cases = " ".join(f"WHEN {condition} THEN '{reason}'" for reason, condition in reasons.items())
        selected = {
            "matches": self.reading.kept(),
            "person": self.label("user"),
            "time": f"CASE WHEN matches THEN {self.time()} END",
            **values,
        }
        named = ", ".join(f"{sql} AS {name}" for name, sql in selected.items())
        rows = f"SELECT *, {named} FROM {self.reading.table}"
        return f"SELECT *, CASE {cases} ELSE 'used' END AS fate FROM ({rows})"

    def label(self, role: str) -> str:
        """The text of a label; NULL if it is missing or empty."""
        return f"nullif({self.reading.columns[role].text()}, '')"

    def present(self, role: str) -> str:
        """The value of a column; NULL for what stands for no value, NaN and empty text."""
        column = self.reading.columns[role]
        nothing = "'nan'::DOUBLE" if column.type in _FLOATS else "''" if column.type == "VARCHAR" else "NULL"
        return f"nullif({column.sql}, {nothing})"

    def time(self) -> str:
        """Microseconds since 1970 in UTC; NULL if there is no time, or none of the years 1 to 9999."""
        column = self.reading.columns["time"]
        moment = f"TRY_CAST({column.sql} AS TIMESTAMPTZ)" if column.type == "VARCHAR" else column.sql
        time = f"epoch_us({moment})"
        return f"CASE WHEN {time} BETWEEN {_FIRST_TIME} AND {_LAST_TIME} THEN {time} END"

    def units(self, aggregate: str = "sum") -> str:
        """The value in whole multiples of 10⁻⁹, or for `any` whether it is not 0; without a column, 1.

        NULL if it is missing, no number, or too large.
        """
        if "value" not in self.names:
            return "1"
        number = f"({self.reading.columns['value'].number()})"
        units = f"CAST(round_even({number} * {VALUE_UNIT}::DOUBLE, 0) AS HUGEINT)"
        is_any = f"CAST({number} <> 0 AS BIGINT)"
        return f"CASE WHEN abs({number}) <= 1e18 THEN {is_any if aggregate == 'any' else units} END"

    def refused(self, role: str) -> InvalidLogError:
        """Name the first rows with a time or a value that cannot be understood."""
        understood, rule = self.time(), "times of the years 1 to 9999, such as 2026-01-31T12:00:00Z"
        if role == "value":
            understood, rule = self.units(), "numbers from -1e18 to 1e18"
        shown = f"left(CAST({self.reading.columns[role].sql} AS VARCHAR), 100)"
        offences = self.reading.first(shown, f"{self.present(role)} IS NOT NULL AND ({understood}) IS NULL")
        return InvalidLogError(
            f"{_described(self.what, role, self.names[role])} must hold {rule}; got {at_rows(offences)}"
        )


def _described(what: str, role: str, name: str) -> str:
    """Name a column in a message."""
    kind = role.partition("_")[0].replace("where", "condition")
    return f"{kind} column {name!r} of the {what}"


def _column(stored: Mapping[str, Column], what: str, role: str, name: str, paths: list[str]) -> Column:
    """The column of this name, or `column.property` of JSON objects; text may hold values of any type."""
    outer, _, inner = name.partition(".")
    found, described = name if name in stored else outer, _described(what, role, name)
    if found not in stored:
        asked = f"{'metric_' * (what == 'metric' and role != 'value')}{role}"
        hint = "" if role.startswith("where") else f"; name it with columns (--column {asked}=NAME)"
        raise InvalidLogError(f"{described} is not in the source; it has {listed(stored, 20)}{hint}")
    column = stored[found]
    if column.type in ("VARCHAR", "JSON"):
        column = replace(column, full_type="VARCHAR")
    column.check("reward" if role == "value" else role, described)
    if found != name:
        if column.type != "VARCHAR":
            raise InvalidLogError(f"{described} must be in JSON objects; {outer!r} holds {column.type}")
        paths.append("/" + inner.replace("~", "~0").replace("/", "~1"))
        column = Column(f"json_extract_string({column.sql}, $paths[{len(paths)}])", "VARCHAR")
    if role == "time" and not (column.type == "VARCHAR" or column.type.startswith(("DATE", "TIMESTAMP"))):
        raise InvalidLogError(
            f"{described} must hold times; it holds {column.type}: write numbers as times first, such as by"
            " epoch_ms(…) or to_timestamp(…) of DuckDB, or by pandas.to_datetime"
        )
    return column
