"""Erasing rows of Parquet files: what stays the same, what is refused, and faults that are caught."""

import base64
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.identifiers import UserType
from armnesia.logs import open_source
from armnesia.logs.erasing import ErasurePlan, People, SourceState, file_swaps, open_eraser, parquet_eraser
from armnesia.logs.erasing.eraser import SourceEraser
from armnesia.logs.erasing.parquet_rewriting import write_without

pytestmark = pytest.mark.slow  # tests/promises erase every kind quickly

NAMES = [f"person-{number:03}" for number in range(200)]
TABLE = pa.table(
    {
        "action": ["A", "B"] * 500,
        "user": [NAMES[row % 200] for row in range(1000)],
        "reward": [row / 1024 for row in range(1000)],
        "seen": pa.array(range(1000), pa.timestamp("us", "Europe/Berlin")),
        "words": [[f"w{row}", None] for row in range(1000)],
        "place": [{"x": row, "y": None} for row in range(1000)],
    }
)


def eraser_of(path: Path, **columns: str) -> SourceEraser:
    names: dict[str, Any] = {"action": "action", "reward": "reward", **columns}
    return open_eraser(open_source(path, whole_rows=False, **names))


def erase(path: Path, people: People, **columns: str) -> ErasurePlan:
    plan = eraser_of(path, **columns).plan(people)
    assert plan is not None
    erasure = eraser_of(path, **columns).apply(plan, people)
    assert erasure.state == SourceState.PURGED
    return plan


def without(table: pa.Table, *names: str) -> pa.Table:
    kept = [row for row, user in enumerate(table["user"].to_pylist()) if user not in names]
    return table.take(kept)


def described(path: Path) -> dict[str, Any]:
    """What a file says of itself, besides its rows."""
    with pq.ParquetFile(path) as file:
        metadata = file.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        chunks = [group.column(place) for group in groups for place in range(group.num_columns)]
        return {
            "schema": file.schema_arrow,
            "metadata": metadata.metadata,
            "compression": [chunk.compression for chunk in chunks],
            "dictionary": [chunk.has_dictionary_page for chunk in chunks],
            # Statistics of a column without any value say nothing, and not all libraries write them.
            "statistics": [chunk.is_stats_set for chunk in chunks if chunk.path_in_schema != "place.y"],
            "index": [chunk.has_offset_index for chunk in chunks],
            "bloom": [chunk.bloom_filter_offset is not None for chunk in chunks],
            "sorting": [group.sorting_columns for group in groups],
            "types": [
                (column.path, column.physical_type)
                for column in (file.schema.column(place) for place in range(len(file.schema)))
            ],
        }


def by_pyarrow(path: Path) -> None:
    codecs = {"action": "none", "user": "zstd", "reward": "brotli"}
    compression = codecs | dict.fromkeys(("seen", "words.list.element", "place.x", "place.y"), "gzip")
    fields = [
        each.with_metadata({b"PARQUET:field_id": str(7 + at).encode(), b"of": b"field"})
        for at, each in enumerate(TABLE.schema)
    ]
    table = TABLE.cast(pa.schema(fields, metadata={b"origin": b"shop", b"x": b"\xff"}))
    pq.write_table(
        table,
        path,
        row_group_size=300,
        compression=compression,
        use_dictionary=["user"],
        write_statistics=["user", "reward"],
        write_page_index=True,
        sorting_columns=[pq.SortingColumn(2)],
        bloom_filter_options={"user": {"ndv": 200, "fpp": 0.1}},
    )


def by_pyarrow_with_codes(path: Path) -> None:
    codes = pa.dictionary(pa.int32(), pa.string())
    nested = pa.array([[name] for name in TABLE["user"].to_pylist()], pa.list_(codes))
    table = TABLE.set_column(1, "user", TABLE["user"].dictionary_encode()).append_column("nested", nested)
    pq.write_table(table, path, compression="none")  # pyarrow reads such lists of one group only


