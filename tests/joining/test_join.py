"""What a join does with times, users, values, platforms' exports, and files that it cannot use."""

import functools
import gzip
import json
import operator
import os
import signal
import subprocess
import sys
import time
import warnings
from contextlib import nullcontext
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from armnesia import Joined, join_metrics, read_log
from armnesia.core.errors import InvalidInputError, InvalidLogError, VaultError
from armnesia.joining import equal_shares_p_value
from armnesia.logs.files.duckdb_engine import ScratchDatabase
from armnesia.vault import Configuration, Vault

EXPOSURES = (
    "experiment,action,user,time\ncheckout,A,ann,2026-01-01T10:00:00Z\ncheckout,B,bob,2026-01-01T10:00:00Z\n"
)
METRIC = "user,time,value\nann,2026-01-02T10:00:00Z,3\nbob,2026-01-03T10:00:00Z,4\n"


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path, Path]:
    exposures, metric = tmp_path / "exposures.csv", tmp_path / "metric.csv"
    exposures.write_text(EXPOSURES, encoding="utf-8")
    metric.write_text(METRIC, encoding="utf-8")
    return exposures, metric, tmp_path / "log.parquet"


def rewards(out: Path) -> dict[tuple[str, str], float]:
    sql = f"""SELECT action, "user", reward FROM '{out}'"""
    return {(action, user): reward for action, user, reward in duckdb.sql(sql).fetchall()}


@pytest.mark.parametrize("table", ["delta:lake/shown", "iceberg:lake.logs.shown", "sqlite:///logs.db"])
def test_tables_have_to_be_written_to_files_first(files: tuple[Path, Path, Path], table: str) -> None:
    exposures, metric, out = files
    for name, tables in (("exposures", (table, metric)), ("metric", (exposures, table))):
        with pytest.raises(
            InvalidInputError, match=f"{name} must be the path or glob of files.*got '{table}"
        ):
            join_metrics(*tables, window="14d", out=out)


def test_a_vault_takes_the_log_and_its_ids_once(files: tuple[Path, Path, Path], tmp_path: Path) -> None:
    exposures, metric, out = files
    done = join_metrics(exposures, metric, window="14d", clip=(0, 10), out=out)
    assert (done.rows, done.people, done.metric_uses.within_window) == (2, 2, 2)
    log = read_log(out, actions=["A", "B"], reward_range=(0, 10))
    assert log.statistics().means.tolist() == [3.0, 4.0]
    with Vault.create(
        f"sqlite:///{tmp_path}/v.db", Configuration(actions=("A", "B"), reward_range=(0, 10))
    ) as vault:
        assert vault.ingest(out, id="id").added == 2
        join_metrics(exposures, metric, window="14d", clip=(0, 10), out=out, replace=True)
        assert vault.ingest(out, id="id").already_there == 2
        # Another window gives other rewards of the same rows.
        with pytest.warns(UserWarning, match="no row of the metric lies in a window"):
            join_metrics(exposures, metric, window="1h", clip=(0, 10), out=out, replace=True)
        with pytest.raises(
            VaultError, match="2 rows of this source have an id that the vault holds with another"
        ):
            vault.ingest(out, id="id")


def test_the_window_includes_its_begin_and_not_its_end(tmp_path: Path) -> None:
    first = datetime(2026, 1, 1, 10, tzinfo=UTC)
    exposures = {"experiment": ["e"], "action": ["A"], "user": ["ann"], "time": [first]}
    steps = [
        timedelta(microseconds=-1),
        timedelta(0),
        timedelta(days=14, microseconds=-1),
        timedelta(days=14),
    ]
    metric = {
        "user": ["ann"] * 4,
        "time": [first + step for step in steps],
        "value": [1.0, 10.0, 100.0, 1000.0],
    }
    pq.write_table(pa.table(exposures), tmp_path / "e.parquet")
    pq.write_table(pa.table(metric), tmp_path / "m.parquet")
    done = join_metrics(
        tmp_path / "e.parquet", tmp_path / "m.parquet", window="14d", out=tmp_path / "log.parquet"
    )
    assert rewards(tmp_path / "log.parquet") == {("A", "ann"): 110.0}
    uses = done.metric_uses
    assert (uses.before_window, uses.within_window, uses.after_window) == (1, 2, 1)


