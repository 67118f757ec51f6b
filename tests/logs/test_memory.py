"""Decisions in memory: arrays, mappings, the feedback of the Open Bandit Pipeline, dataframes."""

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.statistics import ArmStatistics
from armnesia.logs import open_source, read_log

CLICKS: dict[str, list[Any]] = {
    "action": ["A", "B", "A", "B", "A"],
    "reward": [1.0, 0.5, 0.0, 1.0, 0.25],
    "user": ["ann", "bob", "ann", None, "cy"],
}
ACTIONS = ["A", "B"]
EXPECTED = read_log(CLICKS, actions=ACTIONS)


def assert_same(log: Any) -> None:
    assert log.statistics() == EXPECTED.statistics()
    assert log.users() == EXPECTED.users()
    assert log.request(user="ann") == EXPECTED.request(user="ann")


@pytest.mark.parametrize("kind", [np.array, pd.Series, pl.Series, pa.array, tuple, iter])
def test_arrays_read_the_same(kind: Callable[[Any], Any]) -> None:
    action, reward, user = map(kind, CLICKS.values())
    assert_same(read_log(action=action, reward=reward, user=user, actions=ACTIONS))


class OnlyAStream:
    """A dataframe of which nothing is known but that it gives an Arrow stream."""

    def __init__(self) -> None:
        self._table = pa.table(CLICKS)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(CLICKS),
        pd.DataFrame(CLICKS).convert_dtypes(),
        pd.DataFrame(CLICKS, index=range(10, 15)),
        pl.DataFrame(CLICKS),
        pl.LazyFrame(CLICKS),
        pa.table(CLICKS),
        pa.table({name: pa.array(values).dictionary_encode() for name, values in CLICKS.items()}),
        OnlyAStream(),
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_frames_read_the_same(frame: Any) -> None:
    assert_same(read_log(frame, actions=ACTIONS))


def test_a_duckdb_relation_reads_the_same() -> None:
    with duckdb.connect() as connection:
        connection.register("clicks", pa.table(CLICKS))
        assert_same(read_log(connection.table("clicks"), actions=ACTIONS))


def test_only_the_named_columns_of_a_mapping_are_read() -> None:
    assert_same(read_log(CLICKS | {"position": None, "model": object(), "short": [1]}, actions=ACTIONS))


FEEDBACK: dict[str, Any] = {
    "n_rounds": 4,
    "n_actions": 3,
    "context": np.zeros((4, 3)),
    "action_context": np.eye(3),
    "action": np.array([0, 2, 0, 2]),
    "position": None,
    "reward": np.array([1, 0, 1, 1]),
    "pi_b": np.zeros((4, 3, 1)),
    "pscore": np.full(4, 0.5),
}


@pytest.mark.parametrize("feedback", [FEEDBACK, SimpleNamespace(**FEEDBACK)], ids=["mapping", "object"])
def test_the_feedback_of_the_open_bandit_pipeline_declares_its_actions(feedback: Any) -> None:
    log = read_log(feedback)
    assert log.actions == (0, 1, 2)
    assert log.statistics() == ArmStatistics.from_rewards({0: [1, 1], 1: [], 2: [0, 1]})
    assert read_log(feedback, actions=[2, 0]).actions == (2, 0)


@pytest.mark.parametrize(
    "rewards",
    [
        [True, False, True],
        [Decimal("1.0"), Decimal(0), Decimal(1)],
        np.array([True, False, True]),
        np.array([1, 0, 1], dtype=np.uint8),
        np.array([1, 0, 1], dtype=np.float16),
        np.array([1, 0, 1], dtype=object),
        [np.float64(1), np.int8(0), np.float32(1)],
        pd.array([1, 0, 1], dtype="Int64"),
        pl.Series([Decimal(1), Decimal(0), Decimal(1)]),
    ],
    ids=str,
)
def test_rewards_of_any_numeric_type(rewards: Any) -> None:
    expected = ArmStatistics.from_rewards({"A": [1, 0], "B": [1]})
    assert read_log(action=["A", "A", "B"], reward=rewards, actions=ACTIONS).statistics() == expected
    source = open_source({"action": ["A", "A", "B"], "reward": rewards})
    assert sorted((each.action, each.units) for each in source.tallies((0, 1))) == [
        ("A", 10**9),
        ("B", 10**9),
    ]


