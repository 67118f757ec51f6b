"""Conditions on rows: what they mean, the same on every kind of source, and what is refused."""

import math
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.logs import Condition, Source, open_source, read_log
from armnesia.logs.conditions import conditions
from armnesia.logs.files.duckdb_values import FileColumn
from tests.logs.conftest import (
    SOME_KINDS,
    TABLES,
    Stored,
    Table,
    write_csv,
    write_parquet,
    write_sqlite,
)

Store = Callable[[Table], Stored]
ON_TABLES = pytest.mark.parametrize("kind", TABLES, indirect=True)
NOT_TABLES = pytest.mark.parametrize(
    "kind",
    ["mapping of lists", "mapping of arrays", "pandas", "polars lazy", "csv", "parquet"],
    indirect=True,
)


def with_rows(**columns: list[Any]) -> Table:
    """A log with these columns, and a user for each row."""
    number = len(next(iter(columns.values())))
    rows: Table = {"action": ["A", "B"] * number, "reward": [1, 0, 1] * number}
    return {name: values[:number] for name, values in rows.items()} | {
        "user": [f"u{row}" for row in range(number)],
        **columns,
    }


def kept(stored: Stored, *where: str | Condition) -> set[int]:
    """The rows that a log has; none if it is refused because it is empty."""
    try:
        log = stored.log(actions=["A", "B"], where=list(where))
    except InvalidLogError as error:
        if not str(error).startswith("no row of the source satisfies "):
            raise
        return set()
    rows = {int(str(user).removeprefix("u")) for user in log.users()}
    assert len(log) == len(rows) == log.statistics().total
    return rows


TEXTS = [
    "DE",
    "FR",
    None,
    "O'Brien",
    "a; DROP TABLE log; --",
    '"q"',
    "1",
    "1.0",
    "é",
    "\U0001f600",
    "\uffff",
    "NULL",
]
NUMBERS = [1.0, -2.5, None, float("nan"), 0.1, 30.0, 1e15, float("inf"), 0.0, -0.0, 29.999, 2.0]
INTEGERS = [1, 0, -7, 30, 29, 31, 2**53 - 1, -(2**53) + 1, 5, 6, 7, 8]
FLAGS = [True, False] * 6
ROWS = with_rows(text=TEXTS, number=NUMBERS, whole=INTEGERS, flag=FLAGS)


TEXT_NUMBERS = ["1", "1.0", "01", " 1 ", "1e0", "+1", "2", "TRUE", "false", "inf", "-3.5", None, "NaN", "1."]


@SOME_KINDS
def test_a_number_is_compared_with_text_that_reads_as_one(stored: Store) -> None:
    source = stored(with_rows(value=TEXT_NUMBERS))
    assert kept(source, "value = 1") == {0, 1, 2, 3, 4, 5, 7, 13}
    assert kept(source, "value = true") == {0, 1, 2, 3, 4, 5, 7, 13}
    assert kept(source, "value = '1'") == {0}
    assert kept(source, "value < 1") == {8, 10}
    assert kept(source, "value != 1") == {6, 8, 9, 10}
    assert kept(source, "value > 1") == {6, 9}


@SOME_KINDS
def test_an_empty_field_is_missing_and_an_empty_text_is_not(stored: Store, kind: str) -> None:
    source = stored(with_rows(value=["", "x", None]))
    empty = set() if kind == "csv" else {0}
    assert kept(source, "value = ''") == empty
    assert kept(source, "value != x") == empty
    assert kept(source, "value < a") == empty


@SOME_KINDS
def test_large_integers_are_compared_exactly_as_text(stored: Store) -> None:
    source = stored(with_rows(value=[2**53, 2**53 + 1, 2**53 + 2]))
    assert kept(source, "value = '9007199254740993'") == {1}
    assert kept(source, "value > 9007199254740991") == {0, 1, 2}


@SOME_KINDS
def test_what_the_source_does_not_have_is_refused(stored: Store) -> None:
    source = stored(with_rows(age=[1, 2]))
    with pytest.raises(InvalidLogError, match="where column 'planet' is not in the source; it has 'action'"):
        source.log(actions=["A", "B"], where="planet = Mars")
    with pytest.raises(InvalidLogError, match="no row of the source satisfies age > 5 and user = 'u1'"):
        source.log(actions=["A", "B"], where=["age > 5", "user = u1"])


