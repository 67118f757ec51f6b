"""Erasing rows of a Delta table: a merge deletes them, a vacuum removes the files that still hold them.

A delete would write its predicate, with the names in it, into the table's log. A merge with a table of names
writes down only which columns were compared.
"""

import json
import os
import re
import tempfile
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from armnesia.core.errors import MissingExtraError, UnsupportedError
from armnesia.core.memory import import_sparing
from armnesia.core.messages import listed
from armnesia.logs.erase.eraser import Eraser
from armnesia.logs.erase.lakes import OTHER_FILES, LakeEraser
from armnesia.logs.lakes import DeltaSource
from armnesia.logs.sql import quoted

_OWN_FILES = re.compile(r"(?!(.*/)?_delta_log/).*\.(parquet|crc|bin)")
"""What a vacuum may remove: data, files of changes, check-sums, deletion vectors."""
_VERSION = re.compile(r"_delta_log/(\d{20})\..*")
_RETENTION = ("delta.deletedFileRetentionDuration", "interval 1 week")
_LONGEST = timedelta(days=36_500)


class DeltaEraser(LakeEraser[DeltaSource]):
    """A Delta table in a folder or an object store."""

    library = "deltalake"
    remains = (
        "entries of the log are there until it is cleaned up (delta.logRetentionDuration), or a purge that"
        " ignores retention shortens it: they hold the lowest and highest values of files, which may be"
        " names",
        OTHER_FILES,
        *Eraser.remains,
    )

    def check(self) -> None:
        """Refuse tables that deltalake does not write, that name people in paths, or that lack rights."""
        super().check()
        with self.in_words():
            table = _opened(self.now())
            metadata = table.metadata()
            absolute = any(re.match(r"/|[a-z0-9]+:", path) for path in _paths(table))
            has_vectors = any(batch.num_rows for batch in table.deletion_vectors())
            by_people = {self.source.columns.user, self.source.columns.id} & {*metadata.partition_columns}
        reason = None
        if by_people:
            reason = f"it is partitioned by {by_people.pop()!r}, so that names of folders name people"
        elif metadata.configuration.get("delta.appendOnly", "false").lower() == "true":
            reason = "it declares delta.appendOnly, which forbids to delete rows"
        elif has_vectors:
            reason = (
                "it has deletion vectors, which deltalake does not keep; write its files again (REORG TABLE"
                " … APPLY (PURGE))"
            )
        elif absolute:
            reason = "its log names files by absolute paths, which may be files of others; write it again"
        if reason is not None:
            raise self.refused(reason)
        self.check_folders(self._table.place)
        self._try_merge(table)

    def _try_merge(self, table: Any) -> None:
        """Refuse features that deltalake does not write: merge an empty table that has them."""
        protocol = table.protocol()
        features = {"readerFeatures": protocol.reader_features, "writerFeatures": protocol.writer_features}
        with tempfile.TemporaryDirectory(prefix="armnesia-") as folder:
            os.mkdir(os.path.join(folder, "_delta_log"))
            with open(os.path.join(folder, "_delta_log", f"{0:020}.json"), "w", encoding="utf-8") as file:
                file.writelines(f"{json.dumps(action)}\n" for action in _first_commit(table, features))
            try:
                _merge(folder, next(iter(self.source.columns.named().values())), [])
            except MissingExtraError:
                raise
            except Exception as error:
                named = sorted({*(protocol.reader_features or ()), *(protocol.writer_features or ())})
                raise self.refused(
                    f"deltalake does not write such tables ({type(error).__name__}); it has the features"
                    f" {listed(named)}"
                ) from None

    def commit(
        self, source: DeltaSource, column: str, values: Collection[Any]
    ) -> tuple[DeltaSource, DeltaSource]:
        """Merge with a table of names."""
        after = _merge(source.place, column, values)
        return _at(source, after - 1), _at(source, after)

    def take_back(self, before: DeltaSource) -> None:
        """Restore the version before."""
        _opened(before).restore(int(before.state["version"]))

    def purge(self, *, ignore_retention: bool = False) -> datetime | None:
        """Remove old files, and at once also the log before the present version.

        As every vacuum, this removes all files that the table does not have, whoever wrote them.
        """
        with self.in_words():
            table = _opened(self._table)
            options = {"retention_hours": 0, "enforce_retention_duration": False} if ignore_retention else {}
            old = table.vacuum(dry_run=True, full=True, **options)
            strange = {os.path.splitext(path)[1] for path in old if not _OWN_FILES.fullmatch(path)}
            if strange:
                raise UnsupportedError(
                    f"files of {self.source.location!r} cannot be removed: its folder has files of others,"
                    f" which end in {listed(sorted(strange))}, and a vacuum would remove them; move them"
                )
            if old:
                table.vacuum(dry_run=False, full=True, **options)
            if ignore_retention:
                _shorten_log(table)
                table = _opened(self._table)  # it would look for the commits that are gone
            left = table.vacuum(0, dry_run=True, full=True, enforce_retention_duration=False)
            # A vacuum also names files that are gone already.
            is_there = any(each.type for each in _store_of(table).get_file_info(left))
            return _last_change(table) + _retention(table) if is_there else None


