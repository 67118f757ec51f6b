"""The files of a `RemoteStorage` as a file system of fsspec, through which DuckDB can read."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Protocol

import fsspec  # type: ignore[import-untyped]


class SeekableFile(Protocol):
    """An open file of a storage."""

    def seek(self, position: int, /) -> Any:
        """Go to a position, counted from the beginning."""

    def read(self, size: int, /) -> bytes:
        """Read bytes from there on."""


class FoundFile(Protocol):
    """A file of a storage."""

    @property
    def size(self) -> int:
        """Its number of bytes."""

    def open(self) -> SeekableFile:
        """Open it for reading."""


class LakeFilesystem(fsspec.AbstractFileSystem):  # type: ignore[misc]
    """Files by their location, which `find` looks up, for reading only."""

    cachable = False

    def __init__(self, protocol: str, find: Callable[[str], FoundFile]) -> None:
        super().__init__()
        self.protocol, self._find = protocol, find

    def glob(self, path: str, **_: Any) -> list[str]:
        """A location is no pattern."""
        return [path]

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        """What the table's log says of a file."""
        return {"name": path, "size": self._find(path).size, "type": "file"}

    def modified(self, path: str) -> datetime:
        """Any time, always the same: a data file of a table is never changed."""
        return datetime(2000, 1, 1, tzinfo=UTC)

    def _open(self, path: str, mode: str = "rb", **_: Any) -> "SharedFile":
        if mode != "rb":
            raise PermissionError("files of a lake are only read")
        return SharedFile(self._find(path).open())


class SharedFile:
    """An open file with one position per thread.

    DuckDB goes to a position and reads there by two calls, from several threads: with a single position,
    one of them would be given the bytes of another.

    >>> import io
    >>> file = SharedFile(io.BytesIO(b"abc"))
    >>> file.seek(1), file.read(1), file.read(1)
    (1, b'b', b'c')
    """

    def __init__(self, file: SeekableFile) -> None:
        self._file, self._lock = file, threading.Lock()
        # By the number of a thread: what is local to a thread of DuckDB is lost between two calls.
        self._position_of: dict[int, int] = {}
        self.closed = False

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to a position, counted from the beginning."""
        if whence:
            raise OSError("only positions from the beginning are known")
        self._position_of[threading.get_ident()] = position
        return position

    def tell(self) -> int:
        """The position of this thread."""
        return self._position_of.get(threading.get_ident(), 0)

    def read(self, size: int = -1) -> bytes:
        """Read from the position of this thread on."""
        position = self.tell()
        with self._lock:
            self._file.seek(position)
            found = self._file.read(size)
        self.seek(position + len(found))
        return found

    def close(self) -> None:
        """Let go of the file."""
        self.closed = True
        close = getattr(self._file, "close", None)
        if close is not None:
            close()
