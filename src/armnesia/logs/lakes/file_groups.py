"""What the data files of a version of a table look like: their columns, types and numbers of rows.

Files of one table need not have the same columns: some were added, renamed or widened later. Files with the
same columns in the same order are a group. Few queries ask for all files at once: a table may have thousands.
"""

import glob
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from armnesia.core.errors import InvalidLogError
from armnesia.core.files import Stamp, stamp_if_there
from armnesia.logs.files.duckdb_engine import query
from armnesia.logs.files.formats import PARQUET_COLUMNS, PARQUET_SCHEMAS, column_chunks, top_fields
from armnesia.logs.lakes.snapshot import DataFile, TableSnapshot


@dataclass(frozen=True)
class StoredColumn:
    """A column as the files of a group have it."""

    name: str
    type: str
    """In DuckDB."""
    physical_type: str | None
    field_id: int | None
    nested_ids: tuple[int, ...] = ()
    """The ids of all fields in it, depth first, if the file has ids."""


@dataclass(frozen=True)
class FileGroup:
    """Files with the same columns in the same order; all of them have removed rows, or none."""

    number: int
    columns: tuple[StoredColumn, ...]
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
class GroupedFiles:
    """A version of a table, and what its files look like."""

    snapshot: TableSnapshot
    files: tuple[DataFile, ...]
    """In the order in which they are read."""
    stamps: tuple[Stamp, ...]
    """Size and time of change of each file; the time is 0 where the files are not on this machine."""
    n_rows: int
    groups: tuple[FileGroup, ...]
    types: Mapping[str, str]
    """The types of the table's columns that can be read, as DuckDB spells them."""
    expanding: tuple[tuple[str, str, str], ...]
    """Files and columns that expand too much, and why they are refused."""
    signed_bounds: frozenset[str]
    """Columns as the files name them; see `LogFiles`."""

    @classmethod
    def of(cls, snapshot: TableSnapshot) -> "GroupedFiles":
        """Look into the files; refuse those that are not what the table's log says."""
        files = tuple(sorted(snapshot.files, key=lambda file: file.path))
        stamps = tuple(_checked_stamp(snapshot, file) for file in files)
        n_rows = _count_rows(snapshot, files) - sum(file.n_removed for file in files)
        groups = tuple(_groups(snapshot, files))
        chunks = list(column_chunks(lambda sql: _ask(snapshot, sql, files)))
        expanding = tuple(
            (each.path, each.column, each.expands) for each in chunks if each.expands is not None
        )
        signed = frozenset(each.column for each in chunks if each.has_signed_bounds)
        return cls(snapshot, files, stamps, n_rows, groups, _types(snapshot), expanding, signed)


def _checked_stamp(snapshot: TableSnapshot, file: DataFile) -> Stamp:
    if snapshot.storage is not None:
        return Stamp(file.size, 0)
    stamp = stamp_if_there(file.location)
    if stamp is None:
        raise InvalidLogError(
            f"source {snapshot.location!r} cannot be read: file {file.path!r} of {snapshot.shown_version} is"
            " not there"
        )
    if stamp.size != file.size:
        raise InvalidLogError(
            f"source {snapshot.location!r} cannot be read: file {file.path!r} has {stamp.size} bytes where"
            f" {snapshot.shown_version} of the table says {file.size}"
        )
    return stamp


def _count_rows(snapshot: TableSnapshot, files: Sequence[DataFile]) -> int:
    """How many rows the files have; refuse a file with another number than the table's log says."""
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


def _groups(snapshot: TableSnapshot, files: Sequence[DataFile]) -> Iterator[FileGroup]:
    """Group files by their columns, in the order of their paths."""
    found = _ask(snapshot, PARQUET_SCHEMAS, files)
    schema_of = {path: at for at, (paths, _) in enumerate(found) for path in paths}
    parts: dict[tuple[int, bool], list[DataFile]] = {}
    for file in files:
        parts.setdefault((schema_of[file.location], bool(file.removed)), []).append(file)
    columns_of: dict[int, tuple[StoredColumn, ...]] = {}
    for number, ((at, _), members) in enumerate(parts.items()):
        if at not in columns_of:
            columns_of[at] = _stored_columns(snapshot, members[0], found[at][1])
        yield FileGroup(number, columns_of[at], tuple(members))


def _stored_columns(
    snapshot: TableSnapshot, file: DataFile, fields: Sequence[Mapping[str, Any]]
) -> tuple[StoredColumn, ...]:
    """The columns of a file; `fields` has them with all that is nested in them, after the root."""
    described = _ask(snapshot, PARQUET_COLUMNS, [file])
    top = top_fields(fields)
    if len(top) != len(described):
        raise InvalidLogError(
            f"source {snapshot.location!r} cannot be read: DuckDB reads {len(described)} columns of file"
            f" {file.path!r}, which has {len(top)}"
        )
    ends = [at for at, each in enumerate(fields) if any(each is one for one in top)][1:]
    ids = [each["field_id"] for each in fields]
    found, start = [], 1
    for each, (_, type_, *_), end in zip(top, described, [*ends, len(fields)], strict=True):
        nested = tuple(number for number in ids[start + 1 : end] if number is not None)
        found.append(StoredColumn(each["name"], type_, each["type"], each["field_id"], nested))
        start = end
    return tuple(found)


def _types(snapshot: TableSnapshot) -> dict[str, str]:
    typed = [column for column in snapshot.columns if column.type is not None]
    if not typed:
        return {}
    nothing = ", ".join(f"CAST(NULL AS {column.type}) AS c{at}" for at, column in enumerate(typed))
    described = query(f"DESCRIBE SELECT {nothing}", {}, shown=snapshot.location, format_name="Parquet")
    return {column.name: type_ for column, (_, type_, *_) in zip(typed, described, strict=True)}


def _ask(snapshot: TableSnapshot, sql: str, files: Sequence[DataFile]) -> list[tuple[Any, ...]]:
    """Ask DuckDB about files; a table without files has nothing to ask about."""
    if not files:
        return []
    paths = [glob.escape(file.location) for file in files]
    return query(sql, {"files": paths}, shown=snapshot.location, format_name="Parquet")
