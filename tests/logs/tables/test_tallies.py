"""Logs that a database adds up: the same as those whose rows were read."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, InvalidLogError, UnsupportedError
from armnesia.logs import Log, open_source, read_log
from tests.logs.conftest import TABLES, Schema, Stored, Table

Store = Callable[[Table], Stored]

ACTIONS = ("A", "B")
LOG: Table = {
    "action": ["A", "B", "A", "A", "B", "A"],
    "reward": [0.5, 1.0, 0.1, 0.0, 0.5, 1 / 3],
    "user": [7, None, 8, 7, 77, 8],
    "country": ["DE", "FR", "DE", "FR", "DE", "DE"],
    "age": [17.0, 30.0, 44.5, 30.0, 16.0, 18.0],
    "page": ["home", "cart", None, "home", "12", "home"],
}
IN_A_TABLE = pytest.mark.parametrize("kind", TABLES, indirect=True)


def added_up(stored: Stored, reward_range: tuple[float, float] = (0.0, 1.0), **options: Any) -> Log:
    source: Any = stored.open(action="action", reward="reward", whole_rows=False, **options)
    log: Log = source.tallied_log(ACTIONS, reward_range)
    return log


@IN_A_TABLE
def test_a_log_that_is_added_up_is_the_log_that_is_read(stored: Store) -> None:
    source = stored(LOG)
    for where in (None, "country = DE", "age >= 18", "page in (home, '12')", ["country = DE", "age < 40"]):
        log, read = added_up(source, where=where), source.log(actions=ACTIONS, where=where)
        assert (log.statistics(), len(log)) == (read.statistics(), len(read))
        assert list(log.users().items()) == list(read.users().items())
        assert [log.users(action) for action in ACTIONS] == [read.users(action) for action in ACTIONS]
        assert log.request(users=list(read.users())) == read.request(users=list(read.users()))
        for user in read.users():
            assert log.request(user=user) == read.request(user=user)


@IN_A_TABLE
@pytest.mark.parametrize("keys", [("country",), ("age:18,30",), ("country", "age:18,30")], ids=str)
def test_its_decisions_are_the_same(keys: tuple[str, ...], stored: Store) -> None:
    source = stored(LOG)
    decisions, expected = added_up(source).by(*keys), source.log(actions=ACTIONS).by(*keys)
    assert (decisions.keys, decisions.statistics) == (expected.keys, expected.statistics)
    for users in ([7], [8, 77], [7, 8, 77]):
        assert decisions.request(users=users) == expected.request(users=users)
    with pytest.raises(UnsupportedError, match="cannot be named by position"):
        decisions.request(rows=[0, 4])


@IN_A_TABLE
def test_it_refuses_the_same_in_the_same_words(stored: Store) -> None:
    def refusal(ask: Callable[[], Any]) -> str:
        with pytest.raises(ArmnesiaError) as refused:
            ask()
        return str(refused.value)

    source, wrong = stored(LOG), "page > 3"
    read = source.log(actions=ACTIONS)
    log = added_up(source)
    for ask in (
        lambda log: log.request(user="nobody"),
        lambda log: log.request(user="7.0"),
        lambda log: log.by("page"),
        lambda log: log.by("country", at_most=1),
        lambda log: log.by("country").request(user="nobody"),
        lambda log: log.by("country").request(user="7.0"),
    ):
        assert refusal(lambda ask=ask: ask(log)) == refusal(lambda ask=ask: ask(read))  # type: ignore[misc]
    assert refusal(lambda: added_up(source, where=wrong)) == refusal(
        lambda: source.log(actions=ACTIONS, where=wrong)
    )
    assert refusal(lambda: added_up(source, (0.0, 0.9))) == refusal(
        lambda: source.log(actions=ACTIONS, reward_range=(0.0, 0.9))
    )


@IN_A_TABLE
@pytest.mark.parametrize(
    ("column", "value"), [("action", "C"), ("action", None), ("reward", None), ("user", "x" * 70_000)]
)
def test_a_wrong_row_is_refused_in_the_same_words(column: str, value: Any, stored: Store) -> None:
    texts = [None if user is None else str(user) for user in LOG["user"]]
    table = {name: [*values, values[0]] for name, values in (LOG | {"user": texts}).items()}
    table[column][-1] = value
    source = stored(table)
    with pytest.raises(InvalidLogError) as refused:
        source.log(actions=ACTIONS)
    with pytest.raises(InvalidLogError) as added:
        added_up(source)
    assert str(added.value) == str(refused.value)
    assert "at row 6" in str(added.value)


@IN_A_TABLE
def test_a_request_is_refused_once_the_table_has_changed(kind: str, stored: Store, request: Any) -> None:
    source = stored(LOG)
    log, decisions = added_up(source), added_up(source).by("country")
    statement = "INSERT INTO {} VALUES ('A', 1.0, 7, 'DE', 20.0, 'home')"
    if kind == "sqlite":
        with closing(sqlite3.connect(source.source.removeprefix("sqlite:///"))) as file, file:
            file.execute(statement.format("log"))
    else:
        request.getfixturevalue("schema").connection.execute(statement.format(source.options["table"]))
    for ask in (
        lambda: log.request(user=7),
        lambda: log.by("country"),
        log.users,
        lambda: decisions.request(user=7),
    ):
        with pytest.raises(InvalidLogError, match="the source has changed since the log was read"):
            ask()
    assert log.statistics().counts.tolist() == [4, 2]


def test_texts_that_a_collation_takes_for_equal_are_different(schema: Schema) -> None:
    try:
        schema.connection.execute(
            f"CREATE COLLATION {schema.name}.any_case"
            " (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
        )
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("this PostgreSQL server was built without ICU")
    text = f"TEXT COLLATE {schema.name}.any_case"
    columns = {"action": text, "reward": "INTEGER", "user": text}
    table = schema.create("log", columns, [("A", 1, "Ann"), ("a", 0, "ann"), ("A", 0, "ANN")])
    source: Any = open_source(schema.url, table=table, action="action", reward="reward", whole_rows=False)
    log = source.tallied_log(("A", "a"), (0.0, 1.0))
    assert log.statistics() == read_log(schema.url, table=table, actions=["A", "a"]).statistics()
    assert log.users() == {"ANN": 1, "Ann": 1, "ann": 1}
    assert log.request(user="ann").counts.tolist() == [0, 1]


@pytest.mark.parametrize("reward_range", [(0.0, 1.0), (0.0, 1e-315), (-1e-320, 1e-310)])
def test_decimals_that_are_tiny_floats_or_none_are_added_up(reward_range: Any, schema: Schema) -> None:
    rewards = ["0", "1e-400", "2e-324", "3e-324", "4e-323", "3e-320", "1e-316"]
    rows = [(f"a{at}", Decimal(reward)) for at, reward in enumerate(rewards)]
    table = schema.create("log", {"action": "TEXT", "reward": "NUMERIC"}, rows)
    actions = tuple(action for action, _ in rows)
    source: Any = open_source(schema.url, table=table, action="action", reward="reward", whole_rows=False)
    read = read_log(schema.url, table=table, actions=actions, reward_range=reward_range)
    assert source.tallied_log(actions, reward_range).statistics() == read.statistics()
    schema.connection.execute(f"INSERT INTO {table} VALUES ('a0', 1e400), ('a0', 'NaN')")
    with pytest.raises(InvalidLogError, match="must hold a finite number in every row; got inf at row 7"):
        source.tallied_log(actions, reward_range)


def test_types_whose_values_are_compared_otherwise_are_refused(schema: Schema) -> None:
    table = schema.create(
        "log", {"action": "TEXT", "reward": "INTEGER", "user": "INTEGER[]"}, [("A", 1, [1])]
    )
    source: Any = open_source(schema.url, table=table, action="action", reward="reward", whole_rows=False)
    with pytest.raises(
        InvalidInputError, match=r"user column 'user' must hold text, numbers.*it holds lists"
    ):
        source.tallies((0.0, 1.0))