@SOME_KINDS
def test_other_rows_are_not_checked_and_messages_name_the_row_of_the_source(stored: Store, kind: str) -> None:
    table = with_rows(country=["DE", "FR", "DE", "FR", "DE"])
    table["reward"], table["action"] = [1, 7, 0, 1, 1], ["A", "A", "B", "C", "A"]
    source = stored(table)
    assert kept(source, "country = DE") == {0, 2, 4}
    with pytest.raises(InvalidLogError) as caught:
        source.log(actions=["A", "B", "C"], where="country = FR")
    row = 0 if kind in TABLES else 1  # a table has no order
    assert f"must lie in reward_range [0.0, 1.0]; got 7.0 at row {row}" in str(caught.value)
    with pytest.raises(InvalidLogError) as caught:
        source.log(actions=["A", "B"], reward_range=(0, 7), where="country = FR")
    row = 1 if kind in TABLES else 3
    assert f"must hold declared actions only, 'A', 'B'; got 'C' at row {row}" in str(caught.value)


@SOME_KINDS
def test_undeclared_actions_are_those_of_the_rows_that_are_read(stored: Store) -> None:
    table = with_rows(country=["DE", "FR", "DE"])
    table["action"] = ["A", "Z", "B"]
    with pytest.warns(UserWarning, match="the actions were taken from the log: 'A', 'B';"):
        assert stored(table).log(where="country = DE").actions == ("A", "B")


@SOME_KINDS
def test_requests_and_decisions_have_the_same_rows(stored: Store) -> None:
    table = with_rows(country=["DE", "FR", "DE", "DE", "FR", "DE"], age=[10, 20, 30, 40, 50, 60])
    table["user"] = ["ann", "ann", "bob", "ann", "bob", "ann"]
    log = stored(table).log(actions=["A", "B"], where="age >= 20")
    assert log.request(user="ann").counts.sum() == 3
    assert log.users() == {"ann": 3, "bob": 2}
    assert log.users("A") == {"bob": 2}
    decisions = log.by("country")
    assert decisions.statistics.counts.tolist() == [[1, 2], [1, 1]]
    assert decisions.request(user="ann").counts.tolist() == [[0, 2], [0, 1]]
    assert log.by("age:30").statistics.counts.tolist() == [[0, 1], [2, 2]]
    for rows in (log, decisions):
        with pytest.raises(
            InvalidInputError, match="this log has only those that satisfy age >= 20; name us"
        ):
            rows.request(rows=[0])
    with pytest.raises(InvalidInputError, match="the log has no rows of user 'eve'"):
        log.request(user="eve")


@NOT_TABLES
def test_a_key_that_is_missing_is_refused_only_in_the_rows_that_are_read(stored: Store) -> None:
    log = stored(with_rows(country=["DE", None, "FR", None], age=[1, 2, 3, 4]))
    assert log.log(actions=["A", "B"], where="age in (1, 3)").by("country").keys == (("DE",), ("FR",))
    with pytest.raises(
        InvalidLogError, match="'country' must have a value in every row; got a missing value at row 3"
    ):
        log.log(actions=["A", "B"], where="age >= 3").by("country")


