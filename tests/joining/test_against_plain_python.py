"""`join_metrics` against the same join in plain Python, on small adversarial tables in every format."""

import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from armnesia.core.errors import InvalidLogError
from armnesia.joining import Joined, join_metrics
from tests.joining.plain_join import PlainJoin, plain_join, text_of
from tests.joining.tables import TEXT_TIMES, TIMES, write
from tests.quick import examples

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
WINDOW = timedelta(days=2)
# Exposures and metric rows meet at both ends of the window, and a microsecond before and after.
MOMENTS = [START + step * WINDOW / 2 for step in range(4)] + [
    START + step * WINDOW + timedelta(microseconds=shift) for step in (0, 1) for shift in (-1, 1)
]
# What stands more than once is drawn more often, so that rows meet.
USERS: dict[str, list[Any]] = {
    "integers": [1, 1, 1, 2, 2, 3, None],
    "floats": [1.0, 1.0, 1.0, 2.0, 2.5, None, float("nan")],
    "text": ["1", "1", "1", "1", "1", "2", "2", "2.5", "1.0", "01", "ann, 'o\"", "ü", "", None],
}
EXPERIMENTS = ["e", "e", "e", "e", "f", "a:b", "", None]
ACTIONS = ["A", "A", "A", "A", "B", "", None]
VALUES = [0.0, 1.0, -2.5, 0.1, 0.2, 1e-10, 5e-10, 1.5e-9, 12345678.9, None, float("nan")]
SUFFIXES = [".csv", ".parquet", ".jsonl", ".json"]


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """Two tables, how they are written, and the options of a join."""
    case: dict[str, Any] = {"aggregate": draw(st.sampled_from(["sum", "any", "count"]))}
    case["clip"] = draw(st.sampled_from([None, (0.0, 1.0), (-1.0, 0.15), (0.5, 2.0)]))
    case["with_value"] = case["aggregate"] == "sum" or draw(st.booleans())
    case["where"] = draw(st.booleans())
    moments = st.sampled_from([*MOMENTS, *MOMENTS, None])
    fewest = draw(st.sampled_from([1, 15, 15]))
    for table in ("exposures", "metric"):
        suffix = draw(st.sampled_from(SUFFIXES))
        # JSON has no times and no NaN, and CSV has only text.
        users = USERS[draw(st.sampled_from(list(USERS) if suffix == ".parquet" else ["text"]))]
        columns = {
            "user": st.sampled_from(users),
            "time": moments,
            "kind": st.sampled_from(["x", "x", "x", "x", "y", None]),
        }
        if table == "exposures":
            columns |= {"experiment": st.sampled_from(EXPERIMENTS), "action": st.sampled_from(ACTIONS)}
        else:
            numbers = [value for value in VALUES if suffix == ".parquet" or value is None or text_of(value)]
            columns |= {"value": st.sampled_from(numbers)}
        case[table] = draw(st.lists(st.fixed_dictionaries(columns), min_size=fewest, max_size=25))
        case[f"{table}_suffix"] = suffix
        case[f"{table}_times"] = draw(st.sampled_from(list(TIMES) if suffix == ".parquet" else TEXT_TIMES))
    return case


def joined(case: dict[str, Any], folder: Path) -> tuple[Joined, list[tuple[Any, ...]]]:
    """Write the tables, join them, and read the log back."""
    files = {}
    for table, more in (("exposures", ["experiment", "action"]), ("metric", ["value"])):
        written = TIMES[case[f"{table}_times"]]
        rows = [{**row, "time": None if row["time"] is None else written(row["time"])} for row in case[table]]
        columns = ["user", "time", "kind", *more]
        files[table] = write(folder / f"{table}{case[f'{table}_suffix']}", rows, columns)
    out = folder / "log.parquet"
    where = "kind = x" if case["where"] else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = join_metrics(
            files["exposures"],
            files["metric"],
            out=out,
            window=WINDOW,
            aggregate=case["aggregate"],
            clip=case["clip"],
            exposure_where=where,
            metric_where=where,
            columns={"value": "value"} if case["with_value"] else None,
            replace=True,
        )
    sql = (
        'SELECT experiment, "user", action, reward, exposures, metric_rows, epoch_us(first_exposure), id'
        f" FROM '{out}'"
    )
    return done, duckdb.sql(sql).fetchall()


def expected(case: dict[str, Any]) -> PlainJoin:
    where = {"kind": "x"} if case["where"] else {}
    return plain_join(
        case["exposures"],
        case["metric"],
        WINDOW,
        case["aggregate"],
        case["clip"],
        exposure_where=where,
        metric_where=where,
        with_value=case["with_value"],
    )


def check(case: dict[str, Any], folder: Path) -> None:
    plain = expected(case)
    if not plain.rows:
        with pytest.raises(InvalidLogError, match="no row is left for the log"):
            joined(case, folder)
        return
    done, rows = joined(case, folder)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    found = {
        (experiment, user): (*values, epoch + timedelta(microseconds=first))
        for experiment, user, *values, first, _ in rows
    }
    assert found == plain.rows
    assert len(rows) == len(found) == len({row[-1] for row in rows}) == done.rows
    for counts, of_plain in ((done.exposures, plain.exposures), (done.metric, plain.metric)):
        assert counts == {name: of_plain[name] for name in counts}
        assert {name for name, number in of_plain.items() if number} <= set(counts)
    assert sum(done.exposures.values()) == len(case["exposures"])
    assert done.left_out_several_variants == plain.left_out
    assert done.rows_clipped == plain.clipped
    assert done.rows_with_open_window == plain.open
    rewards = [row[1] for row in plain.rows.values()]
    assert (done.lowest_reward, done.highest_reward) == (min(rewards), max(rewards))
    assert done.rows_without_metric == sum(row[3] == 0 for row in plain.rows.values())
    variants = {
        (each["experiment"], each["action"]): (each["people"], each["with_metric"]) for each in done.variants
    }
    kept = [(experiment, *row) for (experiment, _), row in plain.rows.items()]
    assert variants == {
        key: (sum(row[:2] == key for row in kept), sum(row[4] > 0 for row in kept if row[:2] == key))
        for key in {row[:2] for row in kept}
    }


@settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tables())
def test_rows_and_counts_are_those_of_plain_python(tmp_path: Path, case: dict[str, Any]) -> None:
    check(case, tmp_path)
