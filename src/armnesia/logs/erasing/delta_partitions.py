"""Which partitions of a Delta table a merge has to look at.

deltalake's merge reads every file of the table, and holds the rows of those in which it has found nobody yet.
A condition on the columns of partitions leaves the other files out: it says no more of people than the paths
of the files that the same commit removes.
"""

from collections.abc import Collection
from datetime import date
from typing import Any, NamedTuple

from armnesia.logs.columns import quoted
from armnesia.logs.files.label_lookup import Lookup
from armnesia.logs.lakes.delta import DeltaSource
from armnesia.logs.lakes.snapshot import DataFile

_COMPARED = {"string", "byte", "short", "integer", "long", "date"}
"""Types of columns of which a literal is one value for deltalake and for DuckDB."""


class Partitions(NamedTuple):
    """Partitions of a table, as a condition on their columns, "" for all of them; and their files."""

    condition: str
    files: tuple[DataFile, ...]


def partitions_with(source: DeltaSource, rows: Lookup, names: Collection[str]) -> Partitions:
    """The partitions that have any of these rows, as far as it can be said which.

    A column with a value that is one of the names is left out: the log would say it once more.
    """
    files, within = source.compared_files, source.snapshot.files
    places = {name: place for place, (name, _) in enumerate(files.columns)}
    declared = {each.name: each.declared_type for each in source.snapshot.columns}
    conditions = []
    for column in source.history.table.metadata().partition_columns:
        if declared[column] not in _COMPARED:
            continue
        sql = f"SELECT DISTINCT c{places[column]} FROM {files.table} WHERE {rows.condition} ORDER BY ALL"
        values = [value for (value,) in files.query(sql, **rows.parameters)]
        if not {str(value) for value in values} & set(names):
            conditions.append(_is_one_of(f"t.{quoted(column)}", values))
            within = tuple(file for file in within if file.values.get(column) in values)
    return Partitions(" AND ".join(conditions), within)


def _is_one_of(column: str, values: list[Any]) -> str:
    """A condition of SQL.

    >>> _is_one_of("t.day", [date(2026, 1, 2), None]), _is_one_of("t.page", ["it's"])
    ("(t.day IN (DATE '2026-01-02') OR t.day IS NULL)", "t.page IN ('it''s')")
    """
    literals = ", ".join(_literal(value) for value in values if value is not None)
    conditions = [f"{column} IN ({literals})"] if literals else []
    conditions += [f"{column} IS NULL"] if None in values else []
    return conditions[0] if len(conditions) == 1 else f"({' OR '.join(conditions)})"


def _literal(value: str | int | date) -> str:
    if isinstance(value, int):
        return str(value)
    text = "'" + str(value).replace("'", "''") + "'"
    return f"DATE {text}" if isinstance(value, date) else text
