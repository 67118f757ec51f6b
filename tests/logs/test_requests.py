"""Logs, requests of people and rows, and decisions: what they answer, and what they refuse in a sentence."""

import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, UndeclaredActionsWarning
from armnesia.logs import IF_PRESENT, KeyColumn, Log, read_log
from tests.logs.conformance.sources import write_csv, write_sqlite

VISITS: dict[str, list[Any]] = {
    "action": ["A", "B", "A", "A", "B", "A", "B", "B"],
    "reward": [1.0, 0.25, 0.0, 1.0, 1.0, 0.5, 1.0, 0.0],
    "user": ["ann", "bob", "ann", "cy", "bob", "ann", None, "cy"],
    "country": ["DE", "FR", "DE", "FR", "DE", "FR", "DE", "AT"],
    "hour": [9, 10, 10, 9, 9, 9, 10, 9],
}
ACTIONS = ["A", "B"]
NAN = float("nan")


def said(read: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(InvalidInputError) as caught:
        read(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture(params=["mapping", "CSV", "SQLite"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Log:
    if request.param == "mapping":
        return read_log(VISITS, actions=ACTIONS)
    if request.param == "CSV":
        return read_log(write_csv(tmp_path / "log.csv", VISITS), actions=ACTIONS)
    return read_log(write_sqlite(tmp_path / "log.db", VISITS), table="log", actions=ACTIONS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "a request needs exactly one of user, users and rows; got none"),
        ({"user": "ann", "rows": [1]}, "a request needs exactly one of user, users and rows; got user and"),
        ({"user": "eve"}, "the log has no rows of user 'eve'"),
        ({"users": ["ann", "eve", "x"]}, "the log has no rows of user 'eve', 'x'"),
        ({"user": NAN}, "the log has no rows of user nan"),
        ({"users": "ann"}, "users must be a list of labels (user takes a single one); got 'ann'"),
        ({"users": []}, "users must name at least one user; got none"),
        ({"user": ["ann"]}, "user must be a single label; got list: name several by users=[...]"),
        ({"rows": []}, "rows must name at least one row; got none"),
        ({"rows": "12"}, "rows must be a list of row positions, such as [1, 8]; got '12'"),
        ({"rows": [True]}, "rows must be whole numbers, the positions of rows; got True"),
        ({"rows": [1.0]}, "rows must be whole numbers, the positions of rows; got 1.0"),
        ({"rows": [1, 9, 0]}, "rows must lie between 1 and 8; got 9, 0"),
        ({"rows": [2, 1, 2]}, "rows must be distinct; got 2 more than once"),
    ],
    ids=str,
)
def test_requests_that_cannot_be_met(log: Log, arguments: dict[str, Any], message: str) -> None:
    assert said(log.request, **arguments).startswith(message)


def test_requests_of_people_and_rows(log: Log) -> None:
    assert log.request(user="ann").counts.tolist() == [3, 0]
    assert log.request(users=["bob", "cy"]).counts.tolist() == [1, 3]
    assert log.request(rows=[1, 2]).sums.tolist() == [10**9, 250_000_000]
    assert log.request(rows=np.array([8])).binary
    assert not log.request(rows=[2]).binary
    assert log.users() == {"ann": 3, "bob": 2, "cy": 2}
    assert log.users("B") == {"bob": 2, "cy": 1}
    assert said(log.users, "C") == "action 'C' is not one of 'A', 'B'"


def test_decisions_part_the_log_and_its_requests(log: Log) -> None:
    decisions = log.by("country", "hour")
    assert decisions.keys == (("AT", "9"), ("DE", "9"), ("DE", "10"), ("FR", "9"), ("FR", "10"))
    assert decisions.statistics.counts.tolist() == [[0, 1], [1, 1], [1, 1], [2, 0], [0, 1]]
    assert decisions.request(user="ann").counts.tolist() == [[0, 0], [1, 0], [1, 0], [1, 0], [0, 0]]
    assert decisions.request(rows=[2]).counts.tolist() == [[0, 0]] * 4 + [[0, 1]]
    assert decisions.pooled == log.statistics()
    assert decisions.index_of({"hour": 9.0, "country": "AT"}) == 0
    for key, message in (
        ({"country": "AT"}, "a key must have a value for each of 'country', 'hour'"),
        ({"country": "AT", "hour": 10}, "the log has no decision with the key {'country': 'AT', 'hour': 10}"),
    ):
        assert message in said(decisions.index_of, key)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ((), "decisions need at least one key, such as log.by('country'); got none"),
        (("country", "country"), "keys must be different columns; got 'country' more than once"),
        (("hour:30,18",), "edges of key 'hour' must rise, each above the one before; got 30,18"),
        (("hour:18,old",), "edges of key 'hour' must be numbers such as 18,30,50; got '18,old'"),
        (("hour:inf",), "edges of key 'hour' must be finite; got inf"),
        (("hour:",), "key column 'hour:' is not in the source"),
        (("",), "a key must be the name of a column, such as country or age:18,30; got ''"),
        (("planet",), "key column 'planet' is not in the source; it has 'action'"),
        (("user",), "a key must be another column than those of the action, the reward and the user; got"),
    ],
)
def test_what_is_no_key_is_refused(log: Log, keys: tuple[Any, ...], message: str) -> None:
    assert said(log.by, *keys).startswith(message)


