"""The data files of one version of a table, which DuckDB reads as one table.

Each group of files is brought to the columns of the table: columns are found by the names or ids that they
have in the files, converted to the type of the table, and partition columns, which are in no file, come from
the table's log. The table is all groups, one after the other.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from armnesia.core.errors import InvalidLogError
from armnesia.core.files import stamp_if_there
from armnesia.logs.files.formats import Format, LogFiles
from armnesia.logs.lakes.file_groups import FileGroup, GroupedFiles
from armnesia.logs.lakes.snapshot import TableColumn, TableSnapshot
from armnesia.logs.lakes.storage import RemoteStorage
from armnesia.logs.lakes.types import converted

_WITHOUT_ZONE = re.compile("TIMESTAMP(?! WITH|TZ)")
NOTHING = '"NULL"'
"""The type, in DuckDB, of a column without any value."""


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
    stored: Mapping[str, tuple[tuple[str, tuple[str, ...]], ...]] = field(default_factory=dict)
    """By column that is wanted: what `stored_as` says."""

    def stored_as(self, name: str) -> list[tuple[str, tuple[str, ...]]]:
        """What the files call a column, for each group of files that has it."""
        return list(self.stored[name])

    @property
    def shown(self) -> str:
        """The table, not one of its files."""
        return self.location

    @property
    def knows_positions(self) -> bool:
        """Not across groups of files, of which rows may have been removed."""
        return False

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
            if stamp_if_there(path) != stamp:
                raise InvalidLogError(
                    f"source {self.location!r} has changed since {self.version} of it was read: file"
                    f" {path!r} is no longer the same; read it again"
                )


def open_columns(layout: GroupedFiles, wanted: set[str] | None, *, by_name: bool = False) -> LakeFiles:
    """The files with the columns of the table; refuse a `wanted` column that not all files can give.

    None stands for all columns. Other columns that cannot be read have no values. With `by_name`, nested
    columns with a `nested_type` are brought to it, field by field: a field that a file lacks is NULL there.
    """
    snapshot, groups = layout.snapshot, layout.groups
    columns = [_read_column(place, layout, wanted, by_name) for place in range(len(snapshot.columns))]
    _refuse_expansion(layout, {name for column in columns for name in column.stored_names})
    parameters = {name: value for group in groups for name, value in group.parameters()}
    return LakeFiles(
        tuple(file.location for file in layout.files),
        Format(),
        tuple((column.name, column.type) for column in columns),
        layout.n_rows,
        layout.stamps,
        signed_bounds=frozenset(each.name for each in columns if each.stored_names & layout.signed_bounds),
        location=snapshot.location,
        version=snapshot.shown_version,
        storage=snapshot.storage,
        selects=tuple(_selects(groups, columns)),
        parameters=parameters | {name: value for each in columns for name, value in each.constants.items()},
        stored={each.name: each.stored for each in columns},
    )


def places_in(group: FileGroup, snapshot: TableSnapshot) -> dict[str, int]:
    """Where the files of a group have the columns of the table, by their names, as far as they have them."""
    try:
        found = {column.name: _place_in(group, column, snapshot) for column in snapshot.columns}
    except _UnreadableColumnError as reason:
        raise InvalidLogError(f"source {snapshot.location!r} cannot be read: a column {reason}") from None
    return {name: place for name, place in found.items() if place is not None}


@dataclass(frozen=True)
class _ReadColumn:
    """A column of the table, as it is read from each group."""

    name: str
    type: str
    expressions: tuple[str, ...]
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Parameters: per file of a group, the value of all its rows."""
    stored: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """What the files of a group call it, and where they are, if it is wanted."""

    @property
    def stored_names(self) -> frozenset[str]:
        """What any file calls it."""
        return frozenset(name for name, _ in self.stored)


class _UnreadableColumnError(Exception):
    """Why a column of the table cannot be read from a file."""


