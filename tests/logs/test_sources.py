"""Rows of files and dataframes: the same from every kind of source, refused in the words of `read_log`."""

import datetime as dt
import gzip
from collections.abc import Callable
from decimal import Decimal
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
from armnesia.core.statistics import ArmStatistics
from armnesia.logs import read_log
from armnesia.logs.opening import open_source, reopen_source
from armnesia.logs.source import Rows, Source

NAMES = {"action": "arm", "reward": "won", "user": "who"}
TABLE: dict[str, list[Any]] = {
    "who": [7, None, 8, 7, 7],
    "arm": ["A", "B", "A", "C", "A"],
    "won": [0.5, 1.0, 0.1, 0.0, 0.5],
    "page": ["home", 'ünï, "cödé"', None, "x\ny", "home"],
    "hour": [9, 10, 11, 12, 9],
}
ACTIONS = ["A", "B", "C"]


def as_csv(folder: Path, table: dict[str, Any] = TABLE, name: str = "log.csv") -> Path:
    pl.DataFrame(table).write_csv(folder / name)
    return folder / name


def as_parquet(folder: Path, table: dict[str, Any] = TABLE, name: str = "log.parquet") -> Path:
    pq.write_table(pa.table(table), folder / name)
    return folder / name


def as_tsv(folder: Path) -> Path:
    text = pl.DataFrame(TABLE).write_csv(separator="\t")
    (folder / "log.tsv.gz").write_bytes(gzip.compress(text.encode()))
    return folder / "log.tsv.gz"


KINDS: dict[str, Callable[[Path], Any]] = {
    "csv": as_csv,
    "tsv.gz": as_tsv,
    "parquet": as_parquet,
    "mapping": lambda _: TABLE,
    "arrays": lambda _: TABLE | {"won": np.array(TABLE["won"]), "hour": np.array(TABLE["hour"])},
    "pandas": lambda _: pd.DataFrame(TABLE),  # its column of users holds floats and NaN
    "pandas objects": lambda _: pd.DataFrame(TABLE, dtype=object),
    "polars": lambda _: pl.DataFrame(TABLE),
    "polars lazy": lambda _: pl.LazyFrame(TABLE),
    "pyarrow": lambda _: pa.table(TABLE),
    "float users in parquet": lambda folder: as_parquet(folder, TABLE | {"who": [7.0, None, 8.0, 7.0, 7.0]}),
    "text users": lambda _: pl.DataFrame(TABLE | {"who": ["7", None, "8", "7", "7"]}),
}


def together(source: Source, chunk: int = 50_000, **options: Any) -> Rows:
    """All rows of a source as one chunk."""
    chunks = list(source.rows(ACTIONS, (0, 1), chunk=chunk, **options))
    ids, contents = [rows.ids for rows in chunks], [rows.contents for rows in chunks]
    return Rows(
        [position for rows in chunks for position in rows.positions],
        [arm for rows in chunks for arm in rows.arms],
        [units for rows in chunks for units in rows.units],
        [user for rows in chunks for user in rows.users],
        None if None in ids else [id_ for rows in ids for id_ in rows or ()],
        None if None in contents else [content for rows in contents for content in rows or ()],
    )