def by_pyarrow_int96(path: Path) -> None:
    pq.write_table(TABLE, path, use_deprecated_int96_timestamps=True, store_schema=False)


def by_duckdb(path: Path) -> None:
    from_arrow = TABLE.drop_columns(["seen"])
    assert from_arrow.num_rows == 1000
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT *, uuid() AS u, reward::DECIMAL(9,4) AS d, reward::DECIMAL(30,5) AS dd,"
            " map(['k'], [reward]) AS m, make_time(1, 2, 3.5) AS t, '{}'::JSON AS j FROM from_arrow)"
            f" TO '{path}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 2048, KV_METADATA {{a: 'b'}})"
        )


def by_polars(path: Path) -> None:
    frame = pl.DataFrame(pl.from_arrow(TABLE)).with_columns(pl.col("action").cast(pl.Categorical))
    frame.write_parquet(path, row_group_size=350)


def by_pandas(path: Path) -> None:
    frame = pd.DataFrame({name: TABLE[name].to_pandas() for name in ("action", "user", "reward")})
    frame.index = pd.Index(range(5, 1005), name="row")
    frame.to_parquet(path)


@pytest.mark.parametrize(
    "write", [by_pyarrow, by_pyarrow_with_codes, by_pyarrow_int96, by_duckdb, by_polars, by_pandas]
)
def test_a_file_keeps_its_columns_layout_and_order(tmp_path: Path, write: Callable[[Path], None]) -> None:
    path = tmp_path / "log.parquet"
    write(path)
    before, rows, status = described(path), pq.ParquetFile(path).read(), path.stat()
    gone = [NAMES[3], NAMES[150]]
    erase(path, People.named(gone))
    after, left = described(path), pq.ParquetFile(path).read()
    assert left.to_pylist() == without(rows, *gone).to_pylist()
    assert left.schema.equals(rows.schema, check_metadata=True)
    assert after == before
    assert path.stat().st_mode == status.st_mode
    content = path.read_bytes()
    assert not [name for name in gone if name.encode() in content]
    assert os.listdir(tmp_path) == ["log.parquet"]


def test_row_groups_keep_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(TABLE, path, row_group_size=100)
    names = TABLE["user"].to_pylist()[100:200]  # also of the rows 300 to 399, and so on
    gone = [*names[:50], NAMES[0]]
    erase(path, People.named(gone))
    metadata = pq.ParquetFile(path).metadata
    sizes = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert sizes == [99, 50] * 5
    erase(path, People.named(NAMES[:100]))
    metadata = pq.ParquetFile(path).metadata
    assert [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)] == [50] * 5


def test_a_file_of_which_no_row_stays_keeps_its_columns(tmp_path: Path) -> None:
    for part in range(2):
        pq.write_table(TABLE.slice(500 * part, 100), tmp_path / f"{part}.parquet")
    pattern = tmp_path / "*.parquet"
    plan = erase(pattern, People.named(NAMES[:100]))
    assert [os.path.basename(swap.path) for swap in plan.files] == ["0.parquet"]
    assert pq.ParquetFile(tmp_path / "0.parquet").metadata.num_rows == 0
    assert pq.ParquetFile(tmp_path / "0.parquet").schema_arrow.equals(TABLE.schema)
    source = open_source(str(pattern), action="action", reward="reward", whole_rows=False)
    assert source.n_rows() == 100
    erase(pattern, People.named(NAMES))
    assert pq.ParquetFile(tmp_path / "1.parquet").metadata.num_rows == 0


