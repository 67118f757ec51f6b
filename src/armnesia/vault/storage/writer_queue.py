"""A queue for the writers of an SQLite vault, so that none of them starves.

SQLite's writers wait by sleeping and trying again, longer each time: whoever comes back at once wins. Here a
writer takes the first lock (next in line), then the second (writing), and gives the first one back. Whoever
has just written must get in line again behind the one that is next.

The locks are on two bytes of a small file beside the vault, and end with the process that holds them. They
are for fairness, and for work on the log after a commit: SQLite's own lock protects the data. Where the
system has no such locks, there is no queue.
"""

import os
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

with suppress(ImportError):  # absent on Windows
    import fcntl

_NEXT, _WRITING = 0, 1
_SHORTEST, _LONGEST = 0.0002, 0.002
_FLOCK = "hhqqi"  # struct flock: type, whence, start, length, process


class WriterQueue:
    """The queue of one vault, as one connection sees it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor: int | None = None

    @contextmanager
    def turn(self, timeout: float) -> Iterator[bool]:
        """Wait for one's turn, at most so many seconds; then the database decides.

        Yields whether it came; where the system has no such locks, it is always one's turn.
        """
        end = time.monotonic() + timeout
        if not self._open():
            yield True
            return
        if not self._take(_NEXT, end):
            yield False
            return
        try:
            taken = self._take(_WRITING, end)
        finally:
            self._set(fcntl.F_UNLCK, _NEXT)
        try:
            yield taken
        finally:
            if taken:
                self._set(fcntl.F_UNLCK, _WRITING)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> bool:
        if self._descriptor is None and hasattr(globals().get("fcntl"), "F_OFD_SETLK"):
            with suppress(OSError):
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
                self._descriptor = os.open(self.path, flags, 0o600)
        return self._descriptor is not None

    def _take(self, byte: int, end: float) -> bool:
        wait = _SHORTEST
        while not self._set(fcntl.F_WRLCK, byte):
            if time.monotonic() > end:
                return False
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST)
        return True

    def _set(self, kind: int, byte: int) -> bool:
        assert self._descriptor is not None
        try:
            fcntl.fcntl(
                self._descriptor, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, kind, os.SEEK_SET, byte, 1, 0)
            )
        except OSError:
            return False
        return True
