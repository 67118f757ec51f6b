"""A value has one text, in every kind of source: rows, users and actions are known by it."""

import datetime as dt
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.logs import label_text, open_source, read_log, storable_labels
from armnesia.vault import Configuration
from tests.databases import DATABASES, fresh_place
from tests.logs.conftest import Schema, write_sqlite

pytestmark = pytest.mark.slow  # the conformance table reads the same cases quickly

PLUS_TWO = dt.timezone(dt.timedelta(hours=2))


class Kind(NamedTuple):
    """Values of one type, the text of each, and their types in Arrow and in PostgreSQL."""

    values: list[Any]
    texts: list[str]
    arrow: pa.DataType | None = None
    postgresql: str | None = None
    sqlite: bool = False
    csv: bool = False


CLOCK = [dt.time(1, 2, 3), dt.time(23, 59, 59, 500_000), dt.time(0, 0), dt.time(12, 30, 0, 120_000)]
CLOCK_TEXTS = ["01:02:03", "23:59:59.5", "00:00:00", "12:30:00.12"]
MOMENTS = [dt.datetime(2020, 1, 2, 3, 4, 5, 120_000), dt.datetime(1970, 1, 1), dt.datetime(1900, 6, 1, 7)]
MOMENT_TEXTS = ["2020-01-02 03:04:05.12", "1970-01-01 00:00:00", "1900-06-01 07:00:00"]
ZONED = [moment.replace(tzinfo=PLUS_TWO) for moment in MOMENTS]
ZONED_TEXTS = ["2020-01-02 01:04:05.12+00:00", "1969-12-31 22:00:00+00:00", "1900-06-01 05:00:00+00:00"]
KINDS = {
    "time": Kind(CLOCK, CLOCK_TEXTS, pa.time64("us"), "time", csv=True),
    "time to the microsecond": Kind([dt.time(12, 0, 0, 1)], ["12:00:00.000001"], pa.time64("us"), "time"),
    "time in ms": Kind(CLOCK, CLOCK_TEXTS, pa.time32("ms"), "time(3)"),
    "time in ns": Kind(CLOCK, CLOCK_TEXTS, pa.time64("ns"), "time"),
    "time with a zone": Kind(
        [dt.time(1, 2, 3, tzinfo=PLUS_TWO), dt.time(23, 59, 59, 500_000, tzinfo=dt.UTC)],
        ["01:02:03+02:00", "23:59:59.5+00:00"],
        postgresql="timetz",
    ),
    "date": Kind(
        [dt.date(2020, 1, 2), dt.date(1, 1, 1), dt.date(9999, 12, 31)],
        ["2020-01-02", "0001-01-01", "9999-12-31"],
        pa.date32(),
        "date",
        csv=True,
    ),
    "moment": Kind(MOMENTS, MOMENT_TEXTS, pa.timestamp("us"), "timestamp", csv=True),
    "moment in ms": Kind(MOMENTS, MOMENT_TEXTS, pa.timestamp("ms"), "timestamp(3)"),
    "moment in ns": Kind(MOMENTS, MOMENT_TEXTS, pa.timestamp("ns"), "timestamp"),
    "moment with a zone": Kind(ZONED, ZONED_TEXTS, pa.timestamp("us", "Europe/Berlin"), "timestamptz"),
    "moment with a zone in ns": Kind(
        ZONED, ZONED_TEXTS, pa.timestamp("ns", "America/New_York"), "timestamptz"
    ),
    "duration": Kind(
        [dt.timedelta(days=1, hours=2), dt.timedelta(seconds=1.5), dt.timedelta(days=-1, hours=1)],
        ["1 day, 2:00:00", "0:00:01.500000", "-1 day, 1:00:00"],
        pa.duration("us"),
        "interval",
    ),
    "decimal": Kind(
        [Decimal("1.50"), Decimal("2.00"), Decimal("-0.01"), Decimal("0.00"), Decimal("-0.50")],
        ["1.5", "2", "-0.01", "0", "-0.5"],
        pa.decimal128(10, 2),
        "numeric(10, 2)",
    ),
    "decimal with many places": Kind(
        [Decimal("1.5"), Decimal("100"), Decimal("0.0000001"), Decimal("-0")],
        ["1.5", "100", "0.0000001", "0"],
        pa.decimal128(38, 10),
        "numeric(38, 10)",
    ),
    "decimal of any scale": Kind(
        [Decimal("1.50"), Decimal("1E+3"), Decimal("1.20E-7"), Decimal("-0.0")],
        ["1.5", "1000", "0.00000012", "0"],
        postgresql="numeric",
    ),
    "uuid": Kind(
        [uuid.UUID("12345678-1234-5678-1234-567812345678")],
        ["12345678-1234-5678-1234-567812345678"],
        pa.uuid(),
        "uuid",
        csv=True,
    ),
    "bytes": Kind(
        [b"ann", b"\x00\xff'\"\\ \x7f~", b"", "é".encode()],
        ["ann", r"\x00\xFF\x27\x22\x5C \x7F~", "", r"\xC3\xA9"],
        pa.binary(),
        "bytea",
        sqlite=True,
    ),
    "bool": Kind([True, False], ["True", "False"], pa.bool_(), "bool"),
    "float": Kind(
        [-0.0, 1.5, 0.1, 1e16, 1e-7, float("inf"), 2.0**53, 2.0**53 - 1],
        ["0", "1.5", "0.1", "1e+16", "1e-07", "inf", "9007199254740992.0", "9007199254740991"],
        pa.float64(),
        "float8",
        sqlite=True,
    ),
    "short float": Kind(
        [-0.0, 1.5, 0.10000000149011612],
        ["0", "1.5", "0.10000000149011612"],
        pa.float32(),  # PostgreSQL shows the last one as 0.1, so that it is refused there
    ),
    "short float of few digits": Kind([-0.0, 1.5, 0.125], ["0", "1.5", "0.125"], pa.float32(), "float4"),
    "integer": Kind([-7, 0, 2**62], ["-7", "0", str(2**62)], pa.int64(), "int8", sqlite=True, csv=True),
    "text": Kind(
        ["é", "e\u0301", " x ", "007"],
        ["é", "e\u0301", " x ", "007"],
        pa.string(),
        "text",
        sqlite=True,
        csv=True,
    ),
    "text of a fixed length": Kind(["ann", "é"], ["ann", "é"], pa.string(), "char(10)"),
}


