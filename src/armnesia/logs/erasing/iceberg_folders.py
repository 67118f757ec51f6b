"""The files that are in the folders of an Iceberg table, whatever its metadata say."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from armnesia.logs.erasing.lake_folders import has_unreadable_folders, unlinked_files, unlinked_folders
from armnesia.logs.lakes.iceberg import local_path

DATA, MANIFEST, LIST, METADATA = range(4)
"""Kinds of files, in the order in which they are removed: what refers to others after them."""
_SUFFIXES = {".avro": MANIFEST, ".metadata.json": METADATA, ".metadata.json.gz": METADATA}
"""Files of metadata by the ends of their names; any other may hold rows, whatever its name."""
_WITHOUT_ROWS = re.compile(r"(.*/)?(version-hint\.text|_SUCCESS|_(started|committed)_\d+|\.[^/]*\.crc)")
"""Files of catalogs and writers that hold neither rows nor names."""
_METADATA_PATH = "write.metadata.path"
_OTHER_FOLDERS = (
    "write.data.path",
    _METADATA_PATH,
    "write.object-storage.path",
    "write.folder-storage.path",
)
"""Properties that name folders for new files."""
_SAME_STORES = {"s3a": "s3", "s3n": "s3", "file": ""}


class FoundFile(NamedTuple):
    """A file in the folder of the table, or below it."""

    location: str
    kind: int
    size: int
    changed: datetime | None
    is_inside: bool
    """Whether it is where the table writes its files, though others may do so as well."""
    is_own: bool
    """Whether it is a file of metadata in the folder that the table has for these, where only it writes."""


def key_of(location: str) -> str:
    """What is the same for all spellings of a location.

    >>> key_of("s3a://lake/logs//a.parquet"), key_of("file:///logs/a b"), key_of("/logs/a b")
    ('s3://lake/logs/a.parquet', '/logs/a b', '/logs/a b')
    """
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        scheme, rest = "", location
    scheme = _SAME_STORES.get(scheme.lower(), scheme.lower())
    path = re.sub("/+", "/", rest)
    return f"{scheme}:/{path}" if scheme else path


def files_in_folders(table: Any) -> list[FoundFile] | None:
    """All files at the location of a table; None if it has others elsewhere, or if they cannot be listed.

    Tables that were migrated have files beside the folders that Iceberg writes to.
    """
    root = str(table.metadata.location).rstrip("/")
    named = {str(table.properties[name]).rstrip("/") for name in _OTHER_FOLDERS if name in table.properties}
    if any(not f"{key_of(folder)}/".startswith(f"{key_of(root)}/") for folder in named):
        return None  # other tables may write there as well
    listed = _files_below(table.io, root)
    if listed is None:
        return None
    inside = tuple(f"{key_of(folder)}/" for folder in {f"{root}/data", f"{root}/metadata"} | named)
    metadata = f"{key_of(str(table.properties.get(_METADATA_PATH, f'{root}/metadata')).rstrip('/'))}/"
    found = []
    for path, size, changed in listed:
        if not _WITHOUT_ROWS.fullmatch(path):
            location, kind = f"{root}/{path}", _kind_of(path)
            key = key_of(location)
            is_own = kind != DATA and key.rpartition("/")[0] + "/" == metadata
            found.append(FoundFile(location, kind, size, changed, key.startswith(inside), is_own))
    return found


def names_below(table: Any) -> Iterator[str]:
    """The names of all folders at the location of a table, if it is on this machine."""
    root = local_path(str(table.metadata.location))
    if root is not None:
        yield from unlinked_folders(root)


def _kind_of(location: str) -> int:
    kinds = (kind for suffix, kind in _SUFFIXES.items() if location.lower().endswith(suffix))
    return next(kinds, DATA)


def _files_below(io: Any, folder: str) -> Iterable[tuple[str, int, datetime | None]] | None:
    """Files in a folder and those below it; None if not all can be listed."""
    root = local_path(folder)
    if root is not None:
        return None if has_unreadable_folders(root) else unlinked_files(root)
    if hasattr(io, "fs_by_scheme"):
        return _by_pyarrow(io, folder)
    return _by_fsspec(io, folder) if hasattr(io, "get_fs") else None


def _by_pyarrow(io: Any, folder: str) -> Iterator[tuple[str, int, datetime | None]]:
    """Paths in a folder, the sizes of the files, and when each was changed."""
    from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 (an extra)

    scheme, store, path = io.parse_location(folder, io.properties)
    selector = FileSelector(path, allow_not_found=True, recursive=True)
    for each in io.fs_by_scheme(scheme, store).get_file_info(selector):
        if each.type == FileType.File:
            yield each.path[len(path) :].lstrip("/"), int(each.size), each.mtime


def _by_fsspec(io: Any, folder: str) -> Iterator[tuple[str, int, datetime | None]]:
    """The same, by the other library; it does not say in one way when a file was changed."""
    scheme = folder.partition(":")[0] if ":" in folder else "file"
    files = io.get_fs(scheme)
    root = str(files._strip_protocol(folder)).rstrip("/")
    for path, status in files.find(root, detail=True).items():
        changed = status.get("mtime")
        is_number = isinstance(changed, int | float)
        moment = datetime.fromtimestamp(changed, UTC) if is_number else None
        yield path[len(root) :].lstrip("/"), int(status.get("size") or 0), moment
