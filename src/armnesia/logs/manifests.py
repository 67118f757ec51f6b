"""What was counted of a source, and whether what came since can be added to it.

Each kind of source has a manifest of its own: files know theirs by size and time of change, a table of a lake
by its version, a table of a database by the highest value of a column that grows.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from armnesia.core.errors import ChangedSourceError, InvalidInputError
from armnesia.core.files import Stamp, stamp_if_there
from armnesia.core.messages import counted

OLDER_VERSION = "it was counted by an older version of armnesia"


class Manifest(ABC):
    """What was counted of a source."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON."""

    @property
    @abstractmethod
    def parts(self) -> frozenset[str]:
        """What must not be counted a second time by way of another source: files, or a table."""

    @property
    def names_its_rows(self) -> bool:
        """Whether it still tells which rows were counted after some of them were erased."""
        return True

    @property
    def named_files(self) -> tuple[str, ...] | None:
        """The files by path, if the source is what a path or glob stands for; None of tables."""
        return None

    @property
    def files_by_name(self) -> tuple[str, ...] | None:
        """The files as `Changes.added` names them; None if there are none, as of a table of a database."""
        return self.named_files

    def files_to_reopen(self) -> tuple[str, ...] | None:
        """The files to be opened in order to open no others; None if the source is opened as a whole.

        Refused with `ChangedSourceError` if one has changed or is gone.
        """
        return None

    def is_table_of(self, other: "Manifest") -> bool:
        """Whether both are of the same table, which has an identity of its own, by whatever name."""
        return False

    def is_copy_of(self, other: "Manifest") -> bool:
        """Whether both have the identity of one table, at two places."""
        return False

    def file_like_one_of(self, other: "Manifest") -> str | None:
        """The first file that has, elsewhere, the name, size and time of change of a file of the other."""
        return None

    def moved_to(self, now: "Manifest") -> "Manifest | None":
        """What was counted, at the place of another manifest; None if that does not show the same there."""
        return None


@dataclass(frozen=True)
class Changes:
    """What has changed at a source since a manifest of it."""

    added: tuple[str, ...] = ()
    """The files whose rows are new, or the table of a database, if it has new rows."""
    recount: str | None = None
    """Why all rows have to be counted again; None if those that were counted are as they were."""

    @property
    def kind(self) -> str:
        """`nothing`, `added` or `recount`."""
        return "recount" if self.recount else "added" if self.added else "nothing"