def _mapping(kind: Kind, _: Path) -> Any:
    return _columns(kind)


def _arrow(kind: Kind, _: Path) -> Any:
    assert kind.arrow is not None
    return pa.table(_columns(kind) | {"x": pa.array(kind.values, kind.arrow)})


def _parquet(kind: Kind, folder: Path) -> Any:
    pq.write_table(_arrow(kind, folder), folder / "log.parquet")
    return folder / "log.parquet"


def _pandas(kind: Kind, folder: Path) -> Any:
    return _arrow(kind, folder).to_pandas()


def _pandas_of_arrow(kind: Kind, folder: Path) -> Any:
    return _arrow(kind, folder).to_pandas(types_mapper=pd.ArrowDtype)


def _polars(kind: Kind, folder: Path) -> Any:
    return pl.from_arrow(_arrow(kind, folder))


def _csv(kind: Kind, folder: Path) -> Any:
    rows = [f'A,1,"{text}"' for text in kind.texts]
    (folder / "log.csv").write_text("\n".join(["arm,won,x", *rows]) + "\n")
    return folder / "log.csv"


def _sqlite(kind: Kind, folder: Path) -> Any:
    return write_sqlite(folder / "log.db", _columns(kind))


def _columns(kind: Kind) -> dict[str, list[Any]]:
    return {"arm": ["A"] * len(kind.values), "won": [1] * len(kind.values), "x": kind.values}


SOURCES: dict[str, Callable[[Kind, Path], Any]] = {
    "mapping": _mapping,
    "arrow": _arrow,
    "parquet": _parquet,
    "pandas": _pandas,
    "pandas of arrow": _pandas_of_arrow,
    "polars": _polars,
    "csv": _csv,
    "sqlite": _sqlite,
}
UNKNOWN = {  # to the format or to its reader, which then has numbers or bytes
    ("duration", "parquet"),
    ("uuid", "polars"),
}


