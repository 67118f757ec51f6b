"""Delta tables: DuckDB reads from them what deltalake itself reads, or the table is refused."""

import json
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, MissingExtraError
from armnesia.logs import open_source, read_log
from tests.logs.lakes.reference import ACTIONS, assert_reads, statistics
from tests.logs.lakes.tables import (
    Rows,
    add_actions,
    add_file,
    edit_commit,
    inline_vector,
    set_features,
    set_schema,
    write_commit,
    write_delta,
)

pytestmark = pytest.mark.slow  # the conformance table reads the same cases quickly

CLICKS: Rows = {
    "action": ["A", "B", "A", "C", "B", "A"],
    "reward": [1.0, 0.25, 0.1, 0.30000000000000004, 1.0, 1 / 3],
    "user": [1, 2, None, 1, 3, 2],
}
MORE: Rows = {"action": ["C", "A"], "reward": [0.7, 0.0], "user": [4, 1]}


def in_delta(path: Path) -> pd.DataFrame:
    """The rows as deltalake's own engine reads them."""
    return pa.table(deltalake.DeltaTable(str(path)).scan().read_all()).to_pandas()


def refusal(name: str, **columns: Any) -> str:
    with pytest.raises(InvalidLogError) as caught:
        open_source(name, **{"action": "action", "reward": "reward", **columns})
    return str(caught.value)


def test_a_checkpoint_and_a_cleaned_log_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "clicks"
    for rows in (CLICKS, MORE):
        name = write_delta(path, rows, mode="append")
    deltalake.DeltaTable(str(path)).create_checkpoint()
    for version in (0, 1):
        (path / "_delta_log" / f"{version:020}.json").unlink()
    assert_reads(name, in_delta(path))


def test_the_description_names_the_table_and_the_version(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(3):
        write_delta(tmp_path / "clicks", CLICKS, mode="append")
    described = dict(open_source("delta:clicks", action="action", reward="reward").description)
    assert described == {
        "kind": "delta",
        "location": f"delta:{tmp_path}/clicks",
        "table": None,
        "columns": {"action": "action", "reward": "reward", "user": "user", "id": None},
    }


# Partition columns.

PARTED: Rows = {
    **CLICKS,
    "day": [date(2024, 1, 1), date(2024, 1, 2), None, date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 1)],
    "page": ["a/b", "ü x", "50% [1]", "a/b", "it's", None],
    "hour": [7, 12, 7, None, 7, 7],
    "price": [Decimal("1.50"), None, Decimal("2.00"), Decimal("1.50"), Decimal("0.10"), Decimal("2.00")],
    "new": [True, False, None, True, False, True],
    "seen": [datetime(2024, 1, 1, 12, 30), None, None, datetime(2024, 5, 1), None, None],
}


@pytest.mark.parametrize("by", [["day"], ["page", "hour"], ["price", "new"], ["seen"]], ids="+".join)
def test_partition_columns_are_columns_with_their_types(tmp_path: Path, by: list[str]) -> None:
    table = pa.table(PARTED)
    name = write_delta(tmp_path / "clicks", table, partition_by=by)
    assert_reads(name, in_delta(tmp_path / "clicks"))
    plain = tmp_path / "plain.parquet"
    pq.write_table(table.cast(pa.schema([f.with_type(_in_delta(f.type)) for f in table.schema])), plain)
    columns: dict[str, Any] = {"action": "action", "reward": "reward"}
    # Whole rows: the text of every value in every column.
    assert contents(name, **columns) == contents(str(plain), **columns)
    for column in by:
        keyed, expected = (read_log(each, actions=ACTIONS, where=f"{column} != ''") for each in (name, plain))
        assert keyed.statistics() == expected.statistics()
        assert keyed.by(column).keys == expected.by(column).keys
        assert keyed.by(column).statistics == expected.by(column).statistics


def _in_delta(type_: pa.DataType) -> pa.DataType:
    return pa.timestamp("us") if pa.types.is_timestamp(type_) else type_


def contents(name: str, **columns: Any) -> list[str]:
    """The text of all columns of each row, in any order."""
    chunks = list(open_source(name, **columns).rows(ACTIONS, (0, 1)))
    assert all(rows.contents for rows in chunks)
    return sorted(content for rows in chunks for content in rows.contents or ())


