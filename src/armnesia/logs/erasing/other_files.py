"""Files beside those of a log, which readers pass by and which may hold the same rows; and names in paths.

A source that is a folder is all that lies in it. A file or glob stands for the files that it names: others of
their folders may be sources of their own, unless no path would be read by their names.
"""

import glob
import os
import re
from collections.abc import Iterator, Sequence

from armnesia.core.files import open_plain
from armnesia.logs.erasing.names_in_texts import named_in
from armnesia.logs.erasing.parquet_metadata import DESCRIBING
from armnesia.logs.erasing.people import People
from armnesia.logs.erasing.staged_files import is_staged
from armnesia.logs.files.folders import is_left_out
from armnesia.logs.files.formats import FORMATS

_OTHERS = (
    "other Parquet files in the folders of the source, such as hidden files, backups and files of another"
    " suffix, may hold rows; remove them"
)
_NAMED = "names of files or folders may name people; rename them"
_MAGIC = (b"PAR1", b"PARE")
"""How Parquet files begin and end; the second, if their footer is encrypted."""
_SUFFIX = re.compile(r"\.(parquet|parq|pq)([^a-z0-9]|$)", re.IGNORECASE)
_CHECKSUMS = ".crc"


def other_parquet_files(location: str, paths: Sequence[str]) -> Iterator[str]:
    """A sentence if there are Parquet files, by content or name, that are not among those of a source."""
    own = {os.path.realpath(path) for path in paths}
    found = (
        (path for path, is_folder in _below(location) if not is_folder)
        if os.path.isdir(location)
        else _unnamed({os.path.dirname(path) for path in own})
    )
    if any(os.path.realpath(path) not in own and _may_hold_rows(path) for path in found):
        yield _OTHERS


def _below(folder: str) -> Iterator[tuple[str, bool]]:
    """All that is below a folder, also where links lead to, and whether each is a folder.

    One that cannot be read also counts as a file.
    """
    waiting, seen = [folder], set[str]()
    while waiting:
        inner = os.path.realpath(waiting.pop())
        if inner in seen:
            continue
        seen.add(inner)
        try:
            with os.scandir(inner) as entries:
                for entry in entries:
                    is_folder = entry.is_dir()
                    if is_folder:
                        waiting.append(entry.path)
                    yield entry.path, is_folder
        except OSError:
            yield inner, False


def _unnamed(folders: set[str]) -> Iterator[str]:
    """The files in some folders that are no sources by their names, and not made for another source."""
    for folder in folders:
        try:
            names = os.listdir(folder)
        except OSError:
            yield folder
            continue
        for name in names:
            is_source = name.lower().endswith(tuple(FORMATS)) and not is_left_out(name)
            path = os.path.join(folder, name)
            if not is_source and not is_staged(name) and not os.path.isdir(path):
                yield path


def _may_hold_rows(path: str) -> bool:
    """Whether a file is Parquet by its first or last bytes, or by its name; also if it cannot be read."""
    name = os.path.basename(path)
    if name in DESCRIBING:  # these are looked at for themselves
        return False
    try:
        with open_plain(path) as file:
            first, size = file.read(4), file.seek(0, os.SEEK_END)
            file.seek(max(size - 4, 0))
            last = file.read(4)
    except FileNotFoundError:  # a link that leads nowhere
        return False
    except OSError:
        return not _is_special(path)
    if first in _MAGIC or last in _MAGIC:
        return True
    return bool(size and _SUFFIX.search(name)) and not name.endswith(_CHECKSUMS)


def _is_special(path: str) -> bool:
    """Whether it is there, and is neither a file nor a folder, but a device, a socket or a pipe."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def named_in_paths(location: str, paths: Sequence[str], people: People) -> Iterator[str]:
    """A sentence if the names of files, or of folders below that of the source, name people."""
    root = location if os.path.isdir(location) else os.path.dirname(location)
    while glob.has_magic(root):
        root = os.path.dirname(root)
    parts = {part for path in paths for part in os.path.relpath(path, root).split(os.sep)}
    if os.path.isdir(location):
        parts |= {os.path.basename(path) for path, _ in _below(location)}
    values = {part.partition("=")[2] for part in parts}
    stems = {stem for part in parts for stem in (part.partition(".")[0], os.path.splitext(part)[0])}
    if named_in(parts | values | stems, people):
        yield _NAMED