def test_limits_and_names_of_keys() -> None:
    log = read_log(VISITS | {"utm:source": ["x", "y"] * 4, "t:9": [1, 2] * 4}, actions=ACTIONS)
    assert log.by("utm:source").keys == (("x",), ("y",))
    assert log.by(KeyColumn("t:9", (2,))).keys == (("<2",), (">=2",))
    assert len(log.by("country", at_most=3)) == 3
    assert "make 5 decisions, and the limit is 4" in said(log.by, "country", "hour", at_most=4)
    assert "at_most must be a whole number" in said(log.by, "country", at_most=0)


def test_rows_that_are_not_read_have_no_position() -> None:
    log = read_log(VISITS, actions=ACTIONS, where="country = DE")
    assert "rows are named by their position in the source" in said(log.request, rows=[1])


def test_actions_are_known_by_their_text() -> None:
    log = read_log({"action": [1, 2], "reward": [1, 0], "user": ["ann", "bob"]}, actions=[1, 2])
    assert log.users(1.0) == log.users("1") == {"ann": 1}
    assert said(log.users, True) == "action True is not one of 1, 2"


def test_a_log_without_users_knows_nobody() -> None:
    log = read_log(action=["A"], reward=[1], actions=["A"])
    for ask in (lambda: log.request(user="ann"), log.users, lambda: log.by("action")):
        said(ask)
    assert "name one with read_log(user=...) (--user-column), or give rows" in said(log.users)
    assert log.request(rows=[1]).counts.tolist() == [1]


def test_a_table_that_has_changed_is_refused(tmp_path: Path) -> None:
    log = read_log(write_sqlite(tmp_path / "log.db", VISITS), table="log", actions=ACTIONS)
    decisions = log.by("country")
    with closing(sqlite3.connect(tmp_path / "log.db")) as file, file:
        file.execute("DELETE FROM log WHERE user = 'cy'")
    of_user, of_row = (lambda: decisions.request(user="ann")), (lambda: log.request(rows=[1]))
    for ask in (lambda: log.by("country"), log.users, of_user, of_row):
        assert said(ask) == "the source has changed since the log was read; read it again"


def test_a_file_that_has_changed_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", VISITS)
    log = read_log(path, actions=ACTIONS)
    write_csv(path, {name: values[:7] for name, values in VISITS.items()})
    for ask in (lambda: log.by("country"), log.users, lambda: log.request(user="ann")):
        assert "log.csv' has changed since the log was read; read it again" in said(ask)
    path.unlink()
    assert "log.csv' cannot be read: No such file" in said(log.users)
    assert log.statistics().counts.tolist() == [4, 4]


