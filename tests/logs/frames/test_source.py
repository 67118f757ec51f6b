"""Decisions in memory: dataframes, mappings, Open Bandit Pipeline feedback and arrays."""

import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from armnesia.core.errors import InvalidLogError, MissingExtraError
from armnesia.core.statistics import ArmStatistics
from armnesia.logs import open_source, read_log
from armnesia.logs.array_log import ArrayLog
from tests.logs.conftest import OnlyArrowStream
from tests.logs.test_every_source import ACTIONS, COLUMNS, NAMES, assert_same

EXPECTED = read_log(COLUMNS, **NAMES, actions=ACTIONS)


def test_a_duckdb_relation_reads_the_same() -> None:
    table = pa.table(COLUMNS)
    with duckdb.connect() as connection:
        connection.register("decisions", table)
        assert_same(read_log(connection.table("decisions"), **NAMES, actions=ACTIONS), EXPECTED)


@pytest.mark.parametrize("kind", [np.array, pd.Series, pl.Series, pa.array, tuple, iter])
def test_arrays_read_the_same(kind: Callable[[Any], Any]) -> None:
    action, reward, user = (kind(COLUMNS[NAMES[role]]) for role in ("action", "reward", "user"))
    assert_same(read_log(action=action, reward=reward, user=user, actions=ACTIONS), EXPECTED)


def test_only_the_named_columns_of_a_mapping_are_read() -> None:
    table = COLUMNS | {"position": None, "model": object(), "short": [1]}
    assert_same(read_log(table, **NAMES, actions=ACTIONS), EXPECTED)


FEEDBACK: dict[str, Any] = {
    "n_rounds": 4,
    "n_actions": 3,
    "context": np.array([[0.5, 1.0], [2.0, 3.0], [0.5, 1.0], [0.0, 0.0]]),
    "action_context": np.eye(3),
    "action": np.array([0, 2, 0, 2]),
    "position": None,
    "reward": np.array([1, 0, 1, 1]),
}


def test_the_feedback_of_the_open_bandit_pipeline_declares_its_actions() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log = read_log(FEEDBACK)
    assert log.actions == (0, 1, 2)
    assert log.statistics() == ArmStatistics.from_rewards({0: [1, 1], 1: [], 2: [0, 1]})
    assert read_log(FEEDBACK, actions=[2, 0]).actions == (2, 0)
    tables = {"expected_reward": np.zeros((4, 3)), "pi_b": np.zeros((4, 3, 1)), "pscore": np.full(4, 0.5)}
    assert read_log(FEEDBACK | tables).statistics() == log.statistics()
    assert open_source(FEEDBACK, action="action", reward="reward").action_labels() == [0, 1, 2]


def test_rows_of_the_open_bandit_pipeline_are_known_by_the_columns_of_one_value_per_round() -> None:
    (rows,) = open_source(FEEDBACK, action="action", reward="reward").rows([0, 1, 2], (0, 1))
    assert rows.arms == [0, 2, 0, 2]
    assert rows.contents is not None
    assert rows.contents[0] == "6:reward6:action7:context;1000000000;1:010:[0.5, 1.0]"
    assert rows.contents[0] == rows.contents[2] != rows.contents[1]


def test_columns_beside_the_feedback_of_the_open_bandit_pipeline_may_be_named() -> None:
    feedback = {
        "n_rounds": 7,
        "n_actions": 3,
        "action": [0, 1, 0, 2, 1, 0, 0],
        "reward": [0] * 7,
        "position": None,
        **COLUMNS,
    }
    assert_same(read_log(feedback, **NAMES, actions=ACTIONS), EXPECTED)
    assert open_source(feedback, **NAMES).action_labels() == ["A", "B", "C"]


@pytest.mark.parametrize("read", [read_log, open_source])
def test_feedback_whose_number_of_rounds_is_wrong(read: Any) -> None:
    feedback = {"n_rounds": 3, "n_actions": 2, "action": [0, 1], "reward": [1, 0]}
    with pytest.raises(InvalidLogError, match=r"^n_rounds must be the number of rows, 2; got 3$"):
        read(feedback, action="action", reward="reward")


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
    expected = ArmStatistics.from_rewards({"A": [1, 0], "B": [1]})
    assert read_log(action=["A", "A", "B"], reward=rewards, actions=["A", "B"]).statistics() == expected
    source = open_source({"a": ["A", "A", "B"], "r": rewards}, action="a", reward="r")
    (rows,) = source.rows(["A", "B"], (0, 1))
    assert (rows.arms, rows.units) == ([0, 0, 1], [10**9, 0, 10**9])


def test_labels_may_be_anything_hashable() -> None:
    labels = [("A", 1), 2, "B", ("A", 1)]
    log = read_log(action=labels, reward=[0, 1, 1, 1], user=labels, actions=[2, "B", ("A", 1)])
    assert log.statistics().counts.tolist() == [1, 1, 2]
    assert log.request(user=("A", 1)).counts.tolist() == [0, 0, 2]
    assert log.users() == {("A", 1): 2, 2: 1, "B": 1}


