"""Conditions: what reads as a number, what is refused, and that every source means the same."""

import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.logs import Condition, read_log
from armnesia.logs.conditions import conditions
from armnesia.logs.sql import Column
from armnesia.logs.values import number_of
from tests.logs.conformance.sources import write_csv, write_sqlite

PIECES = ["0", "1", "7", "10", "53", ".", "e", "E", "+", "-", "_", "x", "e5", "e400", "1.5", "'"]
PIECES += ["inf", "Infinity", "nan", "NaN", "true", "FALSE"]
PIECES += [" ", "\u0131", "\u0130", "\u212a", "\u0663", "\u00a0", "\t"]


def test_duckdb_and_python_agree_on_what_reads_as_a_number() -> None:
    drawn = random.Random(7)
    texts = sorted({"".join(drawn.choices(PIECES, k=drawn.randint(0, 4))) for _ in range(20_000)})
    column = Column("c0", "VARCHAR", is_text=True)
    sql = f"SELECT c0, {column.number()} FROM (SELECT unnest($texts) AS c0)"
    found = dict(duckdb.execute(sql, {"texts": texts}).fetchall())
    wrong = {text: number for text, number in found.items() if repr(number_of(text)) != repr(number)}
    assert wrong == {}
    assert 200 < sum(number is not None for number in found.values()) < len(texts) - 500


@pytest.mark.slow
def test_random_logs_have_the_same_rows_in_files_tables_and_memory(tmp_path: Path) -> None:
    drawn = random.Random(11)
    alphabet = ["a", "B", "\u00e9", "'", '"', ";", "%", "_", "\\", "$1", "?", "1", "0", " "]
    texts = ["".join(drawn.choices(alphabet, k=drawn.randint(1, 3))) for _ in range(400)]
    table: dict[str, list[Any]] = {
        "action": ["A", "B"] * 200,
        "reward": [1.0, 0.0, 1.0, 0.5] * 100,
        "user": [f"u{row}" for row in range(400)],
        "text": [None if drawn.random() < 0.1 else text for text in texts],
        "number": [drawn.choice([None, 0.0, 1.0, 1.5, -2.0, 1e300]) for _ in texts],
    }
    pl.DataFrame(table).write_parquet(tmp_path / "log.parquet")
    stores: list[dict[str, Any]] = [
        {"source": table},
        {"source": write_csv(tmp_path / "log.csv", table)},
        {"source": tmp_path / "log.parquet"},
        {"source": write_sqlite(tmp_path / "log.db", table), "table": "log"},
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
        found = [people(store, where) for store in stores]
        assert found == [found[0]] * len(stores), where
        sizes.add(len(found[0]))
    assert len(sizes) > 15


def people(store: dict[str, Any], where: list[Condition]) -> set[Any]:
    try:
        return set(read_log(**store, actions=["A", "B"], where=where).users())
    except InvalidLogError as error:
        if "no row of the source satisfies" in str(error):
            return set()
        raise


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
        "a is not null",
    ],
)
def test_a_condition_reads_what_it_writes(where: str) -> None:
    parsed = Condition.parse(where)
    assert str(parsed) == where
    assert Condition.parse(str(parsed)) == parsed


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("country", "where must be a condition such as country = DE, age >= 18, page in "),
        ("= DE", "where must be a condition such as"),
        ("a =", "without a value: '' is the empty text"),
        ("a in (1,)", "without a value: '' is the empty text"),
        ("a == 3", "got 'a == 3': use = for equality"),
        ("a = b=3", "put a text with one of = < > ! \\( \\) in quotes"),
        ("a = x and b = 3", "give several conditions one by one"),
        ("a = O'Brien", "write a quote inside quotes twice"),
        ("a = x, y", "= compares with one value; got 'a = x, y': use in"),
        ("a in (1, x)", "must all be numbers or all be texts; got 1.*, 'x': put a number in quotes"),
        ("a = null", "a missing value satisfies no condition; got 'a = null': put null in quotes"),
        (
            "a = 9007199254740993",
            "a number below 9,007,199,254,740,992, .*; got 9007199254740993: put it in ",
        ),
        ("a > 1e400", "must compare with text or a finite number; got inf"),
        ("a = " + "9" * 5000, "must compare with text or a finite number; got inf"),
        ("a = '" + "x" * 70_000 + "'", "must compare with UTF-8 text of at most 65,536 bytes"),
        ("a = \udcff", "must compare with UTF-8 text of at most 65,536 bytes"),
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
        (
            ("a", "like", ("x",)),
            "the operator of a condition must be one of = != < <= > >= in is not null; g",
        ),
        (("a", "=", ("x", "y")), "a condition on 'a' by = needs one value; got 2"),
        (("a", "in", ()), "a condition on 'a' by in needs at least one value; got 0"),
        (("a", "=", (None,)), "must compare with text or a finite number; got None"),
    ],
)
def test_a_condition_is_checked_when_it_is_made(arguments: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        Condition(*arguments)
    assert Condition("a", "=", np.float64(3.0)).values == (3.0,)  # type: ignore[arg-type]
    assert Condition("a", "=", (True,)) == Condition.parse("a = true")


def test_a_condition_sees_the_rows_that_earlier_ones_left(tmp_path: Path) -> None:
    table: dict[str, list[Any]] = {"action": ["A"] * 3, "reward": [1, 7, 0], "age": ["old", "20", "30"]}
    for source in (table, write_csv(tmp_path / "log.csv", table)):
        log = read_log(source, actions=["A"], where=["age != old", "age > 20"])
        assert log.statistics().counts.tolist() == [1]
        with pytest.raises(
            InvalidLogError, match="must hold numbers to be compared with 20; got another value at row 1: put"
        ):
            read_log(source, actions=["A"], where=["age > 20", "age != old"])
        with pytest.raises(InvalidLogError, match=r"got 7(\.0)? at row 2: reward_range"):
            read_log(source, actions=["A"], where=["age != old", "age = 20"])