def test_undeclared_actions_warn_at_the_caller(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", VISITS)
    with pytest.warns(UndeclaredActionsWarning, match="were taken from the log: ") as caught:
        logs = [read_log(VISITS), read_log(path), read_log(path, where="country = AT")]
    assert [log.actions for log in logs] == [("A", "B"), ("A", "B"), ("B",)]
    assert {each.filename for each in caught} == {__file__}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_log(path, actions=ACTIONS)


ONE = {"action": ["A"], "reward": [1]}


@pytest.mark.parametrize(
    ("source", "arguments", "message"),
    [
        (None, {"reward": [1]}, "action must be an array when there is no source; got the column name 'act"),
        (ONE, {"reward": [1]}, "reward must be the name of a column of the source; got list"),
        ("log.csv", {"user": 3}, "user must be the name of a column of the source; got int"),
        ("log.csv", {"reward": IF_PRESENT}, "reward must be the name of a column of the source; got IfP"),
        ("log.csv", {"user": "action"}, "user must be another column than action and reward; got 'action'"),
        ("log.csv", {"table": "clicks"}, "table is for databases, such as sqlite:///file.db; got 'clicks'"),
        (ONE, {"table": "clicks"}, "table is for databases"),
        (ONE, {"delimiter": ";"}, "delimiter is for CSV files; got ';'"),
        ("log.csv", {"delimiter": ";;"}, "delimiter must be one character of ASCII, such as ; or a tab"),
        ("sqlite:///log.db", {}, "a database needs the name of a table, such as table='clicks' (--table cl"),
        ("sqlite://log.db", {"table": "x"}, "the URL of an SQLite file must be sqlite:///FILE; got"),
        ("log.db", {}, "source 'log.db' is not a file and matches none"),
        (7, {}, "source must be a dataframe, a mapping of columns, the path of CSV or Parquet files, or the"),
        (
            "mysql://u:p@h/d",
            {"table": "x"},
            "a URL must begin with one of s3://, s3a://, s3n://, http://, https",
        ),
        (
            "file:///logs/log.csv",
            {},
            "a local file is given by its path, without file://; got 'file:///logs/l",
        ),
        (ONE, {"actions": "AB"}, "actions must be a list of labels, in order, such as"),
        (ONE, {"reward_range": (1, 0)}, "reward_range must be finite"),
        (ONE | {"user": ["x", "y"]}, {}, "columns must have the same number of rows; got 1 in action column"),
        (ONE, {"columns": {"x": [1]}}, "columns are for arrays without a source, which has its own; got 'x'"),
        (None, ONE | {"columns": {"user": [1]}}, "columns must have other names than action, reward and u"),
        (ONE, {"actions": [1, "1"]}, "actions must differ in their text, by which they are found in a sour"),
        (pd.DataFrame([["A", "B", 1]], columns=["action", "action", "reward"]), {}, "column 'action' is in"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense(source: Any, arguments: dict[str, Any], message: str) -> None:
    assert said(read_log, source, **{"actions": ACTIONS} | arguments).startswith(message)


@pytest.mark.parametrize("kind", ["groupby", "series"])
def test_a_part_of_pandas_that_is_no_dataframe(kind: str) -> None:
    frame = pd.DataFrame(ONE)
    source = frame.groupby("action") if kind == "groupby" else frame["reward"]
    message = said(read_log, source, actions=ACTIONS)
    assert message.startswith("source must be a dataframe, a mapping of columns,")
    assert message.endswith(f"; got {type(source).__name__}")


def test_a_missing_reward_has_a_remedy_that_works(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", {"action": ["A", "B"], "won": ["", "1"]})
    message = said(read_log, path, reward="won", actions=ACTIONS)
    assert "got a missing value at row 1: leave rows without one out with where='won is not null'" in message
    log = read_log(path, reward="won", actions=ACTIONS, where="won is not null")
    assert log.statistics().counts.tolist() == [0, 1]


def test_refusals_of_rows_are_of_their_own_class() -> None:
    with pytest.raises(InvalidLogError) as caught:
        read_log(action=["A"], reward=[2], actions=["A"])
    assert [(each.role, each.row) for each in caught.value.faults] == [("reward", 1)]
