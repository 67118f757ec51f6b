"""Files of an Iceberg table: which are its own and go with a purge, and which others may need."""

import json
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.table.update import SetPartitionStatisticsUpdate
from pyiceberg.table.update.snapshot import ManageSnapshots

from armnesia.core.errors import InvalidLogError, UnsupportedError
from armnesia.logs.erasing import Erasure, ErasurePlan, People, SourceState, iceberg, lake_eraser
from armnesia.logs.erasing.iceberg_expiry import expire, expiry_of
from tests.logs.erasing.stores import (
    IcebergStore,
    Row,
    arrow_rows,
    found_in,
    in_order,
    made_rows,
    name_of,
    needles,
    tuples,
)

pytestmark = pytest.mark.slow  # tests/promises erase every kind quickly

PERSON = name_of(1)
PEOPLE = People.named([PERSON])


def without(rows: list[Row]) -> list[Row]:
    return in_order(row for row in rows if row[0] != PERSON)


def erase(store: IcebergStore) -> tuple[ErasurePlan, Erasure]:
    plan = store.eraser().plan(PEOPLE)
    assert plan is not None
    return plan, store.eraser().apply(plan, PEOPLE)


def purge_at_once(store: IcebergStore) -> Erasure:
    plan = store.eraser().with_removals(erase(store)[0])
    return store.eraser().purge(plan, PEOPLE, ignore_retention=True)


def at(location: str) -> Path:
    return Path(location.removeprefix("file://"))


def metadata_files(store: IcebergStore) -> set[Path]:
    return set(at(store.table().location()).joinpath("metadata").glob("*.metadata.json"))


@pytest.mark.parametrize("is_last", [False, True])
def test_metadata_that_are_registered_as_another_table_stay(lake: IcebergStore, is_last: bool) -> None:
    """Its data files are all in the present snapshot, so that only metadata would go."""
    lake.append(without(made_rows(0)))
    if is_last:
        lake.append(made_rows(1))
        erase(lake)
    lake.catalog().register_table("logs.frozen", lake.table().metadata_location)
    frozen = in_order(lake.rows())
    if not is_last:
        lake.append(made_rows(1))
    before = metadata_files(lake)
    plan = lake.eraser().empty_plan()
    with pytest.raises(UnsupportedError, match=r"table 'logs\.frozen' has some of them as well"):
        lake.eraser().with_removals(plan)
    if not is_last:
        plan, _ = erase(lake)
    for at_once in (False, True):
        with pytest.raises(UnsupportedError, match=r"table 'logs\.frozen' has some of them as well"):
            lake.eraser().purge(plan, PEOPLE, ignore_retention=at_once)
    assert before <= metadata_files(lake)
    assert in_order(tuples(lake.catalog().load_table("logs.frozen").scan().to_arrow())) == frozen
    lake.catalog().drop_table("logs.frozen")
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED


def test_metadata_younger_than_the_age_of_snapshots_stay(lake: IcebergStore) -> None:
    """A purge by retention leaves them to others who may have registered them; they hold no rows."""
    lake.append(made_rows(0))
    plan, _ = erase(lake)
    before = metadata_files(lake)
    lake.eraser().purge(plan, PEOPLE)
    assert before <= metadata_files(lake)
    with lake.table().transaction() as transaction:
        transaction.set_properties({"history.expire.max-snapshot-age-ms": "0"})
    assert lake.eraser().purge(plan, PEOPLE).state == SourceState.PURGED
    assert len(metadata_files(lake)) == 1


def test_earlier_metadata_that_name_people(lake: IcebergStore) -> None:
    """They say what the present ones no longer do."""
    lake.append(made_rows(0))
    plan, _ = erase(lake)
    lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    with lake.table().transaction() as transaction:
        transaction.set_properties({"note": f"without {PERSON}"})
    with lake.table().transaction() as transaction:
        transaction.remove_properties("note")
    held = lake.eraser().purge(plan, PEOPLE)
    assert held.state == SourceState.LOGICALLY_DELETED
    assert any("name people" in each for each in held.remains)
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert found_in(lake.contents(), {PERSON.encode()}) == set()


def test_what_a_writer_is_about_to_commit_stays(lake: IcebergStore) -> None:
    """A catalog writes the next file of metadata before it says that this is the present one."""
    lake.append(made_rows(0))
    plan, _ = erase(lake)
    lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    before = lake.table()
    lake.append(without(made_rows(1)))
    after = lake.table()
    rows = in_order(lake.rows())
    catalog = lake.catalog()
    for one in (before, after):  # the purge comes between the file of metadata and the catalog's turn
        catalog.drop_table("logs.clicks")
        catalog.register_table("logs.clicks", one.metadata_location)
        if one is before:
            lake.eraser().purge(plan, PEOPLE)
    assert in_order(lake.rows()) == rows


