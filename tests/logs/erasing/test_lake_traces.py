"""Names and rows of people that a Delta or Iceberg table keeps elsewhere than in the rows of its readers."""

from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFileContent
from pyiceberg.types import IcebergType, ListType, NestedField, StringType, StructType

from armnesia.core.errors import UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.logs import open_source
from armnesia.logs.erasing import Erasure, ErasurePlan, People, SourceState, open_eraser
from tests.logs.erasing.stores import (
    DeltaStore,
    IcebergStore,
    Row,
    Store,
    arrow_rows,
    found_in,
    in_order,
    made_rows,
    name_of,
)
from tests.logs.lakes.tables import (
    add_actions,
    add_delete_file,
    edit_commit,
    iceberg_files,
    inline_vector,
    set_features,
)

PERSON = name_of(1)
PEOPLE = People.named([PERSON])
NAMED = "as its log or its folder names them, name people"


def without(rows: list[Row]) -> list[Row]:
    return in_order(row for row in rows if row[0] != PERSON)


def erase(store: Store) -> tuple[ErasurePlan, Erasure]:
    plan = store.eraser().plan(PEOPLE)
    assert plan is not None
    return plan, store.eraser().apply(plan, PEOPLE)


def purged(store: Store) -> Erasure:
    return store.eraser().purge(erase(store)[0], PEOPLE, ignore_retention=True)


def is_named(erasure: Erasure) -> bool:
    """Whether it says so; then it is not purged."""
    found = any(NAMED in each for each in erasure.remains)
    assert erasure.state == (SourceState.LOGICALLY_DELETED if found else SourceState.PURGED)
    return found


def delta_table(store: DeltaStore) -> deltalake.DeltaTable:
    return deltalake.DeltaTable(str(store.folder))


def test_later_rows_of_the_same_person_that_others_have_deleted(table: DeltaStore) -> None:
    """A file that was added after the erasure holds them."""
    retention = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
    deltalake.write_deltalake(str(table.folder), arrow_rows(made_rows(0)), configuration=retention)
    plan, _ = erase(table)
    assert table.eraser().purge(plan, PEOPLE).state == SourceState.PURGED
    table.append(made_rows(1))
    wanted = pa.table({"name": [PERSON]})
    merge = delta_table(table).merge(wanted, "t.user = s.name", source_alias="s", target_alias="t")
    merge.when_matched_delete().execute()
    later = table.eraser().apply(plan, PEOPLE)
    assert later.state == SourceState.LOGICALLY_DELETED
    assert any("hold deleted rows" in each for each in later.remains)
    assert table.eraser().purge(plan, PEOPLE).state == SourceState.PURGED
    files = (path.read_bytes() for path in table.folder.glob("*.parquet"))
    assert found_in(files, {PERSON.encode()}) == set()


@pytest.mark.parametrize("place", ["description", "comment", "application", "nothing"])
def test_names_in_what_a_delta_table_says_of_itself(table: DeltaStore, place: str) -> None:
    rows, options = arrow_rows(made_rows(0)), dict[str, Any]()
    if place == "description":
        options["description"] = f"clicks of {PERSON}"
    elif place == "comment":
        described = [field.with_metadata({"comment": f"e.g. {PERSON}"}) for field in rows.schema]
        rows = rows.cast(pa.schema(described))
    elif place == "application":
        done = [deltalake.Transaction(app_id=f"export-{PERSON}", version=1)]
        options["commit_properties"] = deltalake.CommitProperties(app_transactions=done)
    deltalake.write_deltalake(str(table.folder), rows, **options)
    erasure = purged(table)
    has_name = bool(found_in(table.contents(), {PERSON.encode()}))
    assert is_named(erasure) == has_name == (place != "nothing")


@pytest.mark.parametrize("options", [{"description": "Clicks, for {} on request"}, {"name": "of-{}-2026"}])
@pytest.mark.parametrize("person", ["Anna Leeson", "user-550e8400-e29b-41d4-a716-446655440000"])
def test_names_of_several_words_in_what_a_delta_table_says(
    table: DeltaStore, person: str, options: dict[str, str]
) -> None:
    rows = [(person if row[0] == PERSON else row[0], *row[1:]) for row in made_rows(0)]
    said: dict[str, Any] = {key: text.format(person) for key, text in options.items()}
    deltalake.write_deltalake(str(table.folder), arrow_rows(rows), **said)
    people = People.named([person], UserType.TEXT)
    plan = table.eraser().plan(people)
    assert plan is not None
    table.eraser().apply(plan, people)
    assert is_named(table.eraser().purge(plan, people, ignore_retention=True))


def test_partitions_by_another_column_that_name_people(table: DeltaStore) -> None:
    rows = [(*row[:3], row[0] or "nobody") for row in made_rows(0)]
    deltalake.write_deltalake(str(table.folder), arrow_rows(rows), partition_by=["page"])
    assert is_named(purged(table)), "removed files are in the checkpoint"
    assert in_order(table.rows()) == without(rows)


