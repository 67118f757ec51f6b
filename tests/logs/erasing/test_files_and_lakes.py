"""Erasers of Parquet files, Delta and Iceberg tables: what is refused, and what stays how long."""

import json
import os
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import ArmnesiaError, InvalidLogError, UnsupportedError
from armnesia.logs.erase import parquet as parquet_module
from armnesia.logs.erase.eraser import Eraser
from armnesia.logs.source import open_source
from armnesia.logs.statements import Chosen
from tests.logs.erasing.rows import (
    BOB,
    PEOPLE,
    eraser_of,
    filled,
    left,
    made_rows,
    of_people,
    opened,
    stored,
)
from tests.logs.lake_tables import add_actions, delete_positions, edit_commit, inline_vector, set_features
from tests.promises.driver import COLUMNS
from tests.promises.lakes import Delta, Folder, Iceberg, Lake, arrow


def refuses(eraser: Eraser, reason: str) -> None:
    """Nothing is changed."""
    with pytest.raises(UnsupportedError, match=reason):
        eraser.check()
    with pytest.raises(UnsupportedError, match=reason):
        eraser.delete(BOB)


# Parquet


def test_only_parquet_files_on_this_machine_are_written_again(parquet: Folder) -> None:
    (parquet.folder / "log.csv").write_text("user,action,reward\nbob-the-builder,A,1\n")
    refuses(open_source(parquet.folder / "log.csv").eraser(), "only Parquet files on this machine")


def test_files_with_other_names_or_statistics_elsewhere_are_refused(parquet: Folder) -> None:
    filled(parquet)
    state, path = parquet.state(), parquet.folder / "0.parquet"
    os.link(path, parquet.folder.parent / "other.parquet")
    with pytest.raises(InvalidLogError, match="hard links"):
        eraser_of(parquet).delete(BOB)
    os.unlink(parquet.folder.parent / "other.parquet")
    (parquet.folder / "_metadata").write_bytes(b"")
    with pytest.raises(InvalidLogError, match="_metadata"):
        eraser_of(parquet).delete(BOB)
    os.unlink(parquet.folder / "_metadata")
    assert parquet.state() == state


