"""The pinned head: the last known head of the ledger, in a file beside the keys.

A database copied back from a backup has a shorter ledger, and may have records of people who were forgotten
since; the pinned head detects that. It is written after each commit, in place and without waiting for the
disk. So a crash may leave it behind the ledger; the next transaction, of any kind, brings it up to date. It
is never ahead of the ledger and never goes back.
"""

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from armnesia.core.errors import (
    CommittedUnpinnedError,
    InvalidInputError,
    UnpinnedError,
    VaultError,
    refused_by_system,
)
from armnesia.core.files import atomic_write
from armnesia.vault.ledger.ledger import Head

with suppress(ImportError):  # absent on Windows
    import fcntl

_LENGTH = 128
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)  # both absent on Windows
_NO_WAITING = getattr(os, "O_NONBLOCK", 0)


@dataclass(frozen=True)
class PinnedHead:
    """The file that holds the head."""

    path: Path
    _known: tuple[bytes, Head] | None = field(default=None, init=False, repr=False, compare=False)
    """The line that this process last wrote or read, and its head: a cache."""

    def write(self, head: Head, *, committed: bool = False) -> None:
        """Pin this head unless a later one is pinned: processes may write in any order.

        `committed`: it is that of a change which was committed just now, and a failure says so.
        """
        line = (str(head).ljust(_LENGTH - 1) + "\n").encode()
        try:
            try:
                descriptor = self._open(os.O_RDWR)
            except FileNotFoundError:
                with suppress(FileExistsError):  # another process has pinned one meanwhile
                    with atomic_write(self.path, mode=0o600) as temporary:
                        temporary.write_bytes(line)
                    return
                descriptor = self._open(os.O_RDWR)
            try:
                if "fcntl" in globals():  # locked against other writers until it is closed
                    fcntl.flock(descriptor, fcntl.LOCK_EX)
                if self._parse(os.pread(descriptor, _LENGTH, 0)).sequence < head.sequence:
                    os.pwrite(descriptor, line, 0)
                    self.__dict__["_known"] = (line, head)
            finally:
                os.close(descriptor)
        except (OSError, VaultError) as error:
            said = str(error)
            if isinstance(error, OSError):
                said = f"the head could not be pinned in {str(self.path)!r}: {error.strerror}"
            if committed:
                raise CommittedUnpinnedError(f"{said}; the change to the vault is committed") from None
            if isinstance(error, OSError):
                raise UnpinnedError(said) from None
            raise

    @property
    def file_number(self) -> int | None:
        """The number that the file system gives the file; None if there is none."""
        try:
            return self.path.stat().st_ino
        except OSError:
            return None

    def read(self) -> Head | None:
        """The pinned head; None if none was pinned yet."""
        try:
            descriptor = self._open(os.O_RDONLY)  # fast: every transaction begins with this
            try:
                return self._parse(os.read(descriptor, _LENGTH))
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise refused_by_system(
                error, f"the pinned head {str(self.path)!r} cannot be read: {error.strerror}"
            ) from None

    def _open(self, flags: int) -> int:
        """Open the file; refuse what is no plain file, and what others could change."""
        try:
            # O_NONBLOCK, because opening a pipe would wait for somebody to write into it.
            descriptor = os.open(self.path, flags | _NO_LINK | _NO_WAITING)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise self._refusal("must be a plain file, not a link, a folder or a device") from None
            raise
        status = os.fstat(descriptor)
        if stat.S_ISREG(status.st_mode) and not (os.name == "posix" and status.st_mode & 0o022):
            return descriptor
        os.close(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise self._refusal("must be a plain file, not a link, a folder or a device")
        mode = stat.S_IMODE(status.st_mode)
        raise self._refusal(f"can be changed by other users (mode {mode:04o}): chmod 600 it")

    def _parse(self, line: bytes) -> Head:
        if self._known is not None and self._known[0] == line:
            return self._known[1]
        try:
            head = Head.parse(line.decode("ascii", errors="replace"))
        except InvalidInputError as error:
            raise self._refusal("is empty" if not line else f"has been changed: {error}") from None
        self.__dict__["_known"] = (line, head)
        return head

    def _refusal(self, what: str) -> VaultError:
        return VaultError(
            f"the pinned head {str(self.path)!r} {what}; if the file is lost, remove it and run armnesia"
            " verify --head with a head that you kept elsewhere"
        )