@pytest.mark.parametrize("content", ["another format", "nothing"])
def test_metadata_in_the_folder_that_cannot_be_read(lake: IcebergStore, content: str) -> None:
    """They may be of another table, which then has manifests there as well."""
    lake.append(made_rows(0))
    folder = at(lake.table().metadata_location).parent
    described = json.loads(at(lake.table().metadata_location).read_text("utf-8"))
    described |= {"table-uuid": str(uuid.uuid4()), "format-version": 9}
    other, manifests = folder / "00007-other.metadata.json", folder / "snap-77-0-other.avro"
    other.write_text(json.dumps(described) if content == "another format" else "", "utf-8")
    manifests.write_bytes(b"of the other table")
    erasure = purge_at_once(lake)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert "files of metadata that the table lists" in erasure.remains[0]
    assert other.exists()
    assert manifests.exists()
    other.unlink()
    plan = lake.eraser().empty_plan()
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert not manifests.exists()


def test_an_earlier_file_of_metadata_that_cannot_be_read(lake: IcebergStore) -> None:
    """A writer was cut short; readers do not need it."""
    rows = lake.with_parts(2)
    empty = at(lake.table().metadata.metadata_log[0].metadata_file)
    empty.write_bytes(b"")
    plan, erasure = erase(lake)
    assert in_order(lake.rows()) == without(rows)
    purged = lake.eraser().purge(lake.eraser().with_removals(plan), PEOPLE, ignore_retention=True)
    for each in (erasure, purged):
        assert each.state == SourceState.LOGICALLY_DELETED
        assert any("files of metadata that the table lists" in said for said in each.remains)
    empty.unlink()
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert found_in(lake.contents(), needles(row for row in rows if row[0] == PERSON)) == set()


def set_properties(store: IcebergStore, properties: dict[str, str]) -> None:
    with store.table().transaction() as transaction:
        transaction.set_properties(properties)


def test_snapshots_that_a_table_declares_to_keep(lake: IcebergStore) -> None:
    """Whatever their age."""
    for part in range(4):
        lake.append(made_rows(part))
    properties = {"history.expire.min-snapshots-to-keep": "3", "history.expire.max-snapshot-age-ms": "0"}
    set_properties(lake, properties)
    plan, erasure = erase(lake)
    assert erasure.due is None
    held = lake.eraser().purge(plan, PEOPLE)
    assert len(lake.table().snapshots()) == 3
    assert (held.state, held.due) == (SourceState.LOGICALLY_DELETED, None)
    assert any("declares how many snapshots stay" in each for each in held.remains)
    set_properties(lake, {"history.expire.min-snapshots-to-keep": "many"})
    lake.eraser().purge(plan, PEOPLE)
    assert len(lake.table().snapshots()) == 3, "what is not understood keeps all"
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED


@pytest.mark.parametrize("by", ["number", "age"])
def test_snapshots_that_a_branch_declares_to_keep(lake: IcebergStore, by: str) -> None:
    for part in range(4):
        lake.append(made_rows(part))
    set_properties(lake, {"history.expire.max-snapshot-age-ms": "0"})
    options = {"min_snapshots_to_keep": 3} if by == "number" else {"max_snapshot_age_ms": 86_400_000}
    table = lake.table()
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "audit", **options).commit()
    plan, _ = erase(lake)
    held = lake.eraser().purge(plan, PEOPLE)
    assert held.state == SourceState.LOGICALLY_DELETED
    assert len(lake.table().snapshots()) == (3 if by == "number" else 4) + 1
    assert (held.due is None) == (by == "number")
    lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert len(lake.table().snapshots()) == 2, "the heads of the branches"


@pytest.mark.parametrize("of_table", ["432000000", "never"])
def test_a_branch_may_keep_its_snapshots_for_less_time_than_the_table(
    lake: IcebergStore, of_table: str
) -> None:
    for part in range(3):
        lake.append(made_rows(part))
    set_properties(lake, {"history.expire.max-snapshot-age-ms": of_table})
    table = lake.table()
    first, second, head = (each.snapshot_id for each in table.snapshots())
    ends = expiry_of(table)
    assert ends.keys() == {first, second}
    now = datetime.now(UTC)
    assert all(end is None if of_table == "never" else end and end > now for end in ends.values())
    table.manage_snapshots().create_branch(head, "main", max_snapshot_age_ms=1).commit()
    ends = expiry_of(lake.table())
    assert ends.keys() == {first, second}
    assert all(end and end < now for end in ends.values())
    expire(lake.table(), at_once=False)
    assert [each.snapshot_id for each in lake.table().snapshots()] == [head]


def test_what_the_main_branch_declares_stays(lake: IcebergStore) -> None:
    """Pyiceberg drops it with every commit."""
    for part in range(3):
        lake.append(made_rows(part))
    set_properties(lake, {"history.expire.max-snapshot-age-ms": "0"})
    table, options = lake.table(), {"min_snapshots_to_keep": 2, "max_snapshot_age_ms": 1}
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "main", **options).commit()
    plan, _ = erase(lake)
    for at_once, snapshots in ((False, 2), (True, 1)):
        lake.eraser().purge(plan, PEOPLE, ignore_retention=at_once)
        main = lake.table().metadata.refs["main"]
        assert {name: getattr(main, name) for name in options} == options
        assert len(lake.table().snapshots()) == snapshots