def test_labels_that_cannot_be_hashed_are_refused() -> None:
    """By `read_log` and by the rows of a source; the text of a list depends on the kind of source."""
    table: dict[str, Any] = {"a": ["A", "A"], "r": [0, 1], "u": ["ann", ["bob"]], "i": [1, {}]}
    for role, column in (("action", "u"), ("user", "u"), ("id", "i")):
        names: dict[str, Any] = {"action": "a", "reward": "r"} | {role: column}
        got = "['bob']" if role == "action" else f"a value of type {type(table[column][1]).__name__}"
        expected = (
            f"{role} column {column!r} must hold hashable labels, such as text or numbers; got {got} at row 1"
        )
        with pytest.raises(InvalidLogError) as of_rows:
            list(open_source(table, **names).rows(["A"], (0, 1)))
        assert str(of_rows.value) == expected
        if role != "id":
            with pytest.raises(InvalidLogError) as of_log:
                read_log(table, **names, actions=["A"])
            assert str(of_log.value) == expected
    with pytest.raises(InvalidLogError, match=r"got \['B'\] at row 1"):
        open_source({"a": ["A", ["B"]], "r": [0, 1]}, action="a", reward="r").action_labels()
    with pytest.raises(InvalidLogError, match=r"got \('A', \[\]\) at row 0"):
        read_log(action=[("A", [])], reward=[0])
    arrays = pd.DataFrame({"a": ["A", "A"], "r": [0, 1], "u": [np.zeros(2), np.ones(2)]})
    with pytest.raises(InvalidLogError, match="user column 'u' must hold hashable labels"):
        list(open_source(arrays, action="a", reward="r", user="u").rows(["A"], (0, 1)))


def test_missing_users_are_no_users() -> None:
    users = [None, float("nan"), pd.NA, pd.NaT, np.float64("nan"), ""]
    log = read_log(action=["A"] * 6, reward=[1] * 6, user=users, actions=["A"])
    assert log.users() == {"": 1}
    assert log.request(rows=range(5)).counts.tolist() == [5]
    source = open_source({"a": ["A"] * 6, "r": [1] * 6, "user": users}, action="a", reward="r")
    (rows,) = source.rows(["A"], (0, 1))
    assert rows.users == [None] * 5 + [""]


def test_whole_numbers_that_a_missing_value_made_floats_are_found() -> None:
    frame = pd.DataFrame({"action": [1, 2], "reward": [1, 0], "user": [7, None]})
    assert read_log(frame, actions=[1, 2]).request(user=7).counts.tolist() == [1, 0]


def test_labels_in_memory_are_compared_as_python_values() -> None:
    log = read_log(action=[1, "1"], reward=[0, 1], user=[7, "7"], actions=[1, "1"])
    assert log.statistics().counts.tolist() == [1, 1]
    assert log.users() == {7: 1, "7": 1}
    assert log.request(user=7).counts.tolist() == [1, 0]
    assert log.request(user="7").counts.tolist() == [0, 1]


def test_times_of_numpy_are_times_in_a_log() -> None:
    moments = np.array(["2020-01-02", "2020-01-03"], dtype="datetime64[ns]")
    log = read_log(action=["A", "A"], reward=[1, 0], user=moments, actions=["A"])
    assert log.users() == dict.fromkeys(moments.astype("datetime64[us]").tolist(), 1)


def test_the_arrays_of_a_log_cannot_be_changed() -> None:
    reward = np.array([1.0, 0.0])
    log = read_log(action=["A", "A"], reward=reward, actions=["A"])
    reward[0] = 0.5
    assert log.statistics().sums.tolist() == [10**9]
    assert isinstance(log, ArrayLog)
    with pytest.raises(ValueError, match="read-only"):
        log.units[0] = 0


def test_reading_frames_needs_narwhals_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingExtraError, match=r'Reading dataframes needs .* "armnesia\[engines\]"'):
        read_log(pd.DataFrame(COLUMNS), **NAMES, actions=ACTIONS)


def test_reading_an_arrow_stream_needs_something_that_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = OnlyArrowStream(pa.table(COLUMNS))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert_same(read_log(stream, **NAMES, actions=ACTIONS), EXPECTED)
    for name in ("polars", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match="needs one of pyarrow, polars, pandas"):
        read_log(stream, **NAMES, actions=ACTIONS)


def test_arrays_and_mappings_need_no_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("narwhals", "duckdb", "psycopg", "pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, name, None)
    assert len(read_log(COLUMNS, **NAMES, actions=ACTIONS)) == 7


def test_declared_actions_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_log(COLUMNS, **NAMES, actions=ACTIONS)
