"""Erasing rows of a Delta table: a merge deletes them, a vacuum removes the files that still hold them.

A delete would write its predicate, with the names in it, into the table's log. A merge with a table of names
writes down only which columns were compared.
"""

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from armnesia.core.errors import UnsupportedError
from armnesia.logs.erase.eraser import OTHER_FILES, Eraser, LakeEraser
from armnesia.logs.lakes import LakeSource, delta_table
from armnesia.logs.sql import quoted

_OWN_FILES = re.compile(r"(?!_delta_log/).*\.(parquet|crc)")
"""What a vacuum may remove: data, files of changes, check-sums; no deletion vectors, which are in use."""


class DeltaEraser(LakeEraser):
    """A Delta table in a folder or an object store."""

    library = "deltalake"
    remains = (
        "entries of the log hold the lowest and highest values of files, which may be names, until the log is"
        " cleaned up (delta.logRetentionDuration)",
        "rows that were only marked as deleted before (deletion vectors), and files that the log names by"
        " absolute paths, are not removed",
        OTHER_FILES,
        *Eraser.remains,
    )

    def check(self) -> None:
        """Refuse a table whose log would name the people again."""
        super().check()
        partitions = _opened(self.source).metadata().partition_columns
        for name in (self.source.columns.user, self.source.columns.id):
            if name in partitions:
                raise UnsupportedError(
                    f"rows of {self.source.location!r} cannot be erased: it is partitioned by {name!r}, so"
                    " that its log would name whom was erased; partition it by another column"
                )

    def commit(
        self, source: LakeSource, column: str, values: Collection[Any]
    ) -> tuple[LakeSource, LakeSource]:
        """Merge with a table of names."""
        import pyarrow  # noqa: PLC0415 (an extra)

        table = _opened(source)
        type_ = pyarrow.schema(table.schema().to_arrow()).field(column).type
        # Streamed: otherwise the lowest and highest name would be in the predicate, and in the log.
        merge = table.merge(
            pyarrow.table({"name": pyarrow.array(values, type_)}),
            predicate=f"t.{quoted(column)} = s.name",
            source_alias="s",
            target_alias="t",
            streamed_exec=True,
        )
        merge.when_matched_delete().execute()
        after = int(table.version())
        return _at(source, after - 1), _at(source, after)

    def purge(self, *, ignore_retention: bool = False) -> bool:
        """Remove old files; as every vacuum, all that the table does not have, whoever wrote them."""
        with self.in_words():
            table = _opened(self.source)
            at_once = {"retention_hours": 0, "enforce_retention_duration": False}
            options = at_once if ignore_retention else {}
            every, old = table.vacuum(full=True, **at_once), table.vacuum(full=True, **options)
            strange = [each for each in old if not _OWN_FILES.fullmatch(each)]
            if strange:
                raise UnsupportedError(
                    f"files of {self.source.location!r} cannot be removed: its folder has {len(strange)}"
                    " files that are no Parquet files, and a vacuum would remove them: move files of others,"
                    " and write a table with deletion vectors again (REORG TABLE … APPLY (PURGE))"
                )
            if old:  # a vacuum is a commit
                table.vacuum(dry_run=False, full=True, **options)
            return set(every) <= set(old)  # a vacuum also lists files that are gone


def _opened(source: LakeSource) -> Any:
    return delta_table(source.location, source.place)


def _at(source: LakeSource, version: int) -> LakeSource:
    state = {**source.state, "version": version}
    return replace(source, state=state, options=f", version = {version}")
