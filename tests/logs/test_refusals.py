"""Everything refused is refused in one sentence: what, which value, where, and what would be accepted."""

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.logs import Log, read_log

NAN, INF = float("nan"), float("inf")
Source = Callable[[dict[str, list[Any]], Path], Any]


def in_csv(columns: dict[str, list[Any]], folder: Path) -> Path:
    path = folder / "log.csv"
    pd.DataFrame(columns, dtype=object).to_csv(path, index=False)
    return path


def in_parquet(columns: dict[str, list[Any]], folder: Path) -> Path:
    path = folder / "log.parquet"
    pq.write_table(pa.table(columns), path)
    return path


SOURCES: dict[str, Source] = {
    "mapping": lambda columns, _: columns,
    "arrays": lambda columns, _: {name: np.array(values) for name, values in columns.items()},
    "pandas": lambda columns, _: pd.DataFrame(columns),
    "pandas nullable": lambda columns, _: pd.DataFrame(columns).convert_dtypes(),
    "polars": lambda columns, _: pl.DataFrame(columns, strict=False),
    "polars lazy": lambda columns, _: pl.LazyFrame(columns, strict=False),
    "pyarrow": lambda columns, _: pa.table(columns),
    "csv": in_csv,
    "parquet": in_parquet,
}
EVERY_SOURCE = pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)


