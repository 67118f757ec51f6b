"""Data files that are not on this machine: DuckDB reads them through the library that reads the table's log.

So credentials are those of deltalake or pyiceberg, and DuckDB needs no extension, which it would have to
load from the network.
"""

import weakref
from collections.abc import Callable
from itertools import count
from typing import Any, Protocol

from armnesia.core.errors import MissingExtraError
from armnesia.logs.files.duckdb_engine import register_filesystem

PROTOCOL = "armnesia-lake"
_NUMBERS = count()


class SeekableFile(Protocol):
    """An open file of a storage."""

    def seek(self, position: int) -> Any:
        """Go to a position, counted from the beginning."""

    def read(self, size: int) -> bytes:
        """Read bytes from there on."""


class RemoteStorage:
    """The files of one table; as long as it exists, DuckDB finds them by their `location_of`."""

    def __init__(self, open_file: Callable[[str], SeekableFile]) -> None:
        self.open_file = open_file
        self._number = next(_NUMBERS)
        self._files: list[tuple[str, int]] = []
        _STORAGES[self._number] = self
        self.connect()

    def location_of(self, path: str, size: int) -> str:
        """Where DuckDB finds a file of this size; numbers, because DuckDB would take a path for a pattern."""
        self._files.append((path, size))
        return f"{PROTOCOL}://{self._number}/{len(self._files) - 1}"

    def connect(self) -> None:
        """Let the databases of this process find the files."""
        try:
            from armnesia.logs.lakes.filesystem import LakeFilesystem  # noqa: PLC0415 (needs an extra)
        except ImportError as error:
            raise MissingExtraError.naming("Reading tables in an object store", "lakes") from error
        register_filesystem(PROTOCOL, LakeFilesystem)


_STORAGES: weakref.WeakValueDictionary[int, RemoteStorage] = weakref.WeakValueDictionary()


def file_at(location: str) -> tuple[RemoteStorage, str, int]:
    """The storage, the path and the size of the file at a location."""
    number, place = location.removeprefix(f"{PROTOCOL}://").split("/")
    storage = _STORAGES[int(number)]
    return storage, *storage._files[int(place)]
