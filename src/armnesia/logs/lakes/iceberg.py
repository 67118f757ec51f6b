"""Decisions in an Iceberg table: pyiceberg reads the metadata, DuckDB the data files.

A table is named by its catalog, as pyiceberg is configured to find it, `iceberg:CATALOG.NAMESPACE.TABLE`, or
by a file of its metadata, `iceberg:PATH/metadata/….metadata.json`, which is one version of it for good.
"""

import copy
import glob
import logging
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError, UnknownCatalogError
from armnesia.core.memory import import_sparing
from armnesia.logs.files.duckdb_engine import query
from armnesia.logs.lakes.file_groups import StoredColumn
from armnesia.logs.lakes.files import LakeFiles, open_columns
from armnesia.logs.lakes.iceberg_nested import NestedType, changed_types, in_present_types
from armnesia.logs.lakes.iceberg_types import sql_type
from armnesia.logs.lakes.manifest import Commit, Effect
from armnesia.logs.lakes.snapshot import (
    DataFile,
    TableColumn,
    TableSnapshot,
    digest_of,
    reason_of,
    root_of,
    table_address,
    unreadable_table,
)
from armnesia.logs.lakes.source import LakeSource
from armnesia.logs.lakes.storage import RemoteStorage
from armnesia.logs.urls import may_hold_password, redacted

_SCHEME = "iceberg:"
METADATA_FILE = ".metadata.json"
_LOCAL_FILES = "pyiceberg.io.fsspec.FsspecFileIO"
_FORMATS = {1, 2, 3}
WITHOUT_VALUES = ("bucket", "void")
"""Transforms of a partition that do not show the value."""
_EPOCH = datetime(1970, 1, 1)
_PARTITION_VALUES: Mapping[str, Callable[[Any], Any]] = {
    "date": lambda days: date(1970, 1, 1) + timedelta(days=days),
    "time": lambda micros: (_EPOCH + timedelta(microseconds=micros)).time(),
    "timestamp": lambda micros: _EPOCH + timedelta(microseconds=micros),
    "timestamptz": lambda micros: (_EPOCH + timedelta(microseconds=micros)).replace(tzinfo=UTC),
}
"""Partition values that pyiceberg gives as numbers since 1970."""


class IcebergSource(LakeSource):
    """An Iceberg table of a catalog, or one file of metadata."""

    history: "IcebergMetadata"

    def _open(self, name: str) -> "IcebergMetadata":
        return IcebergMetadata(name)

    @property
    def compared_files(self) -> LakeFiles:
        """Also with nested columns whose types have changed, as far as all files give them."""
        layout = in_present_types(self._grouped, self.history.changed_types)
        return open_columns(layout, set(self.columns.wanted()))

    def has_dropped_fields(self, stored: StoredColumn, column: str) -> bool:
        """Also if fields of the same name are others, or if it cannot be told which type a file has."""
        versions = self.history.changed_types.get(column)
        if versions is None:
            return super().has_dropped_fields(stored, column)
        same = [each for each in versions if each.is_type_of(stored)]
        return not same or any(each.has_dropped_fields for each in same)


