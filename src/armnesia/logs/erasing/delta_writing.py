"""Whether rows of a Delta table can be deleted by deltalake, as far as that is known without changing it."""

import json
import os
import tempfile
from collections.abc import Iterable
from typing import Any

from armnesia.core.errors import UnsupportedError
from armnesia.core.files import may_write
from armnesia.logs.lakes.delta import DeltaLog
from armnesia.logs.lakes.snapshot import DataFile, reason_of

_FIRST = f"{0:020}.json"


def try_merge(log: DeltaLog) -> None:
    """Refuse a table that deltalake does not write: merge an empty one of the same columns and features."""
    try:
        import pyarrow  # noqa: PLC0415 (an extra)
    except ImportError:
        return  # which is said where rows are deleted
    from deltalake import DeltaTable  # noqa: PLC0415 (an extra)

    with tempfile.TemporaryDirectory(prefix="armnesia-") as folder:
        entries = os.path.join(folder, "_delta_log")
        os.mkdir(entries)
        with open(os.path.join(entries, _FIRST), "w", encoding="utf-8") as file:
            file.writelines(f"{json.dumps(action)}\n" for action in _first_commit(log.table))
        try:
            nobody = pyarrow.table({"name": pyarrow.array([], pyarrow.int64())})
            merge = DeltaTable(folder).merge(
                nobody, predicate="s.name = 0", source_alias="s", target_alias="t", streamed_exec=True
            )
            merge.when_matched_delete().execute()
        except Exception as error:
            raise UnsupportedError(
                f"rows of {log.location!r} cannot be erased: deltalake does not write such tables"
                f" ({reason_of(error)})"
            ) from None


def _first_commit(table: Any) -> list[dict[str, Any]]:
    """The commit that makes an empty table of the same columns, partitions, properties and features."""
    protocol, metadata = table.protocol(), table.metadata()
    features = {"readerFeatures": protocol.reader_features, "writerFeatures": protocol.writer_features}
    versions = {
        "minReaderVersion": protocol.min_reader_version,
        "minWriterVersion": protocol.min_writer_version,
    }
    made = {
        "id": str(metadata.id),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": list(metadata.partition_columns),
        "configuration": dict(metadata.configuration),
        "createdTime": 0,
    }
    named = {name: list(each) for name, each in features.items() if each is not None}
    return [{"protocol": {**versions, **named}}, {"metaData": made}]


def refuse_unwritable_folders(log: DeltaLog, files: Iterable[DataFile]) -> None:
    """Refuse a table on this machine if files could not be written or removed beside its own."""
    if not log.is_local:
        return
    root = log.address
    folders = {root, os.path.join(root, "_delta_log"), *(os.path.dirname(file.location) for file in files)}
    if not all(map(may_write, folders)):
        raise UnsupportedError(  # without the path below, which may be the value of a partition
            f"rows of {log.location!r} cannot be erased: the folder of the table, or one below it that has"
            " its files, may not be written to by this user"
        )