@pytest.mark.parametrize("chunk", [1, 2, 50_000])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_source_gives_the_same_rows(kind: str, chunk: int, tmp_path: Path) -> None:
    source = open_source(KINDS[kind](tmp_path), **NAMES)
    rows = together(source, chunk)
    assert rows.positions == [0, 1, 2, 3, 4]
    assert rows.arms == [0, 1, 0, 2, 0]
    assert rows.units == [500_000_000, 1_000_000_000, 100_000_000, 0, 500_000_000]
    assert rows.users == ["7", None, "8", "7", "7"]
    assert rows.ids is None
    assert rows.contents is not None
    assert rows.contents[0] == "3:won3:arm4:hour4:page3:who;500000000;1:A1:94:home1:7"
    assert rows.contents[2] == "3:won3:arm4:hour4:page3:who;100000000;1:A2:11-1:8"
    assert rows.contents[0] == rows.contents[4]
    assert len(set(rows.contents)) == 4
    assert source.labels() == ["A", "B", "C"]
    assert source.n_rows() == (None if "sv" in kind else 5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_rows_of_one_user_keep_their_places(kind: str, tmp_path: Path) -> None:
    source = open_source(KINDS[kind](tmp_path), **NAMES)
    rows = together(source, 2, user="7")
    everyone = together(source)
    assert rows.positions == [0, 3, 4]
    assert rows.users == ["7", "7", "7"]
    assert rows.arms == [0, 2, 0]
    assert everyone.contents is not None
    assert rows.contents == [everyone.contents[row] for row in (0, 3, 4)]
    assert list(source.rows(ACTIONS, (0, 1), user="nobody")) == []


@pytest.mark.parametrize("kind", KINDS)
def test_with_an_id_only_the_named_columns_are_read(kind: str, tmp_path: Path) -> None:
    source = open_source(KINDS[kind](tmp_path), action="arm", reward="won", user="who", id="page")
    with pytest.raises(
        InvalidLogError, match=r"id column 'page' must name every row; got a missing value at row 2"
    ):
        together(source)
    hours = open_source(KINDS[kind](tmp_path), action="arm", reward="won", id="hour")
    rows = together(hours)
    assert rows.ids == ["9", "10", "11", "12", "9"]  # twice the same decision
    assert rows.contents is None
    assert rows.users == [None] * 5


@pytest.mark.parametrize("kind", KINDS)
def test_an_id_of_two_different_decisions_is_refused(kind: str, tmp_path: Path) -> None:
    source = open_source(KINDS[kind](tmp_path), action="arm", reward="won", id="who")
    with pytest.raises(InvalidLogError, match="must name every row"):
        list(source.rows(ACTIONS, (0, 1)))
    arms = open_source(KINDS[kind](tmp_path), action="arm", reward="won", id="arm")
    expected = "id column 'arm' must name each decision by an id of its own; rows 0 and 2 share one"
    with pytest.raises(InvalidLogError, match=expected):
        list(arms.rows(ACTIONS, (0, 1), chunk=2))


def test_the_statistics_of_the_rows_are_those_of_the_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    table = {
        "arm": rng.choice(ACTIONS, 3000),
        "won": rng.uniform(-3, 11, 3000),
        "who": rng.integers(0, 50, 3000),
    }
    for path in (as_csv(tmp_path, table), as_parquet(tmp_path, table)):
        log = read_log(path, action="arm", reward="won", actions=ACTIONS, reward_range=(-3, 11))
        counts, sums = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
        for rows in open_source(path, action="arm", reward="won").rows(ACTIONS, (-3, 11), chunk=700):
            np.add.at(counts, rows.arms, 1)
            np.add.at(sums, rows.arms, rows.units)
        assert ArmStatistics(tuple(ACTIONS), counts, sums, (-3.0, 11.0)) == log.statistics()


FAULTS: dict[str, dict[str, list[Any]]] = {
    "missing action": {"arm": ["A", None, "A", "C", "A"]},
    "undeclared action": {"arm": ["A", "B", "Q", "C", "Z"]},
    "missing reward": {"won": [0.5, 1.0, None, 0.0, 0.5]},
    "infinite reward": {"won": [0.5, 1.0, 0.5, float("-inf"), 0.5]},
    "reward out of range": {"won": [0.5, 1.0, 1.5, -0.1, 0.5]},
    "text for a reward": {"won": ["0.5", "yes", "0.5", "", "1"]},
    "number for an action": {"arm": [1, 2, 3, 4, 5]},
}


@pytest.mark.parametrize("kind", ["csv", "parquet", "polars"])
@pytest.mark.parametrize("fault", FAULTS)
def test_bad_rows_are_refused_in_the_words_of_read_log(fault: str, kind: str, tmp_path: Path) -> None:
    table = TABLE | FAULTS[fault]
    made: dict[str, Callable[..., Any]] = {
        "csv": as_csv,
        "parquet": as_parquet,
        "polars": lambda _, columns: pl.DataFrame(columns),
    }
    source: Any = made[kind](tmp_path, table)
    with pytest.raises(InvalidLogError) as of_log:
        read_log(source, action="arm", reward="won", user="who", actions=ACTIONS)
    with pytest.raises(InvalidLogError) as of_source:
        together(open_source(source, **NAMES))
    assert str(of_source.value) == str(of_log.value)


def test_the_millionth_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    columns = "CASE WHEN i = 1000000 THEN 1.25 ELSE i % 2 END AS won, 'A' AS arm"
    duckdb.execute(f"COPY (SELECT {columns} FROM range(1000100) AS t(i)) TO '{path}'")
    source = open_source(path, action="arm", reward="won")
    rows = source.rows(ACTIONS, (0, 1), chunk=300_000)
    read = [next(rows).positions for _ in range(3)]
    assert read == [range(0, 300_000), range(300_000, 600_000), range(600_000, 900_000)]
    with pytest.raises(InvalidLogError, match=r"\[0.0, 1.0\]; got 1.25 at row 1000000$"):
        next(rows)


def test_rows_of_a_glob_follow_each_other(tmp_path: Path) -> None:
    as_csv(tmp_path, name="2.csv")
    as_csv(tmp_path, {name: column[:2] for name, column in TABLE.items()}, name="10.csv")
    source = open_source(tmp_path / "*.csv", **NAMES)
    assert together(source, 3).arms == [0, 1, 0, 1, 0, 2, 0]
    assert together(source, user="8").positions == [4]
    again = reopen_source(source.description)
    assert together(again) == together(source)
    as_csv(tmp_path, {"who": ["x"], "arm": ["A"], "won": [2.0], "page": [""], "hour": [""]}, name="3.csv")
    with pytest.raises(InvalidLogError, match=r"got 2\.0 at row 7$"):
        together(open_source(tmp_path / "*.csv", **NAMES))


def test_a_glob_without_an_id_needs_the_same_columns_everywhere(tmp_path: Path) -> None:
    as_parquet(tmp_path, name="1.parquet")
    as_parquet(tmp_path, {name: column for name, column in TABLE.items() if name != "page"}, name="2.parquet")
    with pytest.raises(InvalidLogError, match="files with the same columns"):
        open_source(tmp_path / "*.parquet", **NAMES)
    assert open_source(tmp_path / "*.parquet", **NAMES, id="hour").n_rows() == 10


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    source = open_source(as_csv(tmp_path), **NAMES)
    rows = source.rows(ACTIONS, (0, 1), chunk=2)
    next(rows)
    as_csv(tmp_path, {name: column[:3] for name, column in TABLE.items()})
    with pytest.raises(InvalidLogError, match="has changed since the log was read"):
        list(rows)


def test_a_broken_line_is_refused_without_quoting_it(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("arm,won,who\nA,1,secret-name,x\n")
    with pytest.raises(InvalidLogError, match="line 2 has 4 columns where the header has 3") as caught:
        together(open_source(tmp_path / "log.csv", **NAMES))
    assert "secret-name" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"action": "nope"},
            InvalidLogError,
            "action column 'nope' is not in the source; it has 'who', 'arm'",
        ),
        ({"user": "nope"}, InvalidLogError, "user column 'nope' is not in the source"),
        ({"id": "nope"}, InvalidLogError, "id column 'nope' is not in the source"),
        ({"reward": 3}, InvalidInputError, "reward must be a column name; got int"),
        ({"table": "clicks"}, InvalidInputError, "table is for databases, .*; got 'clicks'"),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet", "mapping", "pandas"])
