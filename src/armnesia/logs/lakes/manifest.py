"""What was counted of a table, and whether what came since can be added to it.

A log that is counted once need not be counted again as long as files are only appended. Compaction writes
the same rows into other files: nothing is new. After anything else, the table has to be counted again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple, TypeGuard

from armnesia.core.errors import ChangedSourceError, InvalidInputError
from armnesia.logs.lakes.snapshot import DataFile, TableSnapshot, digest_of
from armnesia.logs.manifests import OLDER_VERSION, Changes, Manifest, real_paths


class CountedFile(NamedTuple):
    """A data file of a table, without anything about its rows."""

    path: str
    """As the table's log names it."""
    size: int
    removed: str = ""
    """A digest of the positions of its removed rows; empty if there are none."""

    @classmethod
    def of(cls, file: DataFile) -> "CountedFile":
        """Take what is held of a data file."""
        return cls(file.path, file.size, digest_of(file.removed) if file.removed else "")


@dataclass(frozen=True)
class LakeManifest(Manifest):
    """Which table, which version of it and which files were counted.

    >>> manifest = LakeManifest("delta", "1f5e", 3, "90ab", (CountedFile("part-0.parquet", 812),))
    >>> LakeManifest.from_dict(manifest.to_dict()) == manifest
    True
    """

    kind: str
    """delta or iceberg."""
    table_id: str
    version: int | None
    """The version of a Delta table; the id of a snapshot of an Iceberg table, None before the first."""
    schema: str
    """A digest of the columns and their types."""
    files: tuple[CountedFile, ...]
    places: tuple[str, ...] = ()
    """The paths of the files, as far as they are on this machine."""
    root: str = ""
    """The folder of the table: a copy of a Delta table has the same id elsewhere."""

    @classmethod
    def of(cls, snapshot: TableSnapshot) -> "LakeManifest":
        """All files of a version of a table."""
        files = tuple(sorted(map(CountedFile.of, snapshot.files)))
        places = tuple(sorted(each.location for each in snapshot.files)) if snapshot.storage is None else ()
        named = snapshot.kind, snapshot.table_id, snapshot.version, snapshot.schema
        return cls(*named, files, places, snapshot.root)

    @property
    def parts(self) -> frozenset[str]:
        """The table, and its files, which may be counted without it."""
        return frozenset([f"{self.kind}:{self.table_id}"]) | real_paths(self.places)

    @property
    def names_its_rows(self) -> bool:
        """An erasure writes rows to other files, and only the last version is known afterwards."""
        return False

    @property
    def files_by_name(self) -> tuple[str, ...]:
        """The paths as the table's log names them."""
        return tuple(file.path for file in self.files)

    def is_table_of(self, other: Manifest) -> bool:
        """Whether ids and places are the same: the file of metadata of an Iceberg table changes each time."""
        return self._has_id_of(other) and self.root == other.root

    def is_copy_of(self, other: Manifest) -> bool:
        """Whether the ids are the same, and the places are two."""
        return self._has_id_of(other) and self.root != other.root

    def moved_to(self, now: Manifest) -> "LakeManifest | None":
        """The same version of the table at another place, if all its files are there."""
        if not self._has_id_of(now):
            return None
        same = now.schema == self.schema and set(now.files) >= set(self.files)
        return replace(self, root=now.root, places=now.places) if same else None

    def _has_id_of(self, other: Manifest) -> TypeGuard["LakeManifest"]:
        return isinstance(other, LakeManifest) and _id_of(self) == _id_of(other)

    def to_dict(self) -> dict[str, Any]:
        """The manifest as JSON."""
        return {**vars(self), "files": [list(file) for file in self.files]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "LakeManifest":
        """Read what `to_dict` has written."""
        try:
            files = tuple(CountedFile(*file) for file in values["files"])
            places = tuple(values.get("places", ()))
            found = cls(**{**values, "files": files, "places": places})
        except (LookupError, TypeError):
            raise InvalidInputError(
                "a manifest of a table must have kind, table_id, version, schema, files"
                f" [[path, size, removed], …], places and root; got {sorted(values)}"
            ) from None
        if not values.keys() >= {"places", "root"}:
            raise ChangedSourceError(OLDER_VERSION)
        return found


class Effect(Enum):
    """What a commit did to the rows of a table."""

    NOTHING = "nothing"
    """It changed no file: metadata, or the removal of old files."""
    REARRANGED = "rearranged"
    """It wrote the same rows to other files: compaction."""
    APPENDED = "appended"
    """It added files, and removed none."""
    CHANGED = "changed"
    """It removed or changed rows, or it cannot be told."""


@dataclass(frozen=True)
class Commit:
    """One commit of a Delta table, or one snapshot of an Iceberg table."""

    version: int
    effect: Effect
    added: frozenset[str] = frozenset()
    """The paths of the files that it added."""
    removed: frozenset[str] = frozenset()


def changes_between(counted: LakeManifest, now: LakeManifest, commits: Sequence[Commit] | None) -> Changes:
    """Compare a manifest with the table as it is now.

    `commits` are those between the two versions, oldest first; None if the table's log no longer has them
    all, or if the later version does not come from the earlier one.

    >>> before = LakeManifest("delta", "1f5e", 3, "90ab", (CountedFile("a", 8),))
    >>> after = LakeManifest("delta", "1f5e", 4, "90ab", (CountedFile("a", 8), CountedFile("b", 9)))
    >>> changes_between(before, after, [Commit(4, Effect.APPENDED, frozenset("b"))]).added
    ('b',)
    >>> changes_between(before, after, [Commit(4, Effect.CHANGED)]).recount
    'version 4 changed or removed rows'
    """
    known = tuple(commits or ())
    reason = _other_table(counted, now) or _changed_rows(now.kind, commits)
    if reason:
        return Changes(recount=reason)
    appended = frozenset[str]().union(*(each.added for each in known if each.effect is Effect.APPENDED))
    added = tuple(file.path for file in now.files if file.path in appended)
    if len(added) < len(appended):
        return Changes(recount="files that were appended since have been rearranged")
    if not _explained(counted.files, now.files, appended, known):
        return Changes(recount="the files are not those that the commits since then tell of")
    return Changes(added)


def _id_of(manifest: LakeManifest) -> tuple[str, str]:
    return manifest.kind, manifest.table_id


def _other_table(counted: LakeManifest, now: LakeManifest) -> str | None:
    if _id_of(counted) != _id_of(now):
        return f"it is another table: its id was {counted.table_id}, and is {now.table_id}"
    if counted.schema != now.schema:
        return "its columns have changed"
    return None


def _changed_rows(kind: str, commits: Sequence[Commit] | None) -> str | None:
    what = "version" if kind == "delta" else "snapshot"
    if commits is None:
        return f"its log does not lead from the {what} that was counted to the present one"
    changed = [each.version for each in commits if each.effect is Effect.CHANGED]
    return f"{what} {changed[0]} changed or removed rows" if changed else None


def _explained(
    counted: Iterable[CountedFile],
    now: Iterable[CountedFile],
    appended: frozenset[str],
    commits: Sequence[Commit],
) -> bool:
    """Whether the files are those that were counted, those that were appended, and rearranged ones."""
    before, after = {file.path: file for file in counted}, {file.path: file for file in now}
    rearranged = [each for each in commits if each.effect is Effect.REARRANGED]
    written = frozenset[str]().union(*(each.added for each in rearranged))
    replaced = frozenset[str]().union(*(each.removed for each in rearranged))
    return (
        after.keys() - before.keys() - appended <= written
        and before.keys() - after.keys() <= replaced
        and not appended & before.keys()
        and all(before[path] == after[path] for path in before.keys() & after.keys())
    )
