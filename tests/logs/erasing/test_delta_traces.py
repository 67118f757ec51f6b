"""What the log and the folder of a Delta table keep of people: statistics, changes, partitions, folders."""

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deltalake
import deltalake.table
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.logs.erasing import Erasure, ErasurePlan, People, SourceState
from armnesia.logs.erasing.delta import DeltaEraser
from armnesia.logs.erasing.delta_files import DeltaFolder
from armnesia.logs.lakes.delta import DeltaLog
from tests.logs.erasing.stores import DeltaStore, IcebergStore, arrow_rows, found_in, made_rows, name_of
from tests.logs.lakes.tables import Actions, add_actions, edit_commit

PERSON = name_of(1)
PEOPLE = People.named([PERSON])
AT_ONCE = {"delta.deletedFileRetentionDuration": "interval 0 seconds"}
IN_CHECKPOINT = "a checkpoint of the log has statistics"
IN_PARTITIONS = "by the values of partitions that no file of the table is in"


def erase(store: Any) -> tuple[ErasurePlan, Erasure]:
    plan = store.eraser().plan(PEOPLE)
    assert plan is not None
    return plan, store.eraser().apply(plan, PEOPLE)


def is_said(erasure: Erasure, words: str) -> bool:
    return any(words in sentence for sentence in erasure.remains)


def with_removed_statistics(store: DeltaStore) -> None:
    """A compaction by a writer that keeps the statistics of removed files, as the protocol allows."""
    deltalake.DeltaTable(str(store.folder)).optimize.compact()
    log = DeltaLog(f"delta:{store.folder}")
    last = log.table.version()
    added = [add for number in range(last) for add in add_actions(log.actions_of(number) or [])]
    stats_of = {add["path"]: add["stats"] for add in added}

    def keep(actions: Actions) -> None:
        for action in actions:
            if "remove" in action:
                action["remove"]["stats"] = stats_of[action["remove"]["path"]]

    edit_commit(store.folder, last, keep)


def row_of(user: str, page: str = "x") -> tuple[str, str, float, str]:
    return user, "A", 0.5, page


def test_statistics_of_removed_files_in_the_last_checkpoint(table: DeltaStore) -> None:
    """deltalake copies them into the checkpoint of a purge."""
    table.append([row_of(PERSON), row_of("~last")])
    table.append([row_of("~other"), row_of("~other")])
    with_removed_statistics(table)
    plan, _ = erase(table)
    erasure = table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert found_in(table.contents(), {PERSON.encode()}), "the trap is there"
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert is_said(erasure, IN_CHECKPOINT)
    assert erasure.due is not None
    assert timedelta(days=6.9) < erasure.due - datetime.now(UTC) < timedelta(days=7.1)


def test_statistics_of_removed_files_that_name_others(table: DeltaStore) -> None:
    """Other columns may be of the people all the same."""
    table.append([row_of("!first"), row_of(PERSON), row_of("~last")])
    table.append([row_of("~other"), row_of("~other")])
    with_removed_statistics(table)
    plan, _ = erase(table)
    erasure = table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert erasure.state == SourceState.PURGED
    assert is_said(erasure, IN_CHECKPOINT)


def test_statistics_of_removed_files_go_when_their_retention_is_over(table: DeltaStore) -> None:
    rows = [row_of(PERSON), row_of("~last")]
    deltalake.write_deltalake(str(table.folder), arrow_rows(rows), configuration=AT_ONCE)
    table.append([row_of("~other"), row_of("~other")])
    with_removed_statistics(table)
    plan, _ = erase(table)
    erasure = table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert erasure.state == SourceState.PURGED
    assert not is_said(erasure, IN_CHECKPOINT)
    assert not found_in(table.contents(), {PERSON.encode()})


def test_statistics_in_an_earlier_checkpoint_are_said(table: DeltaStore) -> None:
    table.append([row_of(PERSON), row_of("~last")])
    table.append([row_of("~other"), row_of("~other")])
    with_removed_statistics(table)
    plan, _ = erase(table)
    table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    delta = deltalake.DeltaTable(str(table.folder))
    delta.alter.set_table_properties(AT_ONCE)
    delta.create_checkpoint()
    assert len(list((table.folder / "_delta_log").glob("*.checkpoint.parquet"))) == 2
    assert is_said(table.eraser().purge(plan, PEOPLE), "the log still has version")
    assert table.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert not found_in(table.contents(), {PERSON.encode()})


def test_files_of_changes_go_when_their_retention_is_over(table: DeltaStore) -> None:
    configuration = {**AT_ONCE, "delta.enableChangeDataFeed": "true"}
    deltalake.write_deltalake(str(table.folder), arrow_rows(made_rows(0)), configuration=configuration)
    plan, erasure = erase(table)
    changes = table.folder / "_change_data"
    assert len(list(changes.iterdir())) == 1
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert table.eraser().purge(plan, PEOPLE).state == SourceState.PURGED
    assert not changes.exists()


def test_files_of_changes_stay_before_their_retention_is_over(table: DeltaStore) -> None:
    feed = {"delta.enableChangeDataFeed": "true"}
    deltalake.write_deltalake(str(table.folder), arrow_rows(made_rows(0)), configuration=feed)
    plan, _ = erase(table)
    assert table.eraser().purge(plan, PEOPLE).state == SourceState.LOGICALLY_DELETED
    assert len(list((table.folder / "_change_data").iterdir())) == 1