class IcebergMetadata:
    """The metadata of an Iceberg table, as it was when it was opened."""

    def __init__(self, name: str) -> None:
        self.location, load = _address(name)
        try:
            import pyiceberg.catalog  # noqa: PLC0415 (an extra)
            import pyiceberg.table  # noqa: F401, PLC0415
        except ImportError as error:
            raise MissingExtraError.naming("Reading Iceberg tables", "lakes") from error
        try:
            with without_remarks():
                self._table = load()
        except UnknownCatalogError:
            raise
        except Exception as error:  # catalogs pass on what databases and servers raise
            raise self._refused(reason_of(error)) from None
        self._current = self._table.current_snapshot()
        self._storage: RemoteStorage | None = None
        self._specs: set[int] = set()

    @property
    def table(self) -> Any:
        """The table of pyiceberg."""
        return self._table

    @cached_property
    def changed_types(self) -> Mapping[str, list[NestedType]]:
        """All types that nested columns had, by their names, of those columns that had more than one."""
        return changed_types(self._table, self.location)

    def file_at(self, location: str, size: int) -> DataFile | None:
        """A file as if it were of the table; None if nothing reads it, because the table has no files."""
        if self._storage is not None:
            return DataFile(location, self._storage.location_of(location, size), size)
        path = local_path(location)
        return None if path is None else DataFile(location, path, size)

    def at(self, version: int | None) -> "IcebergMetadata":
        """The same metadata with another snapshot as the present one."""
        other = copy.copy(self)
        other._current = None if version is None else self._table.snapshot_by_id(version)
        other._storage, other._specs = None, set()
        if version is not None and other._current is None:
            raise self._refused(f"it has no snapshot {version}")
        return other

    def _refused(self, reason: str) -> InvalidLogError:
        return unreadable_table(self.location, "an Iceberg", reason)

    def snapshot(self) -> TableSnapshot:
        """The columns and the files; refuse a table with features that are not known here."""
        table = self._table
        if table.metadata.format_version not in _FORMATS:
            raise self._refused(
                f"its format version is {table.metadata.format_version}; known are 1, 2 and 3"
            )
        fields = table.schema().fields
        # What a nested column was called does not show in its type, so its names must never have changed.
        nested = {each.field_id: set[str]() for each in fields if not each.field_type.is_primitive}
        for schema in table.schemas().values():
            for each in schema.fields:
                if each.field_id in nested:
                    nested[each.field_id].add(str(each.field_type))
        unclear = {number for number, types in nested.items() if len(types) > 1}
        files = tuple(self._files())
        mapping = table.name_mapping()
        return TableSnapshot(
            "iceberg",
            self.location,
            str(table.metadata.table_uuid),
            None if self._current is None else self._current.snapshot_id,
            tuple(_column(each, is_unclear=each.field_id in unclear) for each in fields),
            files,
            digest_of(
                str([(each.field_id, each.name, str(each.field_type), each.required) for each in fields])
            ),
            None if mapping is None else {name: each.field_id for each in mapping for name in each.names},
            self._storage,
            root_of(str(table.metadata.location)),
            self._columns_in_paths(),
        )

    def _columns_in_paths(self) -> frozenset[str]:
        """The columns by which files of this snapshot, or new ones, are partitioned, if that shows values."""
        specs, schema = self._table.specs(), self._table.schema()
        used = (specs[number] for number in {*self._specs, self._table.metadata.default_spec_id})
        shown = {
            partition.source_id
            for spec in used
            for partition in spec.fields
            if not str(partition.transform).startswith(WITHOUT_VALUES)
        }
        return frozenset(field.name for field in schema.fields if field.field_id in shown)

    def _files(self) -> list[DataFile]:
        if self._current is None:
            return []
        try:
            self._refuse_equality_deletes()
            tasks = list(self._table.scan(snapshot_id=self._current.snapshot_id).plan_files())
        except InvalidLogError:
            raise
        except Exception as error:  # of any storage
            raise self._refused(reason_of(error)) from None
        self._specs = {task.file.spec_id for task in tasks}
        deletes = {each.file_path: each for task in tasks for each in task.delete_files}
        for each in (*(task.file for task in tasks), *deletes.values()):
            self._check_file(each)
        paths = [task.file.file_path for task in tasks]
        if any(local_path(path) is None for path in (*paths, *deletes)):
            self._storage = RemoteStorage(lambda path: self._table.io.new_input(path).open())
        removed = self._removed_rows(list(deletes.values()))
        return [self._data_file(task, removed) for task in tasks]

    def _refuse_equality_deletes(self) -> None:
        from pyiceberg.manifest import DataFileContent  # noqa: PLC0415 (an extra)

        if any(each.content == DataFileContent.EQUALITY_DELETES for each in self._delete_files()):
            raise self._refused("it has equality deletes, which are not supported; compact it first")

    def _delete_files(self) -> Iterator[Any]:
        """All files of deletes of the present snapshot, also those of data files that are gone."""
        from pyiceberg.manifest import ManifestContent  # noqa: PLC0415 (an extra)

        for manifest in () if self._current is None else self._current.manifests(self._table.io):
            if manifest.content == ManifestContent.DELETES:
                entries = manifest.fetch_manifest_entry(self._table.io)
                yield from (entry.data_file for entry in entries)

    def delete_files(self) -> list[DataFile | None]:
        """The same, as `file_at` gives them."""
        return [self.file_at(each.file_path, each.file_size_in_bytes) for each in self._delete_files()]

    def _check_file(self, file: Any) -> None:
        """Refuse files that DuckDB does not read."""
        format_ = file.file_format.value
        if format_ == "PUFFIN":
            raise self._refused("it has deletion vectors, which are not supported; compact it first")
        if format_ != "PARQUET":
            raise self._refused(f"its files must be Parquet; {file.file_path!r} is {format_}")
        if file.key_metadata is not None:
            raise self._refused(f"its files must not be encrypted; {file.file_path!r} is")

    def _location_of(self, file: Any) -> str:
        """Where DuckDB finds a file."""
        if self._storage is not None:
            return self._storage.location_of(file.file_path, file.file_size_in_bytes)
        return str(local_path(file.file_path))

    def _removed_rows(self, deletes: list[Any]) -> dict[tuple[str, str], set[int]]:
        """The positions that each file of position deletes removes from each data file, by their paths."""
        path_of = {self._location_of(each): each.file_path for each in deletes}
        if not path_of:
            return {}
        found = query(
            "SELECT filename, file_path, list(pos) FROM read_parquet($files, hive_partitioning = false)"
            " GROUP BY filename, file_path",
            {"files": [glob.escape(location) for location in path_of]},
            shown=self.location,
            format_name="Parquet",
        )
        return {(path_of[location], path): set(positions) for location, path, positions in found}

    def _data_file(self, task: Any, removed: Mapping[tuple[str, str], set[int]]) -> DataFile:
        file = task.file
        parts = (removed.get((each.file_path, file.file_path), set()) for each in task.delete_files)
        positions = sorted(set[int]().union(*parts))
        return DataFile(
            file.file_path,
            self._location_of(file),
            file.file_size_in_bytes,
            file.record_count,
            dict(self._partition_values(file)),
            ",".join(map(str, positions)),
        )

    def _partition_values(self, file: Any) -> Iterator[tuple[str, Any]]:
        """The values of columns that all rows of a file share, which may lack them then."""
        field_of = {each.field_id: each for each in self._table.schema().fields}
        for place, partition in enumerate(self._table.specs()[file.spec_id].fields):
            field, value = field_of.get(partition.source_id), file.partition[place]
            if str(partition.transform) == "identity" and field is not None and value is not None:
                convert = _PARTITION_VALUES.get(str(field.field_type))
                yield field.name, convert(value) if convert and isinstance(value, int) else value

    def commits_since(self, version: int | None) -> list[Commit] | None:
        """The snapshots after another one; None if this is no ancestor, or if some have expired."""
        later = []
        at = None if self._current is None else self._current.snapshot_id
        while at != version:
            snapshot = None if at is None else self._table.snapshot_by_id(at)
            if snapshot is None:
                return None
            later.append(snapshot)
            at = snapshot.parent_snapshot_id
        try:
            return [self._commit(each) for each in reversed(later)]
        except FileNotFoundError:
            return None

    def _commit(self, snapshot: Any) -> Commit:
        """What a snapshot did, by what it says of itself."""
        from pyiceberg.manifest import ManifestContent, ManifestEntryStatus  # noqa: PLC0415 (an extra)

        paths: dict[Any, set[str]] = defaultdict(set)
        has_deletes, n_more = False, 0
        for manifest in snapshot.manifests(self._table.io):
            if manifest.added_snapshot_id != snapshot.snapshot_id:
                continue
            for entry in manifest.fetch_manifest_entry(self._table.io, discard_deleted=False):
                if entry.snapshot_id == snapshot.snapshot_id and entry.status != ManifestEntryStatus.EXISTING:
                    has_deletes |= manifest.content == ManifestContent.DELETES
                    paths[entry.status].add(entry.data_file.file_path)
                    sign = 1 if entry.status == ManifestEntryStatus.ADDED else -1
                    n_more += sign * entry.data_file.record_count
        added, removed = paths[ManifestEntryStatus.ADDED], paths[ManifestEntryStatus.DELETED]
        summary = snapshot.summary
        operation = None if summary is None else summary.operation.value
        effect = Effect.CHANGED
        if operation == "append" and not removed and not has_deletes:
            effect = Effect.APPENDED if added else Effect.NOTHING
        elif operation == "replace" and not has_deletes and n_more == 0:
            effect = Effect.REARRANGED
        return Commit(snapshot.snapshot_id, effect, frozenset(added), frozenset(removed))


