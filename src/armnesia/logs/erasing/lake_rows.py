"""What erasures at Delta and Iceberg tables have in common: values of names, and rows that must stay."""

from typing import Any

from armnesia.core.errors import InvalidLogError
from armnesia.logs.erasing.file_labels import checksum
from armnesia.logs.files.label_lookup import look_up
from armnesia.logs.lakes.source import LakeSource

_BY_VALUE = {
    "VARCHAR": "text",
    "TINYINT": "integers",
    "SMALLINT": "integers",
    "INTEGER": "integers",
    "BIGINT": "integers",
    "DECIMAL": "decimals",
    "DATE": "dates",
    "UUID": "UUIDs",
}
"""Types of columns in which a value is deleted by comparing it with itself."""


def check_type(source: LakeSource, role: str) -> None:
    """Refuse a column of which values cannot be handed over to the table's library without doubt."""
    type_ = source.named_column(role).type
    if type_ not in _BY_VALUE:
        raise InvalidLogError(
            f"{source.described(role)} must hold {', '.join(sorted(set(_BY_VALUE.values())))} for rows to be"
            f" erased; it holds {type_}"
        )


def values_of(source: LakeSource, role: str, names: frozenset[str]) -> list[Any]:
    """The values of a column, in its own type, that have these names."""
    column = source.named_column(role)
    found = look_up(column, names)
    sql = f"SELECT DISTINCT {column.name} FROM {source.files.table} WHERE {found.condition}"
    return [value for (value,) in source.files.query(sql, **found.parameters)]


def other_rows_stayed(before: LakeSource, after: LakeSource, role: str, names: frozenset[str]) -> bool:
    """Whether the files that replaced others have all their rows except those with the names.

    Files that both versions have are the same, and are not read.
    """
    old, new = set(before.manifest().files), set(after.manifest().files)
    replaced = before.reading_only(file.path for file in old - new)
    written = after.reading_only(file.path for file in new - old)
    left_out = look_up(replaced.named_column(role), names)
    return checksum(replaced.files, left_out) == checksum(written.files)


def marked_rows(source: LakeSource) -> tuple[str, ...]:
    """A sentence if files hold rows that are only marked as deleted, which nobody can find by name."""
    if not any(file.removed for file in source.snapshot.files):
        return ()
    return (
        "files of the table hold rows that an earlier deletion has only marked (deletion vectors or position"
        " deletes); these may be of the same people, and stay until the files are written again",
    )