@dataclass(frozen=True)
class FileManifest(Manifest):
    """Files by path, size in bytes and time of change in nanoseconds.

    >>> counted = FileManifest((("/logs/a.csv", 812, 5), ("/logs/b.csv", 80, 5)))
    >>> FileManifest.from_dict(counted.to_dict()) == counted
    True
    >>> counted.changes_to(FileManifest((*counted.files, ("/logs/c.csv", 7, 9)))).added
    ('/logs/c.csv',)
    >>> counted.changes_to(FileManifest((("/logs/a.csv", 812, 6),))).recount
    "file '/logs/a.csv' has changed, and 1 more file has changed or is gone"
    >>> FileManifest((*counted.files, ("/logs/c.csv", 7, 9))).changes_to(FileManifest(())).recount
    "file '/logs/a.csv' is no longer there, and 2 more files have changed or are gone"
    """

    files: tuple[tuple[str, int, int], ...]

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths, in order."""
        return tuple(path for path, _, _ in self.files)

    @property
    def parts(self) -> frozenset[str]:
        """The files, whatever path leads to them."""
        return real_paths(self.paths)

    def file_like_one_of(self, other: Manifest) -> str | None:
        """The first file that looks like a copy: `mv`, `cp -p` and `rsync -t` keep the time of change.

        >>> counted = FileManifest((("/logs/a.csv", 812, 5),))
        >>> FileManifest((("/logs/a.csv", 812, 5), ("/moved/a.csv", 812, 5))).file_like_one_of(counted)
        '/moved/a.csv'
        """
        if not isinstance(other, FileManifest):
            return None
        known, paths = set(map(_without_folder, other.files)), set(other.paths)
        alike = (each[0] for each in self.files if each[0] not in paths and _without_folder(each) in known)
        return next(alike, None)

    def moved_to(self, now: Manifest) -> "FileManifest | None":
        """The same files below another folder, if all are there with their sizes and times of change.

        >>> counted = FileManifest((("/logs/day=1/a.csv", 812, 5), ("/logs/day=2/a.csv", 80, 5)))
        >>> now = (("/new/day=1/a.csv", 812, 5), ("/new/day=2/a.csv", 80, 5), ("/new/b.csv", 7, 9))
        >>> counted.moved_to(FileManifest(now)).paths
        ('/new/day=1/a.csv', '/new/day=2/a.csv')
        """
        if not isinstance(now, FileManifest) or not self.files:
            return None
        folder, there = _folder_of(self.paths), set(now.files)
        inner = [(os.path.relpath(path, folder), size, changed) for path, size, changed in self.files]
        ending = os.sep + inner[0][0]
        for root in (path.removesuffix(ending) for path in now.paths if path.endswith(ending)):
            files = tuple((os.path.join(root, path), size, changed) for path, size, changed in inner)
            if there.issuperset(files):
                return FileManifest(files)
        return None

    def changes_to(self, now: "FileManifest") -> Changes:
        """What has changed between this manifest and a later one."""
        before, after = {each[0]: each for each in self.files}, {each[0]: each for each in now.files}
        changed = [path for path, each in before.items() if after.get(path) != each]
        if not changed:
            return Changes(tuple(path for path in after if path not in before))
        others = len(changed) - 1
        words = "more file has changed or is gone", "more files have changed or are gone"
        more = f", and {counted(others, *words)}" if others else ""
        what = "has changed" if changed[0] in after else "is no longer there"
        return Changes(recount=f"file {changed[0]!r} {what}{more}")

    @property
    def named_files(self) -> tuple[str, ...]:
        """The paths."""
        return self.paths

    def files_to_reopen(self) -> tuple[str, ...] | None:
        """The paths, if all files are as they were; None if none is there: opening the source says so."""
        now = self.now()
        if not now.files:
            return None
        changes = self.changes_to(now)
        if changes.recount:
            raise ChangedSourceError(changes.recount)
        return self.paths

    def with_stamps(self, stamp_of: Mapping[str, Stamp]) -> "FileManifest":
        """The same files, of which some, named without links, have other stamps."""
        files = ((path, *stamp_of.get(os.path.realpath(path), stamp)) for path, *stamp in self.files)
        return FileManifest(tuple((path, size, changed) for path, size, changed in files))

    def now(self) -> "FileManifest":
        """The same files as they are now, without those that are gone."""
        found = []
        for path in self.paths:
            stamp = stamp_if_there(path)
            if stamp is not None:
                found.append((path, *stamp))
        return FileManifest(tuple(found))

    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON."""
        return {"files": [list(each) for each in self.files]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "FileManifest":
        """Read what `to_dict` has written."""
        try:
            return cls(tuple((str(path), int(size), int(time)) for path, size, time in values["files"]))
        except (LookupError, TypeError, ValueError):
            raise InvalidInputError(
                f"a manifest of files must have files [[path, size, time], …]; got {sorted(values)}"
            ) from None


@dataclass(frozen=True)
class TableRange(Manifest):
    """The rows of a table of a database up to a value of the column by which later rows are greater.

    >>> TableRange.from_dict(TableRange("sqlite:///logs.db#clicks", "id", "17", 40).to_dict()).highest
    '17'
    """

    table: str
    """By the name that the database itself has for it, however it was spelled."""
    column: str
    highest: str | int | None
    """As JSON holds it, or as text that the database reads; None if the table had no rows."""
    n_rows: int
    """How many rows there are up to it, with those of forgotten people."""
    on_server: str | None = None
    """The same table by what its server calls itself, whatever address leads there, if it does."""

    @property
    def parts(self) -> frozenset[str]:
        """The table."""
        return frozenset(filter(None, [self.table, self.on_server]))

    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON."""
        return dict(vars(self))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TableRange":
        """Read what `to_dict` has written."""
        try:
            named = values["table"], values["column"], values["highest"]
            if not values.keys() >= {"n_rows", "on_server"}:  # it names the table as somebody spelled it
                raise ChangedSourceError(OLDER_VERSION)
            return cls(*named, int(values["n_rows"]), values["on_server"])
        except ChangedSourceError:
            raise
        except (LookupError, TypeError, ValueError):
            raise InvalidInputError(
                "a manifest of a table must have table, column, highest, n_rows and on_server; got"
                f" {sorted(values)}"
            ) from None


def _without_folder(file: tuple[str, int, int]) -> tuple[str, int, int]:
    path, size, changed = file
    return os.path.basename(path), size, changed


def _folder_of(paths: Iterable[str]) -> str:
    """The folder of all files, without folders that hold values of a partition, which must stay the same."""
    folder = os.path.commonpath(map(os.path.dirname, paths))
    while "=" in folder:
        folder = os.path.dirname(folder)
    return folder


def real_paths(paths: Iterable[str]) -> frozenset[str]:
    """The files that paths lead to, without links."""
    every = list(paths)
    folders = {folder: os.path.realpath(folder) for folder in set(map(os.path.dirname, every))}
    return frozenset(
        os.path.realpath(os.path.join(folders[os.path.dirname(path)], os.path.basename(path)))
        for path in every
    )


def source_name(description: Mapping[str, Any]) -> str:
    """Name a source by its location and table.

    >>> source_name({"kind": "table", "location": "sqlite:///logs.db", "table": "clicks", "columns": {}})
    'sqlite:///logs.db#clicks'
    """
    table = description.get("table")
    return str(description["location"]) + ("" if table is None else f"#{table}")
