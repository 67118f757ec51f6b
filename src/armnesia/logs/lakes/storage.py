"""Data files that are not on this machine: DuckDB reads them through the library that reads the table's log.

So credentials are those of deltalake or pyiceberg, and DuckDB needs no extension, which it would have to
load from the network.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any

from armnesia.core.errors import MissingExtraError
from armnesia.core.files import open_plain
from armnesia.logs.files.duckdb_engine import register_filesystem

_PROTOCOL = "armnesia-lake"
_NUMBERS = count()


@dataclass(frozen=True)
class RemoteFile:
    """A data file."""

    path: str
    size: int
    open_path: Callable[[str], Any]

    def open(self) -> Any:
        """Open it for reading, as a file with `seek` and `read`."""
        return self.open_path(self.path)


class RemoteStorage:
    """The files of one table; as long as it exists, DuckDB finds them by their `location_of`."""

    def __init__(self, open_path: Callable[[str], Any]) -> None:
        self._open_path = open_path
        self._number = next(_NUMBERS)
        self._files: list[RemoteFile] = []
        _STORAGES[self._number] = self
        self.connect()

    def location_of(self, path: str, size: int) -> str:
        """Where DuckDB finds a file of this size; numbers, because DuckDB would take a path for a pattern."""
        self._files.append(RemoteFile(path, size, self._open_path))
        return f"{_PROTOCOL}://{self._number}/{len(self._files) - 1}"

    def file(self, place: int) -> RemoteFile:
        """The file at a place."""
        return self._files[place]

    def connect(self) -> None:
        """Let the databases of this process find the files."""
        register_filesystem(_make_filesystem)


_STORAGES: weakref.WeakValueDictionary[int, RemoteStorage] = weakref.WeakValueDictionary()


def file_at(location: str) -> RemoteFile:
    """The file at a location."""
    number, place = location.removeprefix(f"{_PROTOCOL}://").split("/")
    return _STORAGES[int(number)].file(int(place))


def open_data_file(location: str) -> Any:
    """Open a data file where DuckDB finds it, in a storage or on this machine, with `seek` and `read`."""
    is_remote = location.startswith(f"{_PROTOCOL}://")
    return file_at(location).open() if is_remote else open_plain(location)


def _make_filesystem() -> Any:
    try:
        from armnesia.logs.lakes.filesystem import LakeFilesystem  # noqa: PLC0415 (needs an extra)
    except ImportError as error:
        raise MissingExtraError.naming("Reading tables in an object store", "lakes") from error
    return LakeFilesystem(_PROTOCOL, file_at)
