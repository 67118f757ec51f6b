"""Exports as each platform writes them, joined by its preset."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
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


@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet"])
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
    assert (done.metric["filtered"], done.metric["user_exposed"], done.metric["user_not_exposed"]) == (
        5,
        1,
        1,
    )
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


MOMENT = datetime(2026, 1, 1, 10, tzinfo=UTC)
STATSIG: tuple[dict[str, Any], dict[str, Any]] = (
    {
        "unit_id": ["1", "2"],
        "unit_type": ["userID"] * 2,
        "exposure_type": ["get_experiment", "check_gate"],
        "name": ["checkout", "gate"],
        "experiment_group": ["Control", None],
        "first_exposure_utc": [MOMENT] * 2,
    },
    {
        "user_id": ["1", "1"],
        "timestamp": [MOMENT] * 2,
        "event_name": ["purchase", "view"],
        "event_value": ["12.5", "home"],
    },
)
LAUNCHDARKLY: tuple[dict[str, Any], dict[str, Any]] = (
    {
        "flag_key": ["f"] * 3,
        "context_key": ["1", "org", "2"],
        "context_kind": ["user", "organization", "user"],
        "variation_id": ["v1", "v1", "v2"],
        "experiment_iteration_id": ["i1", "i1", None],
        "received_time": [MOMENT] * 3,
    },
    {
        "context_key": ["1", "org"],
        "context_kind": ["user", "organization"],
        "event_key": ["purchase"] * 2,
        "event_value": [3.0] * 2,
        "received_time": [MOMENT] * 2,
    },
)


@pytest.mark.parametrize(
    ("preset", "tables", "options", "wanted", "missing"),
    [
        ("statsig", STATSIG, {"metric_where": "event_name = purchase"}, ("Control", 12.5), (0, 1)),
        ("launchdarkly", LAUNCHDARKLY, {"metric_where": "event_key = purchase"}, ("v1", 3.0), (1, 0)),
    ],
)
def test_tables_of_warehouses(
    tmp_path: Path, preset: str, tables: Any, options: Any, wanted: Any, missing: tuple[int, int]
) -> None:
    for name, columns in zip(("shown", "events"), tables, strict=True):
        pq.write_table(pa.table(columns), tmp_path / f"{name}.parquet")
    paths = tmp_path / "shown.parquet", tmp_path / "events.parquet"
    done, rewards = join(tmp_path, *paths, preset=preset, **options)
    assert rewards == {(wanted[0], "1"): wanted[1]}
    assert (done.exposures["missing_experiment"], done.exposures["missing_action"]) == missing
    assert done.metric["filtered"] == 1
    # Tables may as well be in memory.
    assert join(tmp_path, *tables, preset=preset, **options)[0] == done