def cases() -> Iterator[tuple[str, str]]:
    for name, kind in KINDS.items():
        for source in SOURCES:
            needed = {"mapping": True, "csv": kind.csv, "sqlite": kind.sqlite}
            if needed.get(source, kind.arrow is not None) and (name, source) not in UNKNOWN:
                yield name, source


def contents(kind: Kind) -> list[str]:
    return [f"3:won3:arm1:x;1000000000;1:A{len(text)}:{text}" for text in kind.texts]


def assert_known_by_text(kind: Kind, source: Any, table: str | None) -> None:
    """In contents, as users, as ids and as actions; by a vault and in a log."""
    options: dict[str, Any] = {"reward": "won", "table": table}
    (rows,) = open_source(source, action="arm", **options).rows(["A"], (0, 1))
    assert rows.contents == contents(kind)
    by_user = open_source(source, action="arm", user="x", **options)
    (rows,) = by_user.rows(["A"], (0, 1))
    assert rows.users == kind.texts
    for text in kind.texts:
        (rows,) = by_user.rows(["A"], (0, 1), users={text})
        assert rows.users == [text]
    by_id = open_source(source, action="arm", id="x", **options)
    (rows,) = by_id.rows(["A"], (0, 1), ids=set(kind.texts))
    assert rows.ids == kind.texts
    by_action = open_source(source, action="x", **options)
    (rows,) = by_action.rows(kind.texts, (0, 1))
    assert rows.arms == list(range(len(kind.texts)))
    assert {label_text(label) for label in by_action.action_labels()} == set(kind.texts)
    log = read_log(source, action="arm", user="x", actions=["A"], **options)
    assert sorted(map(str, map(label_text, log.users()))) == sorted(kind.texts)
    for user in log.users():
        assert log.request(user=user).counts.tolist() == [1]
    actions = read_log(source, action="x", actions=by_action.action_labels(), **options)
    assert actions.statistics().counts.tolist() == [1] * len(kind.texts)


@pytest.mark.parametrize(("kind", "source"), list(cases()))
def test_a_value_has_one_text(kind: str, source: str, tmp_path: Path) -> None:
    made = SOURCES[source](KINDS[kind], tmp_path)
    assert_known_by_text(KINDS[kind], made, "log" if source == "sqlite" else None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [name for name, kind in KINDS.items() if kind.postgresql])
def test_and_the_same_on_postgresql(kind: str, schema: Schema) -> None:
    columns = {"arm": "TEXT", "won": "INTEGER", "x": str(KINDS[kind].postgresql)}
    table = schema.create("log", columns, [("A", 1, value) for value in KINDS[kind].values])
    assert_known_by_text(KINDS[kind], schema.url, table)