@SOME_KINDS
def test_a_source_reads_the_rows_of_a_vault(stored: Store, kind: str) -> None:
    log = stored(with_rows(country=["DE", "FR", "DE", "FR", "DE"]))
    for id_column in (None, "user"):
        user = None if id_column else "user"
        names: dict[str, Any] = {"action": "action", "reward": "reward", "user": user, "id": id_column}
        source = log.open(**names, where="country = DE")
        every = log.open(**names)
        for chunk in (1, 2, 100):
            chunks = list(source.rows(["A", "B"], (0, 1), chunk=chunk))
            assert [arm for rows in chunks for arm in rows.arms] == [0, 0, 0]
            assert all(len(rows) for rows in chunks)
            if kind not in TABLES:
                assert [row for rows in chunks for row in rows.positions] == [0, 2, 4]
        whole = [
            (row, text)
            for rows in every.rows(["A", "B"], (0, 1))
            for row, text in zip(rows.positions, rows.contents or rows.ids or [], strict=True)
        ]
        some = [text for rows in source.rows(["A", "B"], (0, 1)) for text in rows.contents or rows.ids or []]
        assert some == [text for row, text in whole if row in (0, 2, 4)]  # a row keeps its identity
        role = "ids" if id_column else "users"
        for texts, sizes in (({"u1", "u2"}, [1]), ({"u1"}, [])):
            chosen: dict[str, Any] = {role: texts}
            assert [len(rows) for rows in source.rows(["A", "B"], (0, 1), **chosen)] == sizes
        assert source.action_labels() == ["A"]
        if user is not None:
            assert {text for texts in source.distinct_labels("user") for text in texts} == {"u0", "u2", "u4"}
            assert source.user_type() == UserType.TEXT
        assert source.n_rows() in (3, None)
        assert source.description["where"] == ["country = 'DE'"]
        assert "where" not in every.description


@SOME_KINDS
def test_propensities_are_judged_by_the_rows_that_are_read(stored: Store) -> None:
    table = with_rows(test=["one", "two"] * 3, pscore=[0.5, 0.1, 0.5, 0.2, 0.5, 0.3])
    table["action"] = ["A"] * 6
    names: dict[str, Any] = {"action": "action", "reward": "reward"}
    source = stored(table)
    assert source.open(**names).varying_propensity() == "pscore"
    assert source.open(**names, where="test = one").varying_propensity() is None
    assert source.open(**names, where="test = two").varying_propensity() == "pscore"