def test_a_file_that_another_program_replaces_meanwhile_is_left(
    parquet: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet.append(made_rows(1))
    write = parquet_module._write

    def replaced(path: str, *given: Any) -> None:
        write(path, *given)
        pq.write_table(arrow(made_rows(3)), path)

    monkeypatch.setattr(parquet_module, "_write", replaced)
    with pytest.raises(InvalidLogError, match="has changed"):
        eraser_of(parquet).delete(BOB)
    assert stored(parquet) == left(made_rows(3))
    assert [path.name for path in parquet.folder.iterdir()] == ["0.parquet"]


def test_a_new_file_is_like_the_old_one(parquet: Folder) -> None:
    """In types, metadata, compression, groups of rows, order and access; codes of a dictionary are texts."""
    table = arrow(made_rows(1)).append_column("day", pa.array([None] * 12, pa.date32()))
    table = table.set_column(1, "person", table["person"].dictionary_encode())
    table = table.replace_schema_metadata({"made by": "somebody"})
    path = parquet.folder / "0.parquet"
    pq.write_table(table, path, compression="zstd", row_group_size=5)
    path.chmod(0o640)
    assert eraser_of(parquet).delete(BOB) == 3
    with pq.ParquetFile(path) as new:
        assert new.metadata.metadata[b"made by"] == b"somebody"
        assert [new.metadata.row_group(at).num_rows for at in range(new.num_row_groups)] == [4, 3, 2]
        assert new.metadata.row_group(0).column(0).compression == "ZSTD"
        names = [name for name in table["person"].to_pylist() if name != PEOPLE[1]]
        assert new.read()["person"].to_pylist() == names
        assert new.schema_arrow.field("day").type == pa.date32()
    assert path.stat().st_mode & 0o777 == 0o640
    assert PEOPLE[1].encode() not in parquet.bytes()


def test_moments_of_spark_stay_as_spark_reads_them(parquet: Folder) -> None:
    path = parquet.folder / "0.parquet"
    rows = arrow(made_rows(1)).append_column("at", pa.array([0] * 12, pa.timestamp("ns")))
    pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
    assert eraser_of(parquet).delete(BOB) == 3
    assert pq.ParquetFile(path).schema.column(5).physical_type == "INT96"


def test_a_type_that_would_become_another_is_refused(parquet: Folder) -> None:
    path = parquet.folder / "0.parquet"
    people = f"(SELECT unnest(['{PEOPLE[0]}', '{PEOPLE[1]}']) AS person)"
    sql = f"SELECT *, 'A' AS arm, 1 AS reward, '10:00:00+02'::timetz AS other FROM {people}"
    duckdb.sql(sql).write_parquet(str(path))
    state = parquet.state()
    with pytest.raises(InvalidLogError, match="the rows of others would not stay the same"):
        eraser_of(parquet, id=None).delete(BOB)
    assert parquet.state() == state


def test_a_file_of_which_no_row_stays_keeps_its_columns(parquet: Folder) -> None:
    parquet.append([row for row in made_rows(1) if row.person == PEOPLE[1]])
    parquet.append(made_rows(2))
    assert eraser_of(parquet).delete(BOB) == 6
    assert pq.read_table(parquet.folder / "0.parquet").schema == arrow([]).schema


# Delta


def commits(store: Delta) -> list[dict[str, Any]]:
    log = sorted((store.folder / "_delta_log").glob("*.json"))
    return [json.loads(line) for path in log for line in path.read_text().splitlines()]


def test_no_name_of_the_people_is_written_into_the_log(delta: Delta) -> None:
    """Not even as the lowest and highest of those that are erased."""
    delta.append(of_people("aaa", *PEOPLE, "zzz"))
    before = len(commits(delta))
    assert eraser_of(delta).delete(Chosen(users=PEOPLE[:2])) == 2
    new = json.dumps(commits(delta)[before:])
    assert '"operation": "MERGE"' in new
    assert [name for name in PEOPLE if name in new] == []


def test_old_files_of_a_delta_table_stay_as_long_as_it_declares(delta: Delta) -> None:
    filled(delta)
    eraser = eraser_of(delta)
    eraser.delete(BOB)
    assert not eraser.purge()
    delta.append([row for row in made_rows(3) if row.person != PEOPLE[1]])
    assert not eraser.purge()
    assert len(deltalake.DeltaTable(delta.folder, version=1).to_pyarrow_table()) == 24
    assert eraser.purge(ignore_retention=True)
    assert len(list((delta.folder).glob("*.parquet"))) == 2


def test_a_delta_table_whose_log_would_name_people_is_refused(delta: Delta) -> None:
    deltalake.write_deltalake(delta.folder, arrow(made_rows(1)), partition_by=["person"])
    state = delta.state()
    refuses(eraser_of(delta), "partitioned by 'person'")
    assert delta.state() == state


def test_rows_that_a_deletion_vector_marks_stay_deleted(delta: Delta) -> None:
    delta.append(made_rows(1))
    vector, path = inline_vector([0]), delta.folder
    edit_commit(path, 0, set_features("deletionVectors"))
    edit_commit(path, 0, lambda actions: add_actions(actions)[0].update(deletionVector=vector))
    assert eraser_of(delta).delete(BOB) == 3
    source = opened(delta)
    with source.connection() as connection:
        found = connection.rows(f"SELECT {', '.join(COLUMNS)} FROM {source.scan(connection).table}")
    assert sorted(found, key=repr) == left(made_rows(1)[1:], PEOPLE[1])


# Iceberg


def test_old_snapshots_stay_as_long_as_the_table_declares(iceberg: Iceberg) -> None:
    filled(iceberg)
    eraser = eraser_of(iceberg)
    eraser.delete(BOB)
    first = iceberg.opened.snapshots()[0].snapshot_id
    assert not eraser.purge()
    iceberg.append([row for row in made_rows(3) if row.person != PEOPLE[1]])
    assert not eraser.purge()
    assert len(iceberg.opened.scan(snapshot_id=first).to_arrow()) == 12
    with iceberg.opened.transaction() as transaction:
        transaction.set_properties({"history.expire.max-snapshot-age-ms": "0"})
    assert eraser.purge()
    assert len(iceberg.opened.snapshots()) == 1
    assert PEOPLE[1].encode() not in iceberg.bytes()


@pytest.mark.parametrize("kind", ["branch", "tag"])
def test_an_iceberg_table_with_branches_or_tags_is_refused(kind: str, iceberg: Iceberg) -> None:
    filled(iceberg)
    table = iceberg.opened
    getattr(table.manage_snapshots(), f"create_{kind}")(table.snapshots()[0].snapshot_id, "audit").commit()
    state = iceberg.state()
    refuses(eraser_of(iceberg), "branches or tags, which keep the rows")
    assert iceberg.state() == state


def test_rows_that_were_marked_as_deleted_stay_deleted(iceberg: Iceberg) -> None:
    filled(iceberg)
    first = sorted(iceberg.opened.inspect.files()["file_path"].to_pylist())[0]
    # Of either file, the first and the fifth row are Ann's.
    delete_positions(iceberg.opened, {first: [0, 4]}, iceberg.folder / "deletes.parquet")
    before = stored(iceberg)
    assert len(before) == 22
    assert eraser_of(iceberg).delete(BOB) == 6
    assert stored(iceberg) == [row for row in before if row[1] != PEOPLE[1]]


def test_files_that_a_table_declares_to_be_needed_are_not_removed(iceberg: Iceberg) -> None:
    filled(iceberg)
    eraser_of(iceberg).delete(BOB)
    with iceberg.opened.transaction() as transaction:
        transaction.set_properties({"gc.enabled": "false"})
    state = iceberg.state()
    with pytest.raises(UnsupportedError, match=r"gc\.enabled"):
        eraser_of(iceberg).purge(ignore_retention=True)
    assert iceberg.state() == state


def test_files_of_others_at_the_location_of_a_table_stay(iceberg: Iceberg) -> None:
    """The default location of a table is named after it, so that one which is made anew shares it."""
    rows = filled(iceberg)
    iceberg.opened.catalog.rename_table("logs.clicks", "logs.old_clicks")
    iceberg.append(made_rows(3))
    data = Path(iceberg.opened.location().removeprefix("file://")) / "data"
    pq.write_table(arrow(made_rows(4)), data / "of-a-writer.parquet")
    eraser = eraser_of(iceberg)
    assert eraser.delete(BOB) == 3
    assert eraser.purge(ignore_retention=True)
    assert b"event-3-5" not in iceberg.bytes()
    assert iceberg.opened.catalog.load_table("logs.old_clicks").scan().count() == len(rows)
    assert (data / "of-a-writer.parquet").exists()


# Both: what every lake eraser does with a commit


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def test_a_failure_of_a_library_is_told_without_its_words(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(lake)
    eraser = eraser_of(lake)

    def failing(*_: Any) -> Any:
        raise ValueError(f"cannot cast {PEOPLE[1]!r}")

    monkeypatch.setattr(eraser, "commit", failing)
    with pytest.raises(ArmnesiaError, match=r"failed \(ValueError\)") as caught:
        eraser.delete(BOB)
    assert PEOPLE[1] not in str(caught.value)
    assert caught.value.__cause__ is None