def test_a_sum_does_not_depend_on_the_order_and_is_exact_in_decimals(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("experiment,action,user,time\ne,A,ann,2026-01-01\n")
    values = [0.1] * 1000
    rows = "".join(f"ann,2026-01-02,{value!r}\n" for value in values)
    (tmp_path / "m.csv").write_text(f"user,time,value\n{rows}")
    join_metrics(tmp_path / "e.csv", tmp_path / "m.csv", window="14d", out=tmp_path / "log.parquet")
    assert rewards(tmp_path / "log.parquet") == {("A", "ann"): 100.0}
    assert functools.reduce(operator.add, values) != 100.0  # a sum of floats is not


@pytest.mark.parametrize(
    ("values", "any_of", "count"),
    [(["0"], 0, 1), (["0", "-2.5"], 1, 2), (["1e-12"], 1, 1), (["", "0"], 0, 1), (["false", "true"], 1, 2)],
)
def test_any_and_count(tmp_path: Path, values: list[str], any_of: float, count: float) -> None:
    (tmp_path / "e.csv").write_text("experiment,action,user,time\ne,A,ann,2026-01-01\n")
    rows = "".join(f"ann,2026-01-02,{value}\n" for value in values)
    (tmp_path / "m.csv").write_text(f"user,time,value\n{rows}")
    paths, out = (tmp_path / "e.csv", tmp_path / "m.csv"), tmp_path / "log.parquet"
    for aggregate, expected in (("any", any_of), ("count", count)):
        join_metrics(*paths, window="14d", out=out, aggregate=aggregate, value_column="value", replace=True)
        assert rewards(out) == {("A", "ann"): expected}
        # Without a value column, rows count.
        join_metrics(*paths, window="14d", out=out, aggregate=aggregate, replace=True)
        assert rewards(out) == {("A", "ann"): 1 if aggregate == "any" else len(values)}


@pytest.mark.parametrize(
    ("kind", "exposed", "bought", "more"),
    [
        ("date", date(2026, 1, 1), date(2026, 1, 2), {}),
        ("without zone", datetime(2026, 1, 1, 10), datetime(2026, 1, 2, 9), {}),
        ("seconds", 1767261600, 1767344400, {"time_unit": "s", "metric_time_unit": "s"}),
        ("fractions", 1767261600.25, 1767344400.5, {"time_unit": "s", "metric_time_unit": "s"}),
        ("milliseconds", 1767261600000, 1767344400000, {"time_unit": "ms", "metric_time_unit": "ms"}),
        ("both kinds", "2026-01-01T10:00:00+00:00", 1767344400000, {"metric_time_unit": "ms"}),
    ],
)
def test_types_of_times(tmp_path: Path, kind: str, exposed: Any, bought: Any, more: dict[str, Any]) -> None:
    table = pa.table({"experiment": ["e"], "action": ["A"], "user": ["ann"], "time": [exposed]})
    pq.write_table(table, tmp_path / "e.parquet")
    pq.write_table(pa.table({"user": ["ann"], "time": [bought], "value": [5]}), tmp_path / "m.parquet")
    out = tmp_path / "log.parquet"
    too_short = pytest.warns(UserWarning, match="no row of the metric lies in a window")
    with too_short if kind == "date" else nullcontext():
        join_metrics(tmp_path / "e.parquet", tmp_path / "m.parquet", window="1d", out=out, **more)
    assert rewards(out) == {("A", "ann"): 0.0 if kind == "date" else 5.0}
    join_metrics(tmp_path / "e.parquet", tmp_path / "m.parquet", window="25h", out=out, replace=True, **more)
    assert rewards(out) == {("A", "ann"): 5.0}
    ((first,),) = duckdb.sql(f"SELECT epoch_ms(first_exposure) FROM '{out}'").fetchall()
    midnight = 1767225600000
    assert first == midnight + (0 if kind == "date" else 36_000_000 + (250 if kind == "fractions" else 0))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_times_without_a_zone_are_in_the_named_one(tmp_path: Path, suffix: str) -> None:
    """New York is 5 hours behind UTC in winter; of an hour that a change of clocks repeats, the later one."""
    local = [datetime(2026, 1, 1, 20), datetime(2026, 11, 1, 1, 30)]
    users = ["ann", "bob"]
    columns = {"experiment": ["e", "e"], "action": ["A", "A"], "user": users, "time": local}
    path = tmp_path / f"e{suffix}"
    if suffix == ".csv":
        lines = [f"e,A,{user},{moment}" for user, moment in zip(users, local, strict=True)]
        path.write_text("experiment,action,user,time\n" + "\n".join(lines) + "\n")
    else:
        pq.write_table(pa.table(columns), path)
    (tmp_path / "m.csv").write_text("user,time,value\nann,2026-01-02T01:00:00Z,5\n")
    out = tmp_path / "log.csv"
    join_metrics(path, tmp_path / "m.csv", window="1h", out=out, time_zone="America/New_York")
    found = sorted(line.split(",")[2:6:3] for line in out.read_text().splitlines()[1:])
    assert found == [["0.0", "2026-11-01 06:30:00+00"], ["5.0", "2026-01-02 01:00:00+00"]]


def test_users_of_different_types_are_the_same_by_their_text(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text("experiment,action,user,time\ne,A,1,2026-01-01\ne,B,01,2026-01-01\n")
    pq.write_table(
        pa.table({"user": [1.0, None], "time": [date(2026, 1, 1)] * 2, "value": [5, 7]}),
        tmp_path / "m.parquet",
    )
    out = tmp_path / "log.parquet"
    done = join_metrics(tmp_path / "e.csv", tmp_path / "m.parquet", window="1d", out=out)
    assert rewards(out) == {("A", "1"): 5.0, ("B", "01"): 0.0}
    assert done.metric.missing_user == 1


def test_users_who_do_not_match_at_all_are_warned_of(files: tuple[Path, Path, Path]) -> None:
    exposures, metric, out = files
    metric.write_text("user,time,value\n7.0,2026-01-02T10:00:00Z,3\n")
    with pytest.warns(UserWarning, match="no user of the metric is among those of the exposures"):
        join_metrics(exposures, metric, window="14d", out=out)


def test_dates_beside_times_are_warned_of(files: tuple[Path, Path, Path]) -> None:
    exposures, metric, out = files
    metric.write_text("user,time,value\nann,2026-01-01,3\n")
    with pytest.warns(UserWarning, match="the metric has 1 date without a time of day"):
        done = join_metrics(exposures, metric, window="14d", out=out)
    assert done.metric_uses.before_window == 1


@pytest.mark.parametrize("wrong", ["time_unit", "metric_time_unit"])
def test_times_in_another_unit_than_said_are_warned_of(files: tuple[Path, Path, Path], wrong: str) -> None:
    exposures, metric, out = files
    exposures.write_text("experiment,action,user,time\ncheckout,A,ann,1768003200\n")
    metric.write_text("user,time,value\nann,1768003260,3\nann,1768003270,4\n")
    units: dict[str, Any] = {"time_unit": "s", "metric_time_unit": "s"}
    assert join_metrics(exposures, metric, window="14d", out=out, **units).highest_reward == 7
    times = {"time_unit": "2026-01-10 00:01:10", "metric_time_unit": "1970-01-21 11:06:43"}
    before = {"time_unit": "0 before", "metric_time_unit": "2 before"}
    expected = (
        f"{before[wrong]} the first exposure, .* the last time of the metric is {times[wrong]} UTC, that of"
    )
    with pytest.warns(UserWarning, match=expected):
        done = join_metrics(exposures, metric, window="14d", out=out, replace=True, **units | {wrong: "ms"})
    assert done.highest_reward == 0


def test_a_date_is_counted_once_however_many_experiments_its_user_is_in(
    files: tuple[Path, Path, Path],
) -> None:
    exposures, metric, out = files
    both = EXPOSURES + EXPOSURES.split("\n", 1)[1].replace("checkout", "search")
    exposures.write_text(both, encoding="utf-8")
    rows = ["ann,2026-01-02,3", "bob,2026-01-03,3", "eve,2026-01-02,3", "ann,2026-01-02T10:00:00Z,3"]
    metric.write_text("\n".join(["user,time,value", *rows]), encoding="utf-8")
    with pytest.warns(UserWarning, match="the metric has 3 dates without a time of day"):
        done = join_metrics(exposures, metric, window="14d", out=out)
    assert (done.metric.read, done.metric_uses.within_window) == (4, 6)
    with pytest.warns(UserWarning, match="the metric has 1 date without a time of day"):
        join_metrics(exposures, metric, window="14d", out=out, metric_where="user = bob", replace=True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"window": "-14d"}, "window must be a time of more than 0 and at most 100 years"),
        ({"window": "0d"}, "got '0d'"),
        ({"window": "14"}, "got '14'"),
        ({"window": timedelta(days=-1)}, "window must be a time of more than 0"),
        ({"window": "9999w"}, "at most 100 years"),
        ({"aggregate": "mean"}, "aggregate must be sum, any or count; got 'mean'"),
        ({"clip": (1, 1)}, "clip must be two finite numbers, the lower one first"),
        ({"clip": (0, float("inf"))}, "clip must be two finite numbers"),
        ({"clip": (1,)}, "clip must be two finite numbers"),
        (
            {"preset": "optimizely"},
            "preset must be growthbook, posthog, statsig or launchdarkly; got 'optimizely'",
        ),
        ({"preset": "posthog", "aggregate": "any"}, "select one with metric_where"),
        ({"preset": "posthog"}, "preset posthog has no column of values"),
        ({"time_unit": "min"}, "time_unit must be s, ms, us or ns; got 'min'"),
        ({"time_zone": "Mars/Olympus"}, "time_zone must be a name such as UTC or Europe/Berlin"),
        ({"time_zone": "'; DROP"}, "time_zone must be a name such as UTC or Europe/Berlin"),
        ({"memory_limit": "much"}, "memory_limit must be a size such as 800MB or 4GB; got 'much'"),
        ({"experiment": "x", "experiment_column": "e"}, "give one"),
        ({"experiment": ""}, "experiment must be a name; got ''"),
        ({"user_column": "person"}, "user column 'person' of the exposures is not in the source; it has"),
        ({"value_column": "revenue"}, "it has 'user', 'time', 'value'; name it with --value-column"),
        ({"time_column": "at"}, "name it with --time-column"),
        ({"metric_user_column": "person"}, "name it with --metric-user-column"),
        ({"action_column": "action.variant.x"}, "unexpected character."),
        ({"metric_where": "event = x"}, "condition column 'event' of the metric is not in the source"),
        (
            {"exposure_where": "experiment = other"},
            "no row is left for the log: 2 exposures read, 0 of them",
        ),
        ({"metric_where": "event"}, "where must be a condition such as country = DE"),
        (
            {"metric_where": ["value > 3", "user > 1"]},
            "condition column 'user' of the metric must hold numbers to be compared with 1; got 'bob' at row"
            " 1: put 1 in quotes to compare it as text",
        ),
        (
            {"exposure_where": "action < 2"},
            "condition column 'action' of the exposures must hold numbers to be compared with 2; got 'A' at"
            " row 0, 'B' at row 1",
        ),
        ({"time_column": "action"}, "such as 2026-01-31T12:00:00Z; got 'A' at row 0, 'B' at row 1"),
        (
            {"value_column": "user"},
            "must hold numbers from -1e18 to 1e18; got 'ann' at row 0, 'bob' at row 1",
        ),
    ],
)
def test_what_is_refused(files: tuple[Path, Path, Path], changed: dict[str, Any], message: str) -> None:
    exposures, metric, out = files
    with pytest.raises((InvalidInputError, InvalidLogError)) as refused:
        join_metrics(exposures, metric, **{"window": "14d", "out": out, **changed})
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
    assert sorted(path.name for path in out.parent.iterdir()) == ["exposures.csv", "metric.csv"]


