"""A log parted by key columns: the same decisions from every kind of source, and what is refused."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.statistics import ArmStatistics
from armnesia.logs import KeyColumn, read_log
from tests.logs.conftest import (
    EVERY_KIND,
    SOME_KINDS,
    Stored,
    Table,
    write_csv,
    write_parquet,
    write_sqlite,
)

Store = Callable[[Table], Stored]
ACTIONS = ["A", "B"]
VISITS: Table = {
    "action": ["A", "B", "A", "A", "B", "A", "B", "B"],
    "reward": [1.0, 0.25, 0.0, 1.0, 1.0, 0.5, 1.0, 0.0],
    "user": ["ann", "bob", "ann", "cy", "bob", "ann", None, "cy"],
    "country": ["DE", "FR", "DE", "FR", "DE", "FR", "DE", "AT"],
    "age": [17.0, 18.0, 29.5, 50.0, 18.0, 77.0, 30.0, -3.0],
    "hour": [9, 10, 10, 9, 9, 9, 10, 9],
}
KEYS = ("country", "age:18,30,50")


def by_hand(table: Table, key_of_row: Sequence[tuple[str, ...]], rows: list[int]) -> dict[Any, list[Any]]:
    """The rewards of each key and action among these rows."""
    found: dict[Any, list[Any]] = {}
    for row in rows:
        found.setdefault((key_of_row[row], table["action"][row]), []).append(table["reward"][row])
    return found


def as_dict(keys: tuple[tuple[str, ...], ...], records: Any) -> dict[Any, tuple[int, float]]:
    counts, sums = records.counts, records.sums
    return {
        (key, action): (int(counts[at, arm]), int(sums[at, arm]) / 1e9)
        for at, key in enumerate(keys)
        for arm, action in enumerate(ACTIONS)
        if counts[at, arm]
    }


def interval(age: float) -> str:
    return "<18" if age < 18 else "18..30" if age < 30 else "30..50" if age < 50 else ">=50"


EXPECTED_KEYS = list(zip(VISITS["country"], map(interval, VISITS["age"]), strict=True))


@EVERY_KIND
def test_the_request_of_a_person_is_parted_as_the_log_is(stored: Store) -> None:
    log = stored(VISITS).log(actions=ACTIONS)
    decisions = log.by(*KEYS)
    for users in (["ann"], ["bob"], ["ann", "cy"]):
        rows = [row for row, user in enumerate(VISITS["user"]) if user in users]
        expected = by_hand(VISITS, EXPECTED_KEYS, rows)
        request = decisions.request(users=users)
        assert as_dict(decisions.keys, request) == {
            key: (len(rewards), sum(rewards)) for key, rewards in expected.items()
        }
        assert request.binary == all(VISITS["reward"][row] in (0, 1) for row in rows)
        assert request.counts.sum(axis=0).tolist() == log.request(users=users).counts.tolist()
    with pytest.raises(InvalidInputError, match="the log has no rows of user 'eve'"):
        decisions.request(user="eve")


@SOME_KINDS
def test_rows_are_counted_as_in_the_log(stored: Store) -> None:
    log = stored(VISITS).log(actions=ACTIONS)
    decisions = log.by("hour")
    assert decisions.keys == (("9",), ("10",))  # numbers in rising order, not text
    for row in range(8):
        request = decisions.request(rows=[row])
        assert request.counts.sum() == 1
        assert (
            request.counts[[0, 1][VISITS["hour"][row] == 10]].tolist()
            == log.request(rows=[row]).counts.tolist()
        )
    with pytest.raises(InvalidInputError, match="rows must lie between 0 and 7"):
        decisions.request(rows=[8])


@SOME_KINDS
def test_a_column_that_is_not_there_is_refused(stored: Store) -> None:
    log = stored(VISITS).log(actions=ACTIONS)
    with pytest.raises(
        InvalidLogError, match="key column 'planet' is not in the source; it has 'action', 're"
    ):
        log.by("country", "planet")


@SOME_KINDS
@pytest.mark.parametrize("role", ["action", "reward", "user"])
def test_a_key_is_a_column_of_its_own(stored: Store, role: str) -> None:
    log = stored(VISITS).log(actions=ACTIONS)
    with pytest.raises(InvalidInputError, match=f"a key must be another .*; got '{role}', the {role} column"):
        log.by(role)


@SOME_KINDS
def test_more_decisions_than_the_limit_are_refused(stored: Store) -> None:
    log = stored(VISITS).log(actions=ACTIONS)
    assert len(log.by("country", at_most=3)) == 3
    expected = "the keys 'country', 'hour' make 5 decisions, and the limit is 4: give a number edges"
    with pytest.raises(InvalidInputError, match=expected):
        log.by("country", "hour", at_most=4)
    with pytest.raises(InvalidInputError, match="at_most must be a whole number, 1 or more; got 0"):
        log.by("country", at_most=0)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ((), "decisions need at least one key, such as log.by\\('country'\\); got none"),
        (("country", "country"), "keys must be different columns; got 'country' more than once"),
        (("age:30,18",), "edges of key 'age' must rise, each above the one before; got 30,18"),
        (("age:18,18",), "edges of key 'age' must rise, each above the one before; got 18,18"),
        (("age:18,old",), "edges of key 'age' must be numbers such as 18,30,50; got '18,old'"),
        (("age:inf",), "edges of key 'age' must be finite; got inf"),
        (("age:",), "key column 'age:' is not in the source"),
        (("",), "a key must be the name of a column, such as country or age:18,30; got ''"),
        ((3,), "a key must be the name of a column, such as country or age:18,30; got 3"),
    ],
)
def test_what_is_no_key_is_refused(keys: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_log(VISITS, actions=ACTIONS).by(*keys)


def test_a_name_with_a_colon_is_a_name() -> None:
    table = VISITS | {"utm:source": ["x", "y"] * 4, "t:9": [1, 2] * 4}
    log = read_log(table, actions=ACTIONS)
    assert log.by("utm:source").keys == (("x",), ("y",))
    assert log.by(KeyColumn("t:9")).keys == (("1",), ("2",))
    assert log.by(KeyColumn("t:9", (2,))).keys == (("<2",), (">=2",))


def test_arrays_have_the_columns_that_they_are_given() -> None:
    arrays: dict[str, Any] = {name: VISITS[name] for name in ("action", "reward", "user")}
    columns = {name: VISITS[name] for name in ("country", "age")}
    decisions = read_log(**arrays, columns=columns, actions=ACTIONS).by(*KEYS)
    assert decisions.statistics == read_log(VISITS, actions=ACTIONS).by(*KEYS).statistics
    with pytest.raises(InvalidLogError, match="key column 'country' is not in the source; it has 'action', "):
        read_log(**arrays, actions=ACTIONS).by("country")
    with pytest.raises(InvalidInputError, match=r"columns must have other names than action, .*; got 'user'"):
        read_log(action=["A"], reward=[1], columns={"user": ["ann"]}, actions=ACTIONS)
    with pytest.raises(
        InvalidInputError, match=r"columns are for arrays without a source, .*; got 'country' wi"
    ):
        read_log(VISITS, columns={"country": ["DE"]}, actions=ACTIONS)
    with pytest.raises(InvalidLogError, match="columns must have the same number of rows"):
        read_log(action=["A"], reward=[1], columns={"country": ["DE", "FR"]}, actions=ACTIONS).by("country")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_that_has_changed_is_refused(tmp_path: Path, suffix: str) -> None:
    write = write_csv if suffix == "csv" else write_parquet
    path = write(tmp_path / f"log.{suffix}", VISITS)
    log = read_log(path, actions=ACTIONS)
    write(path, {name: values[:7] for name, values in VISITS.items()})
    with pytest.raises(InvalidLogError, match="has changed since the log was read; read it again"):
        log.by("country")


def test_a_table_that_has_changed_is_refused(tmp_path: Path) -> None:
    url = write_sqlite(tmp_path / "log.db", VISITS)
    log = read_log(url, table="log", actions=ACTIONS)
    decisions = log.by("country")
    with closing(sqlite3.connect(tmp_path / "log.db")) as file, file:
        file.execute("DELETE FROM log WHERE user = 'cy'")
    with pytest.raises(InvalidLogError, match="the source has changed since the log was read; read it again"):
        log.by("country")
    assert decisions.pooled == log.statistics()


def test_many_random_rows_agree_between_files_and_arrays(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    n = 5000
    table: Table = {
        "action": random.choice(ACTIONS, n).tolist(),
        "reward": random.uniform(0, 1, n).tolist(),
        "country": random.choice(["DE", "FR", "it's", 'a "b"', "", "ü, x"], n).tolist(),
        "x": random.choice([-1.5, 0.0, 0.1, 0.3, 1e9], n).tolist(),
    }
    keys = ("country", "x:-1.5,0,0.1,0.30000000000000004")
    in_memory = read_log(table, actions=ACTIONS).by(*keys)
    in_file = read_log(write_parquet(tmp_path / "log.parquet", table), actions=ACTIONS).by(*keys)
    assert in_file.keys == in_memory.keys
    assert in_file.statistics == in_memory.statistics
    assert in_memory.statistics.counts.shape == (len(in_memory.keys), 2)
    assert in_memory.keys[0] == ("", "-1.5..0")


def test_index_of_refuses_what_is_no_key_of_the_log() -> None:
    decisions = read_log(VISITS, actions=ACTIONS).by("country", "hour")
    assert decisions.index_of({"hour": 9.0, "country": "AT"}) == 0
    with pytest.raises(InvalidInputError, match="a key must have a value for each of 'country', 'hour'; got"):
        decisions.index_of({"country": "AT"})
    with pytest.raises(
        InvalidInputError, match=r"the log has no decision with the key {'country': 'AT', 'ho"
    ):
        decisions.index_of({"country": "AT", "hour": 10})


def test_a_log_without_users_makes_no_request_of_a_person() -> None:
    decisions = read_log(VISITS, user=None, actions=ACTIONS).by("country")
    assert "without users" in repr(decisions)
    with pytest.raises(InvalidInputError, match="the log was read without a user column"):
        decisions.request(user="ann")
    assert isinstance(decisions.request(rows=[0]).records, ArmStatistics)
