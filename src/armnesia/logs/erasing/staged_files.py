"""New Parquet files beside the old ones, before they take their places; and those that nobody will put there.

The name of a staged file tells which file it is for, and by a token, of which plan it is.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from glob import glob

from armnesia.logs.files.folders import folders_below

_STAGED = re.compile(r"\.armnesia-([0-9a-f]{16})-[0-9a-f]{24}")


def staged_path(path: str, token: str) -> str:
    """Beside the file, so that it can take its place in one step.

    >>> staged_path("/logs/a.parquet", "5f2a")
    '/logs/.armnesia-cb8eb0d4cd41f22d-5f2a'
    """
    return os.path.join(os.path.dirname(path), f".armnesia-{_known_by(os.path.basename(path))}-{token}")


def is_staged(name: str) -> bool:
    """Whether a file has the name of a staged one."""
    return _STAGED.fullmatch(name) is not None


def leftovers(location: str, paths: tuple[str, ...]) -> Iterator[str]:
    """Staged files for the files of a source, which are given, or for files that are no longer there.

    Looked at is every folder in which the source may have had files. A staged file for another file that is
    there is left alone: a plan of another source may know it.
    """
    own = {os.path.realpath(path) for path in paths}
    for folder in sorted({*_folders_of(location), *map(os.path.dirname, own)}):
        names = os.listdir(folder)
        staged = {name: found[1] for name in names if (found := _STAGED.fullmatch(name))}
        if staged:
            real = {name: os.path.realpath(os.path.join(folder, name)) for name in names}
            others = {_known_by(name) for name in names if real[name] not in own}
            yield from (os.path.join(folder, name) for name, known in staged.items() if known not in others)


def _folders_of(location: str) -> Iterator[str]:
    """Folders in which a path, folder or glob finds files, also those that have none now."""
    if os.path.isdir(location):
        yield from map(os.path.realpath, folders_below(location))
    elif not os.path.isfile(location):
        found = {*glob(os.path.dirname(location), recursive=True), *glob(location, recursive=True)}
        yield from map(os.path.realpath, filter(os.path.isdir, found))


def _known_by(name: str) -> str:
    return hashlib.sha256(name.encode(errors="surrogateescape")).hexdigest()[:16]