def test_numbers_need_a_unit_and_a_unit_needs_numbers(tmp_path: Path) -> None:
    exposures = {"experiment": ["e"], "action": ["A"], "user": ["ann"], "time": [1767261600]}
    pq.write_table(pa.table(exposures), tmp_path / "e.parquet")
    pq.write_table(
        pa.table({"user": ["ann"], "time": [date(2026, 1, 1)], "value": [5]}), tmp_path / "m.parquet"
    )
    paths = (tmp_path / "e.parquet", tmp_path / "m.parquet")
    with pytest.raises(InvalidInputError, match="holds numbers: say with time_unit whether they count s, ms"):
        join_metrics(*paths, window="1d", out=tmp_path / "log.parquet")
    with pytest.raises(
        InvalidInputError, match=r"metric_time_unit is for times that are numbers; .* holds DATE"
    ):
        join_metrics(*paths, window="1d", out=tmp_path / "log.parquet", time_unit="s", metric_time_unit="s")


def test_milliseconds_taken_for_seconds_are_refused(tmp_path: Path) -> None:
    exposures = {"experiment": ["e"], "action": ["A"], "user": ["ann"], "time": [1767261600000]}
    pq.write_table(pa.table(exposures), tmp_path / "e.parquet")
    (tmp_path / "m.csv").write_text("user,time,value\n")
    with pytest.raises(InvalidLogError, match=r"years 1 to 9999.* got '1767261600000' at row 0"):
        join_metrics(
            tmp_path / "e.parquet", tmp_path / "m.csv", window="1d", out=tmp_path / "l.csv", time_unit="s"
        )


