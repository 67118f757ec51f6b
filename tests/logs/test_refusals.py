"""Everything refused is refused in one sentence: what, which value, where, and what would be accepted."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.logs import IF_PRESENT, Log, open_source, read_log
from tests.logs.conftest import SOME_KINDS, Stored, Table

NAN, INF = float("nan"), float("inf")
Store = Callable[[Table], Stored]


def refusal(source: Any, **arguments: Any) -> str:
    with pytest.raises(InvalidInputError) as caught:
        read_log(source, **{"actions": ["A", "B"]} | arguments)
    message = str(caught.value)
    assert "\n" not in message
    return message


def refusal_of(source: Stored, **names: Any) -> str:
    """The refusal by `read_log`, and by the rows of the source in the same words."""
    message = refusal(source.source, **source.options, **names)
    with pytest.raises(InvalidInputError) as caught:
        for _ in source.open(**{"action": "action", "reward": "reward"} | names).rows(["A", "B"], (0, 1)):
            pass
    assert str(caught.value) == message
    return message


@pytest.mark.parametrize(
    ("reward", "got"),
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
        (1.0, "must be an array or a list, with one value per row; got 1.0"),
        (np.array(1.0), "must be an array or a list, with one value per row; got array(1.)"),
    ],
    ids=str,
)
def test_rewards_in_arrays(reward: Any, got: str) -> None:
    assert refusal(None, action=["A"], reward=reward).startswith(f"reward {got}")


@SOME_KINDS
def test_numbers_for_actions_that_are_declared_as_text(kind: str, stored: Store) -> None:
    got = "'1' at row 0, '2' at row 1" if kind == "csv" else "1 at row 0, 2 at row 1"
    assert refusal_of(stored({"action": [1, 2], "reward": [0, 1]})) == (
        f"action column 'action' must hold declared actions only, 'A', 'B'; got {got}"
    )


@SOME_KINDS
@pytest.mark.parametrize("role", ["action", "reward", "user", "id"])
def test_columns_that_are_not_there(stored: Store, role: str) -> None:
    source = stored({"action": ["A"], "reward": [1], "user": ["ann"]})
    expected = f"{role} column 'Action' is not in the source; it has 'action', 'reward', 'user'"
    expected += f"; name it with {role} (--{role}-column)"
    if role != "id":
        assert refusal_of(source, **{role: "Action"}) == expected
    with pytest.raises(InvalidLogError) as caught:
        source.open(**{"action": "action", "reward": "reward", role: "Action"})
    assert str(caught.value) == expected


def test_columns_of_different_length() -> None:
    table: dict[str, Any] = {"action": ["A", "B"], "reward": [1, 0, 1], "user": ["x"]}
    expected = (
        "columns must have the same number of rows; got 2 in action column 'action',"
        " 3 in reward column 'reward', 1 in user column 'user'"
    )
    assert refusal_of(Stored(table)) == expected
    with pytest.raises(InvalidLogError) as caught:
        open_source(table | {"page": []}, action="action", reward="reward")
    assert str(caught.value) == f"{expected}, 0 in column 'page'"
    message = refusal(None, action=["A"], reward=[1, 0])
    assert message == "columns must have the same number of rows; got 1 in action, 2 in reward"


def test_labels_in_arrays_that_cannot_be_hashed() -> None:
    assert refusal(None, action=["A", ["B"]], reward=[0, 1]) == (
        "action must hold hashable labels, such as text or numbers; got ['B'] at row 1"
    )
    assert refusal(None, action=["A", "B"], reward=[0, 1], user=[{}, 1]) == (
        "user must hold hashable labels, such as text or numbers; got a value of type dict at row 0"
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
            "reward must be the name of a column of the source; got list",
        ),
        ("log.csv", {"user": 3}, "user must be the name of a column of the source; got int"),
        ("log.csv", {"action": None}, "action must be the name of a column of the source; got NoneType"),
        (
            "log.csv",
            {"reward": IF_PRESENT},
            "reward must be the name of a column of the source; got IfPresent",
        ),
        (
            "log.csv",
            {"user": "action"},
            "user must be another column than action and reward; got 'action' for both",
        ),
        ("log.csv", {"table": "clicks"}, "table is for databases, such as sqlite:///file.db; got 'clicks'"),
        ("my.db", {"table": "clicks"}, "table is for databases, such as sqlite:///my.db; got 'clicks'"),
        (
            None,
            {"action": ["A"], "reward": [1], "table": "clicks"},
            "table needs the URL of a database as the source; got 'clicks' without one",
        ),
        (
            "sqlite:///log.db",
            {},
            "a database needs the name of a table, such as table='clicks' (--table clicks); got none",
        ),
        (
            "s3://bucket/log.csv",
            {},
            "the URL of a source must begin with one of sqlite://, postgresql://, postgres://, spark:,"
            " delta:, iceberg:; got",
        ),
        (
            7,
            {},
            "source must be a dataframe, a mapping of columns, the path of a CSV or Parquet file, or the URL"
            " of a database; got int",
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


def test_what_rows_cannot_do_is_refused_at_once() -> None:
    source = open_source({"arm": ["A", "B"], "won": [1, 0]}, action="arm", reward="won")
    for options, message in (
        ({"users": {"7"}}, "rows of given users need the user column; the source has none"),
        ({"ids": {"7"}}, "rows of given ids need the id column; the source has none"),
        ({"users": {"7"}, "ids": {"7"}}, "rows are selected by users or by ids; got both"),
        ({"users": "ann"}, "users must be a set of texts; got the text 'ann'"),
        ({"chunk": 0}, "chunk must be at least 1; got 0"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            source.rows(["A", "B"], (0, 1), **options)
        assert str(caught.value) == message
    with pytest.raises(InvalidInputError, match="actions must differ in their text"):
        source.rows([1, "1"], (0, 1))
    with pytest.raises(InvalidInputError, match="reward_range"):
        source.rows(["A", "B"], (1, 0))


@pytest.fixture(params=["mapping of lists", "csv", "parquet", "sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def log(stored: Store) -> Log:
    table: Table = {"action": ["A", "B", "A"], "reward": [1, 0, 0.5], "user": ["ann", "bob", None]}
    return stored(table).log(actions=["A", "B"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "a request needs exactly one of user, users and rows; got none"),
        (
            {"user": "ann", "rows": [0]},
            "a request needs exactly one of user, users and rows; got user and rows",
        ),
        ({"user": "eve"}, "the log has no rows of user 'eve'"),
        (
            {"users": ["ann", "eve", "x"]},
            "the log has no rows of user 'eve', 'x'",
        ),
        ({"user": NAN}, "the log has no rows of user nan"),
        ({"users": "ann"}, "users must be a list of labels (user takes a single one); got 'ann'"),
        ({"users": 7}, "users must be a list of labels (user takes a single one); got 7"),
        ({"users": []}, "users must name at least one user; got none"),
        ({"user": ["ann"]}, "user must be a single label; got list: name several by users=[...]"),
        ({"rows": []}, "rows must name at least one row; got none"),
        ({"rows": 1}, "rows must be a list of row positions, such as [0, 7]; got 1"),
        ({"rows": "12"}, "rows must be a list of row positions, such as [0, 7]; got '12'"),
        ({"rows": [True, False]}, "rows must be whole numbers, the positions of rows; got True, False"),
        ({"rows": [0.0]}, "rows must be whole numbers, the positions of rows; got 0.0"),
        ({"rows": [0, 3, -1]}, "rows must lie between 0 and 2; got 3, -1"),
        ({"rows": [2, 1, 2]}, "rows must be distinct; got 2 more than once"),
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
            InvalidInputError, match=r"read without a user column; name one with read_log\(user=...\)"
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