def test_partitions_that_only_the_people_were_in(table: DeltaStore) -> None:
    rows = [row_of(PERSON, "203.0.113.77"), row_of("bob", "198.51.100.1"), row_of(PERSON, "198.51.100.1")]
    deltalake.write_deltalake(str(table.folder), arrow_rows(rows), partition_by=["page"])
    (table.folder / "page=empty").mkdir()
    plan, erasure = erase(table)
    assert is_said(erasure, IN_PARTITIONS)
    erasure = table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert erasure.state == SourceState.PURGED
    assert is_said(erasure, IN_PARTITIONS), "the removed file is in the checkpoint"
    left = {path.name for path in table.folder.iterdir()}
    assert left == {"_delta_log", "page=198.51.100.1", "page=empty"}, (
        "the last is nobody's whom the log names"
    )


def test_partitions_that_others_are_in_are_not_said(table: DeltaStore) -> None:
    rows = [row_of("bob", "198.51.100.1"), row_of(PERSON, "198.51.100.1")]
    deltalake.write_deltalake(str(table.folder), arrow_rows(rows), partition_by=["page"])
    plan, _ = erase(table)
    assert not is_said(table.eraser().purge(plan, PEOPLE, ignore_retention=True), IN_PARTITIONS)


def lose_a_race(store: DeltaStore, monkeypatch: pytest.MonkeyPatch, before: Callable[[], object]) -> None:
    """An erasure that fails, because another writer commits first; what that writer does before."""
    real = deltalake.table.TableMerger.execute

    def execute(merger: Any) -> Any:
        before()
        deltalake.DeltaTable(str(store.folder)).delete(f"user = '{name_of(2)}'")
        return real(merger)

    plan = store.eraser().plan(PEOPLE)
    assert plan is not None
    with monkeypatch.context() as patched:
        patched.setattr(DeltaEraser, "_check_writable", lambda *_: None)  # which merges as well
        patched.setattr(deltalake.table.TableMerger, "execute", execute)
        with pytest.raises(InvalidLogError, match="deltalake failed"):
            store.eraser().apply(plan, PEOPLE)


def unnamed(store: DeltaStore) -> set[str]:
    return set(DeltaFolder(DeltaLog(f"delta:{store.folder}")).unnamed_files())


@pytest.mark.parametrize("partitions", [[], ["page"]])
def test_files_of_an_erasure_that_lost_a_race_are_removed(
    table: DeltaStore, monkeypatch: pytest.MonkeyPatch, partitions: list[str]
) -> None:
    for part in range(2):
        rows = arrow_rows(made_rows(part))
        deltalake.write_deltalake(str(table.folder), rows, mode="append", partition_by=partitions or None)
    kept = table.folder / "of-somebody.parquet"
    pq.write_table(arrow_rows(made_rows(3)), kept)
    lose_a_race(table, monkeypatch, lambda: None)
    assert unnamed(table) == {kept.name}
    assert table.eraser().plan(PEOPLE) is not None, "which can be erased still"


def test_files_that_may_be_of_another_writer_stay(table: DeltaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    table.with_parts(2)
    kept = table.folder / "part-of-somebody.parquet"
    lose_a_race(table, monkeypatch, lambda: pq.write_table(arrow_rows(made_rows(3)), kept))
    assert kept.name in unnamed(table)


def forbid(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let a folder be of somebody else; permissions do not bind root."""
    scan = os.scandir

    def refused(path: Any = ".") -> Any:
        if not isinstance(path, int) and os.path.normpath(path) == os.path.normpath(folder):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refused)


def test_a_folder_that_cannot_be_read(table: DeltaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """As lost+found of a volume."""
    table.with_parts(1)
    (table.folder / "lost+found").mkdir()
    forbid(monkeypatch, table.folder / "lost+found")
    plan, _ = erase(table)
    erasure = table.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert is_said(erasure, "folders below that of the table cannot be read by this user")
    monkeypatch.undo()
    assert table.eraser().purge(plan, PEOPLE).state == SourceState.PURGED


def test_a_folder_of_an_iceberg_table_that_cannot_be_read(
    lake: IcebergStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.with_parts(1)
    folder = Path(lake.table().location().removeprefix("file://")) / "lost+found"
    folder.mkdir()
    with monkeypatch.context() as patched:
        forbid(patched, folder)
        plan, _ = erase(lake)
        erasure = lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert is_said(erasure, "not all folders that the table writes to could be looked through")
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED


def test_files_that_another_tool_has_removed_are_due_after_their_retention(table: DeltaStore) -> None:
    table.append(made_rows(0))
    before = datetime.now(UTC) + timedelta(days=7) - timedelta(seconds=1)
    deltalake.DeltaTable(str(table.folder)).delete(f"user = '{PERSON}'")
    after = datetime.now(UTC) + timedelta(days=7)
    erasure = table.eraser().purge(table.eraser().empty_plan(), PEOPLE)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert erasure.due is not None
    assert before <= erasure.due <= after
    erasure = table.eraser().purge(table.eraser().empty_plan(), PEOPLE, ignore_retention=True)
    assert (erasure.state, erasure.due) == (SourceState.PURGED, None)
