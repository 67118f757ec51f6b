"""Erasing rows of an Iceberg table: a delete of pyiceberg, then old snapshots expire and their files go.

pyiceberg takes snapshots out of the table's metadata and leaves their files. A purge removes them: files of
snapshots that the table once had, by earlier files of its metadata, and that no present snapshot has. No
other file is touched. Manifests are removed after the files that they list: a killed purge can be run again.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import nullcontext, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from armnesia.core.errors import UnsupportedError
from armnesia.logs.erase.eraser import OTHER_FILES, Eraser, LakeEraser
from armnesia.logs.lakes import METADATA_FILE, LakeSource, iceberg_table, local_path

_AGE = "history.expire.max-snapshot-age-ms"
_FIVE_DAYS = timedelta(days=5) // timedelta(milliseconds=1)


class IcebergEraser(LakeEraser):
    """An Iceberg table of a catalog."""

    library = "pyiceberg"
    remains = (
        "rows that were only marked as deleted before (position deletes) are in their files until these are"
        " written again",
        "files of writers that were killed, of statistics, and of snapshots that earlier metadata no longer"
        " names are not looked for",
        OTHER_FILES,
        *Eraser.remains,
    )

    def check(self) -> None:
        """Refuse what is no whole table: one version of it, or one branch of several."""
        super().check()
        location = self.source.location
        if location.endswith(METADATA_FILE) or set(iceberg_table(location).metadata.refs) - {"main"}:
            raise UnsupportedError(
                f"rows of {location!r} cannot be erased: name the table by its catalog, as iceberg:CATALOG."
                "NAMESPACE.TABLE, and first remove its branches or tags, which keep the rows"
            )

    def commit(
        self, source: LakeSource, column: str, values: Collection[Any]
    ) -> tuple[LakeSource, LakeSource]:
        """Delete by names, which no file of the table's metadata then has."""
        from pyiceberg import expressions  # noqa: PLC0415 (an extra)

        table = iceberg_table(source.location)
        is_in: Any = expressions.In
        table.delete(is_in(column, set(values)))
        # The file before is the one that the catalog replaced: another writer may have been faster.
        before = table.metadata.metadata_log[-1].metadata_file
        places = map(local_path, (before, table.metadata_location))
        then, now = (self.at(f"iceberg:{place}") for place in places)
        return then, now

    def purge(self, *, ignore_retention: bool = False) -> bool:
        """Let old snapshots expire, and remove the files that only expired ones have."""
        with self.in_words():
            table = iceberg_table(self.source.location)
            if str(table.properties.get("gc.enabled", "true")).lower() != "true":
                raise UnsupportedError(
                    f"files of {self.source.location!r} cannot be removed: the table declares gc.enabled ="
                    " false, so that others may need them"
                )
            age = timedelta(0)
            if not ignore_retention:
                age = timedelta(milliseconds=int(table.properties.get(_AGE, _FIVE_DAYS)))
            until = datetime.now(UTC) - age
            _drop_deleted_entries(table)
            old = [each.snapshot_id for each in _earlier(table) if _moment(each) <= until]
            if old:
                table.maintenance.expire_snapshots().by_ids(old).commit()
            _remove_files(table)
            changed = _last_change(table)
            return all(_moment(each) > changed for each in _earlier(table))


def _earlier(table: Any) -> list[Any]:
    """All snapshots but the present one."""
    return [each for each in table.snapshots() if each.snapshot_id != table.metadata.current_snapshot_id]


def _moment(snapshot: Any) -> datetime:
    return datetime.fromtimestamp(snapshot.timestamp_ms / 1000, UTC)


def _last_change(table: Any) -> datetime:
    """When rows were last deleted or replaced, as far as there are snapshots."""
    from pyiceberg.table.snapshots import Operation  # noqa: PLC0415 (an extra)

    changes = [
        each for each in table.snapshots() if getattr(each.summary, "operation", None) != Operation.APPEND
    ]
    return max(map(_moment, changes), default=datetime.min.replace(tzinfo=UTC))


def _drop_deleted_entries(table: Any) -> None:
    """Add a snapshot without rows, if the present one lists files that were deleted, with their bounds."""
    current = table.current_snapshot()
    if current and any(each.deleted_files_count for each in current.manifests(table.io)):
        with table.transaction() as transaction:
            transaction.update_snapshot().fast_append().commit()


def _remove_files(table: Any) -> None:
    """Remove the files that only snapshots have which the table no longer has."""
    present = {each.snapshot_id: each for each in table.snapshots()}
    needed = {path for paths in _files(table, present.values()) for path in paths}
    gone = {each.snapshot_id: each for each in _history(table) if each.snapshot_id not in present}
    for paths in _files(table, gone.values(), some_are_gone=True):
        for path in paths - needed:
            with suppress(FileNotFoundError):
                table.io.delete(path)


def _history(table: Any) -> Iterator[Any]:
    """The snapshots that earlier files of metadata name."""
    from pyiceberg.serializers import FromInputFile  # noqa: PLC0415 (an extra)

    for each in table.metadata.metadata_log:
        with suppress(FileNotFoundError):  # writers may remove early ones
            yield from FromInputFile.table_metadata(table.io.new_input(each.metadata_file)).snapshots


def _files(table: Any, snapshots: Iterable[Any], *, some_are_gone: bool = False) -> list[set[str]]:
    """The files of snapshots: with rows, manifests, which name the former, and lists, which name these."""
    passed_by = suppress(FileNotFoundError) if some_are_gone else nullcontext()
    files, lists = set(), set()
    manifests: dict[str, Any] = {}
    for snapshot in snapshots:
        lists.add(snapshot.manifest_list)
        with passed_by:
            manifests |= {each.manifest_path: each for each in snapshot.manifests(table.io)}
    for manifest in manifests.values():
        with passed_by:
            files |= {each.data_file.file_path for each in manifest.fetch_manifest_entry(table.io)}
    return [files, set(manifests), lists]