@ON_TABLES
@pytest.mark.parametrize(
    ("where", "sent"),
    [
        (["country = DE"], 2),
        (["country in (DE, FR)"], 12),
        (["age > 90"], 9),
        (["age = 17"], 1),
        (["age in (17, 18)"], 2),
        (["age > 90", "country = DE"], 1),
        (["code = '7'"], 1),
        (["country != DE"], 100),
    ],
)
def test_a_database_sends_few_rows(
    stored: Store, where: list[str], sent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = with_rows(
        country=["DE"] + ["FR"] * 10 + ["IT"] * 80 + [f"x{n}" for n in range(8)] + ["DE"],
        age=list(range(100)),
        code=list(range(100)),
    )
    source, counts = stored(table), list[int]()

    def counting(self: Any, sql: str, parameters: tuple[Any, ...] = (), **options: Any) -> Any:
        for piece in original(self, sql, parameters, **options):
            counts.append(len(piece))
            yield piece

    opened: Any = source.open(action="action", reward="reward", where=where)
    original = type(opened)._pieces
    monkeypatch.setattr(type(opened), "_pieces", counting)
    assert sum(len(rows) for rows in opened.rows(["A", "B"], (0, 1))) <= sent
    assert sum(counts) == sent


def random_text(drawn: random.Random) -> str:
    pieces = [
        "0",
        "1",
        "7",
        "10",
        "53",
        ".",
        "e",
        "E",
        "+",
        "-",
        " ",
        "inf",
        "Infinity",
        "nan",
        "NaN",
        "true",
    ]
    pieces += [
        "FALSE",
        "_",
        "x",
        "\u0131",
        "\u0130",
        "\u212a",
        "\u0663",
        "\u00a0",
        "\t",
        "e5",
        "e400",
        "1.5",
        "'",
    ]
    return "".join(drawn.choice(pieces) for _ in range(drawn.randint(0, 4)))


def test_duckdb_and_python_agree_on_what_reads_as_a_number() -> None:
    drawn = random.Random(7)
    texts = sorted({random_text(drawn) for _ in range(20_000)})
    column = FileColumn("c0", "VARCHAR", is_text=True)
    sql = f"SELECT c0, {column.number()} FROM (SELECT unnest($texts) AS c0)"
    found = dict(duckdb.execute(sql, {"texts": texts}).fetchall())
    numbers = 0
    for text in texts:
        try:
            is_one = Condition("c", "=", (1.0,)).holds([text], [0])[0]
        except InvalidLogError:
            assert found[text] is None, text
            continue
        number = found[text]
        numbers += 1
        assert number is not None, text
        assert is_one == (number == 1), text
        for operator in ("<", ">"):
            expected = not math.isnan(number) and (number < 5 if operator == "<" else number > 5)
            assert Condition("c", operator, (5.0,)).holds([text], [0])[0] == expected, text
    assert 200 < numbers < len(texts) - 500


@pytest.mark.slow
def test_random_logs_have_the_same_rows_in_files_tables_and_memory(tmp_path: Path) -> None:
    drawn = random.Random(11)
    alphabet = ["a", "B", "\u00e9", "'", '"', ";", "%", "_", "\\", "$1", "?", "1", "0", " "]
    texts = ["".join(drawn.choices(alphabet, k=drawn.randint(1, 3))) for _ in range(400)]
    table = with_rows(
        text=[None if drawn.random() < 0.1 else text for text in texts],
        number=[drawn.choice([None, 0.0, 1.0, 1.5, -2.0, 1e300]) for _ in texts],
    )
    stores = [
        Stored(table),
        Stored(write_csv(tmp_path / "log.csv", table)),
        Stored(write_parquet(tmp_path / "log.parquet", table)),
        Stored(write_sqlite(tmp_path / "log.db", table), table="log"),
    ]
    sizes = set()
    for _ in range(40):
        where = []
        for _ in range(drawn.randint(1, 2)):
            operator = drawn.choice(["=", "!=", "<", "<=", ">", ">=", "in"])
            many = drawn.randint(1, 4) if operator == "in" else 1
            if drawn.random() < 0.6:
                where.append(Condition("text", operator, tuple(drawn.choices(texts, k=many))))
            else:
                where.append(Condition("number", operator, tuple(drawn.choices([0, 1, 1.5, 7], k=many))))
        expected, *others = (kept(store, *where) for store in stores)
        assert all(found == expected for found in others), where
        sizes.add(len(expected))
    assert len(sizes) > 15


def test_sqlite_compares_whatever_a_column_holds(tmp_path: Path) -> None:
    values = [7, 7.0, "7", "7.0", b"7", None, 8, "x", b"\xff", 1e300]
    url = write_sqlite(tmp_path / "log.db", with_rows(value=values))
    store = Stored(url, table="log")
    assert kept(store, "value = '7'") == {0, 1, 2, 4}
    assert kept(store, "value in ('7', x)") == {0, 1, 2, 4, 7}
    assert kept(store, "value != '7'") == {3, 6, 7, 8, 9}
    with pytest.raises(InvalidLogError, match=r"must hold numbers to be compared with 7; got 'x' at row 5"):
        store.log(actions=["A", "B"], where="value = 7")  # the database sends neither NULL nor the number 8
    with closing(sqlite3.connect(tmp_path / "log.db")) as file, file:
        file.execute("DELETE FROM log WHERE value = 'x' OR value = x'ff'")
    assert kept(store, "value = 7") == {0, 1, 2, 3, 4}
    assert kept(store, "value > 7") == {6, 9}


@pytest.mark.parametrize(
    "where",
    [
        "a = 1",
        "a != -1.5",
        "a in (1, 2)",
        "a in ('x, y', '''', '1')",
        "\"my column\" >= ''",
        '"a""b" < \'x\'',
        "a = 1e-07",
        "größe = 'ß'",
        "in = 'in'",
    ],
)
def test_a_condition_reads_what_it_writes(where: str) -> None:
    parsed = Condition.parse(where)
    assert str(parsed) == where
    assert Condition.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("country", "where must be a condition such as country = DE, age >= 18 or page in "),
        ("", "where must be a condition such as"),
        ("= DE", "where must be a condition such as"),
        ("a =", "without a value: '' is the empty text"),
        ("a in ()", "without a value: '' is the empty text"),
        ("a in (1,)", "without a value: '' is the empty text"),
        ("a == 3", "got 'a == 3': use = for equality"),
        ("a == '3'", "use = for equality"),
        ("a = b=3", "put a text with one of = < > ! \\( \\) in quotes"),
        ("a = x and b = 3", "give several conditions one by one"),
        ("a = O'Brien", "write a quote inside quotes twice"),
        ("a = 'x' or 1", "write a quote inside quotes twice"),
        ("a = x, y", "= compares with one value; got 'a = x, y': use in"),
        ("a in (1, x)", "must all be numbers or all be texts; got 1.*, 'x': put a number in quotes"),
        ("a = null", "a missing value satisfies no condition; got 'a = null': put null in quotes"),
        ("a < NaN", "a missing value satisfies no condition"),
        (
            "a = 9007199254740993",
            "a number below 9,007,199,254,740,992, .*; got 9007199254740993: put it in ",
        ),
        ("a > 1e400", "must compare with text or a finite number; got inf"),
        ("a = " + "9" * 5000, "must compare with text or a finite number; got inf"),
        ("a = '" + "x" * 70_000 + "'", "must compare with UTF-8 text of at most 65,536 bytes"),
        ("a = \udcff", "must compare with UTF-8 text of at most 65,536 bytes"),
        (3, "where must be a condition such as .*; got 3"),
        ([3], "where must be a condition such as .*; got 3"),
    ],
)
def test_what_is_no_condition_is_refused(where: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        conditions(where)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", "=", ("x",)), "a condition needs the name of a column; got ''"),
        (("a", "like", ("x",)), "the operator of a condition must be one of = != < <= > >= in; got 'like'"),
        (("a", "=", ("x", "y")), "a condition on 'a' by = needs one value; got 2"),
        (("a", "in", ()), "a condition on 'a' by in needs at least one value; got 0"),
        (("a", "=", (None,)), "must compare with text or a finite number; got None"),
        (("a", "=", (10**400,)), "must compare with text or a finite number; got 1000"),
        (
            ("a", "=", (-(2**53),)),
            "must compare with a number below .*; got -9007199254740992: put it in quotes",
        ),
    ],
)
def test_a_condition_is_checked_when_it_is_made(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Condition(*arguments)
    assert Condition("a", "=", np.float64(3.0)).values == (3.0,)  # type: ignore[arg-type]
    assert Condition("a", "=", (True,)) == Condition.parse("a = true")


def test_arrays_have_conditions_on_further_columns() -> None:
    log = read_log(
        action=["A", "B", "A"],
        reward=[1, 0, 9],
        columns={"country": ["DE", "FR", "IT"]},
        actions=["A", "B"],
        where="country in (DE, FR)",
    )
    assert log.statistics().counts.tolist() == [1, 1]
    assert log.by("country").keys == (("DE",), ("FR",))


def test_lists_and_structures_are_refused(tmp_path: Path) -> None:
    table = with_rows(tags=[["a"], ["b"]])
    for store in (Stored(table), Stored(write_parquet(tmp_path / "log.parquet", table))):
        with pytest.raises(InvalidLogError, match="where column 'tags' must hold "):
            store.log(actions=["A", "B"], where="tags = a")


def test_a_column_of_other_files_must_agree(tmp_path: Path) -> None:
    write_parquet(tmp_path / "a.parquet", with_rows(age=[1, 2]))
    write_parquet(tmp_path / "b.parquet", with_rows(age=["1", "2"]))
    names: dict[str, Any] = {"action": "action", "reward": "reward", "user": None, "whole_rows": False}
    assert open_source(tmp_path / "*.parquet", **names).n_rows() == 4
    with pytest.raises(InvalidLogError, match="source must match files with the same columns"):
        open_source(tmp_path / "*.parquet", **names, where="age = 1")


def test_a_file_that_changes_is_refused(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "log.csv", with_rows(age=[1, 2]))
    log = read_log(path, actions=["A", "B"], where="age = 1")
    write_csv(path, with_rows(age=[1, 2, 3]))
    with pytest.raises(InvalidLogError, match="has changed since the log was read; read it again"):
        log.by("age")


def test_a_kind_that_cannot_choose_rows_says_so() -> None:
    with pytest.raises(UnsupportedError, match="rows of a FrameSource cannot be chosen by where"):
        Source.filtered(open_source(ROWS, action="action", reward="reward"), conditions("a = 1"))
