"""The pinned head: how long the ledger was when this machine last saw it, kept beside the keys.

A database that is put back from a backup has a shorter ledger, and people in it who were forgotten since.
The pin notices. It is written after a commit, in place and without waiting for the disk: it may lag behind,
never run ahead, and lagging only means that it notices a little less. It never goes back.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault.ledger.ledger import Head

with suppress(ImportError):  # there is none on Windows
    import fcntl

_LENGTH = 128


class Pin:
    """The file that holds the head."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, head: Head) -> None:
        """Pin this head, unless a later one is pinned: processes may come to this in another order."""
        try:
            with self._locked() as descriptor:
                pinned = self._meaning(os.pread(descriptor, _LENGTH, 0))
                if pinned is None or pinned.sequence < head.sequence:
                    line = str(head).ljust(_LENGTH - 1) + "\n"
                    os.pwrite(descriptor, line.encode(), 0)
        except OSError as error:
            raise VaultError(
                f"the head could not be pinned in {str(self.path)!r}: {error.strerror}; the vault itself is"
                " changed as asked"
            ) from None

    def read(self) -> Head | None:
        """The pinned head; None where none was pinned yet."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY)  # every transaction begins with this
            try:
                return self._meaning(os.read(descriptor, _LENGTH))
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise VaultError(f"the pinned head {str(self.path)!r} cannot be read: {error.strerror}") from None

    def _meaning(self, line: bytes) -> Head | None:
        if not line:  # made, but there was no room to write it
            return None
        try:
            return Head.parse(line.decode("ascii", errors="replace"))
        except InvalidInputError as error:
            raise VaultError(f"the pinned head {str(self.path)!r} has been changed: {error}") from None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The open file, which no other process writes meanwhile; closing it lets go of the lock."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if "fcntl" in globals():
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)
