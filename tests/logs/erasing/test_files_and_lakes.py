"""Erasers of Parquet files, Delta and Iceberg tables: what is refused, and what stays how long."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import IdentityTransform

from armnesia.core.errors import ArmnesiaError, InvalidLogError, UnsupportedError
from armnesia.logs.erase import parquet as parquet_module
from armnesia.logs.erase.eraser import Eraser
from armnesia.logs.erase.lakes import LakeEraser
from armnesia.logs.source import open_source
from armnesia.logs.statements import Chosen
from tests.logs.erasing.stores import (
    COLUMNS,
    PEOPLE,
    DeltaStore,
    IcebergStore,
    ParquetStore,
    Store,
    arrow,
    filled,
    key,
    made_rows,
    tuples,
    without,
)
from tests.logs.lake_tables import add_actions, delete_positions, edit_commit, inline_vector, set_features

BOB = Chosen(users=[PEOPLE[1]])


def refuses(eraser: Eraser, reason: str) -> None:
    """Nothing is changed."""
    with pytest.raises(UnsupportedError, match=reason):
        eraser.check()
    with pytest.raises(UnsupportedError, match=reason):
        eraser.delete(BOB)


# Parquet


def test_only_parquet_files_on_this_machine_are_written_again(parquet: ParquetStore) -> None:
    (parquet.folder / "log.csv").write_text("user,action,reward\nbob-the-builder,A,1\n")
    refuses(open_source(parquet.folder / "log.csv").eraser(), "only Parquet files on this machine")


def test_files_with_other_names_or_statistics_elsewhere_are_refused(parquet: ParquetStore) -> None:
    filled(parquet)
    state, path = parquet.state(), parquet.folder / "0.parquet"
    os.link(path, parquet.folder.parent / "other.parquet")
    with pytest.raises(InvalidLogError, match="hard links"):
        parquet.eraser().delete(BOB)
    os.unlink(parquet.folder.parent / "other.parquet")
    (parquet.folder / "_metadata").write_bytes(b"")
    with pytest.raises(InvalidLogError, match="_metadata"):
        parquet.eraser().delete(BOB)
    os.unlink(parquet.folder / "_metadata")
    assert parquet.state() == state


def test_a_file_that_another_program_replaces_meanwhile_is_left(
    parquet: ParquetStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, write = parquet, parquet_module._write
    store.append(made_rows(1))

    def replaced(path: str, *given: Any) -> None:
        write(path, *given)
        pq.write_table(arrow(made_rows(3, 20)), path)

    monkeypatch.setattr(parquet_module, "_write", replaced)
    with pytest.raises(InvalidLogError, match="has changed"):
        store.eraser().delete(BOB)
    monkeypatch.undo()
    assert sorted(store.rows(), key=key) == without(made_rows(3, 20))
    assert [path.name for path in store.folder.iterdir()] == ["0.parquet"]
    assert store.eraser().delete(BOB) == 5


def test_a_new_file_is_like_the_old_one(parquet: ParquetStore) -> None:
    """In types, metadata, compression, groups of rows, order and access; codes of a dictionary are texts."""
    table = arrow(made_rows(1)).append_column("day", pa.array([None] * 12, pa.date32()))
    place = table.schema.get_field_index("user")
    table = table.set_column(place, "user", table["user"].dictionary_encode())
    table = table.replace_schema_metadata({"made by": "somebody"})
    path = parquet.folder / "0.parquet"
    pq.write_table(table, path, compression="zstd", row_group_size=5)
    path.chmod(0o640)
    assert parquet.eraser().delete(BOB) == 3
    with pq.ParquetFile(path) as new:
        assert new.metadata.metadata[b"made by"] == b"somebody"
        assert [new.metadata.row_group(at).num_rows for at in range(new.num_row_groups)] == [4, 3, 2]
        assert new.metadata.row_group(0).column(0).compression == "ZSTD"
        names = [name for name in table["user"].to_pylist() if name != PEOPLE[1]]
        assert new.read()["user"].to_pylist() == names
        assert new.schema_arrow.field("day").type == pa.date32()
    assert path.stat().st_mode & 0o777 == 0o640
    assert parquet.files_with(PEOPLE[1]) == 0


@pytest.mark.parametrize(
    "value",
    ["gen_random_uuid()", "1::utinyint", "1.50::decimal(9, 2)", "'1'::json", "[{'x': [1]}]"],
)
def test_types_are_the_same_for_other_readers(value: str, parquet: ParquetStore) -> None:
    path = parquet.folder / "0.parquet"
    people = ", ".join(f"('{name}')" for name in PEOPLE)
    sql = f"SELECT who AS user, 'A' AS action, 1 AS reward, {value} AS other FROM (VALUES {people}) AS _(who)"
    duckdb.sql(sql).write_parquet(str(path))
    described, schema = duckdb.sql(f"DESCRIBE FROM '{path}'").fetchall(), pq.read_schema(path)
    assert parquet.eraser(id=None).delete(BOB) == 1
    assert duckdb.sql(f"DESCRIBE FROM '{path}'").fetchall() == described
    assert pq.read_schema(path).equals(schema, check_metadata=True)


def test_moments_of_spark_stay_as_spark_reads_them(parquet: ParquetStore) -> None:
    path = parquet.folder / "0.parquet"
    rows = arrow(made_rows(1)).append_column("at", pa.array([0] * 12, pa.timestamp("ns")))
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
    assert parquet.eraser().delete(BOB) == 3
    assert pq.ParquetFile(path).schema.column(5).physical_type == "INT96"


def test_a_type_that_would_become_another_is_refused(parquet: ParquetStore) -> None:
    path = parquet.folder / "0.parquet"
    sql = f"SELECT '{PEOPLE[1]}' AS user, 'A' AS action, 1 AS reward, '10:00:00+02'::timetz AS other"
    duckdb.sql(sql).write_parquet(str(path))
    state = parquet.state()
    with pytest.raises(InvalidLogError, match="would write its columns with other types"):
        parquet.eraser(id=None).delete(BOB)
    assert parquet.state() == state


def test_a_file_of_which_no_row_stays_keeps_its_columns(parquet: ParquetStore) -> None:
    parquet.append([row for row in made_rows(1) if row[0] == PEOPLE[1]])
    parquet.append(made_rows(2))
    assert parquet.eraser().delete(BOB) == 6
    assert pq.read_table(parquet.folder / "0.parquet").schema == arrow([]).schema


# Delta


def commits(store: DeltaStore) -> list[dict[str, Any]]:
    log = sorted((store.folder / "clicks" / "_delta_log").glob("*.json"))
    return [json.loads(line) for path in log for line in path.read_text().splitlines()]


def test_no_name_of_the_people_is_written_into_the_log(delta: DeltaStore) -> None:
    """Not even as the lowest and highest of those that are erased."""
    delta.append([(name, "A", 1.0, name, 1) for name in ("aaa", *PEOPLE, "zzz")])
    before = len(commits(delta))
    assert delta.eraser().delete(Chosen(users=PEOPLE[:2])) == 2
    new = json.dumps(commits(delta)[before:])
    assert '"operation": "MERGE"' in new
    assert [name for name in PEOPLE if name in new] == []


def test_old_files_of_a_delta_table_stay_as_long_as_it_declares(delta: DeltaStore) -> None:
    filled(delta)
    now, eraser = datetime.now(UTC), delta.eraser()
    eraser.delete(BOB)
    due = eraser.purge()
    assert due is not None
    assert timedelta(days=6) < due - now < timedelta(days=8)
    delta.append(without(made_rows(3), PEOPLE[1]))
    assert eraser.purge() == due, "what was only added holds no deleted rows"
    assert len(deltalake.DeltaTable(delta.folder / "clicks", version=1).to_pyarrow_table()) == 24
    assert eraser.purge(ignore_retention=True) is None
    assert len(list((delta.folder / "clicks").glob("*.parquet"))) == 2


def test_a_delta_table_whose_log_would_name_people_is_refused(delta: DeltaStore) -> None:
    delta.write(made_rows(1), partition_by=["user"])
    state = delta.state()
    refuses(delta.eraser(), "partitioned by 'user'")
    assert delta.state() == state


def test_what_deltalake_does_not_write_is_told(delta: DeltaStore) -> None:
    delta.write(made_rows(1), configuration={"delta.appendOnly": "true"})
    with pytest.raises(InvalidLogError, match="CommitFailedError"):
        delta.eraser().delete(BOB)
    assert sorted(delta.rows(), key=key) == without(made_rows(1))


def test_rows_that_a_deletion_vector_marks_stay_deleted(delta: DeltaStore) -> None:
    delta.append(made_rows(1))
    vector, path = inline_vector([0]), delta.folder / "clicks"
    edit_commit(path, 0, set_features("deletionVectors"))
    edit_commit(path, 0, lambda actions: add_actions(actions)[0].update(deletionVector=vector))
    assert delta.eraser().delete(BOB) == 3
    source = delta.source()
    with source.connection() as connection:
        left = connection.rows(f"SELECT {', '.join(COLUMNS)} FROM {source.scan(connection).table}")
    assert sorted(left, key=key) == without(made_rows(1)[1:], PEOPLE[1])


def test_files_of_others_in_a_folder_are_not_removed(delta: DeltaStore) -> None:
    filled(delta)
    eraser = delta.eraser()
    eraser.delete(BOB)
    (delta.folder / "clicks" / "notes.txt").write_text("of somebody else")
    with pytest.raises(UnsupportedError, match="no Parquet files"):
        eraser.purge(ignore_retention=True)
    assert delta.files_with(PEOPLE[1]) > 0


# Iceberg


def test_old_snapshots_stay_as_long_as_the_table_declares(iceberg: IcebergStore) -> None:
    filled(iceberg)
    now, eraser = datetime.now(UTC), iceberg.eraser()
    eraser.delete(BOB)
    first = iceberg.opened.snapshots()[0].snapshot_id
    due = eraser.purge()
    assert due is not None
    assert timedelta(days=4) < due - now < timedelta(days=6)
    iceberg.append(without(made_rows(3), PEOPLE[1]))
    assert eraser.purge() == due, "what was only added holds no deleted rows"
    assert len(iceberg.opened.scan(snapshot_id=first).to_arrow()) == 12
    with iceberg.opened.transaction() as transaction:
        transaction.set_properties({"history.expire.max-snapshot-age-ms": "0"})
    assert eraser.purge() is None
    assert len(iceberg.opened.snapshots()) == 1
    assert iceberg.files_with(PEOPLE[1]) == 0


def branched(table: IcebergTable) -> None:
    table.manage_snapshots().create_branch(table.snapshots()[0].snapshot_id, "audit").commit()


def tagged(table: IcebergTable) -> None:
    table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "2026").commit()


@pytest.mark.parametrize("change", [branched, tagged])
def test_an_iceberg_table_with_branches_or_tags_is_refused(change: Any, iceberg: IcebergStore) -> None:
    filled(iceberg)
    change(iceberg.opened)
    metadata = iceberg.opened.metadata_location
    refuses(iceberg.eraser(), "branches or tags, which keep the rows")
    assert iceberg.opened.metadata_location == metadata


def test_one_version_of_an_iceberg_table_is_refused(iceberg: IcebergStore) -> None:
    filled(iceberg)
    path = iceberg.opened.metadata_location.removeprefix("file://")
    refuses(open_source(f"iceberg:{path}", id="event").eraser(), "one version for good")


def test_a_partitioned_iceberg_table_is_erased_from(iceberg: IcebergStore) -> None:
    rows = filled(iceberg)
    with iceberg.opened.update_spec() as update:
        update.add_field("user", IdentityTransform(), "who")
    iceberg.append(made_rows(3))
    eraser = iceberg.eraser()
    assert eraser.delete(BOB) == 9
    assert eraser.purge(ignore_retention=True) is None
    assert sorted(iceberg.rows(), key=key) == without([*rows, *made_rows(3)], PEOPLE[1])
    assert iceberg.files_with(PEOPLE[1]) == 0


def test_rows_that_were_marked_as_deleted_stay_deleted(iceberg: IcebergStore) -> None:
    rows = filled(iceberg)
    first = sorted(iceberg.opened.inspect.files()["file_path"].to_pylist())[0]
    folder = Path(first.removeprefix("file://")).parent
    marked = iceberg.opened.scan().to_arrow()  # of either file, the first and the fifth are Ann's
    delete_positions(iceberg.opened, {first: [0, 4]}, folder / "deletes.parquet")
    assert len(iceberg.rows()) == len(marked) - 2
    before = iceberg.rows()
    assert iceberg.eraser().delete(BOB) == 6
    assert sorted(iceberg.rows(), key=key) == without(before, PEOPLE[1])
    assert len(without(rows, PEOPLE[1])) == len(iceberg.rows()) + 2


@pytest.mark.parametrize(
    ("name", "text", "at_once"),
    [("gc.enabled", "false", True), ("history.expire.min-snapshots-to-keep", "3", False)],
)
def test_files_that_a_table_declares_to_be_needed_are_not_removed(
    name: str, text: str, at_once: bool, iceberg: IcebergStore
) -> None:
    filled(iceberg)
    iceberg.eraser().delete(BOB)
    with iceberg.opened.transaction() as transaction:
        transaction.set_properties({name: text})
    state = iceberg.state()
    with pytest.raises(UnsupportedError, match=name):
        iceberg.eraser().purge(ignore_retention=at_once)
    assert iceberg.state() == state


def test_files_of_others_at_the_location_of_a_table_stay(iceberg: IcebergStore) -> None:
    """The default location of a table is named after it, so that one which is made anew shares it."""
    rows = filled(iceberg)
    iceberg.catalog.rename_table("logs.clicks", "logs.old_clicks")
    iceberg.append(made_rows(3))
    data = Path(iceberg.opened.location().removeprefix("file://")) / "data"
    pq.write_table(arrow(made_rows(4)), data / "of-a-writer.parquet")
    eraser = iceberg.eraser()
    assert eraser.delete(BOB) == 3
    assert eraser.purge(ignore_retention=True) is None
    assert iceberg.files_with("event-3-5") == 0
    old = iceberg.catalog.load_table("logs.old_clicks").scan().to_arrow()
    assert sorted(tuples(old), key=key) == without(rows)
    assert (data / "of-a-writer.parquet").exists()


# Both


@pytest.mark.parametrize("kind", [DeltaStore, IcebergStore])
def test_a_commit_that_others_have_followed_is_not_taken_back(
    kind: type[Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taking it back would take back theirs as well."""
    store = kind(tmp_path / "log")
    rows, eraser, new = filled(store), store.eraser(), made_rows(3)
    assert isinstance(eraser, LakeEraser)
    commit = eraser.commit

    def followed(source: Any, column: str, values: Any) -> Any:
        made = commit(source, column, [*values, PEOPLE[0]])
        store.append(new)
        return made

    monkeypatch.setattr(eraser, "commit", followed)
    with pytest.raises(InvalidLogError, match="others have followed: restore the table"):
        eraser.delete(BOB)
    assert sorted(store.rows(), key=key) == sorted([*without(rows, *PEOPLE[:2]), *new], key=key)


@pytest.mark.parametrize("kind", [DeltaStore, IcebergStore])
def test_a_failure_of_a_library_is_told_without_its_words(
    kind: type[Store], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = kind(tmp_path / "log")
    filled(store)
    eraser = store.eraser()

    def failing(*_: Any) -> Any:
        raise ValueError(f"cannot cast {PEOPLE[1]!r}")

    monkeypatch.setattr(eraser, "commit", failing)
    with pytest.raises(ArmnesiaError, match=r"failed \(ValueError\)") as caught:
        eraser.delete(BOB)
    assert PEOPLE[1] not in str(caught.value)
    assert caught.value.__cause__ is None
