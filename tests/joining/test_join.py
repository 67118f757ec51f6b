"""What a join does with times, values and files; its rows and counts are compared beside."""

import gzip
import json
import warnings
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from armnesia import join_metrics, read_log
from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.logs.engine import DuckDBConnection
from armnesia.vault import Configuration, Vault

SHOWN = (
    "experiment,action,user,time\ncheckout,A,ann,2026-01-01T10:00:00Z\ncheckout,B,bob,2026-01-01T10:00:00Z\n"
)
METRIC = "user,time,value\nann,2026-01-02T10:00:00Z,3\nbob,2026-01-03T10:00:00Z,4\n"
ONE = {"experiment": ["e"], "action": ["A"], "user": ["ann"], "time": [datetime(2026, 1, 1, 10, tzinfo=UTC)]}
"""One exposure, in memory."""


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    shown, metric = tmp_path / "shown.csv", tmp_path / "metric.csv"
    shown.write_text(SHOWN, encoding="utf-8")
    metric.write_text(METRIC, encoding="utf-8")
    return shown, metric, tmp_path / "log.parquet"


def reward(folder: Path, metric: Any, shown: Any = ONE, **options: Any) -> float:
    """The reward of the only person in a log."""
    out = folder / "one.parquet"
    join_metrics(shown, metric, **{"window": "14d", "out": out, "replace": True, **options})
    ((found,),) = duckdb.sql(f"SELECT reward FROM '{out}'").fetchall()
    return float(found)


def test_a_vault_takes_the_log_and_its_ids_once(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    out = files[2]
    options: dict[str, Any] = {"clip": (0, 10), "out": out, "replace": True}
    done = join_metrics(*files[:2], window="14d", **options)
    assert json.loads(json.dumps(done.to_dict()))["out"] == str(out)
    keys = ("experiment", "exposures:2")  # numbers stay numbers
    decisions = read_log(out, actions=["A", "B"], reward_range=(0, 10)).by(*keys)
    assert set(decisions.keys) == {("checkout", "<2")}
    configuration = Configuration(actions=("A", "B"), reward_range=(0, 10), by=keys)
    with Vault.create(f"sqlite:///{tmp_path}/v.db", configuration) as vault:
        assert vault.ingest(out, id="id").added == 2
        join_metrics(*files[:2], window="14d", **options)
        assert vault.ingest(out, id="id").already_there == 2


def test_a_sum_does_not_depend_on_the_order_and_is_exact_in_decimals(tmp_path: Path) -> None:
    metric = {"user": ["ann"] * 1000, "time": ["2026-01-02"] * 1000, "value": [0.1] * 1000}
    assert reward(tmp_path, metric) == 100.0  # a sum of floats is 99.9999999999986


@pytest.mark.parametrize(
    ("shown", "bought"),
    [
        (date(2026, 1, 1), date(2026, 1, 1)),
        (datetime(2026, 1, 1, 10), "2026-01-01T09:30:00-00:30"),
        ("2026-01-01 10:00", "2026-01-01T23:59:59.999999+14:00"),
        (datetime(9999, 12, 31, 23), "9999-12-31 23:59:59"),
    ],
)
def test_times_without_a_zone_are_those_of_utc(tmp_path: Path, shown: Any, bought: Any) -> None:
    metric = {"user": ["ann"], "time": [bought], "value": [True]}
    if shown == "2026-01-01 10:00":  # 09:59 of the first of January in UTC, a second too early
        with pytest.warns(UserWarning, match="no row of the metric lies in a window"):
            assert reward(tmp_path, metric, {**ONE, "time": [shown]}) == 0.0
    else:
        assert reward(tmp_path, metric, {**ONE, "time": [shown]}) == 1.0


@pytest.mark.parametrize("time", [1767261600, 1767261600.5, True, "1767261600", "31.1.2026", "infinity"])
def test_what_is_no_time_is_refused(tmp_path: Path, time: Any) -> None:
    rule = "must hold times of the years 1 to 9999" if isinstance(time, str) else "must hold times; it holds"
    times = [time] if isinstance(time, str) else np.array([time])
    with pytest.raises(InvalidLogError, match=f"time column 'time' of the metric {rule}"):
        reward(tmp_path, {"user": ["ann"], "time": times, "value": [1]})


def test_metrics_that_are_all_zero_are_warned_of(tmp_path: Path) -> None:
    metric = {"user": ["ann", "ann"], "time": ["2025-12-31", "2026-01-10"], "value": [1, 1]}
    with pytest.warns(UserWarning, match="0 are of users who are not among those of the exp") as caught:
        assert reward(tmp_path, metric, window="1d") == 0
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="2 are of users who are not among those of the exposures"):
        assert reward(tmp_path, {**metric, "user": ["7.0", "8.0"]}) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert reward(tmp_path, metric) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"window": "-14d"}, "window must be a time of more than 0 and at most 100 years"),
        ({"window": "14"}, "got '14'"),
        ({"window": "9999w"}, "at most 100 years"),
        ({"aggregate": "mean"}, "aggregate must be sum, any or count; got 'mean'"),
        ({"clip": (1, 1)}, "clip must be two finite numbers, the lower one first"),
        ({"preset": "x"}, "preset must be growthbook, posthog, statsig or launchdarkly; got 'x'"),
        ({"experiment": "x", "columns": {"experiment": "e"}}, "without a column of it; got 'x'"),
        (
            {"columns": {"arm": "x"}},
            "columns must name 'experiment', 'action', 'user', 'time', 'metric_user'",
        ),
        ({"columns": {"user": "who"}}, "user column 'who' of the exposures is not in the source; it has"),
        (
            {"columns": {"value": "paid"}},
            "it has 'user', 'time', 'value'; name it with columns (--column value",
        ),
        ({"columns": {"time": "action", "metric_time": "time"}}, "got 'A' at row 1, 'B' at row 2"),
        *(
            (
                {"metric": {"user": ["ann"], "time": ["2026-01-02"], "value": [value]}},
                f"got '{value}' at row 1",
            )
            for value in ("inf", "1e19", "two")
        ),
        ({"metric_where": "event = x"}, "condition column 'event' of the metric is not in the source"),
        (
            {"exposure_where": "action = C"},
            "no row is left for the log: of 2 exposures, 0 are complete",
        ),
        ({"exposures": "sqlite:///logs.db"}, "exposures must be files, a dataframe or a table of a lake"),
    ],
)
def test_what_is_refused(files: tuple[Path, Path, Path], changed: dict[str, Any], message: str) -> None:
    options = {"exposures": files[0], "metric": files[1], "window": "14d", "out": files[2], **changed}
    with pytest.raises((InvalidInputError, InvalidLogError)) as refused:
        join_metrics(**options)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert sorted(path.name for path in files[2].parent.iterdir()) == ["metric.csv", "shown.csv"]