def _opened(source: DeltaSource) -> Any:
    import_sparing("deltalake")
    import deltalake  # noqa: PLC0415 (an extra)

    return deltalake.DeltaTable(source.place)


def _at(source: DeltaSource, version: int) -> DeltaSource:
    state = {**source.state, "version": version}
    return replace(source, state=state, options=f", version = {version}")


def _paths(table: Any) -> list[str]:
    import pyarrow  # noqa: PLC0415 (an extra)

    return [str(path) for path in pyarrow.table(table.get_add_actions())["path"].to_pylist()]


def _merge(place: str, column: str, values: Collection[Any]) -> int:
    """Delete the rows that have one of these values; the version that was committed."""
    try:
        import pyarrow  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise MissingExtraError.naming("Erasing rows of Delta tables", "erase") from error
    import deltalake  # noqa: PLC0415 (an extra)

    table = deltalake.DeltaTable(place)
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
    return int(table.version())


def _first_commit(table: Any, features: dict[str, Any]) -> list[dict[str, Any]]:
    """The commit that makes an empty table of the same columns, partitions, properties and features."""
    protocol, metadata = table.protocol(), table.metadata()
    versions = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
    }
    named = {name: list(each) for name, each in features.items() if each is not None}
    made = {
        "id": str(metadata.id),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
        "createdTime": 0,
    }
    return [{"protocol": {**versions, **named}}, {"metaData": made}]


def _store_of(table: Any) -> Any:
    """The files of a table."""
    from deltalake.fs import DeltaStorageHandler  # noqa: PLC0415 (an extra)
    from pyarrow import fs  # noqa: PLC0415 (an extra)

    return fs.PyFileSystem(DeltaStorageHandler(table.table_uri))


def _shorten_log(table: Any) -> None:
    """Write a checkpoint, and remove the log before it; a killed run leaves a log without gaps."""
    from pyarrow import fs  # noqa: PLC0415 (an extra)

    if table.metadata().configuration.get("delta.enableExpiredLogCleanup", "true").lower() == "false":
        return
    files = _store_of(table)
    named = (_VERSION.fullmatch(each.path) for each in files.get_file_info(fs.FileSelector("_delta_log")))
    old = sorted(found[0] for found in named if found and int(found[1]) < table.version())
    if old:
        table.create_checkpoint()
    for path in old:
        files.delete_file(path)


def _last_change(table: Any) -> datetime:
    """When rows were last committed, as far as the log tells."""
    changes = [each for each in table.history(100) if not each["operation"].startswith("VACUUM")]
    if not changes:
        return datetime.now(UTC)
    return datetime.fromtimestamp(changes[0]["timestamp"] // 1000, UTC)


def _retention(table: Any) -> timedelta:
    """How long removed files stay, as the table declares, or by default."""
    text = table.metadata().configuration.get(*_RETENTION)
    found = re.fullmatch(
        r"\s*(?:interval\s+)?(\d{1,9})\s+(second|minute|hour|day|week)s?\s*", text, re.IGNORECASE
    )
    return (
        min(timedelta(**{f"{found[2].lower()}s": int(found[1])}), _LONGEST) if found else timedelta(weeks=1)
    )
