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
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                entries = list(found)
        except FileNotFoundError:
            continue  # it was removed meanwhile, or nothing was written yet
        waiting += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
        yield from entries


def _relative(path: str, root: str) -> str:
    return os.path.relpath(path, root).replace(os.sep, "/")
