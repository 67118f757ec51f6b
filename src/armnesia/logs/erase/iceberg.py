"""Erasing rows of an Iceberg table: a delete of pyiceberg, then old snapshots expire and their files go.

pyiceberg takes snapshots out of the table's metadata and leaves their files. So a purge removes all files at
the table's location that its metadata does not name.
"""

import gzip
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from armnesia.core.errors import MissingExtraError, UnsupportedError
from armnesia.core.messages import listed
from armnesia.logs.erase.eraser import Eraser
from armnesia.logs.erase.lakes import OTHER_FILES, LakeEraser
from armnesia.logs.lakes import METADATA_FILE, IcebergSource, _iceberg_table, _local

_METADATA = re.compile(r"\.metadata\.json(\.gz)?$")
_OWN_FILES = re.compile(r".*(\.parquet|\.avro|\.metadata\.json(\.gz)?|\.puffin|\.stats)")
"""What a purge may remove: data, manifests, metadata, statistics."""
_WITHOUT_ROWS = re.compile(r"(.*/)?(version-hint\.text|_SUCCESS|\.[^/]*\.crc)")
_FOLDERS = ("write.data.path", "write.metadata.path", "write.object-storage.path")
_AGE, _FEWEST = "history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep"
_FIVE_DAYS = timedelta(days=5) // timedelta(milliseconds=1)
_HIDES_VALUES = re.compile(r"bucket\[\d+\]|void")
"""Transforms of a partition that do not show whom it is about."""


class IcebergEraser(LakeEraser[IcebergSource]):
    """An Iceberg table of a catalog."""

    library = "pyiceberg"
    remains = (
        "rows that were only marked as deleted before (position deletes) are in their files until these are"
        " written again",
        "manifests that other programs wrote may list deleted files, with their lowest and highest values,"
        " which may be names",
        "files at the table's location that hold neither data nor metadata of it, and other tables that share"
        " its files, are not looked at",
        OTHER_FILES,
        *Eraser.remains,
    )

    def check(self) -> None:
        """Refuse tables that pyiceberg does not write, that name people in paths, or that lack rights."""
        super().check()
        if self.source.location.endswith(METADATA_FILE):
            raise self.refused(
                "a file of metadata is one version for good; name the table by its catalog,"
                " iceberg:CATALOG.NAMESPACE.TABLE"
            )
        try:
            import pyarrow  # noqa: F401, PLC0415 (an extra)
        except ImportError as error:
            raise MissingExtraError.naming("Erasing rows of Iceberg tables", "erase") from error
        with self.in_words():
            table = _iceberg_table(self.source.location)
            metadata = table.metadata
            main = metadata.refs.get("main")
            people = {self.source.columns.user, self.source.columns.id} & set(table.schema().column_names)
            by_people = {
                name
                for name in people
                for spec in metadata.partition_specs
                for field in spec.fields
                if field.source_id == table.schema().find_field(str(name)).field_id
                and not _HIDES_VALUES.fullmatch(str(field.transform))
            }
            folders = [table.properties[name] for name in _FOLDERS if name in table.properties]
            files = _needed(table, [table.current_snapshot()])
            outside = not all(_is_below(table, each) for each in (*folders, *files))
        reason = None
        if metadata.format_version > 2:
            reason = f"pyiceberg does not write tables of format version {metadata.format_version}"
        elif by_people:
            reason = (
                f"it is or was partitioned by {by_people.pop()!r}, so that names of folders and manifests"
                " name people"
            )
        elif any("." in str(name) for name in (self.source.columns.user, self.source.columns.id)):
            reason = "pyiceberg does not find rows by a column with a point in its name; rename it"
        elif set(metadata.refs) - {"main"}:
            reason = "it has branches or tags, which keep the rows; remove them"
        elif main and (main.max_snapshot_age_ms, main.min_snapshots_to_keep) != (None, None):
            reason = (
                "its main branch declares how long snapshots stay, which pyiceberg would drop; declare it"
                " for the table"
            )
        elif outside:
            reason = "it has, or writes, files outside of its location, which may be files of others"
        if reason is not None:
            raise self.refused(reason)
        self.check_folders(_local(metadata.location))

    def commit(
        self, source: IcebergSource, column: str, values: Collection[Any]
    ) -> tuple[IcebergSource, IcebergSource]:
        """Delete by names, which no file of the table's metadata then has."""
        from pyiceberg import expressions  # noqa: PLC0415 (an extra)

        table = _iceberg_table(source.location)
        is_in: Any = expressions.In
        table.delete(is_in(column, set(values)))
        # The file before is the one that the catalog replaced: another writer may have been faster.
        before = table.metadata.metadata_log[-1].metadata_file
        return self.at(f"iceberg:{_local(before)}"), self.at(f"iceberg:{_local(table.metadata_location)}")

    def take_back(self, before: IcebergSource) -> None:
        """Roll back to the snapshot before."""
        table = _iceberg_table(self.source.location)
        table.manage_snapshots().rollback_to_snapshot(before.state["snapshot"]).commit()

    def purge(self, *, ignore_retention: bool = False) -> datetime | None:
        """Let old snapshots expire, and remove all files at the location that the metadata does not name."""
        with self.in_words():
            table = _iceberg_table(self.source.location)
            age = timedelta(0) if ignore_retention else self._retention(table)
            until = datetime.now(UTC) - age
            # Listed before the metadata is read again: what is committed meanwhile is no old file.
            storage = _storage(table)
            files = self._files(table, storage)
            _drop_deleted_entries(table.refresh())
            old = [each.snapshot_id for each in _earlier(table) if _moment(each) <= until]
            if old:
                table.maintenance.expire_snapshots().by_ids(old).commit()
            needed = {_key(table, each) for each in _needed(table, table.snapshots())}
            left = [each for key, each in files.items() if key not in needed]
            for each in left:
                if each.mtime <= until:
                    storage.delete_file(each.path)
            dates = [*map(_moment, _earlier(table)), *(each.mtime for each in left if each.mtime > until)]
            return max(dates) + age if dates else None

    def _retention(self, table: Any) -> timedelta:
        """How old snapshots become, as the table declares, or by default."""
        age, fewest = table.properties.get(_AGE, _FIVE_DAYS), table.properties.get(_FEWEST, 1)
        if str(fewest) != "1" or not re.fullmatch("[0-9]{1,12}", str(age)):
            raise self._not_removed(
                f"the table declares {_AGE} = {age} and {_FEWEST} = {fewest}, by which snapshots may stay for"
                " ever; ignore retention, or declare others"
            )
        return timedelta(milliseconds=int(age))

    def _files(self, table: Any, storage: Any) -> dict[str, Any]:
        """The files at the table's location; refuse those of others, and a location that others share."""
        from pyarrow import fs  # noqa: PLC0415 (an extra)

        if table.properties.get("gc.enabled", "true").lower() == "false":
            raise self._not_removed("it declares gc.enabled=false, as tables do that share files with others")
        selector = fs.FileSelector(_key(table, table.location()), recursive=True)
        every = (each for each in storage.get_file_info(selector) if each.type == fs.FileType.File)
        files = {_key(table, each.path): each for each in every if not _WITHOUT_ROWS.fullmatch(each.path)}
        strange = {os.path.splitext(key)[1] for key in files if not _OWN_FILES.fullmatch(key)}
        if strange:
            raise self._not_removed(
                f"its location has files of others, which end in {listed(sorted(strange))}; move them"
            )
        if not all(_is_below(table, each) for each in _needed(table, table.snapshots())):
            raise self._not_removed("earlier snapshots have files elsewhere, which may be files of others")
        present = {_key(table, each) for each in _needed(table, [table.current_snapshot()], history=False)}
        if not present <= files.keys():
            raise self._not_removed("files that it needs are not listed at its location")
        named = {_key(table, each) for each in _metadata_files(table)}
        for key in [key for key in files if _METADATA.search(key) and key not in named]:
            other = _read_metadata(storage, files[key].path)
            if other.get("table-uuid", str(table.metadata.table_uuid)) != str(table.metadata.table_uuid):
                del files[key]  # such as one that `create_table_if_not_exists` has left
                if other.get("snapshots"):
                    raise self._not_removed(
                        "another table has metadata at its location, and may need files there; move them"
                    )
        return files

    def _not_removed(self, reason: str) -> UnsupportedError:
        return UnsupportedError(f"files of {self.source.location!r} cannot be removed: {reason}")