def test_an_empty_folder_that_names_people(table: DeltaStore, lake: IcebergStore) -> None:
    for store in (table, lake):
        store.with_parts(1)
        folder = store.folder
        if isinstance(store, IcebergStore):
            folder = Path(store.table().location().removeprefix("file://")) / "data"
        (folder / f"who={PERSON}").mkdir()
        plan, _ = erase(store)
        assert is_named(store.eraser().purge(plan, PEOPLE, ignore_retention=True))
        (folder / f"who={PERSON}").rmdir()
        assert not is_named(store.eraser().purge(plan, PEOPLE, ignore_retention=True))


def test_remarks_on_later_commits_are_said(table: DeltaStore) -> None:
    table.with_parts(1)
    plan, _ = erase(table)
    remark = deltalake.CommitProperties(custom_metadata={"note": f"all but {PERSON}"})
    deltalake.write_deltalake(
        str(table.folder), arrow_rows(without(made_rows(1))), mode="append", commit_properties=remark
    )
    erasure = table.eraser().apply(plan, PEOPLE)
    assert any("may name people (remarks or statistics)" in each for each in erasure.remains)
    erasure = table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert (erasure.state, len(erasure.remains)) == (SourceState.PURGED, 3), "what always remains"
    assert found_in(table.contents(), {PERSON.encode()}) == set()
    version = delta_table(table).version()
    table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert delta_table(table).version() == version, "there is nothing more to drop"


@pytest.mark.parametrize("place", ["property", "comment", "tag", "nothing"])
def test_names_in_what_an_iceberg_table_says_of_itself(lake: IcebergStore, place: str) -> None:
    lake.with_parts(1)
    plan, _ = erase(lake)
    if place == "property":
        lake.table().transaction().set_properties({"note": f"of {PERSON}"}).commit_transaction()
    elif place == "comment":
        with lake.table().update_schema() as update:
            update.update_column("user", doc=f"such as {PERSON}")
    elif place == "tag":
        number = lake.table().current_snapshot().snapshot_id
        lake.table().manage_snapshots().create_tag(number, f"without-{PERSON}").commit()
    erasure = lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert any(NAMED in each for each in erasure.remains) == (place != "nothing")
    assert erasure.state == (SourceState.PURGED if place == "nothing" else SourceState.LOGICALLY_DELETED)
    assert PERSON not in str(erasure.to_dict())


def test_numbers_in_the_names_of_files_are_no_people(tmp_path: Path) -> None:
    """Files are numbered from 00000 on."""
    rows = {"user": [0, 1, 2, 3], "action": ["A", "B"] * 2, "reward": [0.5] * 4}
    deltalake.write_deltalake(str(tmp_path / "log"), pa.table(rows))
    source = open_source(f"delta:{tmp_path}/log", action="action", reward="reward", whole_rows=False)
    people = People.named(["0", "1"], UserType.INTEGER)
    plan = open_eraser(source).plan(people)
    assert plan is not None
    open_eraser(source).apply(plan, people)
    erasure = open_eraser(source).purge(plan, people, ignore_retention=True)
    assert (erasure.state, len(erasure.remains)) == (SourceState.PURGED, 3)


def test_a_column_that_was_dropped_and_added_again(lake: IcebergStore) -> None:
    """A file of the present snapshot has the old column, which its readers do not see."""
    lake.with_parts(1)
    with lake.table().update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("user")
    with lake.table().update_schema() as update:
        update.add_column("user", StringType())
    lake.append(made_rows(1))
    plan, _ = erase(lake)
    erasure = lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert found_in(lake.contents(), {PERSON.encode()})
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert any("in a column that was dropped" in each for each in erasure.remains)
    lake.table().overwrite(lake.table().scan().to_arrow())
    erasure = lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert erasure.state == SourceState.PURGED
    assert found_in(lake.contents(), {PERSON.encode()}) == set()


@pytest.mark.parametrize("kind", ["list", "struct"])
def test_a_nested_column_that_was_dropped(lake: IcebergStore, kind: str) -> None:
    """Such columns are not looked into; a file without rows of the person has them still."""
    lake.with_parts(1)
    nested: IcebergType = ListType(91, StringType(), element_required=False)
    values: list[Any] = [[PERSON]]
    if kind == "struct":
        nested, values = StructType(NestedField(91, "name", StringType())), [{"name": PERSON}]
    with lake.table().update_schema() as update:
        update.add_column("friends", nested)
    rows = arrow_rows([(name_of(7), "A", 0.5, "x")])
    type_ = lake.table().schema().as_arrow().field("friends").type
    lake.table().append(rows.append_column("friends", pa.array(values, type_)))
    with lake.table().update_schema() as update:
        update.delete_column("friends")
    erasure = purged(lake)
    assert found_in(lake.contents(), {PERSON.encode()})
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert any("hold such a column that cannot be looked into" in each for each in erasure.remains)