def _selects(groups: Sequence[FileGroup], columns: Sequence[_ReadColumn]) -> Iterator[str]:
    """One query per group of files, with the columns of the table; one without rows if there are no files."""
    for at, group in enumerate(groups):
        chosen = ", ".join(f"{column.expressions[at]} AS c{place}" for place, column in enumerate(columns))
        yield f"SELECT {chosen} FROM {group.rows}"
    if not groups:
        nothing = ", ".join(f"{_null(column.type)} AS c{place}" for place, column in enumerate(columns))
        yield f"SELECT {nothing} WHERE false"


def _null(type_: str) -> str:
    return "NULL" if type_ == NOTHING else f"CAST(NULL AS {type_})"


def _read_column(place: int, layout: GroupedFiles, wanted: set[str] | None, by_name: bool) -> _ReadColumn:
    """Find a column in all groups; refuse a wanted one that cannot be read from one of them."""
    column, snapshot = layout.snapshot.columns[place], layout.snapshot
    is_wanted = wanted is None or column.name in wanted
    type_, expressions = layout.types.get(column.name), list[str]()
    nested = column.nested_type if by_name else None
    constants: dict[str, list[Any]] = {}
    stored: list[tuple[str, tuple[str, ...]]] = []
    try:
        if type_ is None:
            raise _UnreadableColumnError(f"is of type {column.declared_type}, which is not supported")
        for group in layout.groups:
            at = _place_in(group, column, snapshot)
            if at is not None:
                convert = _converted if nested is None else _by_name
                expressions.append(convert(at, group, nested or type_))
                stored.append((group.columns[at].name, tuple(file.location for file in group.files)))
            elif any(file.values.get(column.name) is not None for file in group.files):
                parameter = f"value_{group.number}_{place}"
                constants[parameter] = [file.values.get(column.name) for file in group.files]
                values = f"CAST(${parameter} AS {type_}[])"
                expressions.append(f"list_extract({values}, CAST(file_index AS INTEGER) + 1)")
            else:
                _check_may_be_missing(group, column)
                expressions.append(_null(nested or type_))
    except _UnreadableColumnError as reason:
        if is_wanted:
            raise InvalidLogError(
                f"source {snapshot.location!r} cannot be read: column {column.name!r} {reason}"
            ) from None
        return _ReadColumn(column.name, NOTHING, ("NULL",) * len(layout.groups))
    return _ReadColumn(
        column.name, nested or type_, tuple(expressions), constants, tuple(stored) if is_wanted else ()
    )


def _place_in(group: FileGroup, column: TableColumn, snapshot: TableSnapshot) -> int | None:
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


def _converted(at: int, group: FileGroup, type_: str) -> str:
    """A column of a group in the type of the table."""
    stored = group.columns[at]
    expression = converted(f"f{at}", stored.type, stored.physical_type, type_)
    if expression is None:
        raise _UnreadableColumnError(
            f"is of type {type_} in the table and {stored.type} in file {group.files[0].path!r}"
        )
    return expression


def _by_name(at: int, group: FileGroup, type_: str) -> str:
    """A nested column of a group in another type, whose fields are found by their names."""
    if _WITHOUT_ZONE.search(group.columns[at].type) and not _WITHOUT_ZONE.search(type_):
        # INT96, whose moments DuckDB would take for times of the zone of this machine.
        raise _UnreadableColumnError(f"has times without a zone in file {group.files[0].path!r}")
    return f"CAST(f{at} AS {type_})"


def _check_may_be_missing(group: FileGroup, column: TableColumn) -> None:
    """Refuse files without a column whose values are not NULL there."""
    if column.default or column.required:
        why = (
            "has a default value for rows without it" if column.default else "must have a value in every row"
        )
        raise _UnreadableColumnError(f"{why}, and is not in file {group.files[0].path!r}")


def _refuse_expansion(layout: GroupedFiles, names: set[str]) -> None:
    """Refuse files with wanted columns that expand too much."""
    path_of = {file.location: file.path for file in layout.files}
    for location, column, reason in layout.expanding:
        if column in names:
            raise InvalidLogError(
                f"source {layout.snapshot.location!r} cannot be read: in file {path_of[location]!r}, {reason}"
            )
