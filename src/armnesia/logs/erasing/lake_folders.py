"""The folder of a lake's table on this machine: its files, without those that links lead to."""

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from armnesia.core.errors import UnsupportedError


class LocalFile(NamedTuple):
    """A file below a folder."""

    path: str
    """Relative to the folder, with slashes."""
    size: int
    changed: datetime


def unlinked_files(root: str) -> Iterator[LocalFile]:
    """All files in a folder and those below it; links are neither followed nor listed."""
    for entry in _entries(root):
        if entry.is_file(follow_symlinks=False):
            status = entry.stat(follow_symlinks=False)
            changed = datetime.fromtimestamp(status.st_mtime, UTC)
            yield LocalFile(_relative(entry.path, root), status.st_size, changed)


def unlinked_folders(root: str) -> Iterator[str]:
    """All folders below a folder, also empty ones."""
    for entry in _entries(root):
        if entry.is_dir(follow_symlinks=False):
            yield _relative(entry.path, root)


def has_unreadable_folders(root: str) -> bool:
    """Whether folders in a folder or below it may not be listed, or their files not be looked at."""
    folders = (os.path.join(root, each) for each in (os.curdir, *unlinked_folders(root)))
    return any(_entries_of(each) is None for each in folders)


def refuse_links(location: str, root: str | None, paths: Iterable[str] = ()) -> None:
    """Refuse a table with links below its folder, or in the place of some files.

    The target of a link would keep the rows, and what is in a folder elsewhere may belong to somebody else.
    """
    below = () if root is None else _entries(root)
    if any(entry.is_symlink() for entry in below) or any(map(os.path.islink, paths)):
        raise UnsupportedError(
            f"rows of {location!r} cannot be erased: files or folders of the table are symbolic links, whose"
            " targets would keep the rows, or belong to others; put the files in their places, or remove the"
            " links"
        )


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    """All entries below a folder, except those in folders that may not be read."""
    waiting = [folder]
    while waiting:
        entries = _entries_of(waiting.pop()) or []
        waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        yield from entries


def _entries_of(folder: str) -> list[os.DirEntry[str]] | None:
    """The entries of one folder; None if it may not be read."""
    try:
        with os.scandir(folder) as found:
            entries = list(found)
        os.stat(os.path.join(folder, os.curdir))  # refused if only names may be read
    except FileNotFoundError:
        return []  # it was removed meanwhile, or nothing was written yet
    except PermissionError:
        return None
    return entries


def _relative(path: str, root: str) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")