def test_files_stay_if_only_the_declaration_of_the_branch_cannot_be_put_back(
    lake: IcebergStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion is committed by then: its files are those of the table."""
    lake.append(made_rows(0))
    table = lake.table()
    head = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_branch(head, "main", min_snapshots_to_keep=2).commit()
    plan = lake.eraser().plan(PEOPLE)
    assert plan is not None

    def overtaken(*_: Any) -> None:
        raise CommitFailedException("another writer was first")

    with monkeypatch.context() as patched:
        patched.setattr(ManageSnapshots, "commit", overtaken)
        with pytest.raises(InvalidLogError, match="another writer was first"):
            lake.eraser().apply(plan, PEOPLE)
    assert in_order(lake.rows()) == without(made_rows(0))
    assert lake.eraser().apply(plan, PEOPLE).after is not None


def test_statistics_of_partitions_go_with_their_snapshot(lake: IcebergStore) -> None:
    """Pyiceberg drops those of columns only."""
    lake.append(made_rows(0))
    table = lake.table()
    number = table.current_snapshot().snapshot_id
    path = at(table.location()) / "metadata" / f"partition-stats-{number}.parquet"
    path.write_bytes(PERSON.encode())
    described = {"snapshot-id": number, "statistics-path": f"file://{path}", "file-size-in-bytes": 7}
    added = SetPartitionStatisticsUpdate.model_validate({"partition-statistics": described})
    table.catalog.commit_table(table, (), (added,))
    plan, _ = erase(lake)
    lake.table().maintenance.expire_snapshots().by_id(number).commit()
    assert lake.table().metadata.partition_statistics
    erasure = lake.eraser().apply(lake.eraser().empty_plan(), PEOPLE)
    assert any("files that no snapshot refers to" in each for each in erasure.remains)
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert not path.exists()
    assert not lake.table().metadata.partition_statistics


def test_a_summary_of_a_snapshot_that_names_people(lake: IcebergStore) -> None:
    lake.append(made_rows(0))
    plan, _ = erase(lake)
    note = {"added-by": f"job of {PERSON}"}
    lake.table().append(arrow_rows(without(made_rows(1))), snapshot_properties=note)
    erasure = lake.eraser().purge(plan, PEOPLE, ignore_retention=True)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert any("name people" in each for each in erasure.remains)


def data_files(store: IcebergStore) -> set[Path]:
    return set(at(store.table().location()).rglob("*.parquet"))


def test_a_deletion_that_loses_a_race_leaves_no_files(
    lake: IcebergStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else writes the same file again, after it was opened."""
    lake.append(made_rows(0))
    plan = lake.eraser().plan(PEOPLE)
    assert plan is not None
    values, found = lake_eraser.values_of, list[set[Path]]()

    def after_another(*options: Any) -> Any:
        if not found:
            lake.table().delete(f"user = '{name_of(9)}'")
            found.append(data_files(lake))
        return values(*options)

    monkeypatch.setattr(iceberg, "values_of", after_another)
    with pytest.raises(InvalidLogError, match="pyiceberg failed"):
        lake.eraser().apply(plan, PEOPLE)
    assert [data_files(lake)] == found
    assert purge_at_once(lake).state == SourceState.PURGED
    assert len(data_files(lake)) == 1


def test_a_deletion_without_space_leaves_no_files(
    lake: IcebergStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.with_parts(2)
    plan = lake.eraser().plan(PEOPLE)
    assert plan is not None
    before = set(lake.folder.rglob("*"))
    write = pq.ParquetWriter.write_table

    def half(writer: Any, *options: Any, **further: Any) -> None:
        write(writer, *options, **further)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(pq.ParquetWriter, "write_table", half)
        with pytest.raises(InvalidLogError, match="No space left on device"):
            lake.eraser().apply(plan, PEOPLE)
    assert set(lake.folder.rglob("*")) == before
    assert purge_at_once(lake).state == SourceState.PURGED


def test_files_of_a_commit_that_may_have_been_made_stay(
    lake: IcebergStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer of the catalog is lost."""
    rows = lake.with_parts(1)
    plan = lake.eraser().plan(PEOPLE)
    assert plan is not None
    commit = SqlCatalog.commit_table

    def without_answer(*options: Any) -> None:
        commit(*options)
        raise ConnectionError("reset by peer")

    with monkeypatch.context() as patched:
        patched.setattr(SqlCatalog, "commit_table", without_answer)
        with pytest.raises(InvalidLogError, match="reset by peer"):
            lake.eraser().apply(plan, PEOPLE)
    assert in_order(lake.rows()) == without(rows)
    assert lake.eraser().apply(plan, PEOPLE).after is not None
