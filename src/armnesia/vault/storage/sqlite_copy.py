"""A copy of an SQLite vault to read from for long: private, without a name, and overwritten at the end.

A reader of the vault itself keeps the checkpoint from finishing, and with it the erasure of everyone who is
forgotten meanwhile. A reader of the copy does so only while the copy is made.
"""

import os
import shutil
import sqlite3
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress

from armnesia.core.randomness import secret_bytes

_SPARE = 64 << 20
"""Bytes that a copy must leave free, and a tenth of its size: other processes write to the same disk."""
_WRITING = ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF")  # a copy that fails is discarded
_READING = ("PRAGMA query_only = ON", "PRAGMA temp_store = MEMORY", "PRAGMA cache_size = -32768")
FORMAT_VERSIONS = 18
"""The offset of two bytes in the file's header: 1 and 1, or 2 and 2 if it has a write-ahead log."""
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def has_room(path: str, size: int) -> bool:
    """Whether a copy of this size fits beside the vault."""
    return shutil.disk_usage(os.path.dirname(path)).free >= 1.1 * size + _SPARE


@contextmanager
def private_copy(source: sqlite3.Connection, path: str, timeout: float) -> Iterator[sqlite3.Connection]:
    """Copy one snapshot of the vault at `path` into a file beside it, and lend a connection that reads it.

    The file has lost its name before anything is written to it: a process that is killed leaves none.
    """
    name = f"{path}.{secret_bytes(6).hex()}.copy"
    with ExitStack() as undo:
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        undo.callback(os.close, descriptor)
        try:
            uri = f"file:{urllib.parse.quote(name)}?mode=rw"
            copy, reader = (sqlite3.connect(uri, uri=True, isolation_level=None) for _ in range(2))
        finally:
            os.unlink(name)
        undo.callback(_overwrite, descriptor)
        undo.enter_context(closing(reader))
        with closing(copy):
            for setting in _WRITING:
                copy.execute(setting)
            copy_pages(source, copy, timeout)
        # SQLite would look for a write-ahead log beside a name that no longer exists.
        os.pwrite(descriptor, b"\x01\x01", FORMAT_VERSIONS)
        for setting in _READING:
            reader.execute(setting)
        yield reader


def copy_pages(source: sqlite3.Connection, copy: sqlite3.Connection, timeout: float) -> None:
    """Copy a database in one step, so that it is of one moment; wait for a lock for `timeout` seconds."""
    source.backup(copy, progress=_patience(timeout), sleep=0.05)


def _patience(timeout: float) -> Callable[[int, int, int], None]:
    """Python's own loop would wait for a lock forever."""
    end = time.monotonic() + timeout

    def check(status: int, remaining: int, total: int) -> None:
        if status in _BUSY and time.monotonic() > end:
            raise sqlite3.OperationalError("database is locked")

    return check


def _overwrite(descriptor: int) -> None:
    """Overwrite the file on the disk as far as possible; on a full disk a copying file system may refuse."""
    zeros = bytes(1 << 20)
    with suppress(OSError):
        size = os.fstat(descriptor).st_size
        for offset in range(0, size, len(zeros)):
            os.pwrite(descriptor, zeros[: size - offset], offset)
        os.fsync(descriptor)