def test_only_files_with_such_rows_are_written_again(tmp_path: Path) -> None:
    for part in range(5):
        pq.write_table(TABLE.slice(40 * part, 40), tmp_path / f"{part}.parquet")
    stamps = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    plan = erase(tmp_path / "*.parquet", People.named([NAMES[50], NAMES[130]]))
    assert [os.path.basename(swap.path) for swap in plan.files] == ["1.parquet", "3.parquet"]
    changed = {path.name for path in tmp_path.iterdir() if path.stat().st_mtime_ns != stamps[path.name]}
    assert changed == {"1.parquet", "3.parquet"}
    for swap in plan.files:
        assert tuple(swap.new) == (os.stat(swap.path).st_size, os.stat(swap.path).st_mtime_ns)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        (pa.array([1, 2, None, 3, -1], pa.int16()), "-1"),
        (pa.array([1, 2, None, 2**64 - 1], pa.uint64()), "18446744073709551615"),
        (pa.array([1.0, 2.5, None, float("nan"), 0.0, -0.0]), "0"),
        (pa.array(["2026-01-31", "2026-02-01"]).cast(pa.date32()), "2026-01-31"),
        (pa.array([150, 15], pa.int64()).cast(pa.decimal128(25, 2)), "150"),
        (pa.array([True, False, None]), "True"),
    ],
)
def test_names_are_compared_by_their_text_in_every_type(tmp_path: Path, values: pa.Array, name: str) -> None:
    path = tmp_path / "log.parquet"
    n_rows = len(values)
    pq.write_table(pa.table({"user": values, "action": ["A"] * n_rows, "reward": [0.5] * n_rows}), path)
    source = open_source(path, action="action", reward="reward", whole_rows=False)
    (rows,) = source.rows(["A"], (0, 1))
    kept = [row for row, user in enumerate(rows.users) if user != name]
    assert len(kept) < n_rows
    erase(path, People.named([name], UserType.TEXT))
    # As text: NaN is not equal to itself.
    assert str(pq.read_table(path)["user"].to_pylist()) == str(values.take(kept).to_pylist())


def test_files_with_columns_in_another_order(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    turned = TABLE.select(["reward", "place", "user", "action"]).append_column("more", [list(range(1000))])
    pq.write_table(turned, tmp_path / "b.parquet")
    erase(tmp_path / "*.parquet", People.named([NAMES[7]]))
    assert pq.ParquetFile(tmp_path / "a.parquet").read().equals(without(TABLE, NAMES[7]))
    assert pq.ParquetFile(tmp_path / "b.parquet").read().equals(without(turned, NAMES[7]))


def test_links_stay_links_and_hard_links_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    pq.write_table(TABLE, tmp_path / "data" / "log.parquet")
    (tmp_path / "link.parquet").symlink_to("data/log.parquet")
    erase(tmp_path / "link.parquet", People.named([NAMES[1]]))
    assert (tmp_path / "link.parquet").is_symlink()
    assert pq.ParquetFile(tmp_path / "data" / "log.parquet").read().equals(without(TABLE, NAMES[1]))
    os.link(tmp_path / "data" / "log.parquet", tmp_path / "copy.parquet")
    with pytest.raises(InvalidLogError, match="has other names \\(hard links\\), which would keep them"):
        eraser_of(tmp_path / "copy.parquet").plan(People.named([NAMES[2]]))


def test_types_that_would_change_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "COPY (SELECT 'ann' AS user, 'A' AS action, 0.5::DOUBLE AS reward, INTERVAL 1 DAY AS stay)"
            f" TO '{path}' (FORMAT parquet)"
        )
    content = path.read_bytes()
    with pytest.raises(InvalidLogError, match=r"column 'stay' would become .* where it is .* Interval"):
        eraser_of(path).plan(People.named(["ann"]))
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["log.parquet"]


@pytest.mark.parametrize(
    ("described_by", "reason"),
    [
        ("_delta_log/00000000000000000000.json", "belongs to a Delta table"),
        ("metadata/00000-1.metadata.json", "belongs to an Iceberg table"),
        (".hoodie/hoodie.properties", "belongs to a Hudi table"),
        ("data/day=1/_metadata", "the file '.*/data/day=1/_metadata' has statistics of all files"),
        ("data/_metadata", "the file '.*/data/_metadata' has statistics of all files"),
        ("_common_metadata", "the file '.*/_common_metadata' has statistics of all files"),
    ],
)
def test_files_that_other_files_describe_are_refused(tmp_path: Path, described_by: str, reason: str) -> None:
    path = tmp_path / "data" / "day=1" / "log.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(TABLE, path)
    eraser = eraser_of(path)
    (tmp_path / described_by).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / described_by).touch()
    with pytest.raises(InvalidLogError, match=reason):
        eraser.plan(People.named([NAMES[1]]))


