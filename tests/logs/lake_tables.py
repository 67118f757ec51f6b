"""Delta and Iceberg tables for tests, and tables with features that their libraries cannot write."""

import base64
import json
import struct
import uuid
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files
from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.manifest import (
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _FastAppendFiles
from pyiceberg.typedef import Record
from pyroaring import BitMap64

Rows = dict[str, list[Any]]
Actions = list[dict[str, Any]]

_BASE_85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z_85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def arrow_table(rows: Rows | pa.Table) -> pa.Table:
    """Rows with a type for each column; a column without values has floats."""
    table = rows if isinstance(rows, pa.Table) else pa.table(rows)
    fields = [each.with_type(pa.float64()) if pa.types.is_null(each.type) else each for each in table.schema]
    return table.cast(pa.schema(fields))


def write_delta(path: Path, rows: Rows | pa.Table, **options: Any) -> str:
    """Write or change a Delta table; its name as a source."""
    deltalake.write_deltalake(str(path), arrow_table(rows), **options)
    return f"delta:{path}"


def iceberg_catalog(folder: Path) -> SqlCatalog:
    """A catalog in a folder, with the namespace `logs`."""
    folder.mkdir(exist_ok=True)
    catalog = SqlCatalog("lake", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse")
    catalog.create_namespace_if_not_exists("logs")
    return catalog


def write_iceberg(folder: Path, rows: Rows | pa.Table, **options: Any) -> str:
    """Write an Iceberg table; the name of its metadata as a source."""
    table = arrow_table(rows)
    written = iceberg_catalog(folder).create_table("logs.clicks", schema=table.schema, **options)
    written.append(table)
    return static_name(written)


def static_name(table: IcebergTable) -> str:
    """The name of the present metadata of a table as a source."""
    return f"iceberg:{table.metadata_location.removeprefix('file://')}"


def edit_commit(path: Path, version: int, change: Callable[[Actions], None]) -> None:
    """Change the actions of a commit of a Delta table."""
    file = path / "_delta_log" / f"{version:020}.json"
    actions = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    change(actions)
    file.write_text("".join(f"{json.dumps(action)}\n" for action in actions), "utf-8")


def write_commit(path: Path, version: int, actions: Actions) -> None:
    """Add a commit to a Delta table by hand."""
    file = path / "_delta_log" / f"{version:020}.json"
    file.write_text("".join(f"{json.dumps(action)}\n" for action in actions), "utf-8")


def set_features(*features: str, **configuration: str) -> Callable[[Actions], None]:
    """An edit that makes a table need these features; underscores in properties stand for points."""

    def change(actions: Actions) -> None:
        for action in actions:
            if "protocol" in action:
                action["protocol"] = {
                    "minReaderVersion": 3,
                    "minWriterVersion": 7,
                    "readerFeatures": list(features),
                    "writerFeatures": list(features),
                }
            if "metaData" in action:
                named = {f"delta.{name.replace('_', '.')}": value for name, value in configuration.items()}
                action["metaData"]["configuration"] = named

    return change


def set_schema(change_fields: Callable[[list[dict[str, Any]]], None]) -> Callable[[Actions], None]:
    """An edit of the fields of a table's schema."""

    def change(actions: Actions) -> None:
        for action in actions:
            if "metaData" in action:
                schema = json.loads(action["metaData"]["schemaString"])
                change_fields(schema["fields"])
                action["metaData"]["schemaString"] = json.dumps(schema)

    return change


def add_actions(actions: Actions) -> Actions:
    """The files that a commit adds, in the order of their paths."""
    return sorted((action["add"] for action in actions if "add" in action), key=lambda add: str(add["path"]))


def inline_vector(rows: Iterable[int]) -> dict[str, Any]:
    """A deletion vector of these positions, inside the log."""
    content = _bitmap(rows)
    content += bytes(-len(content) % 4)
    text = base64.b85encode(content).decode().translate(str.maketrans(_BASE_85, _Z_85))
    number = len(list(rows))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(content), "cardinality": number}


def vector_in_file(path: Path, rows: Iterable[int]) -> dict[str, Any]:
    """A deletion vector of these positions, in a file of the table."""
    content, name = _bitmap(rows), uuid.uuid4()
    checked = struct.pack(">i", len(content)) + content + struct.pack(">I", zlib.crc32(content))
    (path / f"deletion_vector_{name}.bin").write_bytes(b"\x01" + checked)
    text = base64.b85encode(name.bytes).decode().translate(str.maketrans(_BASE_85, _Z_85))
    stored = {"storageType": "u", "pathOrInlineDv": text, "offset": 1, "sizeInBytes": len(content)}
    return {**stored, "cardinality": len(list(rows))}


def _bitmap(rows: Iterable[int]) -> bytes:
    return struct.pack("<i", 1681511377) + bytes(BitMap64(rows).serialize())


def iceberg_files(table: IcebergTable) -> list[IcebergFile]:
    """The data files of the present snapshot, in the order of their paths."""
    return sorted((task.file for task in table.scan().plan_files()), key=lambda file: file.file_path)


def append_without(table: IcebergTable, rows: pa.Table, column: str) -> None:
    """Append rows in files without a column by which the table is partitioned."""
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as snapshot:
        for file in _dataframe_to_data_files(table.metadata, rows, table.io):
            path = file.file_path.removeprefix("file://")
            pq.write_table(pq.ParquetFile(path).read().drop_columns([column]), path)
            file[5] = Path(path).stat().st_size
            snapshot.append_data_file(file)


def edit_metadata(table: IcebergTable, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the present metadata of a table, in place."""
    file = Path(table.metadata_location.removeprefix("file://"))
    metadata = json.loads(file.read_text("utf-8"))
    change(metadata)
    file.write_text(json.dumps(metadata), "utf-8")


def delete_positions(table: IcebergTable, positions: dict[str, list[int]], file: Path) -> None:
    """Delete rows, by the path of their data file, by a file of position deletes in a new snapshot."""
    pairs = [(path, row) for path in sorted(positions) for row in positions[path]]
    schema = pa.schema(
        [
            pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"}),
            pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"}),
        ]
    )
    columns = [pa.array([path for path, _ in pairs]), pa.array([row for _, row in pairs])]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), file)
    add_delete_file(table, file, DataFileContent.POSITION_DELETES)


def add_delete_file(
    table: IcebergTable, file: Path, content: DataFileContent, format_: FileFormat = FileFormat.PARQUET
) -> None:
    """Let a file of deletes be part of a table, in a new snapshot."""
    deletes = IcebergFile.from_args(
        content=content,
        file_path=f"file://{file}",
        file_format=format_,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=file.stat().st_size,
        equality_ids=[1] if content == DataFileContent.EQUALITY_DELETES else None,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds={},
        upper_bounds={},
    )
    with table.transaction() as transaction:
        snapshot = _AddedDeletes(Operation.APPEND, transaction, table.io)
        snapshot.deletes = deletes
        snapshot.commit()


class _DeleteManifest(ManifestWriterV2):
    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


class _AddedDeletes(_FastAppendFiles):
    deletes: IcebergFile

    def _manifests(self) -> list[ManifestFile]:
        metadata = self._transaction.table_metadata
        output = self.new_manifest_output()
        with _DeleteManifest(
            metadata.spec(), metadata.schema(), output, self.snapshot_id, self._compression
        ) as writer:
            writer.add(
                ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED, snapshot_id=self.snapshot_id, data_file=self.deletes
                )
            )
        return [*self._existing_manifests(), writer.to_manifest_file()]


def add_file(path: Path, version: int, rows: pa.Table, **options: Any) -> None:
    """Add a Parquet file to a Delta table by hand."""
    name = f"part-{version}.parquet"
    pq.write_table(rows, path / name, **options)
    size, stats = (path / name).stat().st_size, json.dumps({"numRecords": len(rows)})
    add = {"path": name, "partitionValues": {}, "size": size, "modificationTime": 0, "dataChange": True}
    write_commit(path, version, [{"add": {**add, "stats": stats}}])
