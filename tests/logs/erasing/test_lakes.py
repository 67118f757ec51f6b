"""Erasing rows of Delta and Iceberg tables: what their logs say, what remains, and what is refused."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import BucketTransform, IdentityTransform, TruncateTransform

from armnesia.core.errors import InvalidInputError, InvalidLogError, UnsupportedError
from armnesia.logs import open_source
from armnesia.logs.erasing import (
    Erasure,
    ErasurePlan,
    People,
    SourceState,
    delta_deletion,
    iceberg,
    lake_eraser,
    open_eraser,
)
from armnesia.logs.erasing.delta_files import DeltaFolder
from armnesia.logs.erasing.iceberg_files import TableFiles
from armnesia.logs.lakes import delta as delta_reading
from armnesia.logs.lakes import iceberg as iceberg_reading
from armnesia.logs.lakes.snapshot import table_address
from tests.logs.erasing.conftest import make_store
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
    needles,
    tuples,
)
from tests.logs.lakes.tables import (
    add_actions,
    compact_iceberg,
    delete_positions,
    edit_commit,
    iceberg_files,
    inline_vector,
    set_features,
    vector_in_file,
)
from tests.quick import quick_only

pytestmark = pytest.mark.slow  # tests/promises erase every kind quickly

ERASED = [name_of(1), name_of(2)]
PEOPLE = People.named(ERASED)


def erase(store: Store) -> tuple[ErasurePlan, Erasure]:
    plan = store.eraser().plan(PEOPLE)
    assert plan is not None
    return plan, store.eraser().apply(plan, PEOPLE)


def others(rows: list[Row]) -> list[Row]:
    return in_order(row for row in rows if row[0] not in ERASED)


def gone(rows: list[Row]) -> set[bytes]:
    return needles(row for row in rows if row[0] in ERASED)


def commit_text(store: Store, version: int) -> str:
    return (store.folder / "_delta_log" / f"{version:020}.json").read_text("utf-8")


def test_the_commit_of_a_delta_erasure_names_nobody(table: DeltaStore) -> None:
    """Unlike that of a delete, whose predicate is in the log for good."""
    rows = table.with_parts()
    plan, erasure = erase(table)
    assert (erasure.before, erasure.after) == (2, 3)
    info = json.loads(commit_text(table, 3).splitlines()[0])["commitInfo"]
    assert info["operationParameters"]["mergePredicate"] == "t.user = s.name"
    assert info["armnesiaErasure"] == plan.token
    assert found_in([commit_text(table, 3).encode()], gone(rows)) == set()
    predicate = f"user = '{name_of(3)}'"
    deltalake.DeltaTable(str(table.folder)).delete(predicate)
    assert name_of(3) in commit_text(table, 4), "the trap is there"


def test_what_remains_of_a_delta_erasure(table: DeltaStore) -> None:
    rows = table.with_parts()
    plan, erasure = erase(table)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert found_in(table.contents(), gone(rows)) >= {name.encode() for name in ERASED}
    assert erasure.remains[0].startswith("files that the present version of the table does not have")
    assert "the log still has version 0 and later ones" in erasure.remains[1]
    assert erasure.due is not None
    assert timedelta(days=6.9) < erasure.due - datetime.now(UTC) < timedelta(days=7.1)
    again = table.eraser().purge(plan, PEOPLE)
    assert (again.state, again.due) == (SourceState.LOGICALLY_DELETED, erasure.due)
    assert len(list(table.folder.glob("*.parquet"))) == 4, "the retention of the table is respected"
    with pytest.raises(InvalidInputError, match="an erasure that was applied cannot be undone"):
        table.eraser().undo(plan)


def test_a_retention_that_is_over_lets_files_go(table: DeltaStore) -> None:
    retention = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
    rows = arrow_rows(made_rows(0))
    deltalake.write_deltalake(str(table.folder), rows, configuration=retention)
    plan, erasure = erase(table)
    assert erasure.due is not None
    assert erasure.due <= datetime.now(UTC) + timedelta(seconds=1)
    purged = table.eraser().purge(plan, PEOPLE)
    assert purged.state == SourceState.PURGED
    assert "the log still has version 0" in purged.remains[0], "statistics stay in the log"


def delta_table(store: DeltaStore) -> deltalake.DeltaTable:
    return deltalake.DeltaTable(str(store.folder))


def vacuum(store: DeltaStore) -> None:
    delta_table(store).vacuum(0, dry_run=False, enforce_retention_duration=False)


@pytest.mark.parametrize("hours", [-1, 1])
def test_old_files_are_known_by_no_clock(table: DeltaStore, hours: int) -> None:
    """The clock of the storage may be behind or ahead of that of the writer."""
    table.with_parts(1)
    (old,) = table.folder.glob("*.parquet")
    moment = old.stat().st_mtime + hours * 3600
    os.utime(old, (moment, moment))
    _, erasure = erase(table)
    assert erasure.state == SourceState.LOGICALLY_DELETED


def test_files_that_came_after_the_erasure_do_not_count(table: DeltaStore) -> None:
    rows = table.with_parts(1)
    plan, _ = erase(table)
    table.append(others(made_rows(1)))
    delta_table(table).optimize.compact()
    assert table.eraser().apply(plan, PEOPLE).state == SourceState.LOGICALLY_DELETED
    vacuum(table)
    table.append(others(made_rows(2)))
    delta_table(table).optimize.compact()
    assert len(list(table.folder.glob("*.parquet"))) > len(delta_table(table).file_uris())
    assert table.eraser().apply(plan, PEOPLE).state == SourceState.PURGED
    assert found_in((path.read_bytes() for path in table.folder.glob("*.parquet")), gone(rows)) == set()


def test_files_that_were_restored_after_the_erasure_count(table: DeltaStore) -> None:
    """The log has them as added after it."""
    table.with_parts(1)
    plan, _ = erase(table)
    delta_table(table).restore(0)
    delta_table(table).delete(f"user IN ('{ERASED[0]}', '{ERASED[1]}')")
    erasure = table.eraser().apply(plan, PEOPLE)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert any("may name people (predicate" in sentence for sentence in erasure.remains)


def test_names_that_others_have_written_into_a_delta_log_are_said(table: DeltaStore) -> None:
    table.with_parts(1)
    delta_table(table).delete(f"user IN ('{ERASED[0]}', '{ERASED[1]}')")
    assert table.eraser().plan(PEOPLE) is None
    plan = table.eraser().empty_plan()
    erasure = table.eraser().apply(plan, PEOPLE)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert any("the log still has version 0" in sentence for sentence in erasure.remains)
    assert any("may name people (predicate" in sentence for sentence in erasure.remains)
    erasure = table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert erasure.state == SourceState.PURGED
    assert found_in(table.contents(), {ERASED[0].encode()}) == set()
    assert len(erasure.remains) == 3, "what always remains"


def test_changes_of_a_delta_table_are_purged_too(table: DeltaStore) -> None:
    """With a feed of changes, deleted rows are written once more."""
    rows = made_rows(0)
    feed = {"delta.enableChangeDataFeed": "true"}
    deltalake.write_deltalake(str(table.folder), arrow_rows(rows), configuration=feed)
    plan, erasure = erase(table)
    assert list((table.folder / "_change_data").glob("*.parquet"))
    assert erasure.remains[0].startswith("files that")
    assert table.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert found_in(table.contents(), gone(rows)) == set()
    assert in_order(table.rows()) == others(rows)


def test_checkpoints_and_earlier_compactions_are_purged(table: DeltaStore) -> None:
    rows = table.with_parts()
    deltalake.DeltaTable(str(table.folder)).create_checkpoint()
    deltalake.DeltaTable(str(table.folder)).optimize.compact()
    deltalake.DeltaTable(str(table.folder)).create_checkpoint()
    plan, _ = erase(table)
    assert table.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert found_in(table.contents(), gone(rows)) == set()
    assert in_order(table.rows()) == others(rows)
    table.append(made_rows(5))
    assert in_order(table.rows()) == in_order([*others(rows), *made_rows(5)])


def test_a_log_that_is_never_cleaned_up_stays(table: DeltaStore) -> None:
    kept = {"delta.enableExpiredLogCleanup": "false"}
    deltalake.write_deltalake(str(table.folder), arrow_rows(made_rows(0)), configuration=kept)
    plan, _ = erase(table)
    erasure = table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert erasure.state == SourceState.PURGED
    assert "the log still has version 0" in erasure.remains[0]
    assert (table.folder / "_delta_log" / f"{0:020}.json").exists()


def test_a_delta_table_that_is_partitioned_by_another_column(table: DeltaStore) -> None:
    rows = made_rows(0)
    deltalake.write_deltalake(str(table.folder), arrow_rows(rows), partition_by=["page"])
    plan, _ = erase(table)
    assert in_order(table.rows()) == others(rows)
    assert table.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert found_in(table.contents(), gone(rows)) == set()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"partition_by": ["user"]}, "the table is partitioned by 'user', so that names of folders"),
        ({"configuration": {"delta.appendOnly": "true"}}, "the table declares delta.appendOnly"),
    ],
)
def test_delta_tables_that_are_refused(table: DeltaStore, options: Any, reason: str) -> None:
    deltalake.write_deltalake(str(table.folder), arrow_rows(made_rows(0)), **options)
    with pytest.raises(UnsupportedError, match=reason):
        table.eraser().plan(PEOPLE)


def name_by_absolute_paths(store: DeltaStore) -> None:
    """As some writers do; deltalake takes such files for old ones."""

    def change(actions: list[dict[str, Any]]) -> None:
        for added in add_actions(actions):
            added["path"] = f"file://{store.folder}/{added['path']}"

    edit_commit(store.folder, 0, change)


def test_a_table_with_absolute_paths_is_refused(table: DeltaStore) -> None:
    """Also before a purge, which would remove files of the present version."""
    table.with_parts(1)
    name_by_absolute_paths(table)
    with pytest.raises(UnsupportedError, match="its log names files by absolute paths"):
        table.eraser()
    with pytest.raises(UnsupportedError, match="its log names files by absolute paths"):
        DeltaFolder(delta_reading.DeltaLog(f"delta:{table.folder}")).remove_data_files(until=None)
    assert len(list(table.folder.glob("*.parquet"))) == 1


def write_sidecar(store: DeltaStore) -> Path:
    """A checkpoint of version 2, as in tables with the feature v2Checkpoint, with all files in a sidecar."""
    log = store.folder / "_delta_log"
    actions = [json.loads(line) for each in range(3) for line in commit_text(store, each).splitlines()]
    added = [action["add"] for action in actions if "add" in action]
    (metadata,) = [action for action in actions if "metaData" in action]
    features = {"readerFeatures": ["v2Checkpoint"], "writerFeatures": ["v2Checkpoint"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    values = pa.map_(pa.string(), pa.string())
    kinds = {"path": pa.string(), "partitionValues": values, "size": pa.int64(), "stats": pa.string()}
    kinds |= {"modificationTime": pa.int64(), "dataChange": pa.bool_()}
    rows = [{name: [] if name == "partitionValues" else each[name] for name in kinds} for each in added]
    path = log / "_sidecars" / "8f3f0d4e-1ef7-4d5c-8b25-0f6a2c8b0b11.parquet"
    path.parent.mkdir()
    removed = pa.struct({"path": pa.string(), "dataChange": pa.bool_()})
    stored = {"add": pa.array(rows, pa.struct(kinds)), "remove": pa.nulls(len(rows), removed)}
    pq.write_table(pa.table(stored), path, compression="none")
    sidecar = {"path": path.name, "sizeInBytes": path.stat().st_size, "modificationTime": 0}
    lines = [{"checkpointMetadata": {"version": 2}}, protocol, metadata, {"sidecar": sidecar}]
    checkpoint = log / f"{2:020}.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json"
    checkpoint.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    for version in range(2):  # as a clean-up of the log does
        (log / f"{version:020}.json").unlink()
    return path


def rows_in_files(store: DeltaStore) -> list[Row]:
    """Where deltalake does not know a feature by which pyarrow would read the table."""
    paths = (uri.removeprefix("file://") for uri in delta_table(store).file_uris())
    return [row for path in paths for row in tuples(pq.ParquetFile(path).read())]


def test_sidecars_of_earlier_checkpoints_are_purged(table: DeltaStore) -> None:
    rows = table.with_parts()
    path = write_sidecar(table)
    assert b"minValues" in path.read_bytes(), "the trap is there"
    plan, erasure = erase(table)
    assert any("further files in the folder of the log may name people" in each for each in erasure.remains)
    erasure = table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert (erasure.state, len(erasure.remains)) == (SourceState.PURGED, 3)
    assert not path.exists()
    assert in_order(rows_in_files(table)) == others(rows)


def test_sidecars_that_a_checkpoint_may_need_stay(table: DeltaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table.with_parts()
    path = write_sidecar(table)
    plan, _ = erase(table)
    monkeypatch.setattr(DeltaFolder, "_has_sidecars", lambda *_: True)
    erasure = table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert path.exists()
    assert any("further files in the folder of the log may name people" in each for each in erasure.remains)
    assert in_order(rows_in_files(table)) == others(rows)


def test_which_checkpoints_need_sidecars(table: DeltaStore) -> None:
    table.with_parts(1)
    folder = DeltaFolder(delta_reading.DeltaLog(f"delta:{table.folder}"))
    names = pa.array([None, {"path": "a.parquet"}], pa.struct({"path": pa.string()}))
    for number, stored in enumerate(({"add": names}, {"sidecar": names}, {"sidecar": names[:1]})):
        pq.write_table(pa.table(stored), table.folder / "_delta_log" / f"{number:020}.checkpoint.parquet")
    paths = [f"_delta_log/{number:020}.checkpoint.parquet" for number in range(3)]
    assert [folder._has_sidecars(path) for path in paths] == [False, True, False]
    assert folder._has_sidecars(f"_delta_log/{3:020}.checkpoint.1.json")
    assert not folder._has_sidecars(f"_delta_log/{3:020}.json")


def test_commits_that_were_not_finished_are_purged(table: DeltaStore) -> None:
    rows, log = table.with_parts(1), table.folder / "_delta_log"
    for name in ("_commit_9f1c.json.tmp", f".{0:020}.json.77.tmp", "_staged_commits/0.json"):
        (log / name).parent.mkdir(exist_ok=True)
        (log / name).write_bytes((log / f"{0:020}.json").read_bytes())
    plan, _ = erase(table)
    erasure = table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert not list(log.glob("*.tmp")) + list(log.glob(".*.tmp"))
    assert any("further files in the folder of the log may name people" in each for each in erasure.remains)
    (log / "_staged_commits" / "0.json").unlink()
    assert len(table.eraser().purge(plan, PEOPLE, ignore_retention=True).remains) == 3, "what always remains"
    assert found_in(table.contents(), gone(rows)) == set()


@pytest.mark.parametrize(
    ("name", "holds_rows"),
    [
        ("_temporary/0/part-0.parquet", True),
        (".part-0.parquet.swp", True),
        ("_SUCCESS", False),
        ("page=x/.part-0.parquet.crc", False),
        ("_symlink_format_manifest/manifest", False),
    ],
)
def test_hidden_files_in_the_folder_of_a_delta_table(table: DeltaStore, name: str, holds_rows: bool) -> None:
    table.with_parts(1)
    (table.folder / name).parent.mkdir(parents=True, exist_ok=True)
    (table.folder / name).touch()
    plan, _ = erase(table)
    erasure = table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert erasure.state == (SourceState.LOGICALLY_DELETED if holds_rows else SourceState.PURGED)
    assert any(each.startswith("hidden files or folders") for each in erasure.remains) == holds_rows


def test_users_by_floats_are_refused(tmp_path: Path) -> None:
    rows = pa.table({"user": [1.5, 2.5], "action": ["A", "B"], "reward": [0.5, 0.25]})
    deltalake.write_deltalake(str(tmp_path / "log"), rows)
    source = open_source(f"delta:{tmp_path}/log", action="action", reward="reward", whole_rows=False)
    with pytest.raises(InvalidLogError, match="must hold dates, decimals, integers, text for rows"):
        open_eraser(source).plan(People.named(["1.5"]))


def test_users_by_integers_and_dates(tmp_path: Path) -> None:
    for name, values, erased in (
        ("integers", pa.array([1, 2, None, 3, 2], pa.int32()), "2"),
        ("dates", pa.array(["2026-01-31", "2026-02-01"]).cast(pa.date32()), "2026-02-01"),
    ):
        path, number = tmp_path / name, len(values)
        rows = pa.table({"user": values, "action": ["A"] * number, "reward": [0.5] * number})
        deltalake.write_deltalake(str(path), rows)
        source = open_source(f"delta:{path}", action="action", reward="reward", whole_rows=False)
        people = People.named([erased])
        plan = open_eraser(source).plan(people)
        assert plan is not None
        open_eraser(source).apply(plan, people)
        left = pa.table(deltalake.DeltaTable(str(path)).to_pyarrow_table())["user"].to_pylist()
        kept = [value for value in values.to_pylist() if str(value) != erased]
        assert sorted(map(str, left)) == sorted(map(str, kept))


def test_rows_that_are_only_marked_as_deleted_remain(table: DeltaStore) -> None:
    """By a deletion vector: nobody can find them by name, and the file is not written again for others."""
    rows = made_rows(0, 60)
    table.append(rows[:30])

    def mark(actions: list[dict[str, Any]]) -> None:
        set_features("deletionVectors", enableDeletionVectors="true")(actions)
        add_actions(actions)[0]["deletionVector"] = inline_vector([3, 4])

    edit_commit(table.folder, 0, mark)
    deltalake.write_deltalake(str(table.folder), arrow_rows(rows[30:]), mode="append")
    marked = [row for row in rows[30:] if row[0]][:1]
    people = People.named([marked[0][0]])
    plan = table.eraser().plan(people)
    assert plan is not None
    table.eraser().apply(plan, people)
    erasure = table.eraser().purge(plan, people, ignore_retention=True)
    assert any(
        "files of the table hold rows that an earlier deletion has only marked" in each
        for each in erasure.remains
    )


def test_files_of_deletion_vectors_are_not_purged(table: DeltaStore) -> None:
    """Deltalake takes them for old files; without them the table could not be read."""
    table.append(made_rows(0))

    def mark(actions: list[dict[str, Any]]) -> None:
        set_features("deletionVectors", enableDeletionVectors="true")(actions)
        add_actions(actions)[0]["deletionVector"] = vector_in_file(table.folder, [3, 4])

    edit_commit(table.folder, 0, mark)
    table.append([(name_of(500), "A", 0.5, "page-1"), (name_of(501), "A", 0.5, "page-1")])
    people = People.named([name_of(500)])
    plan = table.eraser().plan(people)
    assert plan is not None
    table.eraser().apply(plan, people)
    erasure = table.eraser().purge(plan, people, ignore_retention=True)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert table.open().n_rows() == len(made_rows(0)) - 2 + 1
    assert found_in(table.contents(), [name_of(500).encode()]) == set()


def test_an_append_and_a_compaction_between_plan_and_erasure(table: DeltaStore, lake: IcebergStore) -> None:
    for store in (table, lake):
        rows = store.with_parts(2)
        plan = store.eraser().plan(PEOPLE)
        assert plan is not None
        store.append(made_rows(5))
        if isinstance(store, IcebergStore):
            compact_iceberg(store.table())
        else:
            deltalake.DeltaTable(str(store.folder)).optimize.compact()
        erasure = store.eraser().apply(plan, PEOPLE)
        assert in_order(store.rows()) == others([*rows, *made_rows(5)])
        assert erasure.after is not None


def test_a_delta_erasure_that_changes_other_rows_is_taken_back(
    table: DeltaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = table.with_parts()
    values = lake_eraser.values_of
    monkeypatch.setattr(delta_deletion, "values_of", lambda *given: [*values(*given), name_of(9)])
    plan = table.eraser().plan(PEOPLE)
    assert plan is not None
    with pytest.raises(InvalidLogError, match="would not stay the same; version 2 was restored"):
        table.eraser().apply(plan, PEOPLE)
    assert in_order(table.rows()) == in_order(rows)


def test_a_delta_erasure_that_leaves_rows_is_noticed(
    table: DeltaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.with_parts()
    values = lake_eraser.values_of
    monkeypatch.setattr(delta_deletion, "values_of", lambda *given: values(*given)[1:])
    plan = table.eraser().plan(PEOPLE)
    assert plan is not None
    with pytest.raises(InvalidLogError, match="would not stay the same; version 2 was restored"):
        table.eraser().apply(plan, PEOPLE)


def test_an_iceberg_erasure_that_changes_other_rows_is_taken_back(
    lake: IcebergStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = lake.with_parts()
    before = lake.table().current_snapshot().snapshot_id
    values = lake_eraser.values_of
    for change in (lambda *given: [*values(*given), name_of(9)], lambda *given: values(*given)[1:]):
        monkeypatch.setattr(iceberg, "values_of", change)
        plan = lake.eraser().plan(PEOPLE)
        assert plan is not None
        with pytest.raises(InvalidLogError, match=f"was rolled back to snapshot {before}"):
            lake.eraser().apply(plan, PEOPLE)
        assert in_order(lake.rows()) == in_order(rows)


def test_what_remains_of_an_iceberg_erasure(lake: IcebergStore) -> None:
    rows = lake.with_parts()
    lake.table().manage_snapshots().create_tag(lake.table().current_snapshot().snapshot_id, "audit").commit()
    before = lake.table().current_snapshot().snapshot_id
    plan, erasure = erase(lake)
    assert (erasure.state, erasure.before) == (SourceState.LOGICALLY_DELETED, before)
    assert erasure.due is not None
    assert timedelta(days=4.9) < erasure.due - datetime.now(UTC) < timedelta(days=5.1)
    assert any("lowest and highest values may name people" in each for each in erasure.remains)
    purged = lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert purged.state == SourceState.LOGICALLY_DELETED, "the tag keeps a snapshot"
    assert "branches or tags keep earlier snapshots" in purged.remains, "the name of a tag may be a person's"
    assert found_in(lake.contents(), gone(rows))
    lake.table().manage_snapshots().remove_tag("audit").commit()
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert found_in(lake.contents(), gone(rows)) == set()
    assert in_order(lake.rows()) == others(rows)
    lake.append(made_rows(5))
    assert in_order(lake.rows()) == in_order([*others(rows), *made_rows(5)])


def test_a_purge_within_the_age_of_snapshots_keeps_them(lake: IcebergStore) -> None:
    rows = lake.with_parts()
    plan, _ = erase(lake)
    assert lake.eraser().purge(plan, PEOPLE).state == SourceState.LOGICALLY_DELETED
    assert found_in(lake.contents(), gone(rows)) >= {name.encode() for name in ERASED}
    lake.table().transaction().set_properties(
        {"history.expire.max-snapshot-age-ms": "0"}
    ).commit_transaction()
    assert lake.eraser().purge(plan, PEOPLE).state == SourceState.PURGED
    assert found_in(lake.contents(), gone(rows)) == set()


def set_properties(lake: IcebergStore, **properties: str) -> None:
    with lake.table().transaction() as transaction:
        transaction.set_properties({name.replace("_", "."): text for name, text in properties.items()})


def cut_metadata_log(lake: IcebergStore) -> None:
    """Let the metadata forget which files of metadata were before them."""
    with lake.table().transaction() as transaction:
        transaction.set_properties({"write.metadata.previous-versions-max": "1"})
    for part in (7, 8, 9):
        lake.append(others(made_rows(part)))


def expire_without_removal(lake: IcebergStore) -> None:
    table = lake.table()
    old = [each.snapshot_id for each in table.snapshots() if each != table.current_snapshot()]
    table.maintenance.expire_snapshots().by_ids(old).commit()


def test_files_that_no_metadata_name_are_purged(lake: IcebergStore) -> None:
    """Left by the table's own maintenance: a compaction, and an expiry that removes no file."""
    rows = lake.with_parts()
    lake.table().overwrite(arrow_rows(lake.rows()))
    expire_without_removal(lake)
    cut_metadata_log(lake)
    plan, _ = erase(lake)
    set_properties(lake, **{"history_expire_max-snapshot-age-ms": "3600000"})
    held = lake.eraser().purge(plan, PEOPLE)
    assert held.state == SourceState.LOGICALLY_DELETED
    before = in_order(lake.rows())
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert found_in(lake.contents(), gone(rows)) == set()
    assert in_order(lake.rows()) == before