def write_partitions(folder: Path) -> Path:
    """A data set with a file that describes all of it, as pyarrow, dask and Spark write it."""
    collected: list[Any] = []
    table = TABLE.select(["action", "reward", "user"]).append_column("day", [["1", "2"] * 500])
    pq.write_to_dataset(table, folder, partition_cols=["day"], metadata_collector=collected)
    schema = table.drop_columns(["day"]).schema
    pq.write_metadata(schema, folder / "_metadata", metadata_collector=collected)
    pq.write_metadata(schema, folder / "_common_metadata")
    return folder


def test_statistics_of_a_whole_data_set(tmp_path: Path) -> None:
    """They are above the folders of the files; a description without statistics names nobody."""
    folder = write_partitions(tmp_path / "log")
    people = People.named(NAMES[:1])
    assert NAMES[0].encode() in (folder / "_metadata").read_bytes(), "the trap is there"
    with pytest.raises(InvalidLogError, match=r"the file '.*log/_metadata' has statistics .* remove it"):
        eraser_of(folder).plan(people)
    gone = eraser_of(folder).apply(eraser_of(folder).empty_plan(), People.named(["nobody"]))
    assert gone.state == SourceState.LOGICALLY_DELETED
    assert "files _metadata and _common_metadata" in gone.remains[0]
    (folder / "_metadata").unlink()
    erase(folder, people)
    content = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not any(NAMES[0].encode() in each for each in content)


@pytest.mark.parametrize(
    ("key", "value", "is_named"),
    [
        ("max_user", NAMES[1], True),
        ("range", f'{{"of users": ["{NAMES[0]}", "{NAMES[1]}"]}}', True),
        (NAMES[1], "best", True),
        ("max_user", f"{NAMES[1]}0", False),
        ("org.apache.spark.version", NAMES[1], True),
        (
            "org.apache.spark.sql.parquet.row.metadata",
            json.dumps({"fields": [{"name": "n", "metadata": {"ml_attr": {"vals": NAMES[:2]}}}]}),
            True,
        ),
        ("pandas", json.dumps({"attributes": {"sampled": [NAMES[1]]}}), True),
        ("pandas", json.dumps({"column_indexes": [{"name": NAMES[1]}]}), True),
        ("pandas", json.dumps({"columns": [{"name": NAMES[2], "pandas_type": "unicode"}]}), False),
        ("iceberg.schema", json.dumps({"type": "struct", "fields": [{"doc": f"of {NAMES[1]}"}]}), True),
    ],
)
def test_metadata_of_a_file_that_name_people_are_said(
    tmp_path: Path, key: str, value: str, is_named: bool
) -> None:
    """Also those of a file without rows of them, and in the schema that Arrow stores in code."""
    table, pattern = TABLE.select(["action", "reward", "user"]), tmp_path / "*.parquet"
    pq.write_table(table, tmp_path / "a.parquet")
    people = People.recognised_by(lambda names: [name == NAMES[1] for name in names])
    others = without(table, NAMES[1])
    described_so = others.schema.with_metadata({key: value})
    coded = base64.b64encode(described_so.serialize().to_pybytes())
    for metadata in ({key: value}, {"ARROW:schema": coded}):
        with pq.ParquetWriter(tmp_path / "b.parquet", others.schema, store_schema=False) as writer:
            writer.write_table(others)
            writer.add_key_value_metadata(metadata)
        plan = eraser_of(pattern).plan(people) or eraser_of(pattern).empty_plan()
        erasure = eraser_of(pattern).apply(plan, people)
        said = "key-value metadata or names of columns of files may name people"
        assert any(said in each for each in erasure.remains) == is_named
        assert erasure.state == (SourceState.LOGICALLY_DELETED if is_named else SourceState.PURGED)
        assert NAMES[1] not in str(erasure)


