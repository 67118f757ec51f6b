"""What only Delta and Iceberg tables can hold: versions, deletions of rows, and columns that have changed."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DoubleType, FloatType, IntegerType, LongType, NestedField, StringType

from tests.logs.conformance.cases import RIGHT, Case, Outcome, refused
from tests.logs.conformance.expected import Key, Where
from tests.logs.conformance.sources import Held, Place, Stored
from tests.logs.lake_tables import (
    add_actions,
    add_delete_file,
    add_file,
    append_without,
    arrow_table,
    delete_positions,
    edit_commit,
    edit_metadata,
    iceberg_files,
    inline_vector,
    set_features,
    set_schema,
    static_name,
    vector_in_file,
)

CLICKS: Held = {
    "action": ["A", "B", "A", "C", "B", "A"],
    "reward": [1.0, 0.25, 0.1, 0.30000000000000004, 1.0, 1 / 3],
    "user": [1, 2, None, 1, 3, 2],
}
MORE: Held = {"action": ["C", "A"], "reward": [0.7, 0.0], "user": [4, 1]}
DAYS: Held = {**CLICKS, "day": ["x", "y", None, "y", "x", "50% a/b"]}


def together(*parts: Held) -> Held:
    return {name: [value for part in parts for value in part[name]] for name in parts[0]}


def without(held: Held, *rows: int) -> Held:
    return {name: [v for row, v in enumerate(values) if row not in rows] for name, values in held.items()}


def renamed(held: Held, **names: str) -> Held:
    return {names.get(name, name): values for name, values in held.items()}


def in_delta(
    name: str, make: Callable[[Path], Held | None], outcome: Outcome = RIGHT, **options: Any
) -> Case:
    """A table in a folder, made by a function that gives what it holds."""

    def write(place: Place) -> Stored:
        path = place.path()
        return Stored(f"delta:{path}", make(path) or {})

    return Case(f"Delta: {name}", outcome=outcome, writers={"Delta": write}, **options)


def in_iceberg(
    name: str,
    make: Callable[[Place, "Make"], tuple[Table, Held | None]],
    outcome: Outcome = RIGHT,
    **options: Any,
) -> Case:
    """A table of a catalog, made by a function that gives it and what it holds."""

    def write(place: Place) -> Stored:
        made, held = make(place, Make(place))
        return Stored(static_name(made.refresh()), held or {})

    return Case(f"Iceberg: {name}", outcome=outcome, writers={"Iceberg": write}, **options)


def put(path: Path, held: Held | pa.Table, **options: Any) -> None:
    deltalake.write_deltalake(str(path), arrow_table(held), **options)


def appended(path: Path) -> Held:
    put(path, CLICKS)
    put(path, MORE, mode="append")
    return together(CLICKS, MORE)


def deleted(path: Path) -> Held:
    put(path, CLICKS)
    deltalake.DeltaTable(str(path)).delete("user = 1")
    return without(CLICKS, 0, 3)


def partitioned(path: Path) -> Held:
    put(path, DAYS, partition_by=["day"])
    return DAYS


def added_column(path: Path) -> Held:
    early = {name: CLICKS[name] for name in ("action", "reward")}
    put(path, early)
    put(path, MORE, mode="append", schema_mode="merge")
    return together({**early, "user": [None] * 6}, MORE)


def vectors(stored: str) -> Callable[[Path], Held]:
    """Rows 0 and 2 of the first file are deleted."""

    def make(path: Path) -> Held:
        put(path, CLICKS)
        put(path, MORE, mode="append")
        vector = inline_vector([0, 2]) if stored == "inline" else vector_in_file(path, [0, 2])
        edit_commit(path, 0, set_features("deletionVectors"))
        edit_commit(path, 0, lambda actions: add_actions(actions)[0].update(deletionVector=vector))
        return together(without(CLICKS, 0, 2), MORE)

    return make


def _mapped(mode: str) -> Any:
    """Two columns change their names with each other, and the third is called `who`."""

    def fields(found: list[dict[str, Any]]) -> None:
        for number, each in enumerate(found, 1):
            each["metadata"] = {
                "delta.columnMapping.id": number,
                "delta.columnMapping.physicalName": each["name"],
            }
            each["name"] = {"action": "reward", "reward": "action", "user": "who"}[each["name"]]

    def change(actions: list[dict[str, Any]]) -> None:
        set_features("columnMapping", columnMapping_mode=mode, columnMapping_maxColumnId="9")(actions)
        set_schema(fields)(actions)

    return change


MAPPED: Held = renamed(CLICKS, action="reward", reward="action", user="who")


def mapped_by_name(path: Path) -> Held:
    put(path, CLICKS)
    edit_commit(path, 0, _mapped("name"))
    return MAPPED


def mapped_by_id(path: Path) -> Held:
    put(path, arrow_table(CLICKS)[:0])
    edit_commit(path, 0, _mapped("id"))
    rows = arrow_table(CLICKS)
    fields = [
        pa.field(f"x{number}", each.type, metadata={"PARQUET:field_id": str(number)})
        for number, each in enumerate(rows.schema, 1)
    ]
    numbered = pa.Table.from_arrays(rows.columns, schema=pa.schema(fields))
    add_file(path, 1, numbered.select(["x3", "x2", "x1"]))
    return MAPPED


def mapped_by_id_without_ids(path: Path) -> Held:
    put(path, CLICKS)
    edit_commit(path, 0, _mapped("id"))
    return MAPPED


def widened(path: Path) -> Held:
    """From short integers and floats to long ones."""
    short = pa.schema([("action", pa.string()), ("reward", pa.float32()), ("user", pa.int32())])
    rows = pa.table(CLICKS).cast(short)
    put(path, rows)

    def widen(fields: list[dict[str, Any]]) -> None:
        fields[1]["type"], fields[2]["type"] = "double", "long"

    edit_commit(path, 0, set_features("typeWidening"))
    edit_commit(path, 0, set_schema(widen))
    late = {**MORE, "user": [2**53 + 1, 1]}
    add_file(path, 1, pa.table(late))
    return together(rows.to_pydict(), late)


def other_order(path: Path) -> Held:
    put(path, CLICKS)
    add_file(path, 1, pa.table(MORE).select(["user", "reward", "action"]))
    return together(CLICKS, MORE)


def other_type(path: Path) -> None:
    put(path, pa.table({**MORE, "reward": [1, 0]}))
    add_file(path, 1, pa.table(MORE))


def lost_file(path: Path) -> None:
    put(path, CLICKS)
    for file in path.glob("*.parquet"):
        file.unlink()


def stray_files(path: Path) -> Held:
    """Files that the log of the table does not name are no part of it."""
    put(path, CLICKS)
    pq.write_table(pa.table(MORE), path / "part-9.parquet")
    return CLICKS


def unknown_feature(path: Path) -> None:
    put(path, CLICKS)
    edit_commit(path, 0, set_features("ofTheNextDecade"))


WHO = ("reward", "action", "who")
DAY = Key("day", "day")
DELTA_CASES = [
    in_delta("appended", appended),
    in_delta("rows deleted", deleted),
    in_delta("files that are not in its log", stray_files),
    in_delta("partitions in a condition", partitioned, where=(Where("day = y", "day", lambda v: v == "y"),)),
    in_delta("partitions as keys, one missing", partitioned, refused("'day'"), by=(DAY,)),
    in_delta("partitions as users", partitioned, roles=("action", "reward", "day")),
    in_delta("a column that was added later", added_column),
    in_delta("deletion vectors in the log", vectors("inline")),
    in_delta("deletion vectors in files", vectors("file")),
    in_delta("columns mapped by name", mapped_by_name, roles=WHO),
    in_delta("columns mapped by id", mapped_by_id, refused("mapped by id"), roles=WHO),
    in_delta(
        "columns mapped by id, files without ids",
        mapped_by_id_without_ids,
        refused("mapped by id"),
        roles=WHO,
    ),
    in_delta("widened types", widened),
    in_delta("a file with another order of columns", other_order),
    in_delta("a file with another type", other_type, refused("'reward' is BIGINT, and DOUBLE in a file")),
    in_delta("a file is gone", lost_file, refused("is gone")),
    in_delta("an unknown feature", unknown_feature, refused("deltalake failed")),
    in_delta("no table", lambda path: path.mkdir(), refused("delta:")),
]


class Make:
    """Makes a table of a catalog: its rows, by append, and the columns by which it is partitioned."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def __call__(
        self, *parts: Held, by: dict[str, Any] | None = None, schema: Any = None, **options: Any
    ) -> Table:
        tables = [pa.table(part) if schema else arrow_table(part) for part in parts]
        name = f"logs.t{uuid.uuid4().hex}"
        table = self.place.catalog.create_table(name, schema=schema or tables[0].schema, **options)
        with table.update_spec() as update:
            for column, transform in (by or {}).items():
                update.add_field(column, transform)
        for rows in tables:
            table.append(rows.cast(schema.as_arrow()) if schema else rows)
        return table


