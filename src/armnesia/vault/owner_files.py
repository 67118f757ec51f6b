"""Small files that only their owner may read, written whole or not at all."""

import os
import stat
from os import PathLike
from pathlib import Path

from armnesia.errors import VaultError
from armnesia.randomness import secret_bytes

_LARGEST = 1 << 24


def read(path: str | PathLike[str], *, largest: int = _LARGEST) -> str:
    """The text of a file; refused if others may read or change it.

    >>> read("no-such-file")
    Traceback (most recent call last):
    armnesia.errors.VaultError: no-such-file cannot be read: No such file or directory
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            # The open file is asked, not the path: the path may be exchanged in between.
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(largest + 1)
    except OSError as error:
        raise VaultError(f"{path} cannot be read: {error.strerror}") from None
    if os.name == "posix" and mode & 0o077:
        raise VaultError(f"{path} is open to others (mode {mode:04o}); close it with: chmod 600 {path}")
    try:
        if len(data) <= largest:
            return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    raise VaultError(f"{path} must be text in UTF-8 of at most {largest} bytes")


def write(path: str | PathLike[str], text: str, *, replace: bool = False) -> None:
    """Write a file of mode 0600 in one step; an existing one is refused, or with `replace` exchanged.

    The text is on the disk under another name before the file appears under its own. A crash leaves the old
    file or the new one, never half of one.

    >>> write("no-such-folder/file", "text")
    Traceback (most recent call last):
    armnesia.errors.VaultError: no-such-folder/file cannot be written: No such file or directory
    """
    path = Path(path)
    beside = path.with_name(f"{path.name}.{secret_bytes(6).hex()}.new")
    try:
        try:
            with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(text.encode("utf-8"))
                file.flush()
                os.fsync(file.fileno())
            if replace:
                beside.replace(path)
            else:
                os.link(beside, path)  # unlike a rename, it fails where a file is
        finally:
            beside.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except FileExistsError:
        raise VaultError(f"{path} exists already; nothing was written") from None
    except OSError as error:
        raise VaultError(f"{path} cannot be written: {error.strerror}") from None


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