def test_words_that_describe_columns_are_no_names(tmp_path: Path) -> None:
    """What pandas, Spark and Iceberg call parts and types of columns; names of columns may be of people."""
    spark = {
        "type": "struct",
        "fields": [{"name": "page", "type": "string", "nullable": True, "metadata": {}}],
    }
    iceberg = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "page", "type": "string"}]}
    users = ["string", "struct", "fields", "nullable", "columns", "unicode", "schema-id", "page", "ann"]
    frame = pd.DataFrame({"action": "A", "reward": 1, "user": users, "page": "p"})
    table = pa.Table.from_pandas(frame, preserve_index=False)
    keys = {
        "org.apache.spark.sql.parquet.row.metadata": json.dumps(spark),
        "iceberg.schema": json.dumps(iceberg),
        **(table.schema.metadata or {}),
    }
    pq.write_table(table.replace_schema_metadata(keys), tmp_path / "a.parquet")
    for name in users:
        people = People.named([name])
        plan = eraser_of(tmp_path / "a.parquet").plan(people)
        assert plan is not None
        erasure = eraser_of(tmp_path / "a.parquet").apply(plan, people)
        assert (erasure.state == SourceState.LOGICALLY_DELETED) == (name == "page"), name


def test_metadata_of_nested_columns_are_looked_at(tmp_path: Path) -> None:
    inner = pa.field("x", pa.int64(), metadata={"seen by": NAMES[1]})
    table = TABLE.select(["action", "reward", "user"])
    nested = pa.array([{"x": 1}] * 1000, pa.struct([inner]))
    pq.write_table(table.append_column("place", nested), tmp_path / "a.parquet")
    people = People.named([NAMES[1]])
    plan = eraser_of(tmp_path / "a.parquet").plan(people)
    assert plan is not None
    erasure = eraser_of(tmp_path / "a.parquet").apply(plan, people)
    assert "key-value metadata or names of columns of files may name people" in erasure.remains[0]


def test_numbers_and_short_words_in_metadata_are_no_names(tmp_path: Path) -> None:
    users = ["7", "2024", "ab", "31415", "bob"]
    rows = {"action": ["A"] * 5, "reward": [1] * 5, "user": users}
    table = pa.table(rows, metadata={"a": "7 of 2024", "ab": "ab", "rows": "31415", "by": "bob"})
    for name, is_named in zip(users, [False, False, False, True, True], strict=True):
        pq.write_table(table, tmp_path / "a.parquet")
        people = People.named([name])
        plan = eraser_of(tmp_path / "a.parquet").plan(people)
        assert plan is not None
        erasure = eraser_of(tmp_path / "a.parquet").apply(plan, people)
        assert (erasure.state == SourceState.LOGICALLY_DELETED) == is_named


def test_views_of_texts_are_erased(tmp_path: Path) -> None:
    """Files of writers with such types in memory; they are texts in the file."""
    views = pa.array([[name] for name in TABLE["user"].to_pylist()], pa.list_(pa.string_view()))
    users = TABLE["user"].cast(pa.string_view())
    table = TABLE.set_column(1, "user", users).append_column("seen by", views)
    path = tmp_path / "log.parquet"
    pq.write_table(table, path, row_group_size=300)
    before = described(path)
    erase(path, People.named([NAMES[3]]))
    assert described(path) == before
    assert (
        pq.ParquetFile(path).read().to_pylist()
        == without(TABLE, NAMES[3])
        .append_column("seen by", [[[name] for name in TABLE["user"].to_pylist() if name != NAMES[3]]])
        .to_pylist()
    )


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_times_of_day_in_utc_stay_so(tmp_path: Path, unit: str) -> None:
    path = tmp_path / "log.parquet"
    at = pa.array(range(1000), pa.time32("ms") if unit == "ms" else pa.time64(unit))
    pq.write_table(TABLE.append_column("at", at), path, write_time_adjusted_to_utc=True)
    before = described(path)
    erase(path, People.named([NAMES[3]]))
    assert described(path) == before
    assert "isAdjustedToUTC=true" in str(pq.ParquetFile(path).schema)


