"""The files of an Iceberg table that nothing refers to any more: by its metadata, and in its folders.

pyiceberg takes snapshots out of the table's metadata without removing a file, and other tools may have done
the same before. Earlier files of metadata, as far as they are there, name such files. Others in the folders
of the table may be of somebody else, except files of metadata beside its own: they are found, and stay.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from armnesia.logs.erasing.iceberg_folders import DATA, LIST, MANIFEST, METADATA, files_in_folders, key_of


class OldFile(NamedTuple):
    """A file that nothing refers to."""

    kind: int
    location: str
    is_known: bool
    """Whether metadata of the table have referred to it, so that no writer is about to commit it."""
    size: int = 0
    changed: datetime | None = None
    is_strange: bool = False
    """Whether it may be of another table or program, or one that the table refers to by another location."""


class TableFiles:
    """The files of a table; each manifest is read once."""

    def __init__(self, table: Any) -> None:
        self._io = table.io
        self._manifests: dict[str, list[Any] | None] = {}
        self._entries: dict[str, list[tuple[str, bool]] | None] = {}
        # Listed before the metadata are read again: what is committed meanwhile is no old file.
        self._in_folders = files_in_folders(table)
        table.refresh()
        self._metadata, self._present = table.metadata, str(table.metadata_location)
        self._earlier = self._earlier_metadata()
        others = dict(self._metadata_of_others())
        if not self._is_complete() or any(each.snapshots for each in others.values()):
            self._in_folders = None  # it cannot be told which files are needed
        elif self._in_folders is not None:
            self._in_folders = [each for each in self._in_folders if each.location not in others]

    @property
    def are_all_seen(self) -> bool:
        """Whether all folders that the table writes to, and it alone, could be looked through."""
        return self._in_folders is not None

    def elsewhere(self) -> tuple[str, ...]:
        """Files outside of the table's own folders, which are known only as long as metadata name them."""
        inside = {key_of(each.location) for each in self._in_folders or () if each.is_inside}
        every = self._known() | dict(self._referred_by([self._metadata], deleted=True))
        return tuple(sorted(location for location in every if key_of(location) not in inside))

    def unreferenced(self, recorded: Iterable[str] = ()) -> list[OldFile]:
        """Files that nothing refers to, also among those recorded before, in the order of removal."""
        referred = [location for location, _ in self._referred_by([self._metadata], deleted=False)]
        kept = set(map(key_of, [*referred, self._present]))
        inside = {key_of(each.location): each for each in self._in_folders or ()}
        doubtful = {os.path.basename(key) for key in kept - inside.keys()}
        found = {
            key: OldFile(
                each.kind,
                each.location,
                False,
                each.size,
                each.changed,
                is_strange=not each.is_own or os.path.basename(key) in doubtful,
            )
            for key, each in inside.items()
        }
        for location, kind in (dict.fromkeys(recorded, DATA) | self._known()).items():
            found[key_of(location)] = OldFile(kind, location, is_known=True)
        return sorted(
            each
            for key, each in found.items()
            if key not in kept and (key in inside or self._io.new_input(each.location).exists())
        )

    def only_of_earlier_snapshots(self) -> set[str]:
        """Data files that the table has named and that its present snapshot does not have."""
        current = self._metadata.model_copy(update={"snapshots": self._present_snapshots()})
        live = {key_of(location) for location, _ in self._referred_by([current], deleted=False)}
        every = self._known() | dict(self._referred_by([self._metadata], deleted=True))
        return {location for location, kind in every.items() if kind == DATA and key_of(location) not in live}

    def remove(self, files: Iterable[OldFile], *, until: datetime | None) -> None:
        """Remove old files of the table; those that no metadata have named only if they are of a time."""
        for each in files:
            is_old = until is None or (each.changed is not None and each.changed <= until)
            if each.is_known or (is_old and not each.is_strange):
                with suppress(FileNotFoundError):
                    self._io.delete(each.location)

    def _present_snapshots(self) -> list[Any]:
        current = self._metadata.current_snapshot_id
        return [each for each in self._metadata.snapshots if each.snapshot_id == current]

    def _earlier_metadata(self) -> dict[str, Any]:
        """Earlier files of metadata: those that the present one lists, that these list, and so on.

        Also those of attempts to commit, which are beside them and of the same table.
        """
        waiting = [entry.metadata_file for entry in self._metadata.metadata_log]
        found: dict[str, Any] = {}
        while waiting:
            location = waiting.pop()
            if location not in found:
                found[location] = each = _metadata_at(location, self._io)
                waiting += [] if each is None else [entry.metadata_file for entry in each.metadata_log]
        known = {key_of(location) for location in (*found, self._present)}
        for file in self._in_folders or ():
            if file.kind == METADATA and file.is_own and key_of(file.location) not in known:
                with suppress(Exception):  # one that a writer has not finished
                    each = _metadata_at(file.location, self._io)
                    if each is not None and each.table_uuid == self._metadata.table_uuid:
                        found[file.location] = each
        return found

    def _metadata_of_others(self) -> Iterator[tuple[str, Any]]:
        """Files of metadata of other tables in the same folder; also, of attempts to create one."""
        own = {key_of(location) for location in (*self._earlier, self._present)}
        for each in self._in_folders or ():
            if each.kind == METADATA and key_of(each.location) not in own:
                with suppress(Exception):  # one that a writer has not finished
                    found = _metadata_at(each.location, self._io)
                    if found is not None and found.table_uuid != self._metadata.table_uuid:
                        yield each.location, found

    def _is_complete(self) -> bool:
        """Whether all that the present metadata refer to other files by is there."""
        manifests = [self._manifests_of(each) for each in self._metadata.snapshots]
        return all(
            each is not None and all(self._entries_of(manifest) is not None for manifest in each)
            for each in manifests
        )

    def _known(self) -> dict[str, int]:
        """Files that earlier metadata name, and these metadata."""
        there = {location: each for location, each in self._earlier.items() if each is not None}
        return dict(self._referred_by(there.values(), deleted=True)) | dict.fromkeys(there, METADATA)

    def _referred_by(self, versions: Iterable[Any], *, deleted: bool) -> Iterator[tuple[str, int]]:
        """All files that versions of the metadata refer to, as far as these can be read, and their kinds.

        With `deleted`, also files that a snapshot has deleted. Versions share most of their snapshots, and
        snapshots most of their manifests.
        """
        snapshots: dict[str, Any] = {}
        for metadata in versions:
            for each in (*metadata.statistics, *metadata.partition_statistics):
                yield each.statistics_path, DATA
            snapshots |= {each.manifest_list: each for each in metadata.snapshots}
        manifests: dict[str, Any] = {}
        for location, snapshot in snapshots.items():
            manifests |= {each.manifest_path: each for each in self._manifests_of(snapshot) or ()}
            yield location, LIST
        for location, manifest in manifests.items():
            entries = self._entries_of(manifest) or ()
            yield from ((file, DATA) for file, is_deleted in entries if deleted or not is_deleted)
            yield location, MANIFEST

    def _manifests_of(self, snapshot: Any) -> list[Any] | None:
        path = snapshot.manifest_list
        if path not in self._manifests:
            there = self._io.new_input(path).exists()
            self._manifests[path] = list(snapshot.manifests(self._io)) if there else None
        return self._manifests[path]

    def _entries_of(self, manifest: Any) -> list[tuple[str, bool]] | None:
        """The files of a manifest, and whether each is there as deleted."""
        path = manifest.manifest_path
        if path not in self._entries:
            there = self._io.new_input(path).exists()
            self._entries[path] = list(_entries(manifest, self._io)) if there else None
        return self._entries[path]