def _storage(table: Any) -> Any:
    """The file system of a table, as pyarrow reads it."""
    from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415 (an extra)

    io = PyArrowFileIO(table.io.properties)
    return io.fs_by_scheme(*io.parse_location(table.location(), io.properties)[:2])


def _read_metadata(storage: Any, path: str) -> dict[str, Any]:
    """What a file of metadata says; nothing if a writer was killed before it was complete."""
    with storage.open_input_file(path) as file:
        data = file.read()
    try:
        return dict(json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data))
    except (OSError, ValueError, EOFError):
        return {}


def _key(table: Any, location: str) -> str:
    """The path of a file in its file system, which is one for all spellings of a location."""
    from pyiceberg.io.pyarrow import PyArrowFileIO  # noqa: PLC0415 (an extra)

    is_path = "://" not in location and not location.startswith("file:")
    path = location if is_path else PyArrowFileIO.parse_location(location, table.io.properties)[2]
    return re.sub("/+", "/", path).rstrip("/")


def _is_below(table: Any, location: str) -> bool:
    return f"{_key(table, location)}/".startswith(f"{_key(table, table.location())}/")


def _metadata_files(table: Any) -> list[str]:
    return [table.metadata_location, *(each.metadata_file for each in table.metadata.metadata_log)]


def _needed(table: Any, snapshots: Iterable[Any], *, history: bool = True) -> Iterator[str]:
    """The files of some snapshots, and those of the metadata, with earlier ones."""
    metadata = table.metadata
    yield from _metadata_files(table)[: None if history else 1]
    yield from (each.statistics_path for each in (*metadata.statistics, *metadata.partition_statistics))
    manifests: dict[str, Any] = {}
    for snapshot in filter(None, snapshots):
        yield snapshot.manifest_list
        manifests |= {each.manifest_path: each for each in snapshot.manifests(table.io)}
    for path, manifest in manifests.items():
        yield path
        yield from (each.data_file.file_path for each in manifest.fetch_manifest_entry(table.io))


def _earlier(table: Any) -> list[Any]:
    """All snapshots but the present one."""
    return [each for each in table.snapshots() if each.snapshot_id != table.metadata.current_snapshot_id]


def _moment(snapshot: Any) -> datetime:
    return datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)


def _drop_deleted_entries(table: Any) -> None:
    """Add a snapshot without rows, if the present one lists files that were deleted: it leaves them out."""
    current = table.current_snapshot()
    if current and any(each.deleted_files_count for each in current.manifests(table.io)):
        with table.transaction() as transaction:
            transaction.update_snapshot().fast_append().commit()
