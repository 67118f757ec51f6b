"""The files of an Iceberg table that nothing refers to any more: by its metadata, and in its folders.

pyiceberg takes snapshots out of the table's metadata without removing a file, and other tools may have done
the same before. Earlier files of metadata, as far as they are there, name such files. Others in the folders
of the table may be of somebody else, except files of metadata beside its own: they are found, and stay.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from armnesia.logs.erasing.iceberg_folders import DATA, LIST, MANIFEST, METADATA, files_in_folders, key_of


class OldFile(NamedTuple):
    """A file that nothing refers to."""

    kind: int
    location: str
    is_known: bool
    """Whether only snapshots that are gone have referred to it, so that no writer is about to commit it."""
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
        self._are_all_readable = True
        # Listed before the metadata are read again: what is committed meanwhile is no old file.
        self._in_folders = files_in_folders(table)
        table.refresh()
        self._metadata, self._present = table.metadata, str(table.metadata_location)
        self._earlier = self._earlier_metadata()
        beside = self._metadata_beside()
        uuid = self._metadata.table_uuid
        self._attempts = {
            at: each for at, (each, is_own) in beside.items() if is_own and each.table_uuid == uuid
        }
        others = {at: each for at, (each, _) in beside.items() if each.table_uuid != uuid}
        self._known = self._known_files()
        if not self._is_complete() or any(each.snapshots for each in others.values()):
            self._in_folders = None  # it cannot be told which files are needed
        elif self._in_folders is not None:
            self._in_folders = [each for each in self._in_folders if each.location not in others]

    @property
    def are_all_seen(self) -> bool:
        """Whether all folders that the table writes to, and it alone, could be looked through."""
        return self._in_folders is not None

    @property
    def are_all_readable(self) -> bool:
        """Whether all metadata could be read that are there."""
        return self._are_all_readable

    @property
    def earlier_metadata(self) -> list[Any]:
        """What earlier files of metadata say that are there still, also those of commits that failed."""
        return [each for each in (*self._earlier.values(), *self._attempts.values()) if each is not None]

    def elsewhere(self) -> tuple[str, ...]:
        """Files outside of the table's own folders, which are known only as long as metadata name them."""
        inside = {key_of(each.location) for each in self._in_folders or () if each.is_inside}
        every = {*self._known, *dict(self._referred_by([self._metadata], deleted=True))}
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
        for location in recorded:
            found[key_of(location)] = OldFile(DATA, location, is_known=True)
        for location, (kind, moment) in self._known.items():
            found[key_of(location)] = OldFile(kind, location, moment is None, changed=moment)
        return sorted(
            each
            for key, each in found.items()
            if key not in kept and (key in inside or self._io.new_input(each.location).exists())
        )

    def removable(self, recorded: Iterable[str] = ()) -> set[str]:
        """All files that a purge may remove, now or after the commits that it makes."""
        current = self._metadata.current_snapshot_id
        snapshots = [each for each in self._metadata.snapshots if each.snapshot_id == current]
        staying = set[str]()
        for manifest in (each for one in snapshots for each in self._manifests_of(one) or ()):
            entries = self._entries_of(manifest) or ()
            staying |= {key_of(file) for file, is_deleted in entries if not is_deleted}
            if not any(is_deleted for _, is_deleted in entries):
                staying.add(key_of(manifest.manifest_path))
        own = (each.location for each in self._in_folders or () if each.is_own)
        named = dict(self._referred_by([self._metadata], deleted=True))
        every = {*recorded, *self._known, *named, *own, self._present}
        return {location for location in every if key_of(location) not in staying}

    def remove(self, files: Iterable[OldFile], *, until: datetime | None) -> None:
        """Remove old files of the table; those that may still be needed only if they are of a time."""
        for each in files:
            is_old = until is None or (each.changed is not None and each.changed <= until)
            if each.is_known or (is_old and not each.is_strange):
                with suppress(FileNotFoundError):
                    self._io.delete(each.location)

    def _earlier_metadata(self) -> dict[str, Any]:
        """Earlier files of metadata: those that the present one lists, that these list, and so on."""
        waiting = [entry.metadata_file for entry in self._metadata.metadata_log]
        found: dict[str, Any] = {}
        while waiting:
            location = waiting.pop()
            if location not in found:
                found[location] = each = self._metadata_at(location)
                waiting += [] if each is None else [entry.metadata_file for entry in each.metadata_log]
        return found

    def _metadata_beside(self) -> dict[str, tuple[Any, bool]]:
        """Files of metadata in the folders that the present one does not list; whether the folder is its own.

        They are earlier ones that it lists no longer, attempts to commit, or of other tables.
        """
        listed = {key_of(location) for location in (*self._earlier, self._present)}
        found = {}
        for file in self._in_folders or ():
            if file.kind == METADATA and key_of(file.location) not in listed:
                each = self._metadata_at(file.location)
                if each is not None:
                    found[file.location] = each, file.is_own
        return found

    def _metadata_at(self, location: str) -> Any:
        from pyiceberg.serializers import FromInputFile  # noqa: PLC0415 (an extra)

        return self._read(location, lambda: FromInputFile.table_metadata(self._io.new_input(location)))

    def _read(self, location: str, read: Callable[[], Any]) -> Any:
        """What a file says of others; None if it is gone, or cannot be read, of which a note is made."""
        try:
            return read() if self._io.new_input(location).exists() else None
        except Exception:  # one that a writer has not finished, of a later format, or of another program
            self._are_all_readable = False
            return None

    def _is_complete(self) -> bool:
        """Whether all that the present metadata refer to other files by is there, and could be read."""
        manifests = [self._manifests_of(each) for each in self._metadata.snapshots]
        are_there = all(
            each is not None and all(self._entries_of(manifest) is not None for manifest in each)
            for each in manifests
        )
        return are_there and self._are_all_readable

    def _known_files(self) -> dict[str, tuple[int, datetime | None]]:
        """Files that earlier metadata name, and these metadata: their kinds, and since when, if that matters.

        A file of metadata has the time when it was written, and so has all that is named only by one that the
        table does not list, the last of several: a writer may be about to commit it.
        """
        found: dict[str, tuple[int, datetime | None]] = {}
        seen = set[str]()
        for location, each in sorted(self._attempts.items(), key=lambda pair: -pair[1].last_updated_ms):
            for file, kind in (*self._referred_by([each], deleted=True, seen=seen), (location, METADATA)):
                found.setdefault(file, (kind, _moment_of(each)))
        there = {location: each for location, each in self._earlier.items() if each is not None}
        found |= {file: (kind, None) for file, kind in self._referred_by(there.values(), deleted=True)}
        return found | {location: (METADATA, _moment_of(each)) for location, each in there.items()}

    def _referred_by(
        self, versions: Iterable[Any], *, deleted: bool, seen: set[str] | None = None
    ) -> Iterator[tuple[str, int]]:
        """All files that versions of the metadata refer to, as far as these can be read, and their kinds.

        With `deleted`, also files that a snapshot has deleted. Versions share most of their snapshots, and
        snapshots most of their manifests: what is in `seen` is left out, and what is new is added to it.
        """
        done = set[str]() if seen is None else seen
        snapshots: dict[str, Any] = {}
        for metadata in versions:
            for each in (*metadata.statistics, *metadata.partition_statistics):
                yield each.statistics_path, DATA
            snapshots |= {each.manifest_list: each for each in metadata.snapshots}
        manifests: dict[str, Any] = {}
        for location in snapshots.keys() - done:
            manifests |= {each.manifest_path: each for each in self._manifests_of(snapshots[location]) or ()}
            yield location, LIST
        for location in manifests.keys() - done:
            entries = self._entries_of(manifests[location]) or ()
            yield from ((file, DATA) for file, is_deleted in entries if deleted or not is_deleted)
            yield location, MANIFEST
        done |= snapshots.keys() | manifests.keys()

    def _manifests_of(self, snapshot: Any) -> list[Any] | None:
        path = snapshot.manifest_list
        if path not in self._manifests:
            self._manifests[path] = self._read(path, lambda: list(snapshot.manifests(self._io)))
        return self._manifests[path]

    def _entries_of(self, manifest: Any) -> list[tuple[str, bool]] | None:
        """The files of a manifest, and whether each is there as deleted."""
        path = manifest.manifest_path
        if path not in self._entries:
            self._entries[path] = self._read(path, lambda: list(_entries(manifest, self._io)))
        return self._entries[path]