def data_files_of(table: Any) -> set[str]:
    """The keys of all files of data and statistics that a snapshot of a table has, by its manifests alone."""
    metadata, io = table.metadata, table.io
    manifests = {each.manifest_path: each for one in metadata.snapshots for each in one.manifests(io)}
    statistics = (*metadata.statistics, *metadata.partition_statistics)
    found = {key_of(each.statistics_path) for each in statistics}
    for manifest in manifests.values():
        found |= {key_of(location) for location, is_deleted in _entries(manifest, io) if not is_deleted}
    return found


def has_deleted_entries(snapshot: Any, io: Any) -> bool:
    """Whether the manifests of a snapshot still have entries of files that it deleted."""
    return any(is_deleted for each in snapshot.manifests(io) for _, is_deleted in _entries(each, io))


def _entries(manifest: Any, io: Any) -> Iterator[tuple[str, bool]]:
    from pyiceberg.manifest import ManifestEntryStatus  # noqa: PLC0415 (an extra)

    for entry in manifest.fetch_manifest_entry(io, discard_deleted=False):
        yield entry.data_file.file_path, entry.status == ManifestEntryStatus.DELETED


def _metadata_at(location: str, io: Any) -> Any:
    """A file of metadata; None if it is gone."""
    from pyiceberg.serializers import FromInputFile  # noqa: PLC0415 (an extra)

    file = io.new_input(location)
    return FromInputFile.table_metadata(file) if file.exists() else None
