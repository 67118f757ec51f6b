"""Conditions: what reads as a number, what is refused, and that every source means the same."""

import random
from pathlib import Path
from typing import Any

import duckdb
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.logs import Condition, read_log
from armnesia.logs.conditions import conditions
from armnesia.logs.sql import Column
from armnesia.logs.values import number_of
from tests.logs.conformance.sources import write_csv

PIECES = ["0", "1", "7", "10", "53", ".", "e", "E", "+", "-", "_", "x", "e5", "e400", "1.5", "'"]
PIECES += ["inf", "Infinity", "nan", "NaN", "true", "FALSE"]
PIECES += [" ", "\u0131", "\u0130", "\u212a", "\u0663", "\u00a0", "\t"]


def test_duckdb_and_python_agree_on_what_reads_as_a_number() -> None:
    drawn = random.Random(7)
    texts = sorted({"".join(drawn.choices(PIECES, k=drawn.randint(0, 4))) for _ in range(20_000)})
    column = Column("c0", "VARCHAR")
    sql = f"SELECT c0, {column.number()} FROM (SELECT unnest($texts) AS c0)"
    found = dict(duckdb.execute(sql, {"texts": texts}).fetchall())
    found = {text: number for text, number in found.items() if "+-" not in text}  # DuckDB takes the second
    wrong = {text: number for text, number in found.items() if repr(number_of(text)) != repr(number)}
    assert wrong == {}
    assert 200 < sum(number is not None for number in found.values()) < len(texts) - 500


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
        ("a =", ": '' is the empty text"),
        ("a in (1,)", ": '' is the empty text"),
        ("a = b=3", "put a text with one of = < > ! \\( \\) , in quotes"),
        ("a = x and b = 3", "give several conditions one by one"),
        ("a = O'Brien", "write a quote inside quotes twice"),
        ("a = x, y", "by = needs one value; got 2: use in"),
        ("a in (1, x)", "must all be numbers or all be texts; got 1.*, 'x': put a number in quotes"),
        ("a = null", "got 'a = null': a missing value satisfies no condition; put null in quotes"),
        (
            "a = 9007199254740993",
            "a finite number below 9,007,199,254,740,992; got 9007199254740993: put it in ",
        ),
        ("a > 1e400", "must compare with text or a finite number below 9,.*; got inf"),
        ("a = " + "9" * 5000, "must compare with text or a finite number below 9,.*; got inf"),
        ("a = \udcff", "must compare with text in UTF-8"),
        ([3], "where must be a condition such as .*; got 3"),
    ],
)
def test_what_is_no_condition_is_refused(where: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message) as caught:
        conditions(where)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_a_condition_sees_the_rows_that_earlier_ones_left(tmp_path: Path) -> None:
    table: dict[str, list[Any]] = {"action": ["A"] * 3, "reward": [1, 7, 0], "age": ["old", "20", "30"]}
    for source in (table, write_csv(tmp_path / "log.csv", table)):
        log = read_log(source, actions=["A"], where=["age != old", "age > 20"])
        assert log.statistics().counts.tolist() == [1]
        with pytest.raises(
            InvalidLogError, match="must hold numbers to be compared with 20; got another value at row 1: put"
        ):
            read_log(source, actions=["A"], where=["age > 20", "age != old"])
        with pytest.raises(InvalidLogError, match=r"got '?7(\.0)?'? at row 2: where="):
            read_log(source, actions=["A"], where=["age != old", "age = 20"])
