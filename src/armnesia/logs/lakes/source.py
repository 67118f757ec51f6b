"""Decisions in a table of a lake: `FileSource` over the data files of one version of it."""

import copy
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, Self

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.files import Stamp
from armnesia.core.messages import listed
from armnesia.logs import rules
from armnesia.logs.columns import Columns
from armnesia.logs.files.formats import LogFiles
from armnesia.logs.files.source import FileSource
from armnesia.logs.lakes.file_groups import FileGroup, GroupedFiles, StoredColumn
from armnesia.logs.lakes.files import LakeFiles, open_columns
from armnesia.logs.lakes.manifest import Commit, LakeManifest, changes_between
from armnesia.logs.lakes.snapshot import DataFile, TableSnapshot
from armnesia.logs.lakes.types import has_other_fields
from armnesia.logs.manifests import Changes, Manifest


class VersionHistory(Protocol):
    """What a table says of itself, at the version that was the last when it was opened."""

    def snapshot(self) -> TableSnapshot:
        """The columns and the files; refuse a table with features that are not known here."""

    def commits_since(self, version: int | None) -> list[Commit] | None:
        """The commits from a version to the one that was opened; None if they are not known."""

    def at(self, version: int | None) -> Self:
        """The same at another version of the table."""


class LakeSource(FileSource):
    """A table whose rows are Parquet files, at the version that was the last when it was opened."""

    history: VersionHistory

    def __init__(self, name: str, columns: Columns, *, table: str | None, whole_rows: bool) -> None:
        rules.refuse_table(table)
        self.history = self._open(name)
        self._snapshot = self.history.snapshot()
        self._grouped = GroupedFiles.of(self._snapshot)
        super().__init__(name, columns, table=None, whole_rows=whole_rows)
        self._location = self._snapshot.location

    @abstractmethod
    def _open(self, name: str) -> VersionHistory:
        """Open what the table says of itself."""

    def _opened(self, path: Any, wanted: set[str] | None) -> LakeFiles:
        return open_columns(self._grouped, wanted)

    @property
    def description(self) -> Mapping[str, Any]:
        """The kind and the name of the table."""
        return {**super().description, "kind": self._snapshot.kind}

    @property
    def columns_in_paths(self) -> frozenset[str]:
        """The columns by which files of this version, or new ones, are partitioned."""
        return self._snapshot.columns_in_paths

    def manifest(self) -> LakeManifest:  # type: ignore[override]  # of the table, not of its files
        """What is counted when all rows are."""
        return LakeManifest.of(self._snapshot)

    @staticmethod
    def manifest_from(values: Mapping[str, Any]) -> Manifest:
        """Read a manifest from its JSON."""
        return LakeManifest.from_dict(values)

    def changes_since(self, manifest: Manifest) -> Changes:
        """Tell whether there are files to count besides those of a manifest, or all must be counted again."""
        assert isinstance(manifest, LakeManifest)
        now = self.manifest()
        if manifest.version == now.version:
            commits: Sequence[Commit] | None = ()
        else:
            same = manifest.table_id == now.table_id
            commits = self.history.commits_since(manifest.version) if same else None
        return changes_between(manifest, now, commits)

    def counted_part(self, manifest: Manifest, changes: Changes) -> Self:
        """The rows of all files but those that were added."""
        if not changes.added:
            return self
        return self.reading_only({file.path for file in self._snapshot.files} - set(changes.added))

    def manifest_after(self, counted: Manifest, replaced: Mapping[str, Stamp]) -> Manifest:
        """The present version, which is taken to have the same rows: whoever stores it counts them."""
        return self.manifest()

    def new_part(self, manifest: Manifest, changes: Changes) -> Self:
        """The rows of the files that were added."""
        return self.reading_only(changes.added)

    def reading_only(self, paths: Iterable[str]) -> Self:
        """The same source with the rows of some of its files, which `manifest` and `changes_since` name."""
        chosen = set(paths)
        unknown = chosen - {file.path for file in self._snapshot.files}
        if unknown:
            raise InvalidInputError(
                f"paths must be files of {self._snapshot.shown_version} of {self._location!r}; got"
                f" {listed(sorted(unknown), 3)}"
            )
        return self._with(self._snapshot.only(chosen))

    def changed_between(self, before: int | None, after: int | None) -> tuple[Self, Self]:
        """The rows of files that only one of two versions has, of each; other files are not opened."""
        histories = [self.history.at(version) for version in (before, after)]
        snapshots = [self._same_columns(history.snapshot()) for history in histories]
        old, new = ({*LakeManifest.of(snapshot).files} for snapshot in snapshots)
        paths = ({file.path for file in old - new}, {file.path for file in new - old})
        first, second = (self._with(each.only(own)) for each, own in zip(snapshots, paths, strict=True))
        return first, second

    def at(self, version: int | None) -> Self:
        """The table at another version that it still has, with the same columns."""
        other = copy.copy(self)
        other.history = self.history.at(version)
        return other._with(self._same_columns(other.history.snapshot()))

    def _same_columns(self, snapshot: TableSnapshot) -> TableSnapshot:
        if snapshot.schema != self._snapshot.schema:
            raise InvalidLogError(
                f"source {self._location!r} has other columns at {snapshot.shown_version} than at"
                f" {self._snapshot.shown_version}"
            )
        return snapshot

    def reading(self, files: Iterable[DataFile]) -> Self:
        """The columns of this version in other files, which need not be of the table."""
        return self._with(replace(self._snapshot, files=tuple(files)))

    @property
    def compared_files(self) -> LogFiles:
        """The files with as many columns as can be read, to compare the rows of two versions."""
        return self.files

    def has_dropped_fields(self, stored: StoredColumn, column: str) -> bool:
        """Whether files may have fields in a nested column that the table does not have any more."""
        nested = {each.name: each.nested_type for each in self.snapshot.columns if each.nested_type}
        type_ = nested.get(column) or self._grouped.types.get(column)
        return type_ is not None and has_other_fields(stored.type, type_)

    @property
    def snapshot(self) -> TableSnapshot:
        """The version of the table whose rows are read."""
        return self._snapshot

    @property
    def groups(self) -> tuple[FileGroup, ...]:
        """The files whose rows are read, by the columns that they have."""
        return self._grouped.groups

    def _with(self, snapshot: TableSnapshot) -> Self:
        part = copy.copy(self)
        part._snapshot = snapshot
        part._grouped = GroupedFiles.of(part._snapshot)
        names = {*self.columns.wanted(), *self._further}
        part._files = part._opened(None, None if self.reads_whole_rows else names)
        part._set_columns()
        part.where, part._known_ranges, part._n_rows = (), {}, part._files.n_rows
        return part.filtered(self.where) if self.where else part