@pytest.mark.parametrize(
    ("reward", "got"),
    [
        (["1"], "must hold numbers; got '1' at row 1: this is text, so convert the column to numbers first"),
        (["0,5"], "must hold numbers; got '0,5' at row 1: write a decimal point, not a comma"),
        ([1j], "must hold numbers; got 1j at row 1"),
        ([[1]], "must hold numbers; got [1] at row 1"),
        ([pd.NA], "must hold a finite number in every row; got a missing value at row 1"),
        ([10**400], "must hold a finite number in every row; got inf at row 1"),
        (np.ma.masked_array([1.0], mask=[True]), "must hold a finite number in every row; got a missing"),
        ([Decimal("1.1")], "must lie in reward_range [0.0, 1.0]; got 1.1 at row 1"),
        (1.0, "must be an array or a list, with one value per row; got 1.0"),
    ],
    ids=str,
)
def test_what_is_no_reward(reward: Any, got: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_log(action=["A"], reward=reward, actions=["A"])
    assert str(caught.value).startswith(f"reward {got}")


def test_labels_are_single_values_and_known_by_their_text() -> None:
    log = read_log(action=[1, "1"], reward=[0, 1], user=[7, "7"], actions=[1])
    assert (log.statistics().counts.tolist(), log.users()) == ([2], {"7": 2})
    frame = pd.DataFrame({"action": [1, 2], "reward": [1, 0], "user": [7, None]})  # 7 becomes 7.0
    assert read_log(frame, actions=[1, 2]).request(user=7).counts.tolist() == [1, 0]
    with pytest.raises(
        InvalidLogError, match=r"^user must hold single values; got a value of type dict at row 2$"
    ):
        read_log(action=["A", "B"], reward=[0, 1], user=[1, {}], actions=ACTIONS).users()
    with pytest.raises(InvalidLogError, match=r"got \['B'\] at row 2"):
        read_log(action=["A", ["B"]], reward=[0, 1], actions=ACTIONS)


BIG = 2**53 + 1


@pytest.mark.parametrize(
    "users",
    [
        pd.Series([BIG, BIG - 1, None], dtype="Int64"),
        pd.Series([BIG, BIG - 1, None], dtype="int64[pyarrow]"),
        pd.Series(pd.Categorical([BIG, BIG - 1, None])),
        pd.Series([BIG, BIG - 1, None], dtype=object),
        pl.Series([BIG, BIG - 1, None]),
        pa.array([BIG, BIG - 1, None]),
        pa.chunked_array([[BIG], [BIG - 1, None]]),
        np.ma.masked_array([BIG, BIG - 1, 7], mask=[False, False, True]),
        [np.int64(BIG), BIG - 1, None],
    ],
    ids=lambda users: f"{type(users).__module__}.{getattr(users, 'dtype', type(users).__name__)}",
)
def test_a_missing_value_makes_no_float_of_an_integer(users: Any) -> None:
    mapping = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "user": users}
    found = open_source(mapping).tallies((0, 1), by=["user"])
    assert {(each.user, each.action) for each in found} == {(str(BIG), "A"), (str(BIG - 1), "B"), (None, "A")}
    assert read_log(mapping, actions=ACTIONS).users() == {str(BIG - 1): 1, str(BIG): 1}
    if isinstance(users, pd.Series):
        frame = pd.DataFrame(mapping)
        assert read_log(frame, actions=ACTIONS).users() == {str(BIG - 1): 1, str(BIG): 1}
        assert len(read_log(frame, actions=ACTIONS, where=f"user = '{BIG}'")) == 1