@pytest.mark.parametrize(
    ("column", "values"), [("at", [datetime(2024, 1, 1, tzinfo=UTC)] * 6), ("key", [b"a\x00"] * 6)]
)
def test_partition_values_that_are_unclear_are_refused_where_they_are_read(
    tmp_path: Path, column: str, values: list[Any]
) -> None:
    name = write_delta(tmp_path / "clicks", {**CLICKS, column: values}, partition_by=[column])
    assert f"column {column!r} is of type" in refusal(name)
    assert "as a partition column, which is not supported" in refusal(name, id=column)
    assert len(read_log(name, actions=ACTIONS)) == 6


# Schema evolution.


def test_a_column_that_a_file_spells_otherwise_is_refused(tmp_path: Path) -> None:
    name = write_delta(tmp_path / "clicks", CLICKS)
    add_file(tmp_path / "clicks", 1, pa.table({"Reward": [0.5], "user": [9], "action": ["B"]}))
    assert refusal(name).endswith("column 'reward' has another spelling in file 'part-1.parquet'")


def test_a_required_column_that_a_file_lacks_is_refused(tmp_path: Path) -> None:
    name = write_delta(tmp_path / "clicks", CLICKS)

    def require(fields: list[dict[str, Any]]) -> None:
        fields[0]["nullable"] = False

    edit_commit(tmp_path / "clicks", 0, set_schema(require))
    add_file(tmp_path / "clicks", 1, pa.table({"reward": [0.5], "user": [9]}))
    expected = "column 'action' must have a value in every row, and is not in file 'part-1.parquet'"
    assert refusal(name).endswith(expected)


# Table features, written by hand where deltalake cannot write them.


class PanicException(BaseException):
    """What a panic of Rust becomes in Python: no Exception."""


def test_a_panic_of_deltalake_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise PanicException("index out of bounds")

    name = write_delta(tmp_path / "clicks", CLICKS)
    monkeypatch.setattr(deltalake.DeltaTable, "get_add_actions", fail)
    assert refusal(name).endswith("cannot be read as a Delta table: deltalake failed (PanicException)")


def test_folders_with_marks_in_their_names(tmp_path: Path) -> None:
    """deltalake itself reads them, though it does not write to all of them."""
    for marks in ("my [1]", "a#b?c", "ü %"):
        write_delta(tmp_path / "clicks", CLICKS)
        path = (tmp_path / "clicks").rename(tmp_path / marks)
        assert_reads(f"delta:{path}", pd.DataFrame(CLICKS))


