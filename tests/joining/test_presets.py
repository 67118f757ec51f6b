"""Exports as each platform writes them, joined by its preset."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from armnesia import Joined, join_metrics
from armnesia.core.errors import InvalidInputError
from tests.joining.tables import write


def join(folder: Path, exposures: Any, metric: Any, **options: Any) -> tuple[Joined, dict[Any, float]]:
    """The result of a join over a week, and the reward of each variant and user."""
    out = folder / "log.parquet"
    done = join_metrics(exposures, metric, window="7d", out=out, replace=True, **options)
    rows = duckdb.sql(f"""SELECT action, "user", reward FROM '{out}'""").fetchall()
    return done, {(action, user): reward for action, user, reward in rows}


def posthog_events() -> list[dict[str, Any]]:
    """Events as in a batch export: those of flags and all others are in one table."""

    def event(name: str, user: str, at: str, **properties: Any) -> dict[str, Any]:
        properties |= {"$lib": "web", "$os": "Mac OS X", "$feature/checkout": "test"}
        own = {"uuid": f"0190-{user}-{at}", "team_id": 2, "elements": None}
        return {**own, "event": name, "distinct_id": user, "timestamp": at, "properties": properties}

    def called(user: str, response: Any) -> dict[str, Any]:
        flag = {"$feature_flag": "checkout", "$feature_flag_response": response}
        return event("$feature_flag_called", user, "2026-01-01T10:00:00.000000Z", **flag)

    return [
        *(called("ann", "test"), called("bob", "control"), called("cleo", None), called("dan", True)),
        event("$pageview", "bob", "2026-01-01T11:00:00.000000Z"),
        event("purchase", "ann", "2026-01-02T10:00:00.000000Z", revenue=2.5),
        event("purchase", "eve", "2026-01-02T10:00:00.000000Z", revenue=9),
    ]


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_posthog(tmp_path: Path, suffix: str) -> None:
    """In JSON properties are objects, in Parquet their text; one file has exposures and metric."""
    events = posthog_events()
    path = tmp_path / f"events{suffix}"
    if suffix == ".parquet":
        for each in events:
            each["properties"] = json.dumps(each["properties"])
            each["timestamp"] = datetime.fromisoformat(each["timestamp"])
    write(path, events, list(events[0]))
    options: dict[str, Any] = {"preset": "posthog", "metric_where": "event = purchase"}
    done, rewards = join(tmp_path, path, path, columns={"value": "properties.revenue"}, **options)
    assert rewards == {("test", "ann"): 2.5, ("control", "bob"): 0.0, ("true", "dan"): 0.0}
    assert (done.exposures["filtered"], done.exposures["missing_action"]) == (3, 1)
    assert (done.metric["filtered"], done.metric["user_not_exposed"]) == (5, 1)
    # The variant as another event carries it, whose condition replaces that of the preset.
    named = {"action": "properties.$feature/checkout"}
    options |= {"experiment": "checkout", "exposure_where": "event = purchase", "columns": named}
    assert join(tmp_path, path, path, aggregate="any", **options)[1] == {
        ("test", "ann"): 1,
        ("test", "eve"): 1,
    }
    with pytest.raises(InvalidInputError, match=r"table of all events: select one with metric_where"):
        join(tmp_path, path, path, preset="posthog", aggregate="any")
    with pytest.raises(InvalidInputError, match=r"no column of values: name it with columns"):
        join(tmp_path, path, path, preset="posthog", metric_where="event = purchase")


def test_growthbook_with_another_identifier(tmp_path: Path) -> None:
    shown = tmp_path / "assignments.csv"
    shown.write_text(
        "anonymous_id,timestamp,experiment_id,variation_id,browser\n"
        "1,2021-08-23 10:53:04,my-test,0,Chrome\n2,2021-08-23 10:53:06,my-test,1,Safari\n"
    )
    metric = tmp_path / "revenue.csv"
    metric.write_text("anonymous_id,timestamp,value\n1,2021-08-23 11:00:00,5\n")
    _, rewards = join(tmp_path, shown, metric, preset="growthbook", columns={"user": "anonymous_id"})
    assert rewards == {("0", "1"): 5.0, ("1", "2"): 0.0}


STATSIG = (
    "unit_id,unit_type,exposure_type,name,experiment_group,first_exposure_utc\n"
    "1,userID,get_experiment,checkout,Control,2026-01-01 10:00:00\n"
    "2,userID,check_gate,gate,,2026-01-01 10:00:00\n",
    "user_id,timestamp,event_name,event_value\n"
    "1,2026-01-01 10:00:00,purchase,12.5\n1,2026-01-01 11:00:00,view,home\n",
)
LAUNCHDARKLY = (
    "flag_key,context_key,context_kind,variation_id,experiment_iteration_id,received_time\n"
    "f,1,user,v1,i1,2026-01-01T10:00:00Z\nf,org,organization,v1,i1,2026-01-01T10:00:00Z\n"
    "f,2,user,v2,,2026-01-01T10:00:00Z\n",
    "context_key,context_kind,event_key,event_value,received_time\n"
    "1,user,purchase,3,2026-01-01T10:00:00Z\norg,organization,purchase,3,2026-01-01T10:00:00Z\n",
)


@pytest.mark.parametrize(
    ("preset", "tables", "event", "variant", "reward", "missing"),
    [
        ("statsig", STATSIG, "event_name = purchase", "Control", 12.5, "missing_action"),
        ("launchdarkly", LAUNCHDARKLY, "event_key = purchase", "v1", 3.0, "missing_experiment"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_tables_of_warehouses(
    tmp_path: Path,
    preset: str,
    tables: Any,
    event: str,
    variant: str,
    reward: float,
    missing: str,
    suffix: str,
) -> None:
    paths = [tmp_path / f"shown{suffix}", tmp_path / f"events{suffix}"]
    for path, text in zip(paths, tables, strict=True):
        path.with_suffix(".csv").write_text(text)
        if suffix == ".parquet":  # with times and numbers that have types
            duckdb.sql(f"COPY (FROM read_csv('{path.with_suffix('.csv')}')) TO '{path}'")
    done, rewards = join(tmp_path, *paths, preset=preset, metric_where=event)
    assert rewards == {(variant, "1"): reward}
    assert (done.exposures[missing], done.metric["filtered"], done.rows_without_metric) == (1, 1, 0)
