"""Decisions in memory: arrays, mappings, the feedback of the Open Bandit Pipeline, dataframes."""

import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.core.statistics import ArmStatistics
from armnesia.logs import read_log

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

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.table(CLICKS).__arrow_c_stream__(requested_schema)


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
        duckdb.from_arrow(pa.table(CLICKS)),
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_frames_read_the_same(frame: Any) -> None:
    assert_same(read_log(frame, actions=ACTIONS))


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


def test_the_feedback_of_the_open_bandit_pipeline_declares_its_actions() -> None:
    log = read_log(FEEDBACK)
    assert log.actions == (0, 1, 2)
    assert log.statistics() == ArmStatistics.from_rewards({0: [1, 1], 1: [], 2: [0, 1]})
    assert read_log(FEEDBACK, actions=[2, 0]).actions == (2, 0)


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


RULE = "reward column 'reward' must hold a number from 0.0 to 1.0, the reward range, in every row"


@pytest.mark.parametrize(
    ("reward", "got"),
    [
        (["0,5"], f"{RULE}; got '0,5' at row 1: where='reward is not null'"),
        ([1j], f"{RULE}; got 1j at row 1"),
        ([[1]], f"{RULE}; got [1] at row 1"),
        ([pd.NA], f"{RULE}; got a missing value at row 1: where='reward is not null' (--where) leaves rows"),
        ([10**400], f"{RULE}; got 1000"),
        (np.ma.masked_array([1.0], mask=[True]), f"{RULE}; got a missing"),
        ([Decimal("1.1")], f"{RULE}; got Decimal('1.1') at row 1: where='reward is not null'"),
        (1.0, "reward must be an array or a list, with one value per row; got 1.0"),
    ],
    ids=str,
)
def test_what_is_no_reward(reward: Any, got: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_log(action=["A"], reward=reward, actions=["A"])
    assert str(caught.value).startswith(got)


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
    assert read_log(mapping, actions=ACTIONS).users() == {str(BIG - 1): 1, str(BIG): 1}
    if isinstance(users, pd.Series):
        assert read_log(pd.DataFrame(mapping), actions=ACTIONS).users() == {str(BIG - 1): 1, str(BIG): 1}


def test_missing_users_are_no_users() -> None:
    users = [None, float("nan"), pd.NA, pd.NaT, np.float64("nan"), np.datetime64("NaT"), ""]
    log = read_log(action=["A"] * 7, reward=[1] * 7, user=users, actions=["A"])
    assert log.users() == {"": 1}


@pytest.mark.parametrize("kind", [list, np.array])
def test_times_of_numpy_are_not_cut(kind: Any) -> None:
    moments = kind(np.array(["2020-01-02T00:00:00.000000001", "2020-01-02"], dtype="datetime64[ns]"))
    with pytest.raises(InvalidInputError, match="must be whole microseconds"):
        read_log(action=["A", "A"], reward=[1, 0], user=moments, actions=["A"]).users()


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