def files_of(table: Any) -> Iterator[str]:
    """All files that a table needs or lists, with those of its metadata, by its manifests alone."""
    metadata, io = table.metadata, table.io
    yield str(table.metadata_location)
    yield from (entry.metadata_file for entry in metadata.metadata_log)
    yield from (each.statistics_path for each in (*metadata.statistics, *metadata.partition_statistics))
    yield from (each.manifest_list for each in metadata.snapshots)
    manifests = {each.manifest_path: each for one in metadata.snapshots for each in one.manifests(io)}
    yield from manifests
    for manifest in manifests.values():
        yield from (location for location, is_deleted in _entries(manifest, io) if not is_deleted)


def has_deleted_entries(snapshot: Any, io: Any) -> bool:
    """Whether the manifests of a snapshot still have entries of files that it deleted."""
    return any(is_deleted for each in snapshot.manifests(io) for _, is_deleted in _entries(each, io))


def _entries(manifest: Any, io: Any) -> Iterator[tuple[str, bool]]:
    from pyiceberg.manifest import ManifestEntryStatus  # noqa: PLC0415 (an extra)

    for entry in manifest.fetch_manifest_entry(io, discard_deleted=False):
        yield entry.data_file.file_path, entry.status == ManifestEntryStatus.DELETED


def _moment_of(metadata: Any) -> datetime:
    """When a file of metadata was written."""
    return datetime.fromtimestamp(metadata.last_updated_ms / 1000, UTC)
