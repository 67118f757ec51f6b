"""One version of a Delta or Iceberg table, as its own library describes it: columns and data files."""

import hashlib
import os
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.messages import printable
from armnesia.logs.lakes.storage import RemoteStorage
from armnesia.logs.urls import may_hold_password, redacted

_LONGEST_REASON = 200


@dataclass(frozen=True)
class TableColumn:
    """A column of a table, and how its data files know it."""

    name: str
    declared_type: str
    """The type as the table's schema names it."""
    type: str | None
    """The same type in DuckDB's SQL; None if values of this type cannot be read."""
    stored_as: str | int | None
    """Its name or its field id in the data files; None if it is in none, as partition columns are."""
    required: bool = False
    """Whether every row has a value."""
    default: bool = False
    """Whether rows of files without this column have another value than NULL."""
    nested_type: str | None = None
    """Of a nested column: its type with the names of fields in files, if files know fields by their names."""


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table."""

    path: str
    """As the table's log names it."""
    location: str
    """Where DuckDB finds it."""
    size: int
    """In bytes, as the table's log says."""
    n_rows: int | None = None
    """As the table's log says, if it does, with removed rows."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """By the name of a column that the file does not have: the value of all its rows."""
    removed: str = ""
    """Positions of rows in the file that are no longer part of the table: "0,7"."""

    @property
    def n_removed(self) -> int:
        """How many rows are no longer part of the table."""
        return self.removed.count(",") + 1 if self.removed else 0


@dataclass(frozen=True)
class TableSnapshot:
    """A table at one version."""

    kind: str
    """As in `delta:PATH`."""
    location: str
    """The name by which the source was opened, with an absolute path."""
    table_id: str
    version: int | None
    """The version of a Delta table; the id of a snapshot of an Iceberg table, None before the first."""
    columns: tuple[TableColumn, ...]
    files: tuple[DataFile, ...]
    schema: str
    """A digest of what the columns are and how files are read; equal as long as these are."""
    id_of_name: Mapping[str, int] | None = None
    """The field ids of columns in files that have none, by their names there."""
    storage: RemoteStorage | None = None
    """What reads the files if they are not on this machine."""
    root: str = ""
    """The folder of the table, without links; see `root_of`."""
    columns_in_paths: frozenset[str] = frozenset()
    """Columns whose values, or a part of them, may be in the paths of files."""

    @property
    def shown_version(self) -> str:
        """The version in messages."""
        return f"{'version' if self.kind == 'delta' else 'snapshot'} {self.version}"

    def only(self, paths: Container[str]) -> "TableSnapshot":
        """The same version with some of its files."""
        return replace(self, files=tuple(file for file in self.files if file.path in paths))


def digest_of(text: str) -> str:
    """A digest of a schema's text.

    >>> digest_of("user long")[:16]
    '8981ba10019bd5e3'
    """
    return hashlib.sha256(text.encode()).hexdigest()


def table_address(name: str, scheme: str) -> tuple[str, str, bool]:
    """The name of a source with an absolute path, the path or URL in it, and whether it is on this machine.

    >>> table_address("delta:/logs/../clicks", "delta:"), table_address("delta:s3://logs/clicks", "delta:")
    (('delta:/clicks', '/clicks', True), ('delta:s3://logs/clicks', 's3://logs/clicks', False))
    """
    place = name.removeprefix(scheme).removeprefix("file://")
    if (
        not place
        or (may_hold_password(place.partition("://")[2] or place))
        or "?" in place.partition("://")[2]
    ):
        raise InvalidInputError(
            f"a table must be named {scheme}PATH or {scheme}URL, without credentials, which belong into the"
            f" environment; got {scheme}{redacted(place)}"
        )
    if "://" in place:
        return f"{scheme}{place}", place, False
    path = os.path.abspath(os.path.expanduser(place))
    return f"{scheme}{path}", path, True


def root_of(place: str) -> str:
    """The folder of a table by one name, whatever path leads there.

    >>> root_of("file:///logs/../clicks/"), root_of("s3://logs/clicks/")
    ('/clicks', 's3://logs/clicks')
    """
    path = place.removeprefix("file://") if place.startswith("file:///") else place.removeprefix("file:")
    return place.rstrip("/") if "://" in path else os.path.realpath(path)


def unreadable_table(location: str, kind: str, reason: str) -> InvalidLogError:
    """Refuse a table of a kind.

    >>> str(unreadable_table("delta:/logs", "a Delta", "it has no log"))
    "source 'delta:/logs' cannot be read as a Delta table: it has no log"
    """
    return InvalidLogError(f"source {location!r} cannot be read as {kind} table: {reason}")


def reason_of(error: BaseException) -> str:
    """What a library says of its failure: one line, without what may be a password.

    >>> reason_of(ValueError("no such table\\n  at line 7")), reason_of(ValueError("ann:secret@db"))
    ('no such table', 'ValueError')
    """
    lines = str(error).strip().splitlines()
    first = printable(lines[0].strip()) if lines else ""
    if not first or len(first) > _LONGEST_REASON or may_hold_password(first):
        return type(error).__name__
    return first