def _deleted_rows(_: Place, make: Make) -> tuple[Table, Held]:
    table = make(CLICKS, MORE)
    table.delete("user = 1")
    return table, without(together(CLICKS, MORE), 0, 3, 7)


def _position_deletes(place: Place, make: Make) -> tuple[Table, Held]:
    table = make(CLICKS, MORE)
    held = {
        f.file_path: pq.read_table(f.file_path.removeprefix("file://")).to_pydict()
        for f in iceberg_files(table)
    }
    first, second = held
    delete_positions(table, {first: [0], second: [1]}, place.path(".parquet"))
    table = table.refresh()
    delete_positions(table, {first: [0, 1]}, place.path(".parquet"))
    table = table.refresh()
    table.append(arrow_table(MORE))
    return table, together(without(held[first], 0, 1), without(held[second], 1), MORE)


def _other_deletes(content: Any, format_: Any) -> Callable[[Place, Make], tuple[Table, None]]:
    def make_table(place: Place, make: Make) -> tuple[Table, None]:
        table, path = make(CLICKS), place.path(".parquet")
        pq.write_table(pa.table({"user": [1]}), path)
        add_delete_file(table, path, content, format_)
        return table, None

    return make_table


def _partitioned(_: Place, make: Make) -> tuple[Table, Held]:
    return make(DAYS, by={"day": IdentityTransform()}), DAYS