def refusal(source: Any, **arguments: Any) -> str:
    with pytest.raises(InvalidInputError) as caught:
        read_log(source, **{"actions": ["A", "B"]} | arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


@EVERY_SOURCE
@pytest.mark.parametrize(
    ("rewards", "told"),
    [
        ([0.5, 1.5, 0.0, -0.25], "1.5 at row 1, -0.25 at row 3"),
        ([7.0, 8.0, 9.0, 10.0], "7.0 at row 0, 8.0 at row 1, 9.0 at row 2, …"),
        ([0.0, 1.0, 1.0000000000000002, 0.0], "1.0000000000000002 at row 2"),
    ],
)
def test_rewards_outside_the_range(source: Source, rewards: list[float], told: str, tmp_path: Path) -> None:
    message = refusal(source({"action": ["A"] * 4, "reward": rewards}, tmp_path))
    assert message == f"reward column 'reward' must lie in reward_range [0.0, 1.0]; got {told}"


@EVERY_SOURCE
@pytest.mark.parametrize(
    ("rewards", "told"),
    [
        ([0.5, NAN, 1.0], "a missing value at row 1"),
        ([0.5, None, 1.0], "a missing value at row 1"),
        ([INF, 0.5, -INF], "inf at row 0, -inf at row 2"),
        ([5.0, 0.5, INF], "inf at row 2"),
    ],
)
def test_rewards_that_are_no_finite_number(
    source: Source, rewards: list[Any], told: str, tmp_path: Path
) -> None:
    message = refusal(source({"action": ["A"] * 3, "reward": rewards}, tmp_path))
    assert message == f"reward column 'reward' must hold a finite number in every row; got {told}"


@pytest.mark.parametrize("name", ["pandas", "csv", "mapping"])
def test_rewards_that_are_no_number(name: str, tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {"action": ["A"] * 5, "reward": [1, "yes", 0, "no", 3]}
    message = refusal(SOURCES[name](columns, tmp_path))
    assert message == "reward column 'reward' must hold numbers; got 'yes' at row 1, 'no' at row 3"


@pytest.mark.parametrize(
    ("reward", "told"),
    [
        (["1"], "must hold numbers; got '1' at row 0"),
        (np.array(["1"]), "must hold numbers; got '1' at row 0"),
        ([1j], "must hold numbers; got 1j at row 0"),
        ([[1]], r"must hold numbers; got [1] at row 0"),
        (np.ones((1, 2)), "must hold numbers; got [1.0, 1.0] at row 0"),
        ([pd.NA], "must hold a finite number in every row; got a missing value at row 0"),
        ([10**400], "must hold a finite number in every row; got inf at row 0"),
        (
            np.ma.masked_array([1.0], mask=[True]),
            "must hold a finite number in every row; got a missing value",
        ),
        ([Decimal("1.1")], "must lie in reward_range [0.0, 1.0]; got 1.1 at row 0"),
        (1.0, "must be an array or a list, with one value a row; got 1.0"),
        (np.array(1.0), "must be an array or a list, with one value a row; got array(1.)"),
    ],
    ids=str,
)
def test_rewards_in_arrays(reward: Any, told: str) -> None:
    assert refusal(None, action=["A"], reward=reward).startswith(f"reward {told}")


@EVERY_SOURCE
def test_undeclared_actions(source: Source, tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {"action": ["A", "C", "B", "D", "C", "C"], "reward": [1, 0, 0, 0, 0, 0]}
    assert refusal(source(columns, tmp_path)) == (
        "action column 'action' must hold declared actions only, 'A', 'B';"
        " got 'C' at row 1, 'D' at row 3, 'C' at row 4, …"
    )


@EVERY_SOURCE
def test_missing_actions(source: Source, tmp_path: Path) -> None:
    message = refusal(source({"action": ["A", None, "B"], "reward": [1, 0, 0]}, tmp_path))
    assert message == "action column 'action' must name an action in every row; got a missing value at row 1"


@EVERY_SOURCE
@pytest.mark.parametrize("role", ["action", "reward", "user"])
def test_columns_that_are_not_there(source: Source, role: str, tmp_path: Path) -> None:
    columns: dict[str, list[Any]] = {"action": ["A"], "reward": [1], "user": ["ann"]}
    message = refusal(source(columns, tmp_path), **{role: "Action"})
    assert message == f"{role} column 'Action' is not in the source; it has 'action', 'reward', 'user'"


@EVERY_SOURCE
def test_empty_logs(source: Source, tmp_path: Path) -> None:
    message = refusal(source({"action": [], "reward": []}, tmp_path))
    assert message == "source holds no rows; a log needs at least one"


def test_columns_of_different_length() -> None:
    message = refusal({"action": ["A", "B"], "reward": [1, 0, 1], "user": ["x"]}, user="user")
    assert message == (
        "columns must have the same number of rows; got 2 in action column 'action',"
        " 3 in reward column 'reward', 1 in user column 'user'"
    )
    message = refusal(None, action=["A"], reward=[1, 0])
    assert message == "columns must have the same number of rows; got 1 in action, 2 in reward"


def test_bandit_feedback_whose_number_of_rounds_is_wrong() -> None:
    feedback = {"n_rounds": 3, "n_actions": 2, "action": [0, 1], "reward": [1, 0]}
    assert refusal(feedback) == "n_rounds must be the number of rows, 2; got 3"


def test_labels_that_cannot_be_hashed() -> None:
    assert refusal(None, action=["A", ["B"]], reward=[0, 1]) == (
        "action must hold hashable labels, such as text or numbers; got ['B'] at row 1"
    )
    assert refusal(None, action=["A", "B"], reward=[0, 1], user=[{}, 1]) == (
        "user must hold hashable labels, such as text or numbers; got {} at row 0"
    )


@pytest.mark.parametrize(
    ("source", "arguments", "message"),
    [
        (
            None,
            {"reward": [1]},
            "action must be an array when there is no source; got the column name 'action'",
        ),
        (
            None,
            {"action": ["A"]},
            "reward must be an array when there is no source; got the column name 'reward'",
        ),
        (
            {"action": ["A"], "reward": [1]},
            {"reward": [1]},
            "reward must be a column name when there is a source; got list",
        ),
        ("log.csv", {"user": 3}, "user must be a column name when there is a source; got int"),
        (
            7,
            {},
            "source must be a dataframe, a mapping of columns, or the path of a CSV or Parquet file; got int",
        ),
        (
            pd.DataFrame([["A", "B", 1]], columns=["action", "action", "reward"]),
            {},
            "source must have distinct column names: Expected unique column names, got: - 'action' 2 times",
        ),
        (
            {"action": ["A"], "reward": [1]},
            {"actions": "AB"},
            "actions must be a list of labels, in order, such as",
        ),
        (
            {"action": ["A"], "reward": [1]},
            {"reward_range": (1, 0)},
            "reward_range must be finite",
        ),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense(source: Any, arguments: dict[str, Any], message: str) -> None:
    assert refusal(source, **arguments).startswith(message)


@pytest.fixture(params=["memory", "file"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    columns: dict[str, list[Any]] = {
        "action": ["A", "B", "A"],
        "reward": [1, 0, 0.5],
        "user": ["ann", "bob", None],
    }
    source = columns if request.param == "memory" else in_csv(columns, tmp_path)
    return read_log(source, user="user", actions=["A", "B"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "a request needs exactly one of user, users and rows; got none"),
        (
            {"user": "ann", "rows": [0]},
            "a request needs exactly one of user, users and rows; got user and rows",
        ),
        ({"user": "eve"}, "the log has no rows of user 'eve'"),
        ({"user": ["ann"]}, "the log has no rows of user ['ann']"),
        (
            {"users": ["ann", "eve", "x"]},
            "the log has no rows of user 'eve', 'x'",
        ),
        ({"user": NAN}, "the log has no rows of user nan"),
        ({"users": "ann"}, "users must be a list of labels (user takes a single one); got 'ann'"),
        ({"users": 7}, "users must be a list of labels (user takes a single one); got 7"),
        ({"users": []}, "users must name at least one user; got none"),
        ({"rows": []}, "rows must name at least one row; got none"),
        ({"rows": 1}, "rows must be a list of row positions, such as [0, 7]; got 1"),
        ({"rows": "12"}, "rows must be a list of row positions, such as [0, 7]; got '12'"),
        ({"rows": [True, False]}, "rows must be whole numbers, the positions of rows; got True, False"),
        ({"rows": [0.0]}, "rows must be whole numbers, the positions of rows; got 0.0"),
        ({"rows": [0, 3, -1]}, "rows must lie between 0 and 2; got 3, -1"),
        ({"rows": [2, 1, 2]}, "rows must be distinct; 2 is there more than once"),
    ],
    ids=str,
)
def test_requests_that_cannot_be_met(log: Log, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        log.request(**arguments)
    assert str(caught.value) == message


def test_users_of_an_unknown_action(log: Log) -> None:
    with pytest.raises(InvalidInputError, match="action 'C' is not one of 'A', 'B'"):
        log.users("C")


def test_a_log_without_users_knows_nobody() -> None:
    log = read_log(action=["A"], reward=[1], actions=["A"])
    for ask in (lambda: log.request(user="ann"), lambda: log.request(users=["ann"]), log.users):
        with pytest.raises(
            InvalidInputError, match=r"read without a user column; name it in read_log\(user=...\)"
        ):
            ask()
    assert log.request(rows=[0]).counts.tolist() == [1]
    assert "without users" in repr(log)


def test_refusals_of_logs_are_of_their_own_class() -> None:
    with pytest.raises(InvalidLogError):
        read_log(action=["A"], reward=[2], actions=["A"])
    assert issubclass(InvalidLogError, ValueError)


def test_binary_requests_are_marked(log: Log) -> None:
    assert log.request(users=["ann", "bob"]).binary
    assert not log.request(rows=[0, 2]).binary
    assert not log.request(rows=[2]).binary
