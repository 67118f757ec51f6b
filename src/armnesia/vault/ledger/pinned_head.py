"""The pinned head: the last known head of the ledger, in a file beside the keys.

A database copied back from a backup has a shorter ledger, and may have records of people who were forgotten
since; the pinned head detects that. It is written after each commit, in place and without waiting for the
disk. So it may lag behind the ledger, and then detects less, but it is never ahead of it and never goes back.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault.ledger.ledger import Head

with suppress(ImportError):  # absent on Windows
    import fcntl

_LENGTH = 128


@dataclass(frozen=True)
class PinnedHead:
    """The file that holds the head."""

    path: Path

    def write(self, head: Head) -> None:
        """Pin this head unless a later one is pinned: processes may write in any order."""
        try:
            with self._locked() as descriptor:
                pinned = self._parse(os.pread(descriptor, _LENGTH, 0))
                if pinned is None or pinned.sequence < head.sequence:
                    line = str(head).ljust(_LENGTH - 1) + "\n"
                    os.pwrite(descriptor, line.encode(), 0)
        except OSError as error:
            raise VaultError(
                f"the head could not be pinned in {str(self.path)!r}: {error.strerror}; the change to the"
                " vault is committed"
            ) from None

    def read(self) -> Head | None:
        """The pinned head; None if none was pinned yet."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY)  # fast: every transaction begins with this
            try:
                return self._parse(os.read(descriptor, _LENGTH))
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise VaultError(f"the pinned head {str(self.path)!r} cannot be read: {error.strerror}") from None

    def _parse(self, line: bytes) -> Head | None:
        if not line:  # created, but the disk was full when it was written
            return None
        try:
            return Head.parse(line.decode("ascii", errors="replace"))
        except InvalidInputError as error:
            raise VaultError(f"the pinned head {str(self.path)!r} has been changed: {error}") from None

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The open file, locked against other writers until it is closed."""
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if "fcntl" in globals():
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)
