"""What is in or beside the folder of a Delta or Iceberg table and is not its own: no purge touches it."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import UnsupportedError
from armnesia.logs.erasing import Erasure, ErasurePlan, People, SourceState
from armnesia.logs.erasing.delta_files import DeltaFolder
from armnesia.logs.lakes.delta import DeltaLog
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
    tuples,
)

pytestmark = pytest.mark.slow  # tests/promises erase every kind quickly

ERASED = [name_of(1), name_of(2)]
PEOPLE = People.named(ERASED)


@pytest.fixture(params=["delta", "iceberg"])
def either(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    return make_store(request.param, tmp_path / "log", monkeypatch)


def data_folder(store: Store) -> Path:
    if isinstance(store, IcebergStore):
        return Path(store.table().location().removeprefix("file://")) / "data"
    return store.folder


def others(rows: list[Row]) -> list[Row]:
    return in_order(row for row in rows if row[0] not in ERASED)


def purge_at_once(store: Store) -> tuple[ErasurePlan, Erasure]:
    plan = store.eraser().plan(PEOPLE)
    assert plan is not None
    store.eraser().apply(plan, PEOPLE)
    plan = store.eraser().with_removals(plan)
    return plan, store.eraser().purge(plan, PEOPLE, ignore_retention=True)


def test_a_table_with_a_link_to_a_folder_is_refused(either: Store, tmp_path: Path) -> None:
    rows = either.with_parts(1)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis.txt").write_text("precious", "utf-8")
    link = data_folder(either) / "link"
    link.symlink_to(elsewhere)
    with pytest.raises(UnsupportedError, match="files or folders of the table are symbolic links"):
        either.eraser()
    link.unlink()
    assert purge_at_once(either)[1].state == SourceState.PURGED
    assert (elsewhere / "thesis.txt").exists()
    assert in_order(either.rows()) == others(rows)


def test_a_table_with_links_to_files_is_refused(either: Store, tmp_path: Path) -> None:
    """The target would keep the rows when the link is removed."""
    rows = either.with_parts(1)
    (path,) = data_folder(either).glob("*.parquet")
    target = tmp_path / "target.parquet"
    path.rename(target)
    path.symlink_to(target)
    with pytest.raises(UnsupportedError, match="files or folders of the table are symbolic links"):
        either.eraser()
    assert in_order(either.rows()) == in_order(rows), "nothing was changed"


def test_an_added_file_that_is_a_link_is_refused(lake: IcebergStore, tmp_path: Path) -> None:
    """It is outside of the folder of the table."""
    lake.with_parts(1)
    target, link = tmp_path / "target.parquet", tmp_path / "link.parquet"
    pq.write_table(arrow_rows(made_rows(1)), target)
    link.symlink_to(target)
    lake.table().add_files([f"file://{link}"])
    with pytest.raises(UnsupportedError, match="files or folders of the table are symbolic links"):
        lake.eraser()


def test_links_that_come_later_are_not_followed(table: DeltaStore, tmp_path: Path) -> None:
    table.with_parts(1)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    pq.write_table(arrow_rows(made_rows(1)), elsewhere / "a.parquet")
    (table.folder / "link").symlink_to(elsewhere)
    folder = DeltaFolder(DeltaLog(f"delta:{table.folder}"))
    assert folder.unlisted_files() == {}
    folder.remove_data_files(until=None)
    assert (elsewhere / "a.parquet").exists()


def test_a_table_that_is_named_by_a_link_is_purged(tmp_path: Path) -> None:
    rows = DeltaStore(tmp_path / "real").with_parts(1)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert purge_at_once(DeltaStore(tmp_path / "link"))[1].state == SourceState.PURGED
    real = DeltaStore(tmp_path / "real")
    assert in_order(real.rows()) == others(rows)
    assert found_in(real.contents(), {name.encode() for name in ERASED}) == set()


def test_a_delta_table_below_another_table_stays(either: Store) -> None:
    rows = either.with_parts(1)
    inner = data_folder(either) / "inner"
    deltalake.write_deltalake(str(inner), arrow_rows(made_rows(3)))
    plan, erasure = purge_at_once(either)
    assert erasure.state == SourceState.LOGICALLY_DELETED, "it has rows of the same people"
    assert in_order(tuples(deltalake.DeltaTable(str(inner)).to_pyarrow_table())) == in_order(made_rows(3))
    assert in_order(either.rows()) == others(rows)
    for path in sorted(inner.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert either.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED


@pytest.mark.parametrize("content", ["people", "others", "other columns", "text"])
def test_files_that_no_log_names_stay_and_are_looked_into(either: Store, content: str) -> None:
    either.with_parts(1)
    path = data_folder(either) / "extra.parquet"
    if content == "text":
        path.write_text("notes", "utf-8")
    else:
        extra = arrow_rows(made_rows(1) if content == "people" else others(made_rows(1)))
        if isinstance(either, IcebergStore):  # which knows columns by their ids
            name = next(data_folder(either).glob("0*.parquet"))
            extra = extra.cast(pq.read_schema(name))
        pq.write_table(extra.drop(["user"]) if content == "other columns" else extra, path)
    plan, erasure = purge_at_once(either)
    is_clear = content == "others"
    assert erasure.state == (SourceState.PURGED if is_clear else SourceState.LOGICALLY_DELETED)
    assert any("cannot be looked into" in each for each in erasure.remains) != is_clear
    assert path.exists()
    path.unlink()
    assert either.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED


def test_files_of_another_table_in_the_same_folder_stay(lake: IcebergStore) -> None:
    """Its metadata are elsewhere, so that nothing in the folder tells of it."""
    rows = lake.with_parts(1)
    properties = {"write.data.path": f"file://{data_folder(lake)}"}
    other = lake.catalog().create_table("logs.other", arrow_rows([]).schema, properties=properties)
    other.append(arrow_rows(made_rows(3)))
    assert purge_at_once(lake)[1].state == SourceState.LOGICALLY_DELETED
    assert in_order(tuples(lake.catalog().load_table("logs.other").scan().to_arrow())) == in_order(
        made_rows(3)
    )
    assert in_order(lake.rows()) == others(rows)


def test_files_that_two_tables_have_are_not_removed(lake: IcebergStore, tmp_path: Path) -> None:
    rows, shared = lake.with_parts(1), tmp_path / "shared.parquet"
    pq.write_table(arrow_rows(made_rows(1)), shared)
    other = lake.catalog().create_table("logs.other", arrow_rows([]).schema)
    for each in (lake.table(), other):
        each.add_files([f"file://{shared}"])
    plan = lake.eraser().plan(PEOPLE)
    assert plan is not None
    lake.eraser().apply(plan, PEOPLE)
    before = lake.table().metadata_location
    for step in (lake.eraser().with_removals, lambda plan: lake.eraser().purge(plan, PEOPLE)):
        with pytest.raises(UnsupportedError, match=r"table 'logs\.other' has some of them as well"):
            step(plan)
    assert lake.table().metadata_location == before, "nothing was changed"
    assert len(lake.catalog().load_table("logs.other").scan().to_arrow()) == len(made_rows(1))
    lake.catalog().drop_table("logs.other")
    assert lake.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED
    assert not shared.exists()
    assert in_order(lake.rows()) == others([*rows, *made_rows(1)])


@pytest.mark.parametrize("is_outside", [False, True])
def test_a_table_that_cannot_be_read_hides_no_other(
    lake: IcebergStore, tmp_path: Path, is_outside: bool
) -> None:
    """All tables of the catalog are looked at, also those after it."""
    lake.with_parts(1)
    shared = (tmp_path if is_outside else data_folder(lake)) / "shared.parquet"
    pq.write_table(arrow_rows(made_rows(1)), shared)
    lake.table().add_files([f"file://{shared}"])
    for name in ("logs.a_broken", "logs.other", "logs.z_broken"):
        table = lake.catalog().create_table(name, arrow_rows([]).schema)
        if name == "logs.other":
            table.add_files([f"file://{shared}"])
        else:
            Path(table.metadata_location.removeprefix("file://")).unlink()
    with pytest.raises(UnsupportedError, match=r"table 'logs\.other' has some of them as well"):
        purge_at_once(lake)
    assert shared.exists()
    lake.catalog().drop_table("logs.other")
    if is_outside:
        with pytest.raises(UnsupportedError, match=r"whether other tables .* \(FileNotFoundError\)"):
            purge_of_all(lake)
    else:
        assert purge_of_all(lake).state == SourceState.PURGED
    assert shared.exists() == is_outside


def purge_of_all(store: Store) -> Erasure:
    """After the rows are gone."""
    plan = store.eraser().with_removals(store.eraser().empty_plan())
    return store.eraser().purge(plan, PEOPLE, ignore_retention=True)


def test_a_leftover_file_that_names_people_in_a_dictionary_page(either: Store) -> None:
    """No row of it has the name, but its bytes do."""
    either.with_parts(1)
    path = data_folder(either) / "extra.parquet"
    names = pa.array([name_of(7), name_of(8), *ERASED]).dictionary_encode()
    extra = arrow_rows([(name_of(7), "A", 0.5, "x"), (name_of(8), "B", 0.25, "x")])
    if isinstance(either, IcebergStore):  # which knows columns by their ids
        extra = extra.cast(pq.read_schema(next(data_folder(either).glob("0*.parquet"))))
    field = extra.schema.field("user")
    pq.write_table(extra.set_column(0, field.with_type(names.type), names[:2]), path)
    assert found_in([path.read_bytes()], {name.encode() for name in ERASED})
    plan, erasure = purge_at_once(either)
    assert erasure.state == SourceState.LOGICALLY_DELETED
    assert any("cannot be looked into" in each for each in erasure.remains)
    path.unlink()
    assert either.eraser().purge(plan, PEOPLE, ignore_retention=True).state == SourceState.PURGED


@pytest.mark.parametrize("is_outside", [False, True])
def test_a_catalog_that_lists_no_tables(
    lake: IcebergStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_outside: bool
) -> None:
    """Then only files at the location of the table are its own for sure."""
    lake.with_parts(1)
    if is_outside:
        pq.write_table(arrow_rows(made_rows(1)), tmp_path / "added.parquet")
        lake.table().add_files([f"file://{tmp_path}/added.parquet"])

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("pyiceberg.catalog.sql.SqlCatalog.list_namespaces", refuse)
    if is_outside:
        with pytest.raises(
            UnsupportedError, match=r"cannot be told whether other tables .* \(PermissionError\)"
        ):
            purge_at_once(lake)
        assert (tmp_path / "added.parquet").exists()
    else:
        assert purge_at_once(lake)[1].state == SourceState.PURGED


def test_a_file_that_another_table_below_may_need_is_not_removed(table: DeltaStore) -> None:
    """Both logs name it."""
    rows = [(*row[:3], "x") for row in made_rows(0)]
    deltalake.write_deltalake(str(table.folder), arrow_rows(rows), partition_by=["page"])
    deltalake.convert_to_deltalake(str(table.folder / "page=x"))
    with pytest.raises(UnsupportedError, match="another table is in the same folder, at 'page=x/'"):
        purge_at_once(table)
    assert len(deltalake.DeltaTable(str(table.folder / "page=x")).to_pyarrow_table()) == len(rows)


def test_an_append_during_a_purge_keeps_its_file(table: DeltaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = table.with_parts(1)
    remove = DeltaFolder.remove_data_files

    def after_an_append(self: DeltaFolder, **options: Any) -> None:
        table.append(made_rows(5))
        remove(self, **options)

    monkeypatch.setattr(DeltaFolder, "remove_data_files", after_an_append)
    purge_at_once(table)
    assert in_order(table.rows()) == in_order([*others(rows), *made_rows(5)])


def test_what_a_writer_has_left_unfinished_is_purged(table: DeltaStore) -> None:
    """Deltalake gives a file its name when it is complete."""
    table.with_parts(1)
    (path,) = table.folder.glob("*.parquet")
    left = [table.folder / f"{path.name}#1", table.folder / "_change_data" / "cdc-00000.parquet"]
    for each in left:
        each.parent.mkdir(exist_ok=True)
        each.write_bytes(path.read_bytes())
    assert purge_at_once(table)[1].state == SourceState.PURGED
    assert not any(map(os.path.exists, left))


def test_a_retention_counts_from_the_removal_of_each_file(table: DeltaStore) -> None:
    table.with_parts(2)
    deltalake.DeltaTable(str(table.folder)).optimize.compact()
    folder = DeltaFolder(DeltaLog(f"delta:{table.folder}"))
    folder.remove_data_files(until=datetime(2020, 1, 1, tzinfo=UTC))
    assert len(list(table.folder.glob("*.parquet"))) == 3
    folder.remove_data_files(until=datetime.now(UTC))
    assert len(list(table.folder.glob("*.parquet"))) == 1
