"""The data files of one version of a table, which DuckDB reads as one table.

Files of one table need not have the same columns: some were added, renamed or widened later, and partition
columns are in no file. Files with the same columns in the same order are a group, which is brought to the
columns of the table; the table is all groups, one after the other.
"""

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from armnesia.core.errors import InvalidLogError
from armnesia.logs.files.duckdb_engine import query
from armnesia.logs.files.formats import EXPANDING_COLUMNS, Format, LogFiles, expanding_columns
from armnesia.logs.lakes.snapshot import DataFile, TableColumn, TableSnapshot
from armnesia.logs.lakes.storage import RemoteStorage
from armnesia.logs.lakes.types import converted

_PARQUET = Format()
_NOTHING = '"NULL"'
"""The type, in DuckDB, of a column without any value."""
_FIELDS = "name, type, type_length, repetition_type, num_children, converted_type, scale, precision, field_id"
_SCHEMAS = (
    "SELECT list(file_name), fields FROM ("
    f"SELECT file_name, list(struct_pack({_FIELDS}, logical_type) ORDER BY place) AS fields"
    " FROM (SELECT *, row_number() OVER () AS place FROM parquet_schema($files)) GROUP BY file_name"
    ") GROUP BY fields"
)
"""The columns of the files, nested ones in depth-first order, and which files have them."""


@dataclass(frozen=True)
class LakeFiles(LogFiles):
    """The data files of one version of a table."""

    location: str = ""
    """The table, for messages; the paths are those of its files."""
    version: str = ""
    storage: RemoteStorage | None = None
    selects: tuple[str, ...] = ()
    """One query per group of files, with columns c0, c1, …."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """The parameters of these queries."""

    @property
    def shown(self) -> str:
        """The table, not one of its files."""
        return self.location

    @property
    def table(self) -> str:
        """All groups as a table in SQL."""
        return f"({' UNION ALL '.join(self.selects)}) AS t"

    def _parameters(self, others: dict[str, Any]) -> dict[str, Any]:
        return {**self.parameters, **others}

    def check_unchanged(self) -> None:
        """Refuse local files that have changed or are gone; a later version of the table changes none."""
        if self.storage is not None:
            self.storage.connect()  # in a forked process, DuckDB does not know it yet
            return
        for path, stamp in zip(self.paths, self.stamps, strict=True):
            if _stamp(path) != stamp:
                raise InvalidLogError(
                    f"source {self.location!r} has changed since {self.version} of it was read: file"
                    f" {path!r} is no longer the same; read it again"
                )


def open_snapshot(snapshot: TableSnapshot, wanted: set[str] | None) -> LakeFiles:
    """Look into the files of a table; refuse it if a `wanted` column cannot be read from all of them.

    None stands for all columns. Other columns that cannot be read have no values.
    """
    files = sorted(snapshot.files, key=lambda file: file.path)
    stamps = tuple(_checked_stamp(snapshot, file) for file in files)
    n_rows = _count_rows(snapshot, files)
    groups = list(_groups(snapshot, files))
    types = _types(snapshot)
    columns = [
        _read_column(place, column, types.get(column.name), groups, snapshot, wanted)
        for place, column in enumerate(snapshot.columns)
    ]
    _refuse_expansion(snapshot, groups, {name for column in columns for name in column.stored_names})
    parameters = {name: value for group in groups for name, value in group.parameters()}
    return LakeFiles(
        tuple(file.location for file in files),
        _PARQUET,
        tuple((column.name, column.type) for column in columns),
        n_rows - sum(file.n_removed for file in files),
        stamps,
        location=snapshot.location,
        version=snapshot.shown_version,
        storage=snapshot.storage,
        selects=tuple(_selects(groups, columns)),
        parameters=parameters | {name: value for each in columns for name, value in each.constants.items()},
    )


@dataclass(frozen=True)
class _StoredColumn:
    """A column as the files of a group have it."""

    name: str
    type: str
    """In DuckDB."""
    physical_type: str | None
    field_id: int | None


@dataclass(frozen=True)
class _Group:
    """Files with the same columns in the same order; all of them have removed rows, or none."""

    number: int
    columns: tuple[_StoredColumn, ...]
    files: tuple[DataFile, ...]

    @property
    def rows(self) -> str:
        """The rows of its files in SQL, with columns f0, f1, … by position."""
        names = ", ".join(f"f{at}" for at in range(len(self.columns)))
        # By default DuckDB takes NaN for impossible where the statistics of a file leave it out.
        options = "can_have_nan = true, hive_partitioning = false"
        table = f"read_parquet($files_{self.number}, {options}) AS t({names})"
        if not self.files[0].removed:
            return table
        given = f"SELECT unnest($at_{self.number}) AS file, unnest($removed_{self.number}) AS positions"
        removed = (
            f"SELECT file, unnest(CAST(string_split(positions, ',') AS BIGINT[])) AS place FROM ({given})"
        )
        same_row = "file_index = removed.file AND file_row_number = removed.place"
        return f"{table} ANTI JOIN ({removed}) AS removed ON {same_row}"

    def parameters(self) -> Iterator[tuple[str, Any]]:
        """The parameters of `rows`; positions are text, which is handed over faster than Python's numbers."""
        yield f"files_{self.number}", [glob.escape(file.location) for file in self.files]
        if self.files[0].removed:
            yield f"at_{self.number}", list(range(len(self.files)))
            yield f"removed_{self.number}", [file.removed for file in self.files]