def test_rows_of_people_that_are_only_marked_are_found(table: DeltaStore) -> None:
    """By a deletion vector in a file that is not written again."""
    table.append([(PERSON, "A", 0.5, "x"), (name_of(7), "B", 0.25, "x")])

    def mark(actions: list[dict[str, Any]]) -> None:
        set_features("deletionVectors", enableDeletionVectors="true")(actions)
        add_actions(actions)[0]["deletionVector"] = inline_vector([0])

    edit_commit(table.folder, 0, mark)
    erasure = table.eraser().apply(table.eraser().empty_plan(), PEOPLE)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert any(
        "rows of these people that an earlier deletion has only marked" in each for each in erasure.remains
    )
    someone = People.named([name_of(99)])
    assert table.eraser().apply(table.eraser().empty_plan(), someone).state == SourceState.PURGED


@pytest.mark.parametrize("text", ["interval 1000000 weeks", "interval 1 month", "soon"])
def test_a_retention_of_a_delta_table_that_is_never_over(table: DeltaStore, text: str) -> None:
    retention = {"delta.deletedFileRetentionDuration": text}
    deltalake.write_deltalake(str(table.folder), arrow_rows(made_rows(0)), configuration=retention)
    plan, erasure = erase(table)
    held = table.eraser().purge(plan, PEOPLE)
    for each in (erasure, held):
        assert (each.state, each.due) == (SourceState.LOGICALLY_DELETED, None)
        assert any(
            "a retention that is never over, or that is not understood" in said for said in each.remains
        )
    assert len(list(table.folder.glob("*.parquet"))) == 2
    assert table.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED


def test_a_retention_that_deltalake_cannot_read_is_refused_at_first(table: DeltaStore) -> None:
    retention = {"delta.deletedFileRetentionDuration": "interval 99999999999999 days"}
    deltalake.write_deltalake(str(table.folder), arrow_rows(made_rows(0)), configuration=retention)
    with pytest.raises(UnsupportedError, match="by which deltalake can write no checkpoint"):
        table.eraser()


@pytest.mark.parametrize("age", ["9223372036854775807", "5 days", "-1", ""])
def test_an_age_of_snapshots_that_is_never_reached(lake: IcebergStore, age: str) -> None:
    lake.with_parts(1)
    properties = {"history.expire.max-snapshot-age-ms": age}
    lake.table().transaction().set_properties(properties).commit_transaction()
    plan, erasure = erase(lake)
    held = lake.eraser().purge(plan, PEOPLE)
    for each in (erasure, held):
        assert (each.state, each.due) == (SourceState.LOGICALLY_DELETED, None)
        assert any(
            "a retention that is never over, or that is not understood" in said for said in each.remains
        )
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED


def test_a_file_without_any_rows_of_people_does_not_count(table: DeltaStore) -> None:
    """Also one of which nothing tells when it was written."""
    table.with_parts(1)
    pq.write_table(arrow_rows(without(made_rows(1))), table.folder / "extra.parquet")
    assert purged(table).state == SourceState.PURGED


@pytest.mark.parametrize("content", ["rows", "a remark", "positions"])
def test_position_deletes_with_the_rows_that_they_delete(lake: IcebergStore, content: str) -> None:
    """They stay in the present snapshot when the data file is written again."""
    lake.append([(PERSON, "A", 0.5, "x"), (PERSON, "B", 0.25, "x"), (name_of(7), "B", 0.75, "x")])
    table = lake.table()
    (data,) = iceberg_files(table)

    def field(name: str, number: int, type_: pa.DataType) -> pa.Field:
        return pa.field(name, type_, metadata={"PARQUET:field_id": str(number)})

    row = pa.struct([field("user", 1, pa.string())])
    fields = [field("file_path", 2147483546, pa.string()), field("pos", 2147483545, pa.int64())]
    values = [pa.array([data.file_path]), pa.array([0])]
    if content == "rows":
        fields.append(field("row", 2147483544, row))
        values.append(pa.array([{"user": PERSON}], row))
    schema = pa.schema(fields, metadata={"note": PERSON} if content == "a remark" else None)
    path = Path(data.file_path.removeprefix("file://")).with_name("00000-deletes.parquet")
    pq.write_table(pa.Table.from_arrays(values, schema=schema), path)
    add_delete_file(table, path, DataFileContent.POSITION_DELETES)
    erasure = purged(lake)
    is_left = bool(found_in(lake.contents(), {PERSON.encode()}))
    assert is_left == (content != "positions")
    assert erasure.state == (SourceState.LOGICALLY_DELETED if is_left else SourceState.PURGED)
    assert any("files of position deletes hold more" in each for each in erasure.remains) == is_left