@contextmanager
def without_remarks() -> Iterator[None]:
    """Leave out what pyiceberg says of its choice of a library that reads files."""
    logger = logging.getLogger("pyiceberg.io")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def _address(name: str) -> tuple[str, Callable[[], Any]]:
    """The name of a source with an absolute path, and what loads its table."""
    if name.endswith(METADATA_FILE):
        location, place, is_local = table_address(name, _SCHEME)

        def load() -> Any:
            from pyiceberg.table import StaticTable  # noqa: PLC0415 (an extra)

            # By default pyiceberg reads local files by pyarrow, which is not needed here.
            return StaticTable.from_metadata(place, {"py-io-impl": _LOCAL_FILES} if is_local else {})

        return location, load
    catalog, *identifier = name.removeprefix(_SCHEME).split(".")
    if not catalog or len(identifier) < 2 or not all(identifier) or may_hold_password(name):
        raise InvalidInputError(
            f"an Iceberg table must be named {_SCHEME}CATALOG.NAMESPACE.TABLE or"
            f" {_SCHEME}PATH/metadata/….metadata.json; got {redacted(name)!r}"
        )

    def load_from_catalog() -> Any:
        import_sparing("pyarrow")  # before pyiceberg does
        from pyiceberg.catalog import load_catalog  # noqa: PLC0415 (an extra)

        try:
            found = load_catalog(catalog)
        except ValueError as error:
            if "URI missing" not in str(error):
                raise
            raise UnknownCatalogError(
                f"source {name!r}: pyiceberg found no catalog {catalog!r}; it looks for it in the first"
                " .pyiceberg.yaml of the folder PYICEBERG_HOME, the home folder and the working folder, and"
                f" in the environment (PYICEBERG_CATALOG__{catalog.upper()}__URI)"
            ) from None
        return found.load_table(tuple(identifier))

    return name, load_from_catalog


def _column(field: Any, *, is_unclear: bool) -> TableColumn:
    type_ = None if is_unclear else sql_type(field.field_type)
    shown = "a nested type that has changed" if is_unclear else str(field.field_type)
    has_default = field.initial_default is not None
    return TableColumn(field.name, shown, type_, field.field_id, field.required, has_default)


def local_path(uri: str) -> str | None:
    """The path of a file on this machine, which pyiceberg does not encode; None if it is elsewhere.

    >>> local_path("file:///logs/a%20b"), local_path("/logs/a"), local_path("s3://logs/a")
    ('/logs/a%20b', '/logs/a', None)
    """
    path = uri.removeprefix("file://") if uri.startswith("file://") else uri.removeprefix("file:")
    return path if path.startswith("/") else None
