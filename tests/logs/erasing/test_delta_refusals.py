"""What is known of a Delta table before rows have to be deleted: structures that grew, features, rights."""

import os
from collections.abc import Callable
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidLogError, UnsupportedError
from armnesia.logs.erasing import ErasurePlan, People, SourceState, lake_eraser
from armnesia.logs.lakes.delta import DeltaSource
from tests.logs.erasing.stores import DeltaStore, arrow_rows, in_order, made_rows, name_of
from tests.logs.lakes.tables import Actions, add_actions, edit_commit, set_features, set_schema

PERSON = name_of(1)
PEOPLE = People.named([PERSON])
GROWN = {
    "structure": (
        pa.array([{"a": at} for at in range(400)], pa.struct([("a", pa.int64())])),
        pa.array(
            [{"b": "x", "a": at} for at in range(400)], pa.struct([("b", pa.string()), ("a", pa.int64())])
        ),
    ),
    "list": (
        pa.array([[{"a": at}] * (at % 3) for at in range(400)], pa.list_(pa.struct([("a", pa.int64())]))),
        pa.array(
            [[{"a": at, "b": "x"}] for at in range(400)],
            pa.list_(pa.struct([("a", pa.int64()), ("b", pa.string())])),
        ),
    ),
}


def write_grown(store: DeltaStore, kind: str) -> list[dict[str, Any]]:
    """A table with a nested column that gets a field with its second file; its rows without the person's."""
    before, after = GROWN[kind]
    for part, column in enumerate((before, after)):
        rows = arrow_rows(made_rows(part)).append_column("who", column)
        deltalake.write_deltalake(str(store.folder), rows, mode="append", schema_mode="merge")
    return [row for row in whole_rows(store) if row["user"] != PERSON]


def opened(store: DeltaStore) -> DeltaSource:
    source = store.open()
    assert isinstance(source, DeltaSource)
    return source


def whole_rows(store: DeltaStore) -> list[Any]:
    return in_order(pa.table(deltalake.DeltaTable(str(store.folder)).to_pyarrow_table()).to_pylist())


@pytest.mark.parametrize("kind", GROWN)
def test_a_nested_column_that_got_a_field(table: DeltaStore, kind: str) -> None:
    others = write_grown(table, kind)
    table.eraser().check_rewritable()
    plan = table.eraser().plan(PEOPLE)
    assert plan is not None
    erasure = table.eraser().purge(plan_applied(table, plan), PEOPLE, ignore_retention=True)
    assert erasure.state == SourceState.PURGED
    assert whole_rows(table) == others


def plan_applied(store: DeltaStore, plan: ErasurePlan) -> ErasurePlan:
    store.eraser().apply(plan, PEOPLE)
    return plan


@pytest.mark.parametrize("kind", GROWN)
def test_values_of_a_nested_column_that_got_a_field_are_compared(table: DeltaStore, kind: str) -> None:
    write_grown(table, kind)
    before, nobody = opened(table), frozenset[str]()
    deltalake.DeltaTable(str(table.folder)).optimize.compact()
    assert lake_eraser.other_rows_stayed(before, opened(table), "user", nobody)
    deltalake.DeltaTable(str(table.folder)).update({"who": "NULL"}, predicate=f"user = '{name_of(2)}'")
    assert not lake_eraser.other_rows_stayed(before, opened(table), "user", nobody)


def test_a_nested_column_of_mapped_names_is_compared(table: DeltaStore) -> None:
    rows = arrow_rows(made_rows(0)).append_column("who", GROWN["structure"][0])
    deltalake.write_deltalake(str(table.folder), rows)

    def rename(fields: list[dict[str, Any]]) -> None:
        inner = fields[-1]["type"]["fields"][0]
        for number, each in enumerate([*fields, inner], 1):
            names = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": each["name"]}
            each["metadata"] = names
        inner["name"] = "renamed"

    edit_commit(table.folder, 0, set_features("columnMapping", columnMapping_mode="name"))
    edit_commit(table.folder, 0, set_schema(rename))
    table.eraser().check_rewritable()
    files = opened(table).compared_files
    assert files.query(f"SELECT sum(c4.a) FROM {files.table}") == [(sum(range(400)),)]


def without_shared_fields(fields: list[dict[str, Any]]) -> None:
    fields[-1]["type"]["fields"][0]["name"] = "other"


