"""Deleting rows of a Delta table by merges with a table in memory, whose log entries name nobody.

The predicate of a delete is written into the table's log for good, with the names in it. A merge writes down
only which columns were compared, in which partitions, and between which thresholds.
"""

from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from armnesia.core.errors import ArmnesiaError
from armnesia.logs.columns import quoted
from armnesia.logs.erasing.delta_commits import GOES_ON, TOKEN, Actions, values_of_kind
from armnesia.logs.erasing.delta_files import DeltaFolder
from armnesia.logs.erasing.delta_partitions import Partitions, partitions_with
from armnesia.logs.erasing.delta_ranges import Part, parts_with
from armnesia.logs.erasing.lake_eraser import DeletingCommit, values_of
from armnesia.logs.erasing.names_in_files import checksum
from armnesia.logs.erasing.plan import ErasurePlan
from armnesia.logs.files.label_lookup import Lookup, look_up
from armnesia.logs.lakes.delta import DeltaLog, DeltaSource


@dataclass(frozen=True)
class RowDeletion:
    """The rows of people that a plan deletes."""

    plan: ErasurePlan
    role: str
    names: frozenset[str]

    def merges(self, source: DeltaSource) -> Iterator[DeletingCommit]:
        """Delete the rows of a table: by one commit, or by one for each part of a large table."""
        partitions = partitions_with(source, self._rows(source), self.names)
        parts = parts_with(source, partitions.files, self._rows(source), self.names)
        others, last = parts[:-1], parts[-1] if parts else None
        values = values_of(source, self.role, self.names)
        for part in others:
            yield from self._merge(source, values, partitions, part, goes_on=True)
            source.history.table.update_incremental()  # others may have committed
        if others:
            source = source.at(None)
            if self._has_rows(source, outside=last):  # others have added some, or the log misled
                last, partitions = None, partitions_with(source, self._rows(source), self.names)
        yield from self._merge(source, values, partitions, last)
        if last is not None and self._has_rows(source := source.at(None)):
            partitions = partitions_with(source, self._rows(source), self.names)
            yield from self._merge(source, values, partitions, None)

    def _rows(self, source: DeltaSource) -> Lookup:
        return look_up(source.named_column(self.role), self.names)

    def _has_rows(
        self, source: DeltaSource, *, within: Part | None = None, outside: Part | None = None
    ) -> bool:
        """Whether a table has some of the rows, in a part of it or outside of one."""
        found, files = self._rows(source), source.compared_files
        conditions, parameters = [f"({found.condition})"], dict(found.parameters)
        for part, form in ((within, "{}"), (outside, "NOT coalesce({}, false)")):
            if part is not None:
                own = part.rows_in(files)
                conditions.append(form.format(own.condition))
                parameters |= own.parameters
        sql = f"SELECT 1 FROM {files.table} WHERE {' AND '.join(conditions)} LIMIT 1"
        return bool(files.query(sql, **parameters))

    def _merge(
        self,
        source: DeltaSource,
        values: Sequence[Any],
        partitions: Partitions,
        part: Part | None,
        *,
        goes_on: bool = False,
    ) -> Iterator[DeletingCommit]:
        """Merge with a table in memory that has the names; the commit, if there is one."""
        import pyarrow  # noqa: PLC0415 (an extra)
        from deltalake import CommitProperties  # noqa: PLC0415 (an extra)
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

        log, column = source.history, source.columns.named()[self.role]
        table, before = log.table, log.table.version()
        type_ = pyarrow.schema(table.schema().to_arrow()).field(column).type
        conditions = [f"t.{quoted(column)} = s.name", partitions.condition, part.condition if part else ""]
        # Streamed: otherwise the lowest and highest name would be in the predicate, and in the log.
        merge = table.merge(
            pyarrow.table({"name": pyarrow.array(values, type_)}),
            predicate=" AND ".join(filter(None, conditions)),
            source_alias="s",
            target_alias="t",
            streamed_exec=True,
            commit_properties=CommitProperties(
                custom_metadata={TOKEN: self.plan.token, **({GOES_ON: "true"} if goes_on else {})}
            ),
        ).when_matched_delete()
        there = DeltaFolder(log).unlisted_files()
        try:
            merge.execute()
        except CommitFailedError:
            with suppress(ArmnesiaError, OSError):  # the failure itself is said
                self._remove_written(source, part, there)
            raise
        made = commits_by(self.plan, DeltaLog(log.location), before)
        if made:
            version = max(made)
            yield DeletingCommit(version - 1, version, may_leave_rows=part is not None)

    def _remove_written(self, source: DeltaSource, part: Part | None, there: Container[str]) -> None:
        """Remove what was written for a commit that failed: new files that no log names.

        They may be of another writer that has not committed yet. So all of them are left if they do not have
        just the rows that were to stay of the files with the names. So they are in an object store, where a
        commit that is reported as failed may have been made.
        """
        log = DeltaLog(source.history.location)
        folder = DeltaFolder(log)
        found = {path: size for path, size in folder.unnamed_files().items() if path not in there}
        if not found or not log.is_local:
            return
        files = source.snapshot.files
        replaced = [file for file in files if self._has_rows(source.reading([file]), within=part)]
        # Without values of partitions, which no log tells of the new files.
        before = source.reading([replace(file, values={}) for file in replaced])
        after = source.reading([log.file_at(*each) for each in sorted(found.items())])
        expected = checksum(before.compared_files, self._rows(before))
        if expected[0] and expected == checksum(after.compared_files):
            folder.remove_files(sorted(found))


def commits_by(plan: ErasurePlan, log: DeltaLog, since: int, last: int | None = None) -> dict[int, Actions]:
    """The commits of a plan after a version, up to another or the last one: what each has done."""
    versions = range(since + 1, (log.table.version() if last is None else last) + 1)
    found = {version: log.actions_of(version) or [] for version in versions}
    return {
        version: actions
        for version, actions in found.items()
        if values_of_kind(actions, "commitInfo", TOKEN) == [plan.token]
    }