@pytest.mark.parametrize(
    "name",
    quick_only(
        ["data/000000_0", "x/y.orc"],
        ["data/000000_0", "data/part-0.PARQUET", "day=1/part-0.parquet", "x/y.orc"],
    ),
)
def test_files_of_any_name_that_no_metadata_name_are_seen(lake: IcebergStore, name: str) -> None:
    """As in tables that were migrated, after another tool let their snapshots expire."""
    lake.with_parts(1)
    folder = Path(lake.table().location().removeprefix("file://"))
    (folder / name).parent.mkdir(exist_ok=True)
    pq.write_table(arrow_rows(made_rows(1)), folder / name, compression="none")
    for harmless in ("metadata/version-hint.text", "day=1/.part-0.parquet.crc", "_SUCCESS"):
        (folder / harmless).parent.mkdir(exist_ok=True)
        (folder / harmless).touch()
    plan, _ = erase(lake)
    before = in_order(lake.rows())
    erasure = lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert (folder / name).exists(), "others may need it"
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert any("that its metadata do not name hold deleted rows" in each for each in erasure.remains)
    (folder / name).unlink()
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert in_order(lake.rows()) == before


def test_files_of_a_table_that_was_migrated_are_purged(
    lake: IcebergStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are not in the folder data; the plan names them, also after an interruption."""
    rows = lake.with_parts(1)
    path = Path(lake.table().location().removeprefix("file://")) / "day=1" / "part-0.parquet"
    path.parent.mkdir()
    pq.write_table(arrow_rows(made_rows(1)), path, compression="none")
    lake.table().add_files([f"file://{path}"])
    plan, _ = erase(lake)
    noted = lake.eraser().with_removals(plan)
    assert noted.removals == (f"file://{path}",)
    with monkeypatch.context() as patched:
        patched.setattr(TableFiles, "remove", raise_oserror)
        with pytest.raises(InvalidLogError, match="pyiceberg failed"):
            lake.eraser().purge(noted, PEOPLE, ignore_retention=True)
    cut_metadata_log(lake)
    assert lake.eraser().purge(noted, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert found_in(lake.contents(), gone([*rows, *made_rows(1)])) == set()


def test_a_purge_that_was_interrupted_after_the_expiry_is_finished(
    lake: IcebergStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for files outside of the table's folders, which nothing names any more."""
    rows = lake.with_parts(1)
    outside = tmp_path / "outside.parquet"
    pq.write_table(arrow_rows(made_rows(1)), outside)
    lake.table().add_files([str(outside)])
    plan, _ = erase(lake)
    noted = lake.eraser().with_removals(plan)
    assert noted.removals == (str(outside),)
    with monkeypatch.context() as patched:
        patched.setattr(TableFiles, "remove", raise_oserror)
        with pytest.raises(InvalidLogError, match="pyiceberg failed"):
            lake.eraser().purge(noted, PEOPLE, ignore_retention=True)
    cut_metadata_log(lake)
    again = ErasurePlan.from_dict(json.loads(json.dumps(noted.to_dict())))
    assert lake.eraser().apply(again, PEOPLE).state == SourceState.LOGICALLY_DELETED
    assert lake.eraser().purge(again, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert not outside.exists()
    assert found_in(lake.contents(), gone([*rows, *made_rows(1)])) == set()


def raise_oserror(*_: Any, **__: Any) -> None:
    raise OSError


@pytest.mark.parametrize("reason", ["no listing", "another folder", "another table"])
def test_folders_that_cannot_be_looked_through(
    lake: IcebergStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    lake.with_parts(1)
    if reason == "no listing":
        monkeypatch.setattr("armnesia.logs.erasing.iceberg_folders._files_below", lambda *_: None)
    elif reason == "another folder":
        set_properties(lake, write_data_path=f"file://{tmp_path}/elsewhere")
    else:
        schema = arrow_rows([]).schema
        other = lake.catalog().create_table("logs.other", schema, location=lake.table().location())
        other.append(arrow_rows(made_rows(3)))
    plan, _ = erase(lake)
    erasure = lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert any("not all folders that the table writes to" in sentence for sentence in erasure.remains)
    if reason == "another table":
        assert tuples(lake.catalog().load_table("logs.other").scan().to_arrow()) == made_rows(3)


def test_a_file_that_may_be_needed_by_another_name_is_not_removed(lake: IcebergStore, tmp_path: Path) -> None:
    lake.with_parts(1)
    folder = Path(lake.table().location().removeprefix("file://"))
    (tmp_path / "link").symlink_to(folder)
    pq.write_table(arrow_rows(others(made_rows(1))), folder / "data" / "added.parquet")
    lake.table().add_files([str(tmp_path / "link" / "data" / "added.parquet")])
    plan, _ = erase(lake)
    before = in_order(lake.rows())
    erasure = lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert erasure.state == SourceState.PURGED, "it was looked into"
    assert in_order(lake.rows()) == before


def test_each_manifest_is_read_once(lake: IcebergStore, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.with_parts(8)
    read: list[str] = []
    fetch = ManifestFile.fetch_manifest_entry

    def counting(self: ManifestFile, *arguments: Any, **options: Any) -> Any:
        read.append(self.manifest_path)
        return fetch(self, *arguments, **options)

    monkeypatch.setattr(ManifestFile, "fetch_manifest_entry", counting)
    assert TableFiles(lake.table()).unreferenced()
    assert len(read) == len(set(read)) == 8


def test_iceberg_tables_that_are_refused(lake: IcebergStore) -> None:
    lake.with_parts(1)
    lake.table().transaction().set_properties({"gc.enabled": "false"}).commit_transaction()
    plan, _ = erase(lake)
    with pytest.raises(UnsupportedError, match=r"declares gc\.enabled=false"):
        lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    with pytest.raises(InvalidInputError, match="an erasure that was applied cannot be undone"):
        lake.eraser().undo(plan)
    static = f"iceberg:{lake.table().metadata_location.removeprefix('file://')}"
    source = open_source(static, action="action", reward="reward", whole_rows=False)
    with pytest.raises(UnsupportedError, match="a file of metadata is one version for good"):
        open_eraser(source)


@pytest.mark.parametrize(
    ("transform", "is_refused"),
    [(IdentityTransform(), True), (TruncateTransform(4), True), (BucketTransform(4), False)],
    ids=["identity", "truncate", "bucket"],
)
def test_an_iceberg_table_that_is_partitioned_by_users(
    lake: IcebergStore, transform: Any, is_refused: bool
) -> None:
    catalog, rows = lake.catalog(), made_rows(0)
    catalog.create_namespace("logs")
    made = catalog.create_table("logs.clicks", schema=arrow_rows([]).schema)
    number = made.schema().find_field("user").field_id
    catalog.drop_table("logs.clicks")
    spec = PartitionSpec(PartitionField(number, 1000, transform, "part"))
    made = catalog.create_table("logs.clicks", schema=made.schema(), partition_spec=spec)
    made.append(arrow_rows(rows))
    if is_refused:
        with pytest.raises(UnsupportedError, match="the table is or was partitioned by 'user'"):
            lake.eraser().plan(PEOPLE)
        return
    plan, _ = erase(lake)
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert in_order(lake.rows()) == others(rows)
    assert found_in(lake.contents(), gone(rows)) == set()


def test_position_deletes_of_an_iceberg_table(lake: IcebergStore, tmp_path: Path) -> None:
    rows = lake.with_parts(2)
    lake_table = lake.table()
    path = iceberg_files(lake_table)[0].file_path
    delete_positions(lake_table, {path: [3]}, tmp_path / "deletes.parquet")
    before = lake.rows()
    assert len(before) == len(rows) - 1
    plan = lake.eraser().plan(PEOPLE)
    assert plan is not None
    lake.eraser().apply(plan, PEOPLE)
    assert in_order(lake.rows()) == others(before)


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_tables_elsewhere(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data files are read through the library of the table, as they are in an object store."""
    monkeypatch.setattr(delta_reading, "table_address", lambda *name: (*table_address(*name)[:2], False))
    monkeypatch.setattr(iceberg_reading, "local_path", lambda _: None)
    store = make_store(kind, tmp_path / "my log", monkeypatch)
    rows = store.with_parts(2)
    plan, erasure = erase(store)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert store.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert in_order(store.rows()) == others(rows)
    assert found_in(store.contents(), gone(rows)) == set()


def test_paths_that_a_delta_log_encodes(table: DeltaStore) -> None:
    """A file that the present version has is not taken for an old one."""
    days = ["a/b", "ü", "x y", "%", "a=b", "100%25"]
    rows = [(*row[:3], days[place % 6]) for place, row in enumerate(made_rows(0))]
    deltalake.write_deltalake(str(table.folder), arrow_rows(rows), partition_by=["page"])
    people = People.named([row[0] for row in rows if row[3] == "%" and row[0]][:1])
    plan = table.eraser().plan(people)
    assert plan is not None
    erasure = table.eraser().apply(plan, people)
    assert erasure.after is not None
    removed = [
        line for line in commit_text(table, erasure.after).splitlines() if line.startswith('{"remove"')
    ]
    assert 1 <= len(removed) < len(days)
    unlisted = DeltaFolder(delta_reading.DeltaLog(f"delta:{table.folder}")).unlisted_files()
    assert len(unlisted) == len(removed)
    assert erasure.remains[0].startswith("files that the present version")
    assert table.eraser().purge(plan, people, ignore_retention=True).state == SourceState.PURGED
    assert len(table.rows()) < len(rows)


def with_categories(rows: list[Row]) -> pa.Table:
    """Rows whose column of users has the names of all people, whatever rows there are."""
    table = arrow_rows(rows)
    names = pa.array(sorted({*table["user"].drop_null().to_pylist(), *ERASED}))
    codes = pc.index_in(table["user"].combine_chunks(), value_set=names)
    return table.set_column(0, "user", pa.DictionaryArray.from_arrays(codes, names))


@pytest.mark.parametrize("people", [PEOPLE, People.recognised_by(lambda names: [n in ERASED for n in names])])
def test_dictionaries_of_delta_files_that_name_people_are_said(tmp_path: Path, people: People) -> None:
    """In files without their rows, which no deletion writes again."""
    folder = tmp_path / "log"
    folder.mkdir()
    pq.write_table(arrow_rows(made_rows(0)), folder / "a.parquet")
    rows = with_categories(others(made_rows(1)))
    pq.write_table(rows, folder / "b.parquet", compression="none", store_schema=False)
    deltalake.convert_to_deltalake(str(folder))
    store = DeltaStore(folder)
    plan = store.eraser().plan(people)
    assert plan is not None
    store.eraser().apply(plan, people)
    left = store.eraser().purge(plan, people, ignore_retention=True)
    assert ERASED[0].encode() in (folder / "b.parquet").read_bytes()
    assert left.state == SourceState.LOGICALLY_DELETED
    assert any("dictionary pages of files name people" in sentence for sentence in left.remains)
    delta_table(store).optimize.compact()
    assert store.eraser().purge(plan, people, ignore_retention=True).state == SourceState.PURGED


def test_dictionaries_of_iceberg_files_that_name_people_are_said(lake: IcebergStore) -> None:
    lake.append(made_rows(0))
    path = lake.folder / "added.parquet"
    pq.write_table(with_categories(others(made_rows(1))), path)
    lake.table().add_files([f"file://{path}"])
    plan = lake.eraser().plan(PEOPLE)
    assert plan is not None
    lake.eraser().apply(plan, PEOPLE)
    left = lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert left.state == SourceState.LOGICALLY_DELETED
    assert any("dictionary pages of files name people" in sentence for sentence in left.remains)


@pytest.mark.parametrize("separator", ["\u0085", "\u2028", "\u2029"])
def test_names_with_separators_of_lines_in_the_log_of_a_delta_table(tmp_path: Path, separator: str) -> None:
    """The statistics of files have them, as JSON allows, within a line."""
    rows = {"user": [f"ann{separator}lee", "bob"], "action": ["A", "B"], "reward": [0.5, 0.25]}
    deltalake.write_deltalake(str(tmp_path / "log"), pa.table(rows))
    (path,) = (tmp_path / "log" / "_delta_log").glob("*.json")
    assert separator in path.read_text("utf-8")
    source = open_source(f"delta:{tmp_path}/log", action="action", reward="reward", whole_rows=False)
    people = People.named(["bob"])
    plan = open_eraser(source).plan(people)
    assert plan is not None
    open_eraser(source).apply(plan, people)
    assert open_eraser(source).purge(plan, people).state == SourceState.LOGICALLY_DELETED
    erasure = open_eraser(source).purge(plan, people, ignore_retention=True)
    assert erasure.state == SourceState.PURGED
