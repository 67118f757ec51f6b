"""Folders of files: what lies below one, and whether it belongs to a table of a lake."""

import os
from collections.abc import Iterator, Mapping, Sequence

from armnesia.core.errors import InvalidLogError

DELTA, ICEBERG, HUDI = "a Delta", "an Iceberg", "a Hudi"
_INSTEAD = {
    DELTA: "delta:PATH, the folder of the table",
    ICEBERG: "iceberg:CATALOG.NAMESPACE.TABLE, or iceberg: and the path of its last metadata.json",
    HUDI: "spark: and the name of the table",
}
_ICEBERG_METADATA = (".metadata.json", ".metadata.json.gz")


def files_below(folder: str, suffixes: Sequence[str]) -> list[str]:
    """The files with these suffixes in a folder and below it, in any order.

    What engines take for their own is left out: names that begin with a dot or an underscore, except folders
    of a partition (`_day=1`). Links are followed; what is reached twice would count twice, and is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("a.csv", "_b.csv", "c.txt"):
    ...         _ = open(os.path.join(folder, name), "w").close()
    ...     [os.path.basename(path) for path in files_below(folder, [".csv"])]
    ['a.csv']
    """
    waiting, seen, links = [folder], dict[tuple[int, int], str](), dict[str, str]()
    found: list[str] = []
    while waiting:
        inner = waiting.pop()
        try:
            status = os.stat(inner)
            with os.scandir(inner) as listed:
                entries = [entry for entry in listed if not is_left_out(entry.name)]
        except OSError as error:
            raise InvalidLogError(f"folder {inner!r} cannot be read: {error.strerror}") from None
        before = seen.setdefault((status.st_dev, status.st_ino), inner)
        if before != inner:
            raise _read_twice(f"folder {folder!r}", inner, before, "folder")
        for entry in entries:
            if entry.is_dir():
                waiting.append(entry.path)
            elif entry.name.lower().endswith(tuple(suffixes)) and entry.is_file():
                found.append(entry.path)
                if entry.is_symlink():
                    links[entry.path] = os.path.realpath(entry.path)
    if links:  # what most folders have none of costs nothing
        _refuse_linked_twice(f"folder {folder!r}", found, links)
    return found


def refuse_same_files(pattern: str, found: Sequence[str]) -> None:
    """Refuse files of a glob of which two are one, by way of links to files or folders."""
    links = {path: os.path.realpath(path) for path in found if os.path.islink(path)}
    _refuse_linked_twice(f"glob {pattern!r}", found, links)


def folders_below(folder: str) -> Iterator[str]:
    """A folder and those below it in which `files_below` looks for files.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.makedirs(os.path.join(folder, "day=1"))
    ...     os.makedirs(os.path.join(folder, ".hidden"))
    ...     [os.path.relpath(each, folder) for each in folders_below(folder)]
    ['.', 'day=1']
    """
    for inner, folders, _ in os.walk(folder, followlinks=True):
        folders[:] = [name for name in folders if not is_left_out(name)]
        yield inner


def _refuse_linked_twice(shown: str, found: Sequence[str], links: Mapping[str, str]) -> None:
    """Refuse a link to a file that is found too, or that another link leads to."""
    inner = {os.path.dirname(path) for path in found}
    real = {each: os.path.realpath(each) for each in inner}
    first: dict[str, str] = {}
    for path in found:
        leads_to = links.get(path) or os.path.join(real[os.path.dirname(path)], os.path.basename(path))
        before = first.setdefault(leads_to, path)
        if before != path:
            raise _read_twice(shown, path, before, "file")


def _read_twice(shown: str, path: str, before: str, what: str) -> InvalidLogError:
    return InvalidLogError(
        f"{shown} has {path!r} and {before!r} in it, which are the same {what}: its rows would be read twice;"
        " remove the link, or give the files by a glob that matches only one of them"
    )


def is_left_out(name: str) -> bool:
    """Whether a name is one of those that engines give to files of their own; the rule is Spark's.

    >>> [name for name in (".crc", "_SUCCESS", "_day=1", "part-0.parquet") if is_left_out(name)]
    ['.crc', '_SUCCESS']
    """
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def refuse_tables(paths: Sequence[str]) -> None:
    """Refuse files in the folder of a table of a lake, which also hold rows that the table no longer has.

    Looked at is each folder once, whatever the number of its files.
    """
    checked: set[str] = set()
    for path in paths:
        _refuse_folder(os.path.dirname(path), checked)
        if os.path.islink(path):
            _refuse_folder(os.path.dirname(os.path.realpath(path)), checked)


def _refuse_folder(folder: str, checked: set[str]) -> None:
    """Look at a folder and those that it is in, also where links lead to."""
    while folder not in checked:
        checked.add(folder)
        if os.path.islink(folder):
            _refuse_folder(os.path.realpath(folder), checked)
        kind = kind_of_table(folder)
        if kind is not None:
            raise InvalidLogError(
                f"the files in {folder!r} belong to {kind} table, and also hold rows that the table no longer"
                f" has; give {_INSTEAD[kind]}"
            )
        folder = os.path.dirname(folder)


def kind_of_table(folder: str) -> str | None:
    """Which kind of table of a lake has its files in a folder; None if none does.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.mkdir(os.path.join(folder, "_delta_log"))
    ...     kind_of_table(folder)
    'a Delta'
    """
    if os.path.isdir(os.path.join(folder, "_delta_log")):
        return DELTA
    if os.path.isfile(os.path.join(folder, ".hoodie", "hoodie.properties")):
        return HUDI
    try:
        inside = os.listdir(os.path.join(folder, "metadata"))
    except OSError:
        return None
    return ICEBERG if any(name.endswith(_ICEBERG_METADATA) for name in inside) else None