@pytest.mark.parametrize("type_", ["boolean", "bool[pyarrow]", object])
def test_booleans_with_a_missing_value(type_: Any) -> None:
    flags = pd.Series([True, None, False], dtype=type_)
    frame = pd.DataFrame({"action": ["A", "B", "B"], "reward": flags, "user": flags})
    log = read_log(frame, actions=ACTIONS, where="reward is not null")
    assert log.statistics() == ArmStatistics.from_rewards({"A": [1], "B": [0]})
    assert log.users() == {"False": 1, "True": 1}
    with pytest.raises(InvalidLogError, match="got a missing value at row 2"):
        read_log(frame, actions=ACTIONS)


@pytest.mark.parametrize("users", [[[1], [2]], [{1}, {2}], [{1: 2}, 7], [np.array([1, 2]), 7]], ids=str)
def test_collections_in_a_frame_are_no_labels(users: list[Any]) -> None:
    frame = pd.DataFrame({"action": ["A", "B"], "reward": [1, 0]})
    frame["user"] = pd.Series(users, dtype=object)
    assert len(read_log(frame, actions=ACTIONS, user=None)) == 2
    for source in (frame, {name: frame[name] for name in frame}):
        with pytest.raises(InvalidLogError, match="user column 'user' must hold single values, such as"):
            open_source(source)


def test_columns_of_a_mapping_have_one_length() -> None:
    message = "^columns must have the same number of rows; got 1, 2$"
    with pytest.raises(InvalidLogError, match=message):
        open_source({"action": ["A", "B"], "reward": [1, 0], "user": ["ann"]})


def test_missing_users_are_no_users() -> None:
    users = [None, float("nan"), pd.NA, pd.NaT, np.float64("nan"), np.datetime64("NaT"), ""]
    log = read_log(action=["A"] * 7, reward=[1] * 7, user=users, actions=["A"])
    assert log.users() == {"": 1}


def test_times_of_numpy_are_times() -> None:
    moments = np.array(["2020-01-02", "2020-01-03"], dtype="datetime64[ns]")
    log = read_log(action=["A", "A"], reward=[1, 0], user=moments, actions=["A"])
    assert log.users() == {"2020-01-02 00:00:00": 1, "2020-01-03 00:00:00": 1}


@pytest.mark.parametrize("kind", [list, np.array])
def test_times_of_numpy_are_not_cut(kind: Any) -> None:
    moments = kind(np.array(["2020-01-02T00:00:00.000000001", "2020-01-02"], dtype="datetime64[ns]"))
    with pytest.raises(InvalidInputError, match="must be whole microseconds"):
        read_log(action=["A", "A"], reward=[1, 0], user=moments, actions=["A"]).users()


def test_arrays_have_further_columns() -> None:
    log = read_log(
        action=["A", "B", "A"],
        reward=[1, 0, 9],
        columns={"country": ["DE", "FR", "IT"]},
        actions=ACTIONS,
        where="country in (DE, FR)",
    )
    assert log.by("country").keys == (("DE",), ("FR",))


WITHOUT_EXTRAS = """
import sys
for name in ("duckdb", "narwhals", "psycopg", "pandas", "polars", "pyarrow", "deltalake"):
    sys.modules[name] = None
from armnesia.logs import read_log
log = read_log({"action": ["A", "B"], "reward": [1, 0], "user": ["ann", "bob"]}, actions=["A", "B"])
print(log.request(user="ann").counts, len(log))
try:
    read_log(sys.argv[1], actions=["A"])
except ImportError as error:
    print(error)
"""


def test_arrays_and_mappings_need_no_extra(tmp_path: Path) -> None:
    (tmp_path / "log.parquet").touch()
    command = [sys.executable, "-c", WITHOUT_EXTRAS, str(tmp_path / "log.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    counted, refused = done.stdout.splitlines()
    assert counted == "[1 0] 2"
    assert "log.parquet' needs" in refused
    assert 'pip install "armnesia[engines]"' in refused