@pytest.mark.parametrize("value", ["inf", "1e19", "two"])
def test_values_that_are_no_finite_numbers_are_refused(files: tuple[Path, Path, Path], value: str) -> None:
    exposures, metric, out = files
    metric.write_text(METRIC + f"ann,2026-01-02T10:00:00Z,{value}\n")
    with pytest.raises(InvalidLogError, match=f"got '{value}' at row 2"):
        join_metrics(exposures, metric, window="14d", out=out)


def test_an_existing_file_is_kept_unless_it_is_to_be_replaced(files: tuple[Path, Path, Path]) -> None:
    exposures, metric, out = files
    out.write_text("mine")
    with pytest.raises(InvalidInputError, match=r"exists already; .* with --replace \(replace=True\)"):
        join_metrics(exposures, metric, window="14d", out=out)
    assert out.read_text() == "mine"
    with pytest.raises(InvalidLogError):
        join_metrics(exposures, metric, window="14d", out=out, replace=True, time_column="action")
    assert out.read_text() == "mine"
    assert join_metrics(exposures, metric, window="14d", out=out, replace=True).rows == 2
    with pytest.raises(InvalidInputError, match=r"out must end in one of '.parquet'"):
        join_metrics(exposures, metric, window="14d", out=out.with_suffix(".db"))
    with pytest.raises(InvalidInputError, match=r"the folder of .* does not exist"):
        join_metrics(exposures, metric, window="14d", out=out.parent / "no" / "log.parquet")