def test_checksums_of_the_old_file_go_with_it(tmp_path: Path) -> None:
    """Hadoop keeps them beside a file, and refuses the file if they differ."""
    pq.write_table(TABLE, tmp_path / "log.parquet")
    (tmp_path / ".log.parquet.crc").write_bytes(b"crc")
    erase(tmp_path / "log.parquet", People.named([NAMES[1]]))
    assert os.listdir(tmp_path) == ["log.parquet"]


def test_a_file_that_somebody_has_changed_is_refused(tmp_path: Path) -> None:
    people = People.named([NAMES[1]])
    for name in ("a", "b"):
        pq.write_table(TABLE, tmp_path / f"{name}.parquet")
    eraser = eraser_of(tmp_path / "*.parquet")
    plan = eraser.plan(people)
    assert plan is not None
    pq.write_table(TABLE.slice(0, 500), tmp_path / "b.parquet")
    with pytest.raises(InvalidLogError, match=r"b\.parquet' cannot be erased: the file has changed"):
        eraser.apply(plan, people)
    assert pq.ParquetFile(tmp_path / "a.parquet").metadata.num_rows == 1000, "not even the first one"
    eraser.undo(plan)
    assert sorted(os.listdir(tmp_path)) == ["a.parquet", "b.parquet"]
    erase(tmp_path / "*.parquet", people)
    assert pq.ParquetFile(tmp_path / "b.parquet").read().equals(without(TABLE.slice(0, 500), NAMES[1]))


def test_a_prepared_file_that_is_gone_is_refused(tmp_path: Path) -> None:
    people = People.named([NAMES[1]])
    pq.write_table(TABLE, tmp_path / "a.parquet")
    eraser = eraser_of(tmp_path / "a.parquet")
    plan = eraser.plan(people)
    assert plan is not None
    os.unlink(plan.files[0].staged)
    with pytest.raises(InvalidLogError, match="the new file that was prepared is gone"):
        eraser.apply(plan, people)
    assert pq.ParquetFile(tmp_path / "a.parquet").read().equals(TABLE)


def test_an_erasure_of_which_files_were_replaced_cannot_be_undone(tmp_path: Path) -> None:
    people = People.named([NAMES[1]])
    for name in ("a", "b"):
        pq.write_table(TABLE, tmp_path / f"{name}.parquet")
    eraser = eraser_of(tmp_path / "*.parquet")
    plan = eraser.plan(people)
    assert plan is not None
    os.replace(plan.files[0].staged, plan.files[0].path)
    with pytest.raises(InvalidInputError, match="1 of 2 files were: apply it"):
        eraser.undo(plan)
    eraser.apply(plan, people)
    assert pq.ParquetFile(tmp_path / "b.parquet").read().equals(without(TABLE, NAMES[1]))


