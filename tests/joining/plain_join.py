"""The join in plain Python, row by row, without DuckDB: what `join_metrics` must agree with."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

Row = Mapping[str, Any]


@dataclass
class PlainJoin:
    """The rows of the log by experiment and user, and the counts."""

    rows: dict[tuple[str, str], tuple[str, float, int, int, datetime]] = field(default_factory=dict)
    """Action, reward, exposures, metric rows, and first exposure."""
    exposures: Counter[str] = field(default_factory=Counter)
    metric: Counter[str] = field(default_factory=Counter)
    left_out: int = 0
    clipped: int = 0
    open: int = 0


def text_of(value: Any) -> str | None:
    """A label's text; whole floats are integers, empty text is missing."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def plain_join(  # noqa: PLR0912 (written out, so that it can be read beside docs/joining.md)
    exposures: Sequence[Row],
    metric: Sequence[Row],
    window: timedelta,
    aggregate: str,
    clip: tuple[float, float] | None,
    *,
    exposure_where: Mapping[str, str],
    metric_where: Mapping[str, str],
    with_value: bool,
) -> PlainJoin:
    """Rows have user and time; exposures an experiment, an action, metric rows a value."""
    done = PlainJoin()
    seen: dict[tuple[str, str], list[tuple[datetime, str]]] = {}
    times = [
        row["time"]
        for rows, where in ((exposures, exposure_where), (metric, metric_where))
        for row in rows
        if row["time"] is not None and all(text_of(row[name]) == text for name, text in where.items())
    ]
    for row in exposures:
        user, experiment, action = (text_of(row[name]) for name in ("user", "experiment", "action"))
        if any(text_of(row[name]) != wanted for name, wanted in exposure_where.items()):
            done.exposures["filtered"] += 1
        elif user is None:
            done.exposures["missing_user"] += 1
        elif experiment is None:
            done.exposures["missing_experiment"] += 1
        elif action is None:
            done.exposures["missing_action"] += 1
        elif row["time"] is None:
            done.exposures["missing_time"] += 1
        else:
            done.exposures["used"] += 1
            seen.setdefault((experiment, user), []).append((row["time"], action))
    kept = {}
    for key, shown in seen.items():
        if len({action for _, action in shown}) > 1:
            done.left_out += 1
        else:
            kept[key] = min(time for time, _ in shown)
    values: dict[tuple[str, str], list[float]] = {key: [] for key in kept}
    for row in metric:
        user = text_of(row["user"])
        if any(text_of(row[name]) != wanted for name, wanted in metric_where.items()):
            done.metric["filtered"] += 1
        elif user is None:
            done.metric["missing_user"] += 1
        elif row["time"] is None:
            done.metric["missing_time"] += 1
        elif with_value and text_of(row["value"]) is None:
            done.metric["missing_value"] += 1
        else:
            done.metric["user_not_exposed"] += not any(key[1] == user for key in seen)
            for key, first in kept.items():
                if key[1] == user and first <= row["time"] < first + window:
                    values[key].append(row["value"] if with_value else 1)
    for key, found in values.items():
        reward = aggregated(aggregate, found)
        bounded = reward if clip is None else max(clip[0], min(clip[1], reward))
        done.clipped += bounded != reward
        done.open += kept[key] + window > max(times)
        done.rows[key] = (seen[key][0][1], bounded, len(seen[key]), len(found), kept[key])
    return done


def aggregated(aggregate: str, values: Sequence[float]) -> float:
    """The reward before it is clipped; a sum is one of whole multiples of 10⁻⁹."""
    if aggregate == "sum":
        return sum(round(value * 1e9) for value in values) / 1e9
    return float(any(value != 0 for value in values) if aggregate == "any" else len(values))
