"""Iceberg tables: DuckDB reads from them what pyiceberg itself reads, or the table is refused."""

import os
import subprocess
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform, MonthTransform, Transform, TruncateTransform
from pyiceberg.types import (
    StringType,
)

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError
from armnesia.logs import open_source, read_log
from armnesia.logs.lakes.source import LakeSource
from tests.logs.lakes.reference import ACTIONS, assert_reads
from tests.logs.lakes.tables import (
    Rows,
    add_delete_file,
    append_without,
    arrow_table,
    delete_positions,
    edit_metadata,
    iceberg_catalog,
    iceberg_files,
    static_name,
    write_iceberg,
)
from tests.logs.lakes.test_delta import contents

pytestmark = pytest.mark.slow  # the conformance table reads the same cases quickly

CLICKS: Rows = {
    "action": ["A", "B", "A", "C", "B", "A"],
    "reward": [1.0, 0.25, 0.1, 0.30000000000000004, 1.0, 1 / 3],
    "user": [1, 2, None, 1, 3, 2],
}
MORE: Rows = {"action": ["C", "A"], "reward": [0.7, 0.0], "user": [4, 1]}


Partitions = tuple[str | tuple[str, Transform[Any, Any]], ...]


@pytest.fixture
def catalog(tmp_path: Path) -> SqlCatalog:
    return iceberg_catalog(tmp_path / "lake")


def create(catalog: SqlCatalog, *parts: Rows | pa.Table, by: Partitions = (), **options: Any) -> Table:
    """Create a table, partitioned by some columns, with one append for each of its parts."""
    schema = options.pop("schema", None) or arrow_table(parts[0]).schema
    table = catalog.create_table("logs.clicks", schema=schema, **options)
    with table.update_spec() as update:
        for column in by:
            name, transform = (column, IdentityTransform()) if isinstance(column, str) else column
            update.add_field(name, transform)
    for rows in parts:
        table.append(arrow_table(rows))
    return table


def in_iceberg(table: Table) -> pd.DataFrame:
    """The rows as pyiceberg reads them."""
    return table.refresh().scan().to_arrow().to_pandas()


def refusal(name: str, **columns: Any) -> str:
    with pytest.raises(InvalidLogError) as caught:
        open_source(name, **{"action": "action", "reward": "reward", **columns})
    return str(caught.value)