def test_what_a_plan_left_that_was_never_stored_is_removed(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    eraser_of(tmp_path / "a.parquet").plan(People.named([NAMES[1]]))
    assert len(os.listdir(tmp_path)) == 2
    assert eraser_of(tmp_path / "a.parquet").plan(People.named(["nobody"])) is None
    assert os.listdir(tmp_path) == ["a.parquet"]


@pytest.mark.parametrize("given", ["", "day=*/part*.parquet", "**/*.parquet", "**"])
def test_what_was_left_is_found_in_folders_whose_files_are_gone(tmp_path: Path, given: str) -> None:
    """Killed before the plan was stored; then the log was compacted, and one folder has no files any more."""
    for day in ("day=1", "day=2"):
        (tmp_path / day).mkdir()
        pq.write_table(TABLE, tmp_path / day / "part-0.parquet")
    plan = eraser_of(tmp_path / given).plan(People.named([NAMES[1]]))
    assert plan is not None
    assert len(plan.files) == 2
    (tmp_path / "day=1" / "part-0.parquet").rename(tmp_path / "day=1" / "part-9.parquet")
    (tmp_path / "day=2" / "part-0.parquet").unlink()
    assert eraser_of(tmp_path / given).plan(People.named(["nobody"])) is None
    assert os.listdir(tmp_path / "day=1") == ["part-9.parquet"]
    assert os.listdir(tmp_path / "day=2") == []


def test_what_is_prepared_for_files_of_another_source_is_left_alone(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(TABLE, tmp_path / name)
    people = People.named([NAMES[1]])
    plan = eraser_of(tmp_path / "b*.parquet").plan(people)
    assert plan is not None
    other = tmp_path / ".armnesia-by-hand"  # not the name of a file that an eraser makes
    other.touch()
    erase(tmp_path / "a*.parquet", people)
    assert other.exists()
    assert eraser_of(tmp_path / "b*.parquet").apply(plan, people).state == SourceState.PURGED


def write_with_fault(change: Callable[[pa.Table], pa.Table]) -> Callable[..., None]:
    def write(path: str, target: str, positions: Any) -> None:
        write_without(path, target, positions)
        pq.write_table(change(pq.ParquetFile(target).read()), target)

    return write


@pytest.mark.parametrize(
    "change",
    [
        lambda rows: rows.slice(1),
        lambda rows: rows.take(list(reversed(range(len(rows))))),
        lambda rows: rows.set_column(2, "reward", [[*rows["reward"].to_pylist()[:-1], 0.75]]),
        lambda rows: pa.concat_tables([rows.slice(0, len(rows) - 1), rows.slice(0, 1)]),
    ],
    ids=["a row less", "another order", "another value", "a row twice"],
)
def test_a_file_with_other_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[pa.Table], pa.Table]
) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    monkeypatch.setattr(parquet_eraser, "write_without", write_with_fault(change))
    with pytest.raises(InvalidLogError, match="the other rows would not stay the same; nothing was changed"):
        eraser_of(tmp_path / "a.parquet").plan(People.named([NAMES[1]]))
    assert pq.ParquetFile(tmp_path / "a.parquet").read().equals(TABLE)
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_an_eraser_that_leaves_rows_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a person that stay in a file, and a whole file that is passed over."""
    people = People.named([NAMES[1]])
    for name in ("a", "b"):
        pq.write_table(TABLE, tmp_path / f"{name}.parquet")
    monkeypatch.setattr(parquet_eraser, "write_without", lambda p, t, at: write_without(p, t, at[1:]))
    with pytest.raises(InvalidLogError, match="the other rows would not stay the same"):
        eraser_of(tmp_path / "*.parquet").plan(people)
    monkeypatch.undo()
    positions = parquet_eraser.ParquetEraser._positions
    monkeypatch.setattr(
        parquet_eraser.ParquetEraser, "_positions", lambda *given: dict(list(positions(*given).items())[:1])
    )
    plan = eraser_of(tmp_path / "*.parquet").plan(people)
    assert plan is not None
    with pytest.raises(InvalidLogError, match="still has rows of the people to be erased"):
        eraser_of(tmp_path / "*.parquet").apply(plan, people)


def test_positions_across_row_groups(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    for number in range(5):
        path, target = str(tmp_path / f"{number}.parquet"), str(tmp_path / f"{number}.new.parquet")
        pq.write_table(TABLE, path, row_group_size=int(generator.integers(1, 400)))
        gone = np.sort(generator.choice(1000, int(generator.integers(1, 999)), replace=False))
        write_without(path, target, gone)
        assert pq.ParquetFile(target).read().equals(TABLE.take(np.delete(np.arange(1000), gone)))


AROUND = [multiple * 2048 + step for multiple in (1, 2, 3) for step in (-1, 0, 1, 7, 52)]
"""Row groups of about as many rows as DuckDB reads at once."""


@pytest.mark.parametrize("sizes", [*((first, 6543) for first in AROUND), (1, 2041), (2055,) * 4])
def test_people_are_erased_whatever_the_sizes_of_row_groups(tmp_path: Path, sizes: tuple[int, ...]) -> None:
    total = sum(sizes)
    users = [f"u{row}" for row in range(total)]
    table = pa.table({"action": ["A"] * total, "user": users, "reward": [row % 2 for row in range(total)]})
    path = tmp_path / "log.parquet"
    with pq.ParquetWriter(path, table.schema) as writer:
        for place, size in enumerate(sizes):
            writer.write_table(table.slice(sum(sizes[:place]), size), row_group_size=size)
    gone = ("u0", "u307", "u1642", f"u{total - 1}")
    erase(path, People.named(gone, UserType.TEXT))
    assert pq.read_table(path) == without(table, *gone)


def test_another_order_of_the_rows_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where DuckDB would hand over the rows of a condition in any order."""
    path = tmp_path / "log.parquet"
    pq.write_table(TABLE, path)

    def in_reverse(source: str, target: str, positions: Any) -> None:
        write_without(source, target, positions)
        rows = pq.read_table(target)
        pq.write_table(rows.take(list(range(len(rows)))[::-1]), target)

    monkeypatch.setattr(parquet_eraser, "write_without", in_reverse)
    with pytest.raises(InvalidLogError, match="would not stay the same"):
        eraser_of(path).plan(People.named([NAMES[1], NAMES[2]], UserType.TEXT))


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(TABLE, path)
    with pytest.raises(InvalidLogError, match=r"log\.parquet.*No such file or directory"):
        write_without(str(path), str(tmp_path / "no-folder" / "new"), np.array([0]))
    if os.path.exists("/dev/full"):
        with pytest.raises(InvalidLogError, match=r"log\.parquet.*No space left on device"):
            write_without(str(path), "/dev/full", np.array([0]))