def test_wrong_names_are_refused(
    kind: str, options: dict[str, Any], error: type[Exception], message: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=message):
        open_source(KINDS[kind](tmp_path), **(NAMES | options))


def test_what_rows_cannot_do_is_refused_at_once(tmp_path: Path) -> None:
    source = open_source(TABLE, action="arm", reward="won")
    with pytest.raises(InvalidInputError, match="rows of one user need a user column"):
        source.rows(ACTIONS, (0, 1), user="7")
    with pytest.raises(InvalidInputError, match="chunk must be at least 1; got 0"):
        source.rows(ACTIONS, (0, 1), chunk=0)
    with pytest.raises(InvalidInputError, match="actions must differ in their text"):
        source.rows([1, "1"], (0, 1))
    with pytest.raises(InvalidInputError, match="reward_range"):
        source.rows(ACTIONS, (1, 0))
    with pytest.raises(InvalidInputError, match="cannot be looked up again"):
        reopen_source(source.description)
    with pytest.raises(InvalidInputError, match="source must be a dataframe"):
        open_source(17, action="arm", reward="won")
    with pytest.raises(InvalidLogError, match="same number of rows; got 5 in 'arm', 1 in 'won'"):
        open_source({"arm": TABLE["arm"], "won": [1]}, action="arm", reward="won")


