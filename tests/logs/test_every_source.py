"""Every kind of source gives the same log and the same rows, bit for bit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, UndeclaredActionsWarning
from armnesia.core.statistics import ArmStatistics
from armnesia.logs import IF_PRESENT, Log, Rows, Source, open_source, read_log, reopen_source, storable_labels
from tests.logs.conftest import (
    CSV_FILES,
    EVERY_KIND,
    IN_MEMORY,
    LAKES,
    SOME_KINDS,
    TABLES,
    Stored,
    Table,
    write_parquet,
)

Store = Callable[[Table], Stored]

COLUMNS: Table = {
    "variant": ["A", "B", "A", "C", "B", "A", "A"],
    "clicked": [1.0, 0.25, 0.1, 0.30000000000000004, 1.0, 0.0, 1 / 3],
    "who": ["ann", "bob", None, "ann", "cy", "bob", "ann"],
}
NAMES: dict[str, Any] = {"action": "variant", "reward": "clicked", "user": "who"}
ACTIONS = ["C", "A", "B", "never"]

ROWS: Table = {
    "who": [7, None, 8, 7, 7],
    "arm": ["A", "B", "A", "C", "A"],
    "won": [0.5, 1.0, 0.1, 0.0, 0.5],
    "page": ["home", 'ünï, "cödé"', None, "x\ny", "home"],
    "hour": [9, 10, 11, 12, 9],
}
COLUMNS_OF_ROWS: dict[str, Any] = {"action": "arm", "reward": "won", "user": "who"}


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


def together(source: Source, chunk: int = 50_000, **options: Any) -> Rows:
    """All rows of a source as one chunk."""
    chunks = list(source.rows(["A", "B", "C"], (0, 1), chunk=chunk, **options))
    ids, contents = [rows.ids for rows in chunks], [rows.contents for rows in chunks]
    return Rows(
        [position for rows in chunks for position in rows.positions],
        [arm for rows in chunks for arm in rows.arms],
        [units for rows in chunks for units in rows.units],
        [user for rows in chunks for user in rows.users],
        None if None in ids else [id_ for rows in ids for id_ in rows or ()],
        None if None in contents else [content for rows in contents for content in rows or ()],
        [ordinal for rows in chunks for ordinal in rows.ordinals],
    )


@EVERY_KIND
@pytest.mark.parametrize("chunk", [1, 2, 50_000])
def test_every_kind_gives_the_same_rows(kind: str, stored: Store, chunk: int) -> None:
    source = stored(ROWS).open(**COLUMNS_OF_ROWS)
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
    assert rows.ordinals == [0, 0, 0, 0, 1]
    assert source.action_labels() == ["A", "B", "C"]
    assert source.n_rows() == 5


@pytest.mark.parametrize(
    "users", [[7.0, None, 8.0, 7.0, 7.0], ["7", None, "8", "7", "7"]], ids=["float", "text"]
)
@SOME_KINDS
def test_users_are_known_by_their_text(stored: Store, users: list[Any], kind: str) -> None:
    """A whole number is the same user as an integer, a float or a text; a CSV file has text only."""
    if kind == "csv" and 7.0 in users:
        users = [None if user is None else int(user) for user in users]
    rows = together(stored(ROWS | {"who": users}).open(**COLUMNS_OF_ROWS))
    assert rows.users == ["7", None, "8", "7", "7"]
    assert rows.contents == together(open_source(ROWS, **COLUMNS_OF_ROWS)).contents


@EVERY_KIND
def test_the_rows_of_selected_users(kind: str, stored: Store) -> None:
    """A file and a dataframe keep the positions of rows; a table has none."""
    source = stored(ROWS).open(**COLUMNS_OF_ROWS)
    every = together(source)
    assert every.contents is not None
    for users, places in (({"7"}, [0, 3, 4]), ({"8", "7", "nobody"}, [0, 2, 3, 4])):
        rows = together(source, 2, users=users)
        assert rows.positions == (list(range(len(places))) if kind in TABLES else places)
        assert rows.users == [every.users[place] for place in places]
        assert rows.arms == [every.arms[place] for place in places]
        assert rows.contents == [every.contents[place] for place in places]
        assert rows.ordinals == [every.ordinals[place] for place in places]
    assert list(source.rows(["A", "B", "C"], (0, 1), users={"nobody"})) == []
    assert list(source.rows(["A", "B", "C"], (0, 1), users=set())) == []


@EVERY_KIND
def test_the_rows_with_selected_ids(kind: str, stored: Store) -> None:
    source = stored(ROWS).open(action="arm", reward="won", id="hour")
    for ids, places in (({"9"}, [0, 4]), ({"12", "9", "13"}, [0, 3, 4])):
        rows = together(source, 2, ids=ids)
        assert rows.positions == (list(range(len(places))) if kind in TABLES else places)
        assert rows.ids == [str(ROWS["hour"][place]) for place in places]
        assert rows.ordinals == [int(place == 4) for place in places]
    assert list(source.rows(["A", "B", "C"], (0, 1), ids={"13"})) == []


@EVERY_KIND
def test_many_users_are_selected_at_once(stored: Store) -> None:
    """More than one statement of any database takes as parameters."""
    rows = together(stored(ROWS).open(**COLUMNS_OF_ROWS), users={str(user) for user in range(8, 70_000)})
    assert rows.users == ["8"]


@EVERY_KIND
def test_with_an_id_only_the_named_columns_are_read(stored: Store) -> None:
    source = stored(ROWS)
    with pytest.raises(
        InvalidLogError, match=r"id column 'page' must name every row; got a missing value at row 2"
    ):
        together(source.open(**COLUMNS_OF_ROWS, id="page"))
    rows = together(source.open(action="arm", reward="won", id="hour"))
    assert rows.ids == ["9", "10", "11", "12", "9"]  # twice the same decision
    assert rows.ordinals == [0, 0, 0, 0, 1]
    assert rows.contents is None
    assert rows.users == [None] * 5


@EVERY_KIND
def test_an_id_of_two_different_decisions_is_refused(stored: Store) -> None:
    source = stored(ROWS)
    with pytest.raises(InvalidLogError, match="must name every row"):
        together(source.open(action="arm", reward="won", id="who"))
    expected = "id column 'arm' must give each decision an id of its own; rows 0 and 2 share one"
    for chunk in (2, 50_000):
        with pytest.raises(InvalidLogError, match=expected):
            together(source.open(action="arm", reward="won", id="arm"), chunk)
    with pytest.raises(InvalidLogError, match="give each decision an id of its own"):
        together(source.open(action="arm", reward="won", id="arm"), ids={"A"})


@SOME_KINDS
def test_the_statistics_of_the_rows_are_those_of_the_log(stored: Store) -> None:
    random = np.random.default_rng(5)
    table: Table = {
        "arm": random.choice(["A", "B", "C"], 3000).tolist(),
        "won": random.uniform(-3, 11, 3000).tolist(),
        "who": random.integers(0, 50, 3000).tolist(),
    }
    source = stored(table)
    counts, sums, products = (np.zeros(3, dtype=object) for _ in range(3))
    for rows in source.open(**COLUMNS_OF_ROWS).rows(["A", "B", "C"], (-3, 11), chunk=700):
        np.add.at(counts, rows.arms, 1)
        np.add.at(sums, rows.arms, rows.units)
        np.add.at(products, rows.arms, [units * (10**9 - units) for units in rows.units])
    log = source.log(**COLUMNS_OF_ROWS, actions=["A", "B", "C"], reward_range=(-3, 11))
    counts = counts.astype(np.int64)
    assert ArmStatistics(("A", "B", "C"), counts, sums, (-3.0, 11.0), products) == log.statistics()
    assert products.max() > 2**63  # sums that an engine must not make a float of
    in_memory = read_log(table, **COLUMNS_OF_ROWS, actions=["A", "B", "C"], reward_range=(-3, 11))
    assert log.statistics() == in_memory.statistics()
    for user in (7, 49):
        assert log.request(user=user) == in_memory.request(user=user)
    assert log.request(rows=range(100, 200)) == in_memory.request(rows=range(100, 200))


@EVERY_KIND
def test_a_column_named_user_is_found(kind: str, stored: Store) -> None:
    """By `read_log` and by `open_source`, unless another name or None is given."""
    named = {"action": COLUMNS["variant"], "reward": COLUMNS["clicked"]}
    with_user = stored({**named, "user": COLUMNS["who"], "other": COLUMNS["who"][::-1]})
    for user in ({}, {"user": IF_PRESENT}, {"user": "user"}):
        assert with_user.log(**user, actions=ACTIONS).users() == {"ann": 3, "bob": 2, "cy": 1}
        assert with_user.open(action="action", reward="reward", **user).columns.user == "user"
    assert with_user.log(user="other", actions=ACTIONS).users("C") == {"ann": 1}
    assert not with_user.log(user=None, actions=ACTIONS).has_users
    assert with_user.open(action="action", reward="reward", user=None).columns.user is None
    with pytest.raises(InvalidLogError, match="user column 'who' is not in the source"):
        with_user.log(user="who", actions=ACTIONS)
    # A column that is the action is not the user as well.
    assert with_user.open(action="user", reward="reward").columns.user is None


@EVERY_KIND
def test_undeclared_actions_are_taken_from_the_source(kind: str, stored: Store) -> None:
    table = {"action": [10, 9, 10], "reward": [1, 0, 0]}
    source = stored(table)
    expected = ("10", "9") if kind in CSV_FILES else (9, 10)
    with pytest.warns(UndeclaredActionsWarning, match=r"declare them with actions=\[...\]"):
        log = source.log()
    assert log.actions == expected
    assert log.statistics().counts.tolist() == ([2, 1] if kind in CSV_FILES else [1, 2])
    assert source.open(action="action", reward="reward").action_labels() == list(expected)


@pytest.mark.parametrize(
    ("labels", "actions"),
    [(["b", "a", "b"], ("a", "b")), ([10, 9, 10], (9, 10)), (["b", 1, "b"], ("b", 1))],
)
def test_undeclared_actions_warn_at_the_caller(labels: list[Any], actions: Any) -> None:
    with pytest.warns(UndeclaredActionsWarning) as caught:
        log = read_log(action=labels, reward=[1, 0, 0])
    assert log.actions == actions
    assert caught[0].filename == __file__


def test_undeclared_actions_of_a_file_warn_at_the_caller(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "log.parquet", {"action": [10, 9, 10], "reward": [1, 0, 0]})
    with pytest.warns(UndeclaredActionsWarning) as caught:
        read_log(path)
    assert caught[0].filename == __file__


@SOME_KINDS
def test_labels_for_a_vault_are_those_that_json_can_hold(kind: str, stored: Store) -> None:
    source = stored({"won": [1, 0], "whole": [2.0, 10.0], "flag": [True, False], "part": [10.5, 9.5]})
    labels_and_arms: dict[str, tuple[list[Any], list[int]]] = {
        "whole": ([2, 10], [0, 1]),
        "flag": ([False, True], [1, 0]),
        "part": (["10.5", "9.5"], [0, 1]),
    }
    if kind == "csv":
        labels_and_arms |= {"whole": (["10.0", "2.0"], [1, 0]), "flag": (["False", "True"], [1, 0])}
    if kind == "sqlite":  # it has no booleans
        labels_and_arms["flag"] = ([0, 1], [1, 0])
    for column, (labels, arms) in labels_and_arms.items():
        opened = source.open(action=column, reward="won")
        assert storable_labels(opened.action_labels()) == labels
        (rows,) = opened.rows(labels, (0, 1))
        assert rows.arms == arms


@EVERY_KIND
def test_a_description_opens_a_source_again(kind: str, stored: Store) -> None:
    source = stored(ROWS).open(**COLUMNS_OF_ROWS)
    description = json.loads(json.dumps(dict(source.description)))
    assert description["columns"] == {"action": "arm", "reward": "won", "user": "who", "id": None}
    if kind in IN_MEMORY:
        assert description["kind"] == "frame"
        with pytest.raises(InvalidInputError, match="a dataframe cannot be opened again"):
            reopen_source(description)
    else:
        assert description["kind"] == ("table" if kind in TABLES else kind if kind in LAKES else "file")
        assert together(reopen_source(description)) == together(source)


def test_a_description_keeps_the_user_column_that_was_found() -> None:
    table = {"action": ["A"], "reward": [1], "user": ["ann"]}
    for user, found in ((IF_PRESENT, "user"), (None, None)):
        assert open_source(table, action="action", reward="reward", user=user).description["columns"] == {
            "action": "action",
            "reward": "reward",
            "user": found,
            "id": None,
        }


@EVERY_KIND
def test_an_empty_source_has_no_rows_and_no_labels(stored: Store) -> None:
    empty: Table = {"arm": [], "won": []}
    source = stored(empty).open(action="arm", reward="won")
    assert list(source.rows(ACTIONS, (0, 1))) == []
    with pytest.raises(InvalidLogError, match="holds no rows"):
        source.action_labels()
