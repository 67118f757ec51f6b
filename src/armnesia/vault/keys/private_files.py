"""Files that only their owner may read, written whole or not at all."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path

from armnesia.core.errors import VaultError
from armnesia.core.randomness import secret_bytes

_LARGEST = 1 << 24
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}


def read(path: str | PathLike[str], *, largest: int = _LARGEST) -> str:
    """The text of a file; refused if others may read or change it.

    >>> read("no-such-file")
    Traceback (most recent call last):
    armnesia.core.errors.VaultError: no-such-file cannot be read: No such file or directory
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

    >>> write("no-such-folder/file", "text")
    Traceback (most recent call last):
    armnesia.core.errors.VaultError: no-such-folder/file cannot be written: No such file or directory
    """
    with appearing(path, replace=replace) as beside:
        beside.write_bytes(text.encode("utf-8"))


@contextmanager
def appearing(path: str | PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """Let a file of mode 0600 appear in one step: the block fills an empty one that has another name.

    It is on the disk before it takes its own name. A crash leaves the old file or the new one, never half of
    one; if the process is killed, what it had written so far stays beside it, as `NAME.….new`.
    """
    path = Path(path)
    try:
        if not replace and os.path.lexists(path):  # found out before the work, and again after it
            raise FileExistsError
        if not path.name:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        beside = path.with_name(f"{path.name}.{secret_bytes(6).hex()}.new")
        os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            yield beside
            _sync(beside)
            if replace:
                beside.replace(path)
            else:
                _name_unless_taken(beside, path)
        finally:
            beside.unlink(missing_ok=True)
        _sync(path.parent)
    except FileExistsError:
        raise VaultError(f"{path} exists already; nothing was written") from None
    except OSError as error:
        raise VaultError(f"{path} cannot be written: {error.strerror}") from None


def _name_unless_taken(beside: Path, path: Path) -> None:
    """Give a file its name; unlike a rename, it fails where a file is."""
    try:
        os.link(beside, path)
        return
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
    # A disk without links, as many that are carried about: the name is taken by an empty file first.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        beside.replace(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def _sync(path: Path) -> None:
    """Bring a file, or the names in a folder, onto the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
