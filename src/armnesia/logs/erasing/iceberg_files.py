"""The files of an Iceberg table that nothing refers to any more, found by its log of metadata files.

pyiceberg takes snapshots out of the table's metadata without removing a file. The files of metadata before
that, which the present one lists, still name the snapshots; so they are removed last, and what was
interrupted is found again.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

_DATA, _MANIFEST, _LIST, _METADATA = range(4)
"""The kinds of files, in the order in which they are removed."""


def remove_unreferenced(table: Any) -> None:
    """Remove them: data files first, then manifests and lists of them, then earlier files of metadata."""
    for location in unreferenced_files(table):
        with suppress(FileNotFoundError):
            table.io.delete(location)


def unreferenced_files(table: Any) -> list[str]:
    """Files that earlier files of metadata refer to and the present one does not, in order of removal."""
    io, metadata = table.io, table.metadata
    kept = {location for _, location in _files_in(metadata, io, deleted=False)}
    found: dict[str, int] = {}
    for entry in metadata.metadata_log:
        earlier = _metadata_at(entry.metadata_file, io)
        if earlier is not None:
            found |= {location: rank for rank, location in _files_in(earlier, io, deleted=True)}
            found[entry.metadata_file] = _METADATA
    old = (location for location in sorted(found, key=found.__getitem__) if location not in kept)
    return [location for location in old if io.new_input(location).exists()]


def has_deleted_entries(snapshot: Any, io: Any) -> bool:
    """Whether the manifests of a snapshot still have entries of files that it deleted."""
    from pyiceberg.manifest import ManifestEntryStatus  # noqa: PLC0415 (an extra)

    return any(
        entry.status == ManifestEntryStatus.DELETED
        for manifest in snapshot.manifests(io)
        for entry in manifest.fetch_manifest_entry(io, discard_deleted=False)
    )


def _metadata_at(location: str, io: Any) -> Any:
    """A file of metadata; None if it is gone."""
    from pyiceberg.serializers import FromInputFile  # noqa: PLC0415 (an extra)

    file = io.new_input(location)
    return FromInputFile.table_metadata(file) if file.exists() else None


def _files_in(metadata: Any, io: Any, *, deleted: bool) -> Iterator[tuple[int, str]]:
    """All files that metadata refer to, as far as these can be read, and when each is removed.

    What refers to other files is removed after them. With `deleted`, also files that a snapshot has deleted.
    """
    for each in (*metadata.statistics, *metadata.partition_statistics):
        yield _DATA, each.statistics_path
    for snapshot in metadata.snapshots:
        if not io.new_input(snapshot.manifest_list).exists():
            continue
        for manifest in snapshot.manifests(io):
            if io.new_input(manifest.manifest_path).exists():
                for entry in manifest.fetch_manifest_entry(io, discard_deleted=not deleted):
                    yield _DATA, entry.data_file.file_path
            yield _MANIFEST, manifest.manifest_path
        yield _LIST, snapshot.manifest_list