def test_a_table_that_cannot_be_compared_is_refused_at_first(table: DeltaStore) -> None:
    rows = arrow_rows(made_rows(0)).append_column("who", GROWN["structure"][0])
    deltalake.write_deltalake(str(table.folder), rows)
    edit_commit(table.folder, 0, set_schema(without_shared_fields))
    with pytest.raises(InvalidLogError, match="not all files have 'who' in the type of the table"):
        table.eraser().check_rewritable()
    with pytest.raises(InvalidLogError, match="not all files have 'who'"):
        table.eraser().plan(PEOPLE)
    assert deltalake.DeltaTable(str(table.folder)).version() == 0, "nothing was written"


def test_times_without_a_zone_in_a_structure_are_refused_at_first(table: DeltaStore) -> None:
    """Spark writes moments so (INT96); DuckDB would take them for times of the zone of this machine."""
    moments = pa.array([{"at": None}] * 400, pa.struct([("at", pa.timestamp("us", "UTC"))]))
    deltalake.write_deltalake(str(table.folder), arrow_rows(made_rows(0)).append_column("who", moments))
    table.eraser().check_rewritable()
    (path,) = table.folder.glob("*.parquet")
    rows = pq.ParquetFile(path).read()
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True)

    def resize(actions: Actions) -> None:
        (add,) = add_actions(actions)
        add["size"] = path.stat().st_size

    edit_commit(table.folder, 0, resize)
    with pytest.raises(InvalidLogError, match="not all files have 'who' in the type of the table"):
        table.eraser().check_rewritable()


def writer_feature(name: str) -> Callable[[Actions], None]:
    def change(actions: Actions) -> None:
        for action in actions:
            if "protocol" in action:
                versions = {"minReaderVersion": 1, "minWriterVersion": 7}
                action["protocol"] = {**versions, "writerFeatures": [name]}

    return change


def declare_append_only(actions: Actions) -> None:
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] = {"delta.appendOnly": "true"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (writer_feature("rowTracking"), "deltalake does not write such tables .*RowTracking"),
        (writer_feature("identityColumns"), "deltalake does not write such tables .*IdentityColumns"),
        (writer_feature("somethingNew"), "deltalake does not write such tables .*somethingNew"),
        (set_features("typeWidening", enableTypeWidening="true"), "deltalake does not write such tables"),
        (declare_append_only, "declares delta.appendOnly"),
        (writer_feature("checkConstraints"), None),
        (set_features("deletionVectors", enableDeletionVectors="true"), None),
    ],
)
def test_tables_that_deltalake_does_not_write_are_refused_at_first(
    table: DeltaStore, change: Callable[[Actions], None], reason: str | None
) -> None:
    table.with_parts(1)
    edit_commit(table.folder, 0, change)
    if reason is None:
        table.eraser().check_rewritable()
        plan = table.eraser().plan(PEOPLE)
        assert plan is not None
        assert table.eraser().apply(plan, PEOPLE).after == 1, "what was tried is true"
    else:
        with pytest.raises(UnsupportedError, match=reason):
            table.eraser().check_rewritable()
    assert len(list((table.folder / "_delta_log").glob("*.json"))) == (2 if reason is None else 1)


def test_a_table_that_is_partitioned_by_users_is_refused_at_first(table: DeltaStore) -> None:
    deltalake.write_deltalake(str(table.folder), arrow_rows(made_rows(0)), partition_by=["user"])
    with pytest.raises(UnsupportedError, match="the table is partitioned by 'user'"):
        table.eraser().check_named_by("user")


@pytest.mark.parametrize("place", ["", "_delta_log", "page=page-1"])
def test_a_folder_that_may_not_be_written_to(
    table: DeltaStore, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    deltalake.write_deltalake(str(table.folder), arrow_rows(made_rows(0)), partition_by=["page"])
    table.eraser().check_rewritable()
    forbidden = os.path.normpath(table.folder / place)

    def access(path: str, mode: int, **_: Any) -> bool:
        return os.path.normpath(path) != forbidden

    monkeypatch.setattr(os, "access", access)  # permissions do not bind root
    with pytest.raises(UnsupportedError, match="may not be written to by this user"):
        table.eraser().check_rewritable()
    with pytest.raises(UnsupportedError, match="may not be written to by this user"):
        table.eraser().plan(PEOPLE)
    assert table.eraser().plan(People.named(["nobody"])) is None