def test_a_table_of_a_catalog(tmp_path: Path, catalog: SqlCatalog, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog is the one that pyiceberg is configured for; every opening reads the present snapshot."""
    table = create(catalog, CLICKS)
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__LAKE__URI", f"sqlite:///{tmp_path}/lake/catalog.db")
    # The variables are read when pyiceberg is imported.
    from pyiceberg import catalog as module
    from pyiceberg.utils.config import Config

    monkeypatch.setattr(module, "_ENV_CONFIG", Config())
    name = "iceberg:lake.logs.clicks"
    assert_reads(name, in_iceberg(table))
    table.append(arrow_table(MORE))
    assert len(assert_reads(name, in_iceberg(table))) == 8
    described = dict(open_source(name, action="action", reward="reward").description)
    assert described == {
        "kind": "iceberg",
        "location": name,
        "table": None,
        "columns": {"action": "action", "reward": "reward", "user": "user", "id": None},
    }
    assert "Table does not exist: logs.other" in refusal("iceberg:lake.logs.other")


def test_metadata_of_an_earlier_time_is_an_earlier_version(catalog: SqlCatalog) -> None:
    table = create(catalog, CLICKS)
    name, before = static_name(table), in_iceberg(table)
    table.append(arrow_table(MORE))
    assert_reads(name, before)


# Partitions and types.

PARTED: Rows = {
    **CLICKS,
    "day": [date(2024, 1, 1), date(2024, 1, 2), None, date(2024, 1, 1), date(2024, 1, 2), date(1969, 1, 1)],
    "page": ["a/b", "ü x", "50% [1]", "a/b", "it's", None],
    "price": [Decimal("1.50"), None, Decimal("2.00"), Decimal("1.50"), Decimal("0.10"), Decimal("2.00")],
    "at": [
        datetime(2024, 1, 1, 12, 30, 0, 5, tzinfo=UTC),
        None,
        None,
        datetime(1969, 5, 1, tzinfo=UTC),
        None,
        None,
    ],
    "seen": [datetime(2024, 1, 1, 12, 30, 0, 5), None, None, datetime(1969, 5, 1), None, None],
    "hour": [time(12, 30, 0, 5), None, None, time(0), None, None],
    "key": [b"a\x00", b"", None, b"a\x00", b"b", b"c"],
    "new": [True, False, None, True, False, True],
}


@pytest.mark.parametrize("by", [("day",), ("page", "new"), ("price", "at"), ("seen",)], ids="+".join)
def test_partitioned_tables(tmp_path: Path, catalog: SqlCatalog, by: tuple[str, ...]) -> None:
    table = create(catalog, PARTED, by=by)
    name = static_name(table)
    assert_reads(name, in_iceberg(table))
    plain = tmp_path / "plain.parquet"
    pq.write_table(pa.table(PARTED), plain)
    columns: dict[str, Any] = {"action": "action", "reward": "reward"}
    assert contents(name, **columns) == contents(str(plain), **columns)


@pytest.mark.parametrize("column", ["day", "page", "price", "at", "seen", "hour", "key", "new"])
def test_a_partition_column_that_is_in_no_file_is_a_column_with_its_type(
    tmp_path: Path, catalog: SqlCatalog, column: str
) -> None:
    """As in a table that was imported from Hive: its files lack the column."""
    whole = pa.table(PARTED)
    table = create(catalog, by=(column,), schema=whole.schema)
    append_without(table, whole, column)
    plain = tmp_path / "plain.parquet"
    pq.write_table(whole, plain)
    columns: dict[str, Any] = {"action": "action", "reward": "reward"}
    for file in iceberg_files(table):
        assert column not in pq.read_schema(file.file_path.removeprefix("file://")).names
    assert contents(static_name(table), **columns) == contents(str(plain), **columns)
    keyed, expected = (
        read_log(each, actions=ACTIONS, where=f"{column} != ''") for each in (static_name(table), plain)
    )
    assert keyed.statistics() == expected.statistics()


def test_other_partition_transforms_change_nothing(tmp_path: Path, catalog: SqlCatalog) -> None:
    by: Partitions = (("day", MonthTransform()), ("page", TruncateTransform(1)))
    table = create(catalog, by=by, schema=arrow_table(PARTED).schema)
    for number, rows in enumerate((CLICKS, MORE)):
        path = tmp_path / f"{number}.parquet"
        days = [date(2024, number + 1, day + 1) for day in range(len(rows["user"]))]
        others = {name: [None] * len(days) for name in PARTED if name not in (*rows, "day", "page")}
        whole = pa.table({**rows, "day": days, "page": [f"x{day}" for day in days], **others})
        pq.write_table(whole.cast(arrow_table(PARTED).schema), path)
        table.add_files([f"file://{path}"])
    assert sorted(str(file.partition) for file in iceberg_files(table)) == [
        "Record[648, x]",
        "Record[649, x]",
    ]
    assert_reads(static_name(table), in_iceberg(table))


# Schema evolution.


def test_nested_columns_are_part_of_a_row_unless_their_fields_have_changed(
    tmp_path: Path, catalog: SqlCatalog
) -> None:
    rows = {"action": ["A", "B"], "reward": [0.5, 1.0], "seen": [{"page": "x"}, {"page": "y"}]}
    table = create(catalog, rows)
    pq.write_table(pa.table(rows), tmp_path / "plain.parquet")
    columns = {"action": "action", "reward": "reward"}
    assert contents(static_name(table), **columns) == contents(str(tmp_path / "plain.parquet"), **columns)
    with table.update_schema() as update:
        update.rename_column("seen.page", "title")
    expected = "column 'seen' is of type a nested type that has changed, which is not supported"
    assert refusal(static_name(table)).endswith(expected)
    assert len(read_log(static_name(table), actions=ACTIONS)) == 2


def test_files_without_field_ids_are_read_by_the_name_mapping(tmp_path: Path, catalog: SqlCatalog) -> None:
    table = create(catalog, CLICKS)
    pq.write_table(arrow_table(MORE), tmp_path / "more.parquet")
    table.add_files([f"file://{tmp_path}/more.parquet"])
    with table.update_schema() as update:
        update.rename_column("user", "who")
    assert_reads(static_name(table), in_iceberg(table), user="who")
    with table.transaction() as transaction:
        transaction.remove_properties("schema.name-mapping.default")
    assert "is known by its field id, and the columns of file" in refusal(static_name(table))


# Deletes.


def test_a_position_that_is_not_in_the_file_is_refused(tmp_path: Path, catalog: SqlCatalog) -> None:
    table = create(catalog, CLICKS)
    (file,) = iceberg_files(table)
    delete_positions(table, {file.file_path: [99]}, tmp_path / "deletes.parquet")
    with pytest.raises(InvalidLogError, match="6 rows were read where there are 5"):
        read_log(static_name(table.refresh()), actions=ACTIONS)


@pytest.mark.parametrize(
    ("content", "format_", "expected"),
    [
        (
            DataFileContent.EQUALITY_DELETES,
            FileFormat.PARQUET,
            "it has equality deletes, which are not supported",
        ),
        (
            DataFileContent.POSITION_DELETES,
            FileFormat.PUFFIN,
            "it has deletion vectors, which are not supported",
        ),
        (DataFileContent.POSITION_DELETES, FileFormat.ORC, "its files must be Parquet; "),
    ],
)
def test_other_deletes_are_refused(
    tmp_path: Path, catalog: SqlCatalog, content: DataFileContent, format_: FileFormat, expected: str
) -> None:
    table = create(catalog, CLICKS)
    pq.write_table(pa.table({"user": [1]}), tmp_path / "deletes")
    add_delete_file(table, tmp_path / "deletes", content, format_)
    message = refusal(static_name(table.refresh()))
    assert message.startswith(f"source {static_name(table.refresh())!r} cannot be read as an Iceberg table: ")
    assert expected in message


# Format versions.


def as_version_3(metadata: dict[str, Any]) -> None:
    metadata.update({"format-version": 3, "next-row-id": 100})


@pytest.mark.parametrize("type_", ["timestamptz_ns", "unknown", "variant"])
def test_types_that_are_not_supported_are_refused(catalog: SqlCatalog, type_: str) -> None:
    table = create(catalog, CLICKS)

    def add_column(metadata: dict[str, Any]) -> None:
        as_version_3(metadata)
        metadata["schemas"][-1]["fields"].append({"id": 9, "name": "x", "type": type_, "required": False})
        metadata["last-column-id"] = 9

    edit_metadata(table, add_column)
    assert "cannot be read" in refusal(static_name(table))


def test_a_required_column_that_a_file_lacks_is_refused(catalog: SqlCatalog) -> None:
    table = create(catalog, CLICKS)
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.add_column("country", StringType(), required=True)
    assert "column 'country' must have a value in every row, and is not in file" in refusal(
        static_name(table)
    )


# Files and names.


def test_a_file_that_is_gone_or_other_than_the_metadata_says_is_refused(catalog: SqlCatalog) -> None:
    table = create(catalog, CLICKS)
    (file,) = iceberg_files(table)
    path = Path(file.file_path.removeprefix("file://"))
    content = path.read_bytes()
    path.write_bytes(content + b" ")
    assert f"has {len(content) + 1} bytes where snapshot " in refusal(static_name(table))
    path.unlink()
    assert refusal(static_name(table)).endswith("is not there")


def test_a_table_without_snapshots_has_no_rows(catalog: SqlCatalog) -> None:
    table = catalog.create_table("logs.clicks", schema=arrow_table(CLICKS).schema)
    with pytest.raises(InvalidLogError, match="source holds no rows"):
        read_log(static_name(table), actions=ACTIONS)
    source = open_source(static_name(table), action="action", reward="reward")
    assert isinstance(source, LakeSource)
    assert source.snapshot.version is None


@pytest.mark.parametrize(
    "name", ["", "clicks", "lake.clicks", "lake..clicks", ".logs.clicks", "ann:secret@lake.a.b"]
)
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match=r"iceberg:CATALOG\.NAMESPACE\.TABLE") as caught:
        read_log(f"iceberg:{name}")
    assert "secret" not in str(caught.value)


def test_what_cannot_be_loaded_is_refused(tmp_path: Path) -> None:
    assert refusal("iceberg:nowhere.logs.clicks").startswith(
        "source 'iceberg:nowhere.logs.clicks': pyiceberg found no catalog 'nowhere'; it looks for it in"
    )
    name = f"iceberg:{tmp_path}/metadata/v1.metadata.json"
    assert refusal(name).startswith(f"source {name!r} cannot be read as an Iceberg table: ")
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "v1.metadata.json").write_text("{}")
    assert refusal(name).startswith(f"source {name!r} cannot be read as an Iceberg table: ")


def test_without_pyiceberg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("pyiceberg.catalog", "pyiceberg.table"):
        monkeypatch.setitem(sys.modules, module, None)
    for name in ("lake.logs.clicks", "/lake/v1.metadata.json"):
        with pytest.raises(
            MissingExtraError, match=r'Reading Iceberg tables .* pip install "armnesia\[lakes\]"'
        ):
            read_log(f"iceberg:{name}")


@pytest.mark.parametrize("named_by", ["metadata", "catalog"])
def test_pyarrow_is_not_needed(tmp_path: Path, named_by: str) -> None:
    name = write_iceberg(tmp_path / "lake", CLICKS)
    configured = {
        "PYICEBERG_CATALOG__LAKE__TYPE": "sql",
        "PYICEBERG_CATALOG__LAKE__URI": f"sqlite:///{tmp_path}/lake/catalog.db",
    }
    program = (
        "import sys; sys.modules.update(pyarrow=None, pandas=None)\n"
        "from armnesia.logs import read_log\n"
        f"name = {name if named_by == 'metadata' else 'iceberg:lake.logs.clicks'!r}\n"
        "print(len(read_log(name, actions=['A', 'B', 'C'])))"
    )
    command = [sys.executable, "-c", program]
    finished = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, **configured}
    )
    assert (finished.stdout, finished.stderr) == ("6\n", "")