KILLED = """
import sys
from armnesia.joining import join_metrics, statements
written = statements.written
def slow(*arguments):
    print("writing", flush=True)
    return written(*arguments).replace("FROM (", "FROM range(100000000000) AS endless(n), (", 1)
statements.written = slow
join_metrics(sys.argv[1], sys.argv[2], window="14d", out=sys.argv[3])
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_join_leaves_no_log(files: tuple[Path, Path, Path], number: int) -> None:
    """The statement that writes is made endless, and the process is stopped while it writes."""
    exposures, metric, out = files
    command = [sys.executable, "-c", KILLED, str(exposures), str(metric), str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "writing\n"
            deadline = time.monotonic() + 60
            while not any(path.stat().st_size for path in out.parent.glob("log.parquet.*")):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            process.send_signal(number)
            assert process.wait(60) != 0
        finally:
            process.kill()
    assert not out.exists()
    if number == signal.SIGINT:
        assert sorted(path.name for path in out.parent.iterdir()) == ["exposures.csv", "metric.csv"]


@pytest.mark.slow
def test_what_does_not_fit_into_memory_is_spilled_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, spilled = 600_000, list[int]()
    run = ScratchDatabase.run

    def watched(self: ScratchDatabase, sql: str, parameters: dict[str, Any], *, failed: str) -> Any:
        done = run(self, sql, parameters, failed=failed)
        spilled.extend(path.stat().st_size for path in tmp_path.glob(".armnesia-*/*"))
        return done

    monkeypatch.setattr(ScratchDatabase, "run", watched)
    duckdb.sql(
        f"""COPY (SELECT 'e' AS experiment, 'A' AS action, repeat('long', 20) || i AS "user",
        TIMESTAMP '2026-01-01' AS time FROM range({rows}) t(i)) TO '{tmp_path}/e.parquet'"""
    )
    duckdb.sql(
        f"""COPY (SELECT repeat('long', 20) || i AS "user", TIMESTAMP '2026-01-02' AS time, i AS value
        FROM range({rows}) t(i)) TO '{tmp_path}/m.parquet'"""
    )
    out = tmp_path / "log.parquet"
    paths = (tmp_path / "e.parquet", tmp_path / "m.parquet")
    assert join_metrics(*paths, window="2d", out=out, memory_limit="180MB").rows == rows
    assert max(spilled, default=0) > 0
    assert duckdb.sql(f"SELECT sum(reward) FROM '{out}'").fetchall() == [(rows * (rows - 1) / 2,)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.parquet", "log.parquet", "m.parquet"]
    with pytest.raises(InvalidLogError, match="there is not enough memory; allow more memory"):
        join_metrics(*paths, window="2d", out=out, memory_limit="5MB", replace=True)


def test_globs_and_compressed_files(tmp_path: Path) -> None:
    for day in (1, 2):
        line = f"checkout,A,ann,2026-01-0{day}T10:00:00Z\n"
        (tmp_path / f"e{day}.csv.gz").write_bytes(
            gzip.compress(("experiment,action,user,time\n" + line).encode())
        )
        event = {"user": "ann", "time": f"2026-01-0{day}T11:00:00Z", "value": day}
        (tmp_path / f"m{day}.jsonl").write_text(json.dumps(event) + "\n\n")
    out = tmp_path / "log.csv.gz"
    done = join_metrics(tmp_path / "e*.csv.gz", tmp_path / "m*.jsonl", window="2d", out=out)
    assert (done.exposures.read, done.exposures.repeated, done.metric.read) == (2, 1, 2)
    assert b"checkout,A,3.0,ann" in gzip.decompress(out.read_bytes())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]\n", "its first line is not a JSON object"),
        ('{"user": 1}\n{"us', "Malformed JSON"),
        ("", "is not in"),
    ],
)
def test_broken_json_lines_are_refused(files: tuple[Path, Path, Path], text: str, message: str) -> None:
    exposures, _, out = files
    (out.parent / "m.jsonl").write_text(text)
    with pytest.raises(InvalidLogError, match=message) as refused:
        join_metrics(
            exposures,
            out.parent / "m.jsonl",
            window="14d",
            out=out,
            aggregate="any",
            metric_time_column="user",
            metric_time_unit="s",
        )
    assert "\n" not in str(refused.value)


def test_a_table_of_one_experiment(files: tuple[Path, Path, Path]) -> None:
    exposures, metric, out = files
    done = join_metrics(exposures, metric, window="14d", out=out, experiment="it's")
    assert [each.experiment for each in done.experiments] == ["it's"]
    ids = duckdb.sql(f"SELECT id FROM '{out}' ORDER BY id").fetchall()
    assert ids == [("4:it's:ann",), ("4:it's:bob",)]


def test_ids_are_different_for_different_experiments_and_users(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(
        "experiment,action,user,time\na:b,A,c,2026-01-01\na,A,b:c,2026-01-01\na:,A,b:c,2026-01-01\n"
    )
    (tmp_path / "m.csv").write_text("user,time,value\nc,2026-01-01,1\n")
    join_metrics(tmp_path / "e.csv", tmp_path / "m.csv", window="14d", out=tmp_path / "log.parquet")
    found = duckdb.sql(f"SELECT count(DISTINCT id) FROM '{tmp_path}/log.parquet'").fetchall()
    assert found == [(3,)]


def test_the_p_value_of_equal_shares_is_that_of_scipy() -> None:
    for counts in ([10, 20], [5000, 5100, 4900], [1, 1, 1, 50]):
        assert equal_shares_p_value(counts) == pytest.approx(stats.chisquare(counts).pvalue, rel=1e-12)


def posthog_events() -> list[dict[str, Any]]:
    def called(user: str, response: Any, at: str) -> dict[str, Any]:
        properties = {
            "$feature_flag": "checkout",
            "$feature_flag_response": response,
            "$feature/checkout": response,
        }
        return {
            "event": "$feature_flag_called",
            "distinct_id": user,
            "timestamp": at,
            "properties": properties,
        }

    def bought(user: str, revenue: float, at: str) -> dict[str, Any]:
        properties = {"revenue": revenue, "$feature/checkout": "test"}
        return {"event": "purchase", "distinct_id": user, "timestamp": at, "properties": properties}

    return [
        called("ann", "test", "2026-01-01T10:00:00.000000Z"),
        called("bob", "control", "2026-01-01T10:00:00.000000Z"),
        called("cleo", None, "2026-01-01T10:00:00.000000Z"),
        called("dan", True, "2026-01-01T10:00:00.000000Z"),
        bought("ann", 2.5, "2026-01-02T10:00:00.000000Z"),
        bought("eve", 9, "2026-01-02T10:00:00.000000Z"),
    ]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet", ".parquet.zst"])
def test_posthog(tmp_path: Path, suffix: str) -> None:
    """In JSON lines properties are objects, in Parquet their text; one file has exposures and metric."""
    path = tmp_path / f"events{suffix}"
    events = posthog_events()
    if suffix == ".jsonl":
        path.write_text("".join(json.dumps(event) + "\n" for event in events))
    else:
        columns: dict[str, list[Any]] = {name: [event[name] for event in events] for name in events[0]}
        columns["properties"] = [json.dumps(properties) for properties in columns["properties"]]
        columns["timestamp"] = [datetime.fromisoformat(text) for text in columns["timestamp"]]
        pq.write_table(pa.table(columns), path, compression="zstd")
    options: dict[str, Any] = {"preset": "posthog", "window": "7d", "metric_where": "event = purchase"}
    out = tmp_path / "log.parquet"
    done = join_metrics(path, path, out=out, value_column="properties.revenue", **options)
    assert rewards(out) == {("test", "ann"): 2.5, ("control", "bob"): 0.0, ("true", "dan"): 0.0}
    exposures, metric = done.exposures, done.metric
    assert (exposures.read, exposures.filtered, exposures.missing_action, exposures.first) == (6, 2, 1, 3)
    assert (metric.read, metric.filtered, metric.user_exposed, metric.user_not_exposed) == (6, 4, 1, 1)
    # The variant as another event carries it.
    done = join_metrics(
        path,
        path,
        out=out,
        replace=True,
        aggregate="any",
        exposure_where="event = purchase",
        experiment="checkout",
        action_column="properties.$feature/checkout",
        **options,
    )
    assert rewards(out) == {("test", "ann"): 1.0, ("test", "eve"): 1.0}


def test_growthbook_with_another_identifier(tmp_path: Path) -> None:
    (tmp_path / "e.csv").write_text(
        "anonymous_id,timestamp,experiment_id,variation_id\n"
        "1,2021-08-23 10:53:04,my-test,0\n2,2021-08-23 10:53:06,my-test,1\n"
    )
    (tmp_path / "m.csv").write_text("anonymous_id,timestamp,value\n1,2021-08-23 11:00:00,5\n")
    out = tmp_path / "log.parquet"
    paths = (tmp_path / "e.csv", tmp_path / "m.csv")
    join_metrics(*paths, window="3d", out=out, preset="growthbook", user_column="anonymous_id")
    assert rewards(out) == {("0", "1"): 5.0, ("1", "2"): 0.0}


def join_parquet(folder: Path, exposures: dict[str, Any], events: dict[str, Any], **options: Any) -> Joined:
    """Write both tables to Parquet files and join them, with a window of three days."""
    pq.write_table(pa.table(exposures), folder / "e.parquet")
    pq.write_table(pa.table(events), folder / "m.parquet")
    return join_metrics(
        folder / "e.parquet", folder / "m.parquet", window="3d", out=folder / "log.parquet", **options
    )


def test_statsig(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 1, 10, tzinfo=UTC)
    exposures = {
        "unit_id": ["1", "2"],
        "unit_type": ["userID"] * 2,
        "exposure_type": ["get_experiment", "check_gate"],
        "name": ["checkout", "gate"],
        "experiment_group": ["Control", None],
        "first_exposure_utc": [moment] * 2,
    }
    events = {
        "user_id": ["1", "1"],
        "timestamp": [moment] * 2,
        "event_name": ["purchase", "view"],
        "event_value": ["12.5", "home"],
    }
    done = join_parquet(
        tmp_path,
        exposures,
        events,
        preset="statsig",
        metric_where="event_name = purchase",
        exposure_where="exposure_type = get_experiment",
    )
    assert rewards(done.out) == {("Control", "1"): 12.5}
    assert (done.exposures.filtered, done.metric.filtered) == (1, 1)


def test_launchdarkly(tmp_path: Path) -> None:
    moment = datetime(2026, 1, 1, 10, tzinfo=UTC)
    exposures = {
        "flag_key": ["f"] * 3,
        "context_key": ["1", "org", "2"],
        "context_kind": ["user", "organization", "user"],
        "variation_id": ["v1", "v1", "v2"],
        "experiment_iteration_id": ["i1", "i1", None],
        "received_time": [moment] * 3,
    }
    events = {
        "context_key": ["1"],
        "context_kind": ["user"],
        "event_key": ["purchase"],
        "event_value": [3.0],
        "received_time": [moment],
    }
    done = join_parquet(
        tmp_path, exposures, events, preset="launchdarkly", metric_where="event_key = purchase"
    )
    assert rewards(done.out) == {("v1", "1"): 3.0}
    assert (done.exposures.filtered, done.exposures.missing_experiment) == (1, 1)


def test_the_result_as_json_holds_it(files: tuple[Path, Path, Path]) -> None:
    exposures, metric, out = files
    done = join_metrics(exposures, metric, window="14d", out=out)
    assert isinstance(done, Joined)
    written = json.loads(json.dumps(done.to_dict()))
    assert written["out"] == os.fspath(out)
    assert written["experiments"][0]["variants"][0] == {
        "action": "A",
        "people": 1,
        "exposures": 1,
        "with_metric": 1,
    }


def test_no_warning_without_a_reason(files: tuple[Path, Path, Path]) -> None:
    exposures, metric, out = files
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        join_metrics(exposures, metric, window="14d", out=out)


@pytest.mark.parametrize("which", ["exposures", "metric"])
@pytest.mark.parametrize("how", ["path", "other spelling", "glob", "link", "hard link"])
def test_a_file_that_is_read_is_never_replaced(
    files: tuple[Path, Path, Path], tmp_path: Path, which: str, how: str
) -> None:
    exposures, metric, _ = files
    kept = tmp_path / f"{which}.csv"
    out = {
        "other spelling": tmp_path / ".." / tmp_path.name / f"{which}.csv",
        "link": tmp_path / "link.csv",
        "hard link": tmp_path / "hard.csv",
    }.get(how, kept)
    if how == "link":
        out.symlink_to(kept)
    elif how == "hard link":
        out.hardlink_to(kept)
    read: dict[str, Any] = {"exposures": exposures, "metric": metric}
    if how == "glob":
        read[which] = str(tmp_path / f"{which[:5]}*.csv")
    before = kept.read_bytes()
    with pytest.raises(InvalidInputError, match="out must not be a file that is read"):
        join_metrics(read["exposures"], read["metric"], window="14d", out=out, replace=True)
    assert kept.read_bytes() == before
    assert not list(tmp_path.glob("*.new"))