def test_an_empty_source_has_no_rows_and_no_labels(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("arm,won\n")
    empty: dict[str, list[Any]] = {"arm": [], "won": []}
    for place in (tmp_path / "log.csv", empty):
        source = open_source(place, action="arm", reward="won")
        assert list(source.rows(ACTIONS, (0, 1))) == []
        with pytest.raises(InvalidLogError, match="holds no rows"):
            source.labels()


def test_labels_are_such_as_json_can_hold(tmp_path: Path) -> None:
    table: dict[str, Any] = {
        "won": [1, 0],
        "whole": [2.0, 10.0],
        "flag": [True, False],
        "day": [dt.date(2024, 5, 1)] * 2,
    }
    for place in (as_parquet(tmp_path, table), table, pd.DataFrame(table)):
        assert open_source(place, action="whole", reward="won").labels() == [2, 10]
        assert open_source(place, action="flag", reward="won").labels() == [False, True]
        assert open_source(place, action="day", reward="won").labels() == ["2024-05-01"]
        rows = open_source(place, action="whole", reward="won").rows([10, 2], (0, 1))
        assert next(rows).arms == [1, 0]
    with pytest.raises(
        InvalidLogError, match="must name an action in every row; got a missing value at row 1"
    ):
        open_source({"arm": ["A", None], "won": [1, 1]}, action="arm", reward="won").labels()


def test_the_feedback_of_the_open_bandit_pipeline_is_a_source() -> None:
    feedback = {
        "n_rounds": 3,
        "n_actions": 2,
        "context": np.array([[0.5, 1.0], [2.0, 3.0], [0.5, 1.0]]),
        "action": np.array([0, 1, 0]),
        "reward": np.array([1, 0, 1]),
        "position": None,
        "action_context": np.eye(2),
    }
    (rows,) = open_source(feedback, action="action", reward="reward").rows([0, 1], (0, 1))
    assert rows.arms == [0, 1, 0]
    assert rows.contents is not None
    assert rows.contents[0] == "6:reward6:action7:context;1000000000;1:010:[0.5, 1.0]"
    assert rows.contents[0] == rows.contents[2] != rows.contents[1]


TIMES = [dt.datetime(2024, 2, 29, 12, 30), dt.datetime(2024, 2, 29, 12, 30, 1, 50_000), None]
ZONED = [None if t is None else t.replace(tzinfo=dt.timezone(dt.timedelta(hours=2))) for t in TIMES]
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
        ["7.50", "-8", "0"],
    ),
    "date": (pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1)]), ["2024-02-29", None, "0001-01-01"]),
    "time": (pa.array(TIMES, pa.timestamp("us")), ["2024-02-29 12:30:00", "2024-02-29 12:30:01.05", None]),
    "time in ms": (
        pa.array(TIMES, pa.timestamp("ms")),
        ["2024-02-29 12:30:00", "2024-02-29 12:30:01.05", None],
    ),
    "zoned": (
        pa.array(ZONED, pa.timestamp("us", "+02:00")),
        ["2024-02-29 10:30:00+00:00", "2024-02-29 10:30:01.05+00:00", None],
    ),
    "category": (pa.array(["x", "", None]).dictionary_encode(), ["x", "", None]),
    "nothing": (pa.nulls(3), [None, None, None]),
    "text": (pa.array(["é🦆\0x", "e\u0301", "a\r\n"]), ["é🦆\0x", "e\u0301", "a\r\n"]),
}


@pytest.mark.parametrize("type_", TYPED)
def test_values_of_each_type_have_one_text(type_: str, tmp_path: Path) -> None:
    column, texts = TYPED[type_]
    table = pa.table({"arm": ["A"] * 3, "won": [1] * 3, "x": column})
    pq.write_table(table, tmp_path / "log.parquet")
    sizes = ["-" if text is None else f"{len(text)}:{text}" for text in texts]
    expected = [f"3:won3:arm1:x;1000000000;1:A{size}" for size in sizes]
    frame: Any = pl.from_arrow(table)
    sources = [tmp_path / "log.parquet", table, frame]
    if type_ not in ("uint64", "date"):  # pandas makes floats and times of these
        sources.append(frame.to_pandas())
    for source in sources:
        assert together(open_source(source, action="arm", reward="won")).contents == expected