@dataclass(frozen=True)
class _ReadColumn:
    """A column of the table, as it is read from each group."""

    name: str
    type: str
    expressions: tuple[str, ...]
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Parameters: per file of a group, the value of all its rows."""
    stored_names: frozenset[str] = frozenset()
    """What the files call it, if it is wanted."""


class _UnreadableColumnError(Exception):
    """Why a column of the table cannot be read from a file."""


def _selects(groups: Sequence[_Group], columns: Sequence[_ReadColumn]) -> Iterator[str]:
    """One query per group of files, with the columns of the table; one without rows if there are no files."""
    for at, group in enumerate(groups):
        chosen = ", ".join(f"{column.expressions[at]} AS c{place}" for place, column in enumerate(columns))
        yield f"SELECT {chosen} FROM {group.rows}"
    if not groups:
        nothing = ", ".join(f"{_null(column.type)} AS c{place}" for place, column in enumerate(columns))
        yield f"SELECT {nothing} WHERE false"


def _null(type_: str) -> str:
    return "NULL" if type_ == _NOTHING else f"CAST(NULL AS {type_})"


def _read_column(
    place: int,
    column: TableColumn,
    type_: str | None,
    groups: Sequence[_Group],
    snapshot: TableSnapshot,
    wanted: set[str] | None,
) -> _ReadColumn:
    """Find a column in all groups; refuse a wanted one that cannot be read from one of them."""
    is_wanted = wanted is None or column.name in wanted
    expressions, constants, names = [], {}, set()
    try:
        if type_ is None:
            raise _UnreadableColumnError(f"is of type {column.declared_type}, which is not supported")
        for group in groups:
            at = _place_in(group, column, snapshot)
            if at is not None:
                expressions.append(_converted(at, group, type_))
                names.add(group.columns[at].name)
            elif any(file.values.get(column.name) is not None for file in group.files):
                parameter = f"value_{group.number}_{place}"
                constants[parameter] = [file.values.get(column.name) for file in group.files]
                expressions.append(
                    f"list_extract(CAST(${parameter} AS {type_}[]), CAST(file_index AS INT) + 1)"
                )
            else:
                _check_may_be_missing(group, column)
                expressions.append(_null(type_))
    except _UnreadableColumnError as reason:
        if is_wanted:
            raise InvalidLogError(
                f"source {snapshot.location!r} cannot be read: column {column.name!r} {reason}"
            ) from None
        return _ReadColumn(column.name, _NOTHING, ("NULL",) * len(groups))
    stored_names = frozenset(names) if is_wanted else frozenset()
    return _ReadColumn(column.name, type_, tuple(expressions), constants, stored_names)


def _place_in(group: _Group, column: TableColumn, snapshot: TableSnapshot) -> int | None:
    """Where the files of a group have a column; None if they do not have it."""
    key, shown = column.stored_as, repr(group.files[0].path)
    if key is None:
        return None
    names = [stored.name for stored in group.columns]
    if isinstance(key, int):
        keys: list[Any] = [stored.field_id for stored in group.columns]
        if not any(isinstance(each, int) for each in keys):
            if snapshot.id_of_name is None:
                raise _UnreadableColumnError(
                    f"is known by its field id, and the columns of file {shown} have none"
                )
            keys = [snapshot.id_of_name.get(name) for name in names]
    else:
        keys = list(names)
        if key not in keys and key.casefold() in map(str.casefold, names):
            raise _UnreadableColumnError(f"has another spelling in file {shown}")
    if keys.count(key) > 1:
        raise _UnreadableColumnError(f"is more than once in file {shown}")
    return keys.index(key) if key in keys else None


def _converted(at: int, group: _Group, type_: str) -> str:
    stored = group.columns[at]
    expression = converted(f"f{at}", stored.type, stored.physical_type, type_)
    if expression is None:
        raise _UnreadableColumnError(
            f"is of type {type_} in the table and {stored.type} in file {group.files[0].path!r}"
        )
    return expression


def _check_may_be_missing(group: _Group, column: TableColumn) -> None:
    """Refuse files without a column whose values are not NULL there."""
    if column.default or column.required:
        why = (
            "has a default value for rows without it" if column.default else "must have a value in every row"
        )
        raise _UnreadableColumnError(f"{why}, and is not in file {group.files[0].path!r}")


def _groups(snapshot: TableSnapshot, files: Sequence[DataFile]) -> Iterator[_Group]:
    """Group files by their columns, in the order of their paths."""
    if not files:
        return
    parts: dict[tuple[int, bool], list[DataFile]] = {}
    found = _ask(snapshot, _SCHEMAS, files)
    group_of = {path: at for at, (paths, _) in enumerate(found) for path in paths}
    for file in files:
        parts.setdefault((group_of[file.location], bool(file.removed)), []).append(file)
    columns_of: dict[int, tuple[_StoredColumn, ...]] = {}
    for number, ((at, _), members) in enumerate(parts.items()):
        if at not in columns_of:
            columns_of[at] = _stored_columns(snapshot, members[0], found[at][1])
        yield _Group(number, columns_of[at], tuple(members))


def _stored_columns(
    snapshot: TableSnapshot, file: DataFile, fields: Sequence[Mapping[str, Any]]
) -> tuple[_StoredColumn, ...]:
    """The columns of a file; `fields` has them with all that is nested in them, after the root."""
    described = _ask(
        snapshot, "DESCRIBE SELECT * FROM read_parquet($files, hive_partitioning = false)", [file]
    )
    top, at = [], 1
    while at < len(fields):
        top.append(fields[at])
        at = _after(fields, at)
    if len(top) != len(described):
        raise InvalidLogError(
            f"source {snapshot.location!r} cannot be read: DuckDB reads {len(described)} columns of file"
            f" {file.path!r}, which has {len(top)}"
        )
    return tuple(
        _StoredColumn(each["name"], type_, each["type"], each["field_id"])
        for each, (_, type_, *_) in zip(top, described, strict=True)
    )


def _after(fields: Sequence[Mapping[str, Any]], at: int) -> int:
    """The place after a field and all that is nested in it."""
    after = at + 1
    for _ in range(fields[at]["num_children"] or 0):
        after = _after(fields, after)
    return after


def _types(snapshot: TableSnapshot) -> dict[str, str]:
    """The types of the columns that have one, spelled as DuckDB spells them."""
    typed = [column for column in snapshot.columns if column.type is not None]
    if not typed:
        return {}
    nothing = ", ".join(f"CAST(NULL AS {column.type}) AS c{at}" for at, column in enumerate(typed))
    described = query(f"DESCRIBE SELECT {nothing}", {}, shown=snapshot.location, format_name=_PARQUET.name)
    return {column.name: type_ for column, (_, type_, *_) in zip(typed, described, strict=True)}


def _count_rows(snapshot: TableSnapshot, files: Sequence[DataFile]) -> int:
    """How many rows the files have; refuse a file with another number than the table's log says."""
    if not files:
        return 0
    found = _ask(snapshot, "SELECT file_name, num_rows FROM parquet_file_metadata($files)", files)
    number_of = {path: int(number) for path, number in found}
    for file in files:
        number = number_of[file.location]
        if file.n_rows is not None and number != file.n_rows:
            raise InvalidLogError(
                f"source {snapshot.location!r} cannot be read: file {file.path!r} has {number} rows where"
                f" {snapshot.shown_version} of the table says {file.n_rows}"
            )
    return sum(number_of.values())


