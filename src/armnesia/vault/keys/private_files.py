"""Files and folders that only their owner can read; files are written completely or not at all."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO

from armnesia.core import files
from armnesia.core.errors import VaultError, refused_by_system

_LARGEST = 1 << 24


def read(path: str | PathLike[str]) -> str:
    """Read a text file; refuse one that other users can read or change.

    >>> read("no-such-file")
    Traceback (most recent call last):
    armnesia.core.errors.VaultError: no-such-file cannot be read: No such file or directory
    """
    with opened(path) as file:
        try:
            data = file.read(_LARGEST + 1)
        except OSError as error:
            raise _unreadable(path, error) from None
    try:
        if len(data) <= _LARGEST:
            return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    raise VaultError(f"{path} must be text in UTF-8 of at most {_LARGEST} bytes")


@contextmanager
def opened(path: str | PathLike[str], *, update: bool = False) -> Iterator[BinaryIO]:
    """Open a file for reading, or also for writing; refuse one that other users can read or change."""
    try:
        file = files.open_plain(path, update=update)
    except OSError as error:
        raise _unreadable(path, error) from None
    with file:
        # The mode of the open file, not of the path: the path may be replaced in between.
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        if os.name == "posix" and mode & 0o077:
            raise VaultError(
                f"{path} is accessible to other users (mode {mode:04o}); restrict it with: chmod 600 {path}"
            )
        yield file


def _unreadable(path: str | PathLike[str], error: OSError) -> VaultError:
    return refused_by_system(error, f"{path} cannot be read: {error.strerror}")


def write(path: str | PathLike[str], text: str, *, replace: bool = False) -> None:
    """Write a file of mode 0600 in one step; an existing one is refused, or replaced with `replace`.

    >>> write("no-such-folder/file", "text")
    Traceback (most recent call last):
    armnesia.core.errors.VaultError: no-such-folder/file cannot be written: No such file or directory
    """
    with atomic_write(path, replace=replace) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


@contextmanager
def atomic_write(path: str | PathLike[str], *, replace: bool = False) -> Iterator[Path]:
    """As `core.files.atomic_write`, with a file of mode 0600; an OSError becomes a VaultError."""
    path = Path(path)
    try:
        with files.atomic_write(path, mode=0o600, replace=replace) as temporary:
            yield temporary
    except FileExistsError:
        raise VaultError(f"{path} exists already; nothing was written") from None
    except OSError as error:
        raise VaultError(f"{path} cannot be written: {error.strerror}") from None


def make_folder(path: str | PathLike[str]) -> None:
    """Make a folder that only its owner can read; one that was checked may be there, empty, in any mode."""
    try:
        Path(path).mkdir(mode=0o700, exist_ok=True)
        Path(path).chmod(0o700)
    except OSError as error:
        raise VaultError(f"the folder {path} cannot be made for its owner alone: {error.strerror}") from None