def _partition_not_in_files(_: Place, make: Make) -> tuple[Table, Held]:
    table = make(DAYS, by={"day": IdentityTransform()})
    more = {**MORE, "day": ["x", "x"]}
    append_without(table, arrow_table(more), "day")
    return table, together(DAYS, more)


def _evolved(_: Place, make: Make) -> tuple[Table, Held]:
    """Two columns have changed their names with each other, one is of another type, one was made anew."""
    schema = Schema(
        NestedField(1, "reward", StringType()),
        NestedField(2, "action", FloatType()),
        NestedField(3, "user", IntegerType()),
    )
    early = {"reward": CLICKS["action"], "action": CLICKS["reward"], "user": CLICKS["user"]}
    table = make(early, schema=schema)
    for old, new in (("reward", "was_reward"), ("action", "reward"), ("was_reward", "action")):
        with table.update_schema() as update:
            update.rename_column(old, new)
    with table.update_schema() as update:
        update.update_column("reward", DoubleType())
        update.delete_column("user")
    with table.update_schema() as update:
        update.add_column("user", LongType())
    late = {**MORE, "user": [2**53 + 1, 1]}
    table.append(arrow_table(late))
    shorter = pa.array(CLICKS["reward"], pa.float32()).to_pylist()
    return table, together({**CLICKS, "reward": shorter, "user": [None] * 6}, late)


def _files_without_ids(place: Place, make: Make) -> tuple[Table, Held]:
    table, path = make(CLICKS), place.path(".parquet")
    pq.write_table(arrow_table(MORE), path)
    table.add_files([f"file://{path}"])
    with table.update_schema() as update:
        update.rename_column("user", "who")
    return table, renamed(together(CLICKS, MORE), user="who")


def _default_for_rows_without(_: Place, make: Make) -> tuple[Table, Held]:
    table = make(CLICKS)
    with table.update_schema() as update:
        update.add_column("country", StringType())

    def set_default(metadata: dict[str, Any]) -> None:
        metadata.update({"format-version": 3, "next-row-id": 100})
        metadata["schemas"][-1]["fields"][-1].update({"initial-default": "DE", "write-default": "DE"})

    edit_metadata(table, set_default)
    return table, {**CLICKS, "country": ["DE"] * 6}


def _third_version(_: Place, make: Make) -> tuple[Table, Held]:
    table = make(CLICKS, MORE)
    edit_metadata(table, lambda metadata: metadata.update({"format-version": 3, "next-row-id": 100}))
    return table, together(CLICKS, MORE)


def _lost_file(_: Place, make: Make) -> tuple[Table, None]:
    table = make(CLICKS)
    for file in iceberg_files(table):
        Path(file.file_path.removeprefix("file://")).unlink()
    return table, None


DE = Where("country = DE", "country", lambda v: v == "DE")
ICEBERG_CASES = [
    in_iceberg("appended", lambda _, make: (make(CLICKS, MORE, CLICKS), together(CLICKS, MORE, CLICKS))),
    in_iceberg("rows deleted", _deleted_rows),
    in_iceberg("position deletes", _position_deletes),
    in_iceberg(
        "equality deletes",
        _other_deletes(DataFileContent.EQUALITY_DELETES, FileFormat.PARQUET),
        refused("equality deletes"),
    ),
    in_iceberg(
        "deletion vectors",
        _other_deletes(DataFileContent.POSITION_DELETES, FileFormat.PUFFIN),
        refused("DuckDB does not support"),
    ),
    in_iceberg(
        "partitions in a condition", _partitioned, where=(Where("day = y", "day", lambda v: v == "y"),)
    ),
    in_iceberg("partitions as users", _partitioned, roles=("action", "reward", "day")),
    in_iceberg("partitions that are in no file", _partition_not_in_files, roles=("action", "reward", "day")),
    in_iceberg("columns renamed, dropped, added and widened", _evolved),
    in_iceberg("files without field ids", _files_without_ids, roles=("action", "reward", "who")),
    in_iceberg("a default for earlier rows", _default_for_rows_without, where=(DE,)),
    in_iceberg("format version 3", _third_version),
    in_iceberg("a file is gone", _lost_file, refused("iceberg:")),
]
LAKE_CASES = [*DELTA_CASES, *ICEBERG_CASES]