def _refuse_expansion(snapshot: TableSnapshot, groups: Sequence[_Group], names: set[str]) -> None:
    """Refuse files with wanted columns that expand too much."""
    files = [file for group in groups for file in group.files]
    if not files:
        return
    path_of = {file.location: file.path for file in files}
    for location, column, reason in expanding_columns(
        _ask(snapshot, EXPANDING_COLUMNS.format("files"), files)
    ):
        if column in names:
            raise InvalidLogError(
                f"source {snapshot.location!r} cannot be read: in file {path_of[location]!r}, {reason}"
            )


def _ask(snapshot: TableSnapshot, sql: str, files: Sequence[DataFile]) -> list[tuple[Any, ...]]:
    paths = [glob.escape(file.location) for file in files]
    return query(sql, {"files": paths}, shown=snapshot.location, format_name=_PARQUET.name)


def _checked_stamp(snapshot: TableSnapshot, file: DataFile) -> tuple[int, int]:
    """Size and time of change of a file; refuse one that is gone or has another size."""
    if snapshot.storage is not None:
        return file.size, 0
    stamp = _stamp(file.location)
    if stamp is None:
        raise InvalidLogError(
            f"source {snapshot.location!r} cannot be read: file {file.path!r} of {snapshot.shown_version} is"
            " not there"
        )
    if stamp[0] != file.size:
        raise InvalidLogError(
            f"source {snapshot.location!r} cannot be read: file {file.path!r} has {stamp[0]} bytes where"
            f" {snapshot.shown_version} of the table says {file.size}"
        )
    return stamp


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns
