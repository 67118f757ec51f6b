"""Every kind of source gives bit for bit the same statistics and requests."""

import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import MissingExtraError, UndeclaredActionsWarning
from armnesia.core.statistics import ArmStatistics
from armnesia.logs import Log, read_log

COLUMNS: dict[str, list[Any]] = {
    "variant": ["A", "B", "A", "C", "B", "A", "A"],
    "clicked": [1.0, 0.25, 0.1, 0.30000000000000004, 1.0, 0.0, 1 / 3],
    "who": ["ann", "bob", None, "ann", "cy", "bob", "ann"],
}
NAMES: dict[str, Any] = {"action": "variant", "reward": "clicked", "user": "who"}
ACTIONS = ["C", "A", "B", "never"]


class OnlyArrowStream:
    """What an unknown dataframe library offers at least."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


FRAMES: dict[str, Callable[[dict[str, list[Any]]], Any]] = {
    "mapping of lists": dict,
    "mapping of arrays": lambda columns: {name: np.array(values) for name, values in columns.items()},
    "mapping of series": lambda columns: {name: pd.Series(values) for name, values in columns.items()},
    "pandas": pd.DataFrame,
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "pandas object": lambda columns: pd.DataFrame(columns, dtype=object),
    "pandas categorical": lambda columns: pd.DataFrame(columns).astype(
        {"variant": "category", "who": "category"}
    ),
    "polars": pl.DataFrame,
    "polars lazy": lambda columns: pl.DataFrame(columns).lazy(),
    "polars categorical": lambda columns: pl.DataFrame(columns).with_columns(
        pl.col("variant", "who").cast(pl.Categorical)
    ),
    "pyarrow": pa.table,
    "pyarrow chunked": lambda columns: pa.concat_tables([pa.table(columns)[:3], pa.table(columns)[3:]]),
    "pyarrow dictionary": lambda columns: pa.table(
        {name: pa.array(v).dictionary_encode() if name != "clicked" else v for name, v in columns.items()}
    ),
    "narwhals": lambda columns: nw.from_native(pl.DataFrame(columns)),
    "narwhals lazy": lambda columns: nw.from_native(pl.LazyFrame(columns)),
    "arrow stream": lambda columns: OnlyArrowStream(pa.table(columns)),
    "open bandit": lambda columns: {
        "n_rounds": 7,
        "n_actions": 3,
        "action": [0, 1, 0, 2, 1, 0, 0],
        "reward": [0] * 7,
        "position": None,
        **columns,
    },
}


def expected() -> Log:
    return read_log(COLUMNS, **NAMES, actions=ACTIONS)


def assert_same(log: Log, other: Log) -> None:
    assert (log.actions, log.reward_range, len(log)) == (other.actions, other.reward_range, len(other))
    assert log.statistics() == other.statistics()
    assert log.users() == other.users()
    assert list(log.users()) == list(other.users())
    for action in other.actions:
        assert log.users(action) == other.users(action)
    for user in other.users():
        assert log.request(user=user) == other.request(user=user)
    assert log.request(users=list(other.users())) == other.request(users=list(other.users()))
    for row in range(len(other)):
        assert log.request(rows=[row]) == other.request(rows=[row])


@pytest.mark.parametrize("kind", FRAMES)
def test_every_kind_of_frame_reads_the_same(kind: str) -> None:
    assert_same(read_log(FRAMES[kind](COLUMNS), **NAMES, actions=ACTIONS), expected())


def test_a_duckdb_relation_reads_the_same() -> None:
    table = pa.table(COLUMNS)
    with duckdb.connect() as connection:
        connection.register("decisions", table)
        assert_same(read_log(connection.table("decisions"), **NAMES, actions=ACTIONS), expected())


@pytest.mark.parametrize("kind", [np.array, pd.Series, pl.Series, pa.array, tuple, iter])
def test_arrays_read_the_same(kind: Callable[[Any], Any]) -> None:
    action, reward, user = (kind(COLUMNS[NAMES[role]]) for role in ("action", "reward", "user"))
    assert_same(read_log(action=action, reward=reward, user=user, actions=ACTIONS), expected())


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "CSV", "parquet", "pq"])
@pytest.mark.parametrize("as_text", [True, False])
def test_files_read_the_same(suffix: str, as_text: bool, tmp_path: Path) -> None:
    path = tmp_path / f"log.{suffix}"
    if suffix in {"parquet", "pq"}:
        pq.write_table(pa.table(COLUMNS), path)
    else:
        pd.DataFrame(COLUMNS).to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    assert_same(read_log(str(path) if as_text else path, **NAMES, actions=ACTIONS), expected())


def test_the_bandit_feedback_of_the_open_bandit_pipeline_declares_its_actions() -> None:
    feedback = {
        "n_rounds": 4,
        "n_actions": 3,
        "context": np.zeros((4, 2)),
        "action_context": np.eye(3),
        "action": np.array([0, 2, 2, 0]),
        "position": None,
        "reward": np.array([1, 0, 1, 1]),
        "expected_reward": np.zeros((4, 3)),
        "pi_b": np.zeros((4, 3, 1)),
        "pscore": np.full(4, 0.5),
    }
    log = read_log(feedback)
    assert log.actions == (0, 1, 2)
    assert log.statistics() == ArmStatistics.from_rewards({0: [1, 1], 1: [], 2: [0, 1]})
    assert read_log(feedback, actions=[2, 0]).actions == (2, 0)


@pytest.mark.parametrize(
    "rewards",
    [
        [True, False, True],
        [1, 0, 1],
        [Decimal("1.0"), Decimal(0), Decimal(1)],
        np.array([True, False, True]),
        np.array([1, 0, 1], dtype=np.uint8),
        np.array([1, 0, 1], dtype=np.float16),
        np.array([1, 0, 1], dtype=object),
        np.ma.masked_array([1, 0, 1]),
        [np.bool_(True), np.int8(0), np.float32(1)],
        pd.array([1, 0, 1], dtype="Int64"),
        pd.array([True, False, True], dtype="boolean"),
        pl.Series([Decimal(1), Decimal(0), Decimal(1)]),
    ],
    ids=str,
)
def test_rewards_of_any_numeric_type(rewards: Any) -> None:
    log = read_log(action=["A", "A", "B"], reward=rewards, actions=["A", "B"])
    assert log.statistics() == ArmStatistics.from_rewards({"A": [1, 0], "B": [1]})


def test_labels_may_be_anything_hashable() -> None:
    labels = [("A", 1), 2, "B", ("A", 1)]
    log = read_log(action=labels, reward=[0, 1, 1, 1], user=labels, actions=[2, "B", ("A", 1)])
    assert log.statistics().counts.tolist() == [1, 1, 2]
    assert log.request(user=("A", 1)).counts.tolist() == [0, 0, 2]
    assert log.users() == {("A", 1): 2, 2: 1, "B": 1}


def test_missing_users_belong_to_nobody() -> None:
    users = [None, float("nan"), pd.NA, pd.NaT, np.float64("nan"), ""]
    log = read_log(action=["A"] * 6, reward=[1] * 6, user=users, actions=["A"])
    assert log.users() == {"": 1}
    assert log.request(rows=range(5)).counts.tolist() == [5]


def test_whole_numbers_that_a_missing_value_made_floats_are_found() -> None:
    frame = pd.DataFrame({"action": [1, 2], "reward": [1, 0], "user": [7, None]})
    log = read_log(frame, user="user", actions=[1, 2])
    assert log.request(user=7).counts.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("labels", "actions"),
    [(["b", "a", "b"], ("a", "b")), ([10, 9, 10], (9, 10)), (["b", 1, "b"], ("b", 1))],
)
def test_undeclared_actions_are_taken_from_the_log_with_a_warning(labels: list[Any], actions: Any) -> None:
    with pytest.warns(UndeclaredActionsWarning, match=r"declare them with actions=\[...\]") as caught:
        log = read_log(action=labels, reward=[1, 0, 0])
    assert log.actions == actions
    assert caught[0].filename == __file__


def test_undeclared_actions_of_a_file_warn_at_the_caller(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"action": [10, 9, 10], "reward": [1, 0, 0]}), path)
    with pytest.warns(UndeclaredActionsWarning) as caught:
        log = read_log(path)
    assert log.actions == (9, 10)
    assert caught[0].filename == __file__


@given(
    rows=st.lists(
        st.tuples(
            st.sampled_from("ABC"), st.floats(-3.7, 11.2), st.one_of(st.none(), st.sampled_from("xyz"))
        ),
        min_size=1,
        max_size=30,
    )
)
def test_statistics_and_requests_are_those_of_the_rows(rows: list[tuple[str, float, str | None]]) -> None:
    action, reward, user = (list(column) for column in zip(*rows, strict=True))
    frame = pd.DataFrame({"action": action, "reward": reward, "user": pd.Series(user, dtype=object)})
    table = pl.LazyFrame({"action": action, "reward": reward, "user": pl.Series(user, dtype=pl.String)})

    def statistics(users: set[Any]) -> ArmStatistics:
        rewards = {arm: [r for a, r, u in rows if a == arm and u in users] for arm in "ABC"}
        return ArmStatistics.from_rewards(rewards, (-3.7, 11.2))

    for source in (frame, table):
        log = read_log(source, user="user", actions=["A", "B", "C"], reward_range=(-3.7, 11.2))
        assert log.statistics() == statistics({None, "x", "y", "z"})
        for name in log.users():
            request = log.request(user=name)
            assert request.records == statistics({name})
            assert log.statistics().without(request) == statistics({None, "x", "y", "z"} - {name})


def test_reading_frames_needs_narwhals_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingExtraError, match=r'Reading dataframes needs .* "armnesia\[engines\]"'):
        read_log(pd.DataFrame(COLUMNS), **NAMES, actions=ACTIONS)


def test_reading_an_arrow_stream_needs_something_that_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = OnlyArrowStream(pa.table(COLUMNS))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert_same(read_log(stream, **NAMES, actions=ACTIONS), expected())
    for name in ("polars", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match="needs one of pyarrow, polars, pandas"):
        read_log(stream, **NAMES, actions=ACTIONS)


def test_arrays_and_mappings_need_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("narwhals", "duckdb", "pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    assert len(read_log(COLUMNS, **NAMES, actions=ACTIONS)) == 7


def test_declared_actions_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_log(COLUMNS, **NAMES, actions=ACTIONS)
