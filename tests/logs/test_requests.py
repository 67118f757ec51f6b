"""Logs, requests of people and rows, and decisions: what they answer, and what they refuse in a sentence."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from armnesia.core.errors import InvalidInputError, UndeclaredActionsWarning
from armnesia.logs import KeyColumn, Log, read_log
from armnesia.logs import log as log_module
from tests.logs.conformance.sources import write_csv

VISITS: dict[str, list[Any]] = {
    "action": ["A", "B", "A", "A", "B", "A", "B", "B"],
    "reward": [1.0, 0.25, 0.0, 1.0, 1.0, 0.5, 1.0, 0.0],
    "user": ["ann", "bob", "ann", "cy", "bob", "ann", None, "cy"],
    "country": ["DE", "FR", "DE", "FR", "DE", "FR", "DE", "AT"],
    "hour": [9, 10, 10, 9, 9, 9, 10, 9],
}
ACTIONS = ["A", "B"]


def said(read: Any, *arguments: Any, **options: Any) -> str:
    with pytest.raises(InvalidInputError) as caught:
        read(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def log() -> Log:
    """In memory: that other sources give the same is shown by the table of conformance."""
    return read_log(VISITS, actions=ACTIONS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "a request needs exactly one of user, users and rows; got none"),
        ({"user": "eve"}, "the log has no rows of user 'eve'"),
        ({"users": "ann"}, "users must be a list of labels (user takes a single one); got 'ann'"),
        ({"users": []}, "users must name at least one user; got none"),
        ({"user": ["ann"]}, "user must be a single label; got list: name several by users=[...]"),
        ({"rows": []}, "rows must be different whole numbers from 1 to 8; got none"),
        ({"rows": "12"}, "rows must be a list of row positions, such as [1, 8]; got '12'"),
        ({"rows": [True]}, "rows must be different whole numbers from 1 to 8; got True"),
        ({"rows": [1, 9, 0]}, "rows must be different whole numbers from 1 to 8; got 9, 0"),
        ({"rows": [2, 1, 2]}, "rows must be different whole numbers from 1 to 8; got 2"),
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


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ((), "decisions need at least one key, such as log.by('country'); got none"),
        (("country", "country"), "keys must be different columns; got 'country' more than once"),
        (("hour:30,18",), "edges of key 'hour' must be finite numbers that rise; got 30,18"),
        (("hour:18,old",), "edges of key 'hour' must be numbers such as 18,30,50; got '18,old'"),
        (("",), "a key must be the name of a column, such as country or age:18,30; got ''"),
        (("planet",), "key column 'planet' is not in the source; it has 'action'"),
        (("user",), "a key must be another column than those of the action, the reward and the user; got"),
    ],
)
def test_what_is_no_key_is_refused(log: Log, keys: tuple[Any, ...], message: str) -> None:
    assert said(log.by, *keys).startswith(message)


def test_limits_and_names_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    log = read_log(VISITS | {"utm:source": ["x", "y"] * 4, "t:9": [1, 2] * 4}, actions=ACTIONS)
    assert log.by("utm:source").keys == (("x",), ("y",))
    assert log.by(KeyColumn("t:9", (2,))).keys == (("<2",), (">=2",))
    monkeypatch.setattr(log_module, "_MOST_DECISIONS", 3)
    assert len(log.by("country")) == 3
    assert "make 5 decisions, and the limit is 3" in said(log.by, "country", "hour")


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
        (None, {"reward": [1]}, "action must be an array or a list, with one value per row; got 'action'"),
        (ONE, {"reward": [1]}, "reward must be the name of a column of the source; got list"),
        ("log.csv", {"user": "action"}, "user must be another column than action and reward; got 'action'"),
        ("log.csv", {"table": "clicks"}, "table is for databases, such as sqlite:///file.db; got 'clicks'"),
        (ONE, {"delimiter": ";"}, "delimiter is for CSV files; got ';'"),
        ("log.csv", {"delimiter": ";;"}, "delimiter must be one character of ASCII, such as ; or a tab"),
        ("sqlite:///log.db", {}, "a database needs the name of a table, such as table='clicks' (--table cl"),
        ("sqlite://log.db", {"table": "x"}, "the URL of an SQLite file must be sqlite:///FILE; got"),
        ("log.db", {}, "source 'log.db' is not a file and matches none"),
        (7, {}, "source must be a dataframe, a mapping of columns, the path of CSV or Parquet files, or the"),
        (
            "file:///logs/log.csv",
            {},
            "a URL must begin with one of s3://, s3a://, s3n://, http://, https:// for files, or with",
        ),
        (ONE, {"actions": "AB"}, "actions must be a list of labels, in order, such as"),
        (ONE, {"reward_range": (1, 0)}, "reward_range must be finite"),
        (ONE | {"user": ["x", "y"]}, {}, "columns must have the same number of rows; got 1 in action column"),
        (ONE, {"actions": [1, "1"]}, "actions must differ in their text, by which they are found in a sour"),
        (pd.DataFrame([["A", "B", 1]], columns=["action", "action", "reward"]), {}, "column 'action' is in"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense(source: Any, arguments: dict[str, Any], message: str) -> None:
    assert said(read_log, source, **{"actions": ACTIONS} | arguments).startswith(message)


def test_a_missing_reward_has_a_remedy_that_works(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", {"action": ["A", "B"], "won": ["", "1"]})
    message = said(read_log, path, reward="won", actions=ACTIONS)
    assert (
        "got a missing value at row 1: where='won is not null' (--where) leaves rows without one out"
        in message
    )
    log = read_log(path, reward="won", actions=ACTIONS, where="won is not null")
    assert log.statistics().counts.tolist() == [0, 1]
