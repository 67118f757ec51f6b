"""What data files hold of people besides the rows of the present version of a lake's table."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from armnesia.core.errors import ArmnesiaError
from armnesia.logs.erasing.names_in_files import names_in
from armnesia.logs.erasing.names_in_texts import named_in
from armnesia.logs.erasing.parquet_dictionaries import named_in_dictionaries
from armnesia.logs.erasing.parquet_metadata import named_in_metadata
from armnesia.logs.erasing.people import People
from armnesia.logs.files.duckdb_engine import stream
from armnesia.logs.files.duckdb_values import FileColumn
from armnesia.logs.lakes.file_groups import FileGroup, GroupedFiles
from armnesia.logs.lakes.files import open_columns, places_in
from armnesia.logs.lakes.snapshot import DataFile
from armnesia.logs.lakes.source import LakeSource
from armnesia.logs.limits import CHUNK

_PATH = "file_path"
_POSITIONS = (_PATH, "pos")
"""The columns that every file of position deletes has."""
_NESTED = ("STRUCT", "MAP", "UNION", "VARIANT")
_DROPPED = (
    "files of the table name people in a column that was dropped, or hold such a column that cannot be looked"
    " into; write these files again"
)
_MARKED = (
    "files of the table hold rows of these people that an earlier deletion has only marked; write these files"
    " again"
)


def may_hold_people(source: LakeSource, files: Sequence[DataFile], people: People) -> bool:
    """Whether files that the present version does not have hold people, or cannot be looked into.

    A file without the column is of another table, or of a time when the column had another name.
    """
    if not files:
        return False
    column = source.columns.named()[people.role]
    try:
        part = source.reading(files)
        if any(column not in places_in(group, part.snapshot) for group in part.groups):
            return True
        if names_in(part, people) or any(named_in_metadata(part.files, people)):
            return True
        return any(named_in_dictionaries(part, people)) or _named_in_further_columns(part, people)
    except (ArmnesiaError, OSError):
        return True


def hold_more_than_positions(source: LakeSource, files: Sequence[DataFile], people: People) -> bool:
    """Whether files of position deletes hold values of rows, name people, or cannot be looked into.

    They may have the rows that they delete, and may be there after the files with these rows are gone.
    """
    try:
        layout = GroupedFiles.of(replace(source.snapshot, files=tuple(files)))
        for group in layout.groups:
            for place, stored in enumerate(group.columns):
                column = FileColumn(f"f{place}", stored.type, is_text=False)
                if stored.name not in _POSITIONS:
                    return True
                if stored.name == _PATH and any(
                    named_in(texts, people) for texts in _texts(source, group, column)
                ):
                    return True
        return any(named_in_metadata(open_columns(layout, set()), people))
    except (ArmnesiaError, OSError):
        return True


def named_in_present_files(source: LakeSource, people: People) -> Iterator[str]:
    """Sentences about rows of people in files of the present version that its readers do not see."""
    files = source.snapshot.files
    try:
        whole = source.reading([replace(file, removed="") for file in files])
        if any(file.removed for file in files) and names_in(whole, people):
            yield _MARKED
        is_named = _named_in_further_columns(whole, people)
    except (ArmnesiaError, OSError):
        is_named = True
    if is_named:
        yield _DROPPED


def _named_in_further_columns(source: LakeSource, people: People) -> bool:
    """Whether people may be named in columns, or fields of columns, that the table does not have any more.

    Nested columns, and fields of these, are not looked into.
    """
    for group in source.groups:
        known = {place: name for name, place in places_in(group, source.snapshot).items()}
        for place, stored in enumerate(group.columns):
            if place in known:
                if source.has_dropped_fields(stored, known[place]):
                    return True
                continue
            column = FileColumn(f"f{place}", stored.type, is_text=False)
            if column.type.endswith("]") or column.type in _NESTED:
                return True
            if any(people.among(labels) for labels in _texts(source, group, column)):
                return True
    return False


def _texts(source: LakeSource, group: FileGroup, column: FileColumn) -> Iterator[list[str]]:
    """The distinct values of a column of a group."""
    sql = f"SELECT DISTINCT {column.text()} FROM {group.rows}"
    shown = source.snapshot.location
    for rows in stream(sql, dict(group.parameters()), size=CHUNK, shown=shown, format_name="Parquet"):
        yield [text for (text,) in rows if text is not None]