@pytest.mark.parametrize("source", ["mapping", "arrow", "parquet", "pandas", "polars"])
def test_a_vault_holds_labels_other_than_numbers_as_text(source: str, tmp_path: Path) -> None:
    days = Kind([dt.date(2024, 5, 2), dt.date(2024, 5, 1)], ["2024-05-02", "2024-05-01"], pa.date32())
    opened = open_source(SOURCES[source](days, tmp_path), action="x", reward="won")
    assert storable_labels(opened.action_labels()) == ["2024-05-01", "2024-05-02"]


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata"])
def test_times_with_a_zone_in_files_of_duckdb(
    zone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes hours without minutes, and moments in the zone of the machine."""
    monkeypatch.setenv("TZ", zone)
    duckdb.sql(
        "COPY (SELECT 'A' AS arm, 1 AS won, TIMETZ '23:59:59.5+00:00' AS x)"
        f" TO '{tmp_path}/log.parquet' (FORMAT parquet)"
    )
    assert_known_by_text(Kind([None], ["23:59:59.5+00:00"]), tmp_path / "log.parquet", None)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_numpy(unit: str) -> None:
    moments = np.array(["2020-01-02T03:04:05", "NaT"], dtype=f"datetime64[{unit}]")
    durations = np.array([np.timedelta64(90, "m"), np.timedelta64("NaT")], dtype=f"timedelta64[{unit}]")
    assert [label_text(value) for value in moments] == ["2020-01-02 03:04:05", None]
    assert [label_text(value) for value in durations] == ["1:30:00", None]
    log = {"arm": ["A"] * 2, "won": [1] * 2, "t": moments, "d": durations}
    (rows,) = open_source(log, action="arm", reward="won").rows(["A"], (0, 1))
    assert rows.contents is not None
    first, second = rows.contents
    assert first.endswith(";1:A7:1:30:0019:2020-01-02 03:04:05")
    assert second.endswith(";1:A--")


TIMES_OR_NONE = [dt.datetime(2024, 2, 29, 12, 30), dt.datetime(2024, 2, 29, 12, 30, 1, 50_000), None]
ZONED_OR_NONE = [None if t is None else t.replace(tzinfo=PLUS_TWO) for t in TIMES_OR_NONE]
TYPED: dict[str, tuple[pa.Array, list[str | None]]] = {
    "bool": (pa.array([True, False, None]), ["True", "False", None]),
    "int8": (pa.array([-7, 0, None], pa.int8()), ["-7", "0", None]),
    "uint64": (pa.array([2**64 - 1, 0, None], pa.uint64()), [str(2**64 - 1), "0", None]),
    "float": (pa.array([-0.0, 1e-05, float("nan")]), ["0", "1e-05", None]),
    "large float": (
        pa.array([2.0**53, 2.0**53 - 1, float("inf")]),
        ["9007199254740992.0", "9007199254740991", "inf"],
    ),
    "float32": (pa.array([0.1, 3, None], pa.float32()), ["0.10000000149011612", "3", None]),
    "decimal": (
        pa.array([Decimal("7.50"), Decimal("-8.00"), Decimal("0.00")], pa.decimal128(9, 2)),
        ["7.5", "-8", "0"],
    ),
    "date": (pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]), ["2024-02-29", None, "0001-01-01"]),
    "time": (
        pa.array(TIMES_OR_NONE, pa.timestamp("us")),
        ["2024-02-29 12:30:00", "2024-02-29 12:30:01.05", None],
    ),
    "time in ms": (
        pa.array(TIMES_OR_NONE, pa.timestamp("ms")),
        ["2024-02-29 12:30:00", "2024-02-29 12:30:01.05", None],
    ),
    "zoned": (
        pa.array(ZONED_OR_NONE, pa.timestamp("us", "+02:00")),
        ["2024-02-29 10:30:00+00:00", "2024-02-29 10:30:01.05+00:00", None],
    ),
    "category": (pa.array(["x", "", None]).dictionary_encode(), ["x", "", None]),
    "nothing": (pa.nulls(3), [None, None, None]),
    "text": (pa.array(["é🦆\0x", "e\u0301", "a\r\n"]), ["é🦆\0x", "e\u0301", "a\r\n"]),
}


@pytest.mark.parametrize("type_", TYPED)
def test_a_missing_value_has_no_text(type_: str, tmp_path: Path) -> None:
    column, known = TYPED[type_]
    table = pa.table({"arm": ["A"] * 3, "won": [1] * 3, "x": column})
    pq.write_table(table, tmp_path / "log.parquet")
    sizes = ["-" if text is None else f"{len(text)}:{text}" for text in known]
    contents = [f"3:won3:arm1:x;1000000000;1:A{size}" for size in sizes]
    frame: Any = pl.from_arrow(table)
    sources = [tmp_path / "log.parquet", table, frame]
    if type_ not in ("uint64", "date"):  # pandas makes floats and times of these
        sources.append(frame.to_pandas())
    for source in sources:
        (rows,) = open_source(source, action="arm", reward="won", user="x").rows(["A"], (0, 1))
        assert rows.contents == contents
        assert rows.users == known


@pytest.mark.parametrize("database", DATABASES)
def test_rows_with_a_time_come_in_once(database: str, tmp_path: Path) -> None:
    kind = KINDS["time"]
    with fresh_place(database, tmp_path).create(Configuration(actions=("A",))) as vault:
        added = [
            vault.ingest(SOURCES[source](kind, tmp_path), action="arm", reward="won", no_user=True).added
            for source in ("parquet", "arrow", "pandas", "polars", "mapping", "csv")
        ]
        assert added == [len(kind.values), 0, 0, 0, 0, 0]