def test_an_existing_file_is_kept_unless_it_is_to_be_replaced(files: tuple[Path, Path, Path]) -> None:
    *paths, out = files
    out.write_text("mine")
    with pytest.raises(InvalidInputError, match=r"exists already; .* with --replace \(replace=True\)"):
        join_metrics(*paths, window="14d", out=out)
    with pytest.raises(InvalidLogError):
        join_metrics(
            *paths, window="14d", out=out, replace=True, columns={"time": "action", "metric_time": "time"}
        )
    assert out.read_text() == "mine"
    assert join_metrics(*paths, window="14d", out=out, replace=True).rows == 2
    with pytest.raises(InvalidInputError, match=r"out must end in one of '.parquet'"):
        join_metrics(*paths, window="14d", out=out.with_suffix(".db"))
    linked = out.with_name("link.csv")
    linked.hardlink_to(paths[1])
    with pytest.raises(InvalidInputError, match="out must not be a file that is read"):
        join_metrics(paths[0], str(out.parent / "m*.csv"), window="14d", out=linked, replace=True)
    assert paths[1].read_text() == METRIC
    assert not list(out.parent.glob("*.new"))


def test_an_interrupted_join_leaves_nothing(
    files: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = DuckDBConnection.rows

    def interrupted(self: DuckDBConnection, sql: str, parameters: dict[str, Any] | None = None) -> Any:
        found = run(self, sql, parameters)
        if sql.startswith("COPY"):
            assert list(files[2].parent.glob("log.parquet.*"))
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(DuckDBConnection, "rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        join_metrics(*files[:2], window="14d", out=files[2])
    assert sorted(path.name for path in files[2].parent.iterdir()) == ["metric.csv", "shown.csv"]


def test_globs_and_compressed_files(tmp_path: Path) -> None:
    for day in (1, 2):
        line = f"checkout,A,ann,2026-01-0{day}T10:00:00Z\n"
        header = "experiment,action,user,time\n"
        (tmp_path / f"e{day}.csv.gz").write_bytes(gzip.compress((header + line).encode()))
        event = {"user": "ann", "time": f"2026-01-0{day}T11:00:00Z", "value": day}
        (tmp_path / f"m{day}.jsonl.gz").write_bytes(gzip.compress(json.dumps(event).encode() + b"\n\n"))
    out = tmp_path / "log.csv.gz"
    done = join_metrics(tmp_path / "e*.csv.gz", tmp_path / "m*.jsonl.gz", window="2d", out=out)
    assert (done.exposures["used"], done.rows) == (2, 1)
    assert b"checkout,A,3.0,ann" in gzip.decompress(out.read_bytes())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not in the source"),
        ('{"user": "zoe", "time": "2026-01-01", "TIME": 1}', "differs from another in upper and lower case"),
        ('{"user": "zoe", "time": "2026-01-01"}\n[]', "something else than JSON objects"),
        ('[{"user": "zoe", "time": "2026-01-01"}, {"user', "cannot be read: it is damaged"),
    ],
)
def test_broken_json_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(InvalidLogError, match=message) as refused:
        reward(tmp_path, tmp_path / "m.json", aggregate="any")
    assert "\n" not in str(refused.value)
    assert "zoe" not in str(refused.value)
