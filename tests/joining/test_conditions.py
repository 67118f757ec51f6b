"""Conditions of a join choose the rows that they choose from a log, whatever the format."""

import json
from pathlib import Path
from typing import Any

import pytest

from armnesia import join_metrics
from armnesia.core.errors import InvalidLogError
from armnesia.logs.conditions import conditions, rows_that_satisfy
from tests.joining.tables import write
from tests.quick import quick_only

pytestmark = pytest.mark.slow  # conditions of logs are tested quickly

AGES = [17, 18, 30, None, 44, 18]
COUNTRIES = ["DE", "FR", None, "DE", "x'); DROP TABLE people; --", "it's"]
SUFFIXES = (".csv", ".parquet", ".jsonl")
WHERE: list[Any] = [
    "age >= 18",
    "age != 18",
    "age in (17, 44)",
    "age = '18'",
    "country = DE",
    "country=DE",
    "country != DE",
    "country in (DE, FR)",
    "country = 'x''); DROP TABLE people; --'",
    "country = 'it''s'",
    ["country != FR", "age < 40"],
    ["age > 17", "age < 40"],
]
# The quick tests try every condition on values that are text, and one of each kind on values with types.
EVERY = [(where, suffix) for where in WHERE for suffix in SUFFIXES]
QUICK = [case for case in EVERY if case[1] == ".csv" or case[0] in ("age = '18'", "country != DE", WHERE[-1])]
EVERY_CASE = pytest.mark.parametrize(("where", "suffix"), quick_only(QUICK, EVERY), ids=str)
MOMENT = "2026-01-01T10:00:00Z"
COLUMNS = ["user", "experiment", "action", "time", "age", "country"]


def rows() -> list[dict[str, Any]]:
    return [
        {
            "user": f"u{at}",
            "experiment": "e",
            "action": "A",
            "time": MOMENT,
            "age": AGES[at],
            "country": COUNTRIES[at],
        }
        for at in range(len(AGES))
    ]


def chosen(where: Any) -> int:
    """How many rows satisfy the conditions, by the definition for values in memory."""
    columns: dict[str, list[Any]] = {"age": AGES, "country": COUNTRIES}
    return len(rows_that_satisfy(conditions(where), columns, range(len(AGES))))


@EVERY_CASE
def test_exposures_and_metric_rows_are_chosen_as_the_rows_of_a_log(
    tmp_path: Path, where: Any, suffix: str
) -> None:
    path = write(tmp_path / f"rows{suffix}", rows(), COLUMNS)
    options: dict[str, Any] = {"window": "1d", "aggregate": "count"}
    done = join_metrics(path, path, out=tmp_path / "log.csv", exposure_where=where, **options)
    assert (done.rows, done.exposures.filtered) == (chosen(where), len(AGES) - chosen(where))
    assert 0 < done.rows < len(AGES)
    done = join_metrics(path, path, out=tmp_path / "other.csv", metric_where=where, **options)
    assert (done.metric.user_exposed, done.metric.filtered) == (chosen(where), len(AGES) - chosen(where))


@EVERY_CASE
def test_conditions_on_properties_of_json_objects(tmp_path: Path, where: Any, suffix: str) -> None:
    table: list[dict[str, Any]] = []
    for row in rows():
        properties: Any = {"the age": row.pop("age"), "$country": row.pop("country")}
        table.append({**row, "properties": properties if suffix == ".jsonl" else json.dumps(properties)})
    path = write(tmp_path / f"rows{suffix}", table, list(table[0]))
    texts = [where] if isinstance(where, str) else where
    renamed = [
        text.replace("age", "properties.the age").replace("country", "properties.$country") for text in texts
    ]
    done = join_metrics(
        path, path, out=tmp_path / "log.csv", window="1d", aggregate="count", exposure_where=renamed
    )
    assert (done.rows, done.exposures.filtered) == (chosen(where), len(AGES) - chosen(where))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_condition_sees_only_the_rows_that_the_last_one_left(tmp_path: Path, suffix: str) -> None:
    table: list[dict[str, Any]] = [
        {"user": "ann", "experiment": "e", "action": "A", "time": MOMENT, "kind": "age", "value": "7"},
        {"user": "bob", "experiment": "e", "action": "A", "time": MOMENT, "kind": "name", "value": "Bob"},
        {"user": "eve", "experiment": "e", "action": "B", "time": MOMENT, "kind": "age", "value": None},
    ]
    path = write(tmp_path / f"rows{suffix}", table, list(table[0]))
    options: dict[str, Any] = {"window": "1d", "aggregate": "count", "out": tmp_path / "log.csv"}
    with pytest.raises(
        InvalidLogError, match=r"'value' of the exposures must hold numbers to .* got 'Bob' at row 1"
    ):
        join_metrics(path, path, exposure_where=["value > 6", "kind = age"], **options)
    done = join_metrics(path, path, exposure_where=["kind = age", "value > 6"], **options)
    assert (done.rows, done.exposures.filtered) == (1, 2)