def test_whether_a_file_can_be_written_again_is_told_in_little_memory(tmp_path: Path) -> None:
    """By no more of it for many rows than for few."""
    n_rows = 2_000_000
    columns = {"action": np.zeros(n_rows, np.int8), "reward": np.zeros(n_rows, np.int8)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    eraser = eraser_of(tmp_path / "a.parquet")
    tracemalloc.start()
    try:
        eraser.check_rewritable()
        assert tracemalloc.get_traced_memory()[1] < n_rows
    finally:
        tracemalloc.stop()


def test_a_name_of_a_column_that_names_a_person_is_said(tmp_path: Path) -> None:
    table = pa.table({"action": ["A", "B"], "reward": [1, 0], "user": ["ann", "bob"], "bob": [1, 2]})
    pq.write_table(table, tmp_path / "a.parquet", store_schema=False)
    people = People.named(["bob"])
    plan = eraser_of(tmp_path / "a.parquet").plan(people)
    assert plan is not None
    erasure = eraser_of(tmp_path / "a.parquet").apply(plan, people)
    assert "names of columns of files may name people" in erasure.remains[0]


@pytest.mark.parametrize(
    ("users", "groups", "words"),
    [
        (1, 0, "another user, whom a new file cannot be given to; run the erasure as its owner$"),
        (1, 1, "another user, whom a new file cannot be given to; run the erasure as its owner$"),
        (
            0,
            1,
            "another group, which a new file cannot be given to; run the erasure as a member of that group",
        ),
    ],
)
def test_an_owner_or_a_group_that_a_new_file_cannot_be_given_to_is_told_apart(
    users: int, groups: int, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old file seems to belong to somebody else, whom the system refuses to give files to."""
    old, new = str(tmp_path / "old"), str(tmp_path / "new")
    for path in (old, new):
        Path(path).write_bytes(b"")
    found = os.stat(old)
    other = os.stat_result((*found[:4], found.st_uid + users, found.st_gid + groups, *found[6:]))
    real = os.stat

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "stat", lambda path, **options: other if path == old else real(path, **options))
    monkeypatch.setattr(os, "chown", refused, raising=False)
    with pytest.raises(InvalidLogError, match=words):
        file_swaps.copy_access(old, new)