def test_many_removed_rows_of_a_long_file(tmp_path: Path) -> None:
    number = 300_000
    rows = {"action": ["A", "B", "C"] * (number // 3), "reward": [0.5] * number, "user": list(range(number))}
    name = write_delta(tmp_path / "clicks", rows)
    gone = [row for row in range(number) if row % 7 == 3]
    edit_commit(tmp_path / "clicks", 0, set_features("deletionVectors"))
    edit_commit(
        tmp_path / "clicks",
        0,
        lambda actions: add_actions(actions)[0].update(deletionVector=inline_vector(gone)),
    )
    log = read_log(name, actions=ACTIONS)
    assert len(log) == number - len(gone)
    assert log.statistics() == statistics(pd.DataFrame(rows).drop(gone))


def mapped(mode: str) -> Any:
    """An edit that maps columns; their names in the files stay."""

    def fields(found: list[dict[str, Any]]) -> None:
        for number, each in enumerate(found, 1):
            physical = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": each["name"]}
            each["metadata"] = physical
            each["name"] = {"action": "reward", "reward": "action"}.get(each["name"], f"the {each['name']}")

    def change(actions: list[dict[str, Any]]) -> None:
        set_features("columnMapping", columnMapping_mode=mode, columnMapping_maxColumnId="9")(actions)
        set_schema(fields)(actions)
        for action in actions:
            if "metaData" in action:
                columns = action["metaData"]["partitionColumns"]
                action["metaData"]["partitionColumns"] = [f"the {column}" for column in columns]

    return change


def test_columns_mapped_by_name_are_found_whatever_they_are_called_now(tmp_path: Path) -> None:
    """Two columns have even changed their names with each other."""
    path = tmp_path / "clicks"
    name = write_delta(path, {**CLICKS, "day": list("xxyyxz")}, partition_by=["day"])
    edit_commit(path, 0, mapped("name"))
    frame = in_delta(path)
    assert_reads(name, frame, action="reward", reward="action", user="the user")
    assert frame["the day"].tolist().count("x") == 3
    log = read_log(name, action="reward", reward="action", actions=ACTIONS)
    assert log.by("the day").keys == (("x",), ("y",), ("z",))


def test_columns_are_mapped_by_version_2_of_the_protocol_too(tmp_path: Path) -> None:
    path = tmp_path / "clicks"
    name = write_delta(path, CLICKS)
    edit_commit(path, 0, mapped("name"))

    def older(actions: list[dict[str, Any]]) -> None:
        for action in actions:
            if "protocol" in action:
                action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}

    edit_commit(path, 0, older)
    assert_reads(name, in_delta(path), action="reward", reward="action", user="the user")


def test_a_mapping_that_the_protocol_does_not_provide_for_is_refused(tmp_path: Path) -> None:
    name = write_delta(tmp_path / "clicks", CLICKS)

    def ask(actions: list[dict[str, Any]]) -> None:
        for action in actions:
            if "metaData" in action:
                action["metaData"]["configuration"] = {"delta.columnMapping.mode": "name"}

    edit_commit(tmp_path / "clicks", 0, ask)
    assert "columns are mapped by 'name', which its protocol does not provide for" in refusal(name)


WIDENED = [
    (pa.int32(), "long", [1, 2, None]),
    (pa.int8(), "integer", [1, -2, None]),
    (pa.float32(), "double", [0.5, 7.0, None]),
    (pa.int32(), "double", [1, 2, None]),
    (pa.int16(), "decimal(10,2)", [1, 2, None]),
    (pa.decimal128(5, 2), "decimal(12,4)", [Decimal("1.50"), Decimal("2.00"), None]),
    (pa.date32(), "timestamp_ntz", [date(2024, 1, 1), date(2024, 2, 1), None]),
]


@pytest.mark.parametrize(
    ("stored", "declared", "values"), WIDENED, ids=lambda each: str(each).replace(" ", "")
)
def test_widened_columns_are_read_in_the_wider_type(
    tmp_path: Path, stored: pa.DataType, declared: str, values: list[Any]
) -> None:
    path = tmp_path / "clicks"
    rows = pa.table({"action": ["A"] * 3, "reward": [0.5] * 3, "x": pa.array(values, stored)})
    name = write_delta(path, rows)

    def widen(fields: list[dict[str, Any]]) -> None:
        fields[2]["type"] = declared

    edit_commit(path, 0, set_features("typeWidening", "timestampNtz"))
    edit_commit(path, 0, set_schema(widen))
    wide = deltalake.DeltaTable(str(path)).schema().to_arrow()
    expected = tmp_path / "expected.parquet"
    pq.write_table(rows.cast(pa.schema(wide)), expected)
    columns: dict[str, Any] = {"action": "action", "reward": "reward", "user": "x"}
    assert contents(name, **columns) == contents(str(expected), **columns)
    assert (
        read_log(name, **columns, actions=ACTIONS).users()
        == read_log(expected, **columns, actions=ACTIONS).users()
    )


@pytest.mark.parametrize(
    ("stored", "declared"),
    [
        (pa.int64(), "integer"),
        (pa.int64(), "double"),
        (pa.float64(), "float"),
        (pa.decimal128(9, 4), "decimal(9,2)"),
        (pa.string(), "long"),
        (pa.binary(), "string"),
        (pa.timestamp("us"), "timestamp"),
    ],
    ids=str,
)
def test_a_file_with_another_type_is_refused(tmp_path: Path, stored: pa.DataType, declared: str) -> None:
    path = tmp_path / "clicks"
    name = write_delta(path, pa.table({"action": ["A"], "reward": [0.5], "x": pa.array([None], pa.int32())}))

    def change(fields: list[dict[str, Any]]) -> None:
        fields[2]["type"] = declared

    edit_commit(path, 0, set_schema(change))
    add_file(path, 1, pa.table({"action": ["A"], "reward": [0.5], "x": pa.array([None], stored)}))
    (path / "part-1.parquet").rename(path / "part-.parquet")

    def renamed(actions: list[dict[str, Any]]) -> None:
        actions[0]["add"]["path"] = "part-.parquet"

    edit_commit(path, 1, renamed)
    write_commit(
        path, 2, [{"remove": {"path": removed_path(path), "dataChange": True, "deletionTimestamp": 1}}]
    )
    assert "in the table and " in refusal(name)
    assert "in file 'part-.parquet'" in refusal(name)
    assert len(read_log(name, actions=ACTIONS)) == 1  # the column is not read


def removed_path(path: Path) -> str:
    actions = [json.loads(line) for line in (path / "_delta_log" / f"{0:020}.json").read_text().splitlines()]
    return str(add_actions(actions)[0]["path"])


def test_moments_that_spark_stores_as_int96_are_in_utc(tmp_path: Path) -> None:
    path = tmp_path / "clicks"
    moments = [datetime(2024, 1, 1, 12, 0, 0, 5, tzinfo=UTC), datetime(1969, 12, 31, tzinfo=UTC), None]
    rows = pa.table(
        {"action": ["A"] * 3, "reward": [0.5] * 3, "at": pa.array(moments, pa.timestamp("us", "UTC"))}
    )
    name = write_delta(path, rows)
    before = contents(name, action="action", reward="reward")
    file = path / removed_path(path)
    pq.write_table(rows, file, use_deprecated_int96_timestamps=True)

    def resized(actions: list[dict[str, Any]]) -> None:
        add_actions(actions)[0]["size"] = file.stat().st_size

    edit_commit(path, 0, resized)
    assert contents(name, action="action", reward="reward") == before
    assert any("2024-01-01 12:00:00.000005+00:00" in content for content in before)


NESTED = {"action": ["A"], "reward": [0.5], "seen": [[{"page": "x", "times": [1, 2]}]]}


def test_nested_columns_are_part_of_a_row(tmp_path: Path) -> None:
    name = write_delta(tmp_path / "clicks", NESTED)
    pq.write_table(pa.table(NESTED), tmp_path / "plain.parquet")
    columns = {"action": "action", "reward": "reward"}
    assert contents(name, **columns) == contents(str(tmp_path / "plain.parquet"), **columns)
    add_file(tmp_path / "clicks", 1, pa.table({**NESTED, "seen": [[{"page": "x"}]]}))
    assert "column 'seen' is of type STRUCT" in refusal(name)
    assert len(read_log(name, actions=ACTIONS)) == 2


@pytest.mark.parametrize(
    ("feature", "expected"),
    [
        ("variantType", "table features that are not supported: 'variantType'"),
        ("variantShredding-preview", "table features that are not supported: 'variantShredding-preview'"),
        ("somethingNew", "'somethingNew' is not supported"),
        ("catalogManaged", "catalog-managed table"),
    ],
)
def test_unknown_features_are_refused(tmp_path: Path, feature: str, expected: str) -> None:
    name = write_delta(tmp_path / "clicks", CLICKS)
    edit_commit(tmp_path / "clicks", 0, set_features(feature))
    message = refusal(name)
    assert message.startswith(f"source 'delta:{tmp_path}/clicks' cannot be read as a Delta table: ")
    assert expected in message


@pytest.mark.parametrize("feature", ["timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "typeWidening"])
def test_features_that_change_nothing_here_are_accepted(tmp_path: Path, feature: str) -> None:
    name = write_delta(tmp_path / "clicks", CLICKS)
    edit_commit(tmp_path / "clicks", 0, set_features(feature))
    assert_reads(name, pd.DataFrame(CLICKS))


def test_vectors_in_a_table_whose_other_features_deltalake_does_not_read_are_refused(tmp_path: Path) -> None:
    name = write_delta(tmp_path / "clicks", CLICKS)
    edit_commit(tmp_path / "clicks", 0, set_features("typeWidening", "deletionVectors"))
    assert "TypeWidening" in refusal(name)


# Files that are not what the log says.


def test_a_file_that_is_gone_or_other_than_the_log_says_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "clicks"
    name = write_delta(path, CLICKS)
    (file,) = path.glob("*.parquet")
    content = file.read_bytes()
    file.unlink()
    assert refusal(name).endswith(f"file {file.name!r} of version 0 is not there")
    file.write_bytes(content + b" ")
    assert f"has {len(content) + 1} bytes where version 0 of the table says {len(content)}" in refusal(name)
    file.write_bytes(content)
    edit_commit(path, 0, lambda actions: add_actions(actions)[0].update(stats='{"numRecords": 7}'))
    assert f"file {file.name!r} has 6 rows where version 0 of the table says 7" in refusal(name)
    edit_commit(path, 0, lambda actions: add_actions(actions)[0].update(stats=None))
    assert_reads(name, in_delta(path))


def test_a_log_stays_at_its_version_until_its_files_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "clicks"
    name = write_delta(path, CLICKS)
    log = read_log(name, actions=ACTIONS)
    write_delta(path, MORE, mode="overwrite")
    assert log.users() == {1: 2, 2: 2, 3: 1}
    assert log.request(user=3).counts.tolist() == [0, 1, 0]
    deltalake.DeltaTable(str(path)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(InvalidLogError, match=r"has changed since version 0 of it was read: file '.*' is no"):
        log.users()
    assert len(read_log(name, actions=ACTIONS)) == 2


@pytest.mark.parametrize(
    "path",
    [
        "s3://other/part.parquet",
        "/other/part.parquet",
        "../other/part.parquet",
        "file:///other/part.parquet",
        "file:/other/part.parquet",
    ],
)
def test_a_file_of_another_table_is_refused(tmp_path: Path, path: str) -> None:
    name = write_delta(tmp_path / "clicks", CLICKS)
    edit_commit(tmp_path / "clicks", 0, lambda actions: add_actions(actions)[0].update(path=path))
    assert f"its file {path!r} belongs to another table" in refusal(name)


def test_a_file_of_the_table_may_have_an_absolute_path(tmp_path: Path) -> None:
    path = tmp_path / "clicks"
    name = write_delta(path, CLICKS)
    (file,) = path.glob("*.parquet")
    edit_commit(path, 0, lambda actions: add_actions(actions)[0].update(path=f"file://{file}"))
    assert len(read_log(name, actions=ACTIONS)) == 6
    outside = f"file://{path}/../clicks 2/{file.name}".replace(" ", "%20")
    edit_commit(path, 0, lambda actions: add_actions(actions)[0].update(path=outside))
    assert "belongs to another table" in refusal(name)


def test_a_column_that_expands_to_more_than_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = write_delta(tmp_path / "clicks", pa.table(MORE)[:0])
    edit_commit(tmp_path / "clicks", 0, set_schema(lambda fields: fields[2].update(type="string")))
    rows = pa.table({"action": ["A"] * 50, "reward": [1.0] * 50, "user": ["x" * 50_000] * 50})
    add_file(tmp_path / "clicks", 1, rows, use_dictionary=False, compression="zstd")
    assert len(read_log(name, actions=ACTIONS)) == 50
    monkeypatch.setattr("armnesia.logs.files.formats.LARGEST_EXPANDED", 1_000_000)
    expected = "cannot be read: in file 'part-1.parquet', column 'user' of row group 0 expands from "
    assert expected in refusal(name, id="action")
    assert len(read_log(name, user=None, actions=ACTIONS)) == 50


def test_an_empty_table_has_no_rows(tmp_path: Path) -> None:
    name = write_delta(tmp_path / "clicks", CLICKS)
    deltalake.DeltaTable(str(tmp_path / "clicks")).delete()
    with pytest.raises(InvalidLogError, match="source holds no rows"):
        read_log(name, actions=ACTIONS)
    source = open_source(name, action="action", reward="reward")
    assert list(source.rows(ACTIONS, (0, 1))) == []
    assert source.n_rows() == 0


# Names.


def test_what_is_no_table_is_refused(tmp_path: Path) -> None:
    assert refusal(f"delta:{tmp_path}").endswith("there is no folder _delta_log, and so no log")
    assert refusal(f"delta:{tmp_path}/nothing").startswith(
        f"source 'delta:{tmp_path}/nothing' cannot be read"
    )
    (tmp_path / "_delta_log").mkdir()
    assert "cannot be read as a Delta table" in refusal(f"delta:{tmp_path}")


@pytest.mark.parametrize("place", ["", "s3://key:secret@bucket/log", "https://store/log?token=secret"])
def test_a_name_without_a_place_or_with_credentials_is_refused_and_not_shown(place: str) -> None:
    with pytest.raises(InvalidInputError, match="must be named delta:PATH or delta:URL") as caught:
        read_log(f"delta:{place}")
    assert "secret" not in str(caught.value)


def test_a_table_has_no_tables(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="table is for databases"):
        read_log(write_delta(tmp_path / "clicks", CLICKS), table="clicks")


def test_a_file_url_is_a_path(tmp_path: Path) -> None:
    write_delta(tmp_path / "clicks", CLICKS)
    source = open_source(f"delta:file://{tmp_path}/clicks", action="action", reward="reward")
    assert source.description["location"] == f"delta:{tmp_path}/clicks"


def test_without_deltalake_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(MissingExtraError, match=r'Reading Delta tables .* pip install "armnesia\[lakes\]"'):
        read_log("delta:clicks")


def test_pyarrow_is_not_needed(tmp_path: Path) -> None:
    path = tmp_path / "clicks"
    name = write_delta(path, {**CLICKS, "day": list("xxyyxz")}, partition_by=["day"])
    edit_commit(path, 0, set_features("deletionVectors"))
    edit_commit(path, 0, lambda actions: add_actions(actions)[0].update(deletionVector=inline_vector([1])))
    program = (
        "import sys; sys.modules.update(pyarrow=None, pandas=None)\n"
        "from armnesia.logs import read_log\n"
        f"print(len(read_log({name!r}, actions=['A', 'B', 'C'], where='day in (x, y)')))"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout == "4\n"
