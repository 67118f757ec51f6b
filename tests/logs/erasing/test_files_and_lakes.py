"""Erasers of Parquet files, Delta and Iceberg tables: what is refused, and what stays how long."""

import json
import os
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import Table as IcebergTable
from pyiceberg.transforms import BucketTransform, IdentityTransform

from armnesia.core.errors import ArmnesiaError, InvalidLogError, UnsupportedError
from armnesia.logs.erase.eraser import Eraser
from armnesia.logs.erase.lakes import LakeEraser
from armnesia.logs.source import open_source
from armnesia.logs.statements import Chosen
from tests.logs.erasing.stores import (
    PEOPLE,
    DeltaStore,
    IcebergStore,
    ParquetStore,
    Store,
    arrow,
    filled,
    key,
    made_rows,
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


def test_folders_that_are_named_after_people_are_refused(parquet: ParquetStore) -> None:
    for name in ("user=ann", "user=bob"):
        (parquet.folder / name).mkdir()
        pq.write_table(arrow(made_rows(1)).drop_columns("user"), parquet.folder / name / "0.parquet")
    refuses(parquet.eraser(), "partitioned by 'user'")


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
    from armnesia.logs.erase import parquet as module

    store, copy = parquet, module._copy_access
    store.append(made_rows(1))

    def replaced(path: str, staged: str) -> None:
        copy(path, staged)
        pq.write_table(arrow(made_rows(3, 20)), path)

    monkeypatch.setattr(module, "_copy_access", replaced)
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
    assert len(deltalake.DeltaTable(delta.folder / "clicks", version=1).to_pyarrow_table()) == 24
    assert eraser.purge(ignore_retention=True) is None
    assert eraser.purge() is None


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"partition_by": ["user"]}, "partitioned by 'user'"),
        ({"configuration": {"delta.appendOnly": "true"}}, "delta.appendOnly"),
    ],
)
def test_delta_tables_are_refused(options: dict[str, Any], reason: str, delta: DeltaStore) -> None:
    delta.write(made_rows(1), **options)
    state = delta.state()
    refuses(delta.eraser(), reason)
    assert delta.state() == state


def test_a_delta_table_with_deletion_vectors_is_refused(delta: DeltaStore) -> None:
    delta.append(made_rows(1))
    vector, path = inline_vector([0]), delta.folder / "clicks"
    edit_commit(path, 0, set_features("deletionVectors"))
    edit_commit(path, 0, lambda actions: add_actions(actions)[0].update(deletionVector=vector))
    refuses(delta.eraser(), "it has deletion vectors, which deltalake does not keep")


def test_files_of_others_in_a_folder_are_not_removed(delta: DeltaStore) -> None:
    filled(delta)
    eraser = delta.eraser()
    eraser.delete(BOB)
    (delta.folder / "clicks" / "notes.txt").write_text("of somebody else")
    with pytest.raises(UnsupportedError, match=r"files of others, which end in '\.txt"):
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


def with_retention(table: IcebergTable) -> None:
    head = table.snapshots()[-1].snapshot_id
    table.manage_snapshots().create_branch(head, "main", min_snapshots_to_keep=9).commit()


def with_property(name: str, text: str) -> Callable[[IcebergTable], None]:
    def change(table: IcebergTable) -> None:
        with table.transaction() as transaction:
            transaction.set_properties({name: text})

    return change


def partitioned(table: IcebergTable) -> None:
    with table.update_spec() as update:
        update.add_field("user", IdentityTransform(), "who")
    with table.update_spec() as update:  # what was a partition is still in names of folders
        update.remove_field("who")


def with_file_elsewhere(table: IcebergTable) -> None:
    path = Path(table.location().removeprefix("file://")).parent / "elsewhere.parquet"
    pq.write_table(arrow(made_rows(3)), path)
    table.add_files([f"file://{path}"])


def linked(table: IcebergTable) -> None:
    folder = Path(table.location().removeprefix("file://")) / "data"
    shutil.move(folder, folder.parent.parent / "moved")
    folder.symlink_to(folder.parent.parent / "moved")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (branched, "branches or tags, which keep the rows"),
        (tagged, "branches or tags, which keep the rows"),
        (with_retention, "main branch declares how long snapshots stay"),
        (partitioned, "it is or was partitioned by 'user'"),
        (with_file_elsewhere, "files outside of its location"),
        (with_property("write.data.path", "file:///data"), "files outside of its location"),
        (linked, "its folder has links"),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_iceberg_tables_are_refused(change: Any, reason: str, iceberg: IcebergStore) -> None:
    filled(iceberg)
    change(iceberg.opened)
    metadata = iceberg.opened.metadata_location
    refuses(iceberg.eraser(), reason)
    assert iceberg.opened.metadata_location == metadata


def test_one_version_of_an_iceberg_table_is_refused(iceberg: IcebergStore) -> None:
    filled(iceberg)
    path = iceberg.opened.metadata_location.removeprefix("file://")
    refuses(open_source(f"iceberg:{path}", id="event").eraser(), "one version for good")


def test_buckets_of_people_tell_nobody(iceberg: IcebergStore) -> None:
    rows = filled(iceberg)
    with iceberg.opened.update_spec() as update:
        update.add_field("user", BucketTransform(4), "bucket")
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


def renamed_and_made_anew(store: IcebergStore) -> None:
    """The default location of a table is named after it, so that both share one."""
    store.catalog.rename_table("logs.clicks", "logs.old_clicks")
    store.append(made_rows(3))


def with_strange_file(store: IcebergStore) -> None:
    Path(store.opened.location().removeprefix("file://"), "notes.txt").write_text("of somebody else")


def with_properties(**properties: str) -> Callable[[IcebergStore], None]:
    def change(store: IcebergStore) -> None:
        with store.opened.transaction() as transaction:
            transaction.set_properties({name.replace("__", "."): text for name, text in properties.items()})

    return change


@pytest.mark.parametrize(
    ("change", "reason", "at_once"),
    [
        (renamed_and_made_anew, "another table has metadata at its location", True),
        (with_strange_file, r"files of others, which end in '\.txt", True),
        (with_properties(gc__enabled="false"), "gc.enabled=false", True),
        (
            with_properties(**{"history.expire.min-snapshots-to-keep": "3"}),
            "min-snapshots-to-keep = 3",
            False,
        ),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_files_that_others_may_need_are_not_removed(
    change: Any, reason: str, at_once: bool, iceberg: IcebergStore
) -> None:
    filled(iceberg)
    iceberg.eraser().delete(BOB)
    change(iceberg)
    state = iceberg.state()
    with pytest.raises(UnsupportedError, match=reason):
        iceberg.eraser().purge(ignore_retention=at_once)
    assert iceberg.state() == state


def test_what_a_killed_writer_has_left_is_removed(iceberg: IcebergStore) -> None:
    filled(iceberg)
    folder = Path(iceberg.opened.location().removeprefix("file://"))
    pq.write_table(arrow(made_rows(3)), folder / "data" / "uncommitted.parquet")
    (folder / "metadata" / "00009-of-a-killed-writer.metadata.json").write_bytes(b'{"format-ver')
    eraser = iceberg.eraser()
    eraser.delete(BOB)
    assert eraser.purge(ignore_retention=True) is None
    assert iceberg.files_with("event-3-") == 0
    assert [path.name for path in folder.rglob("*killed*")] == []


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
