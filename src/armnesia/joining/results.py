"""What a join did: how many rows it wrote, and what became of every row that it read."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from armnesia.core.errors import InvalidLogError
from armnesia.core.messages import counted
from armnesia.joining.tables import Table
from armnesia.logs.engine import Connection

_COUNTS: dict[str, dict[Any, str]] = {
    "exposures": {
        fate: f"sum(exposures) FILTER (exposure_fate = '{fate}')"
        for fate in ("filtered", "missing_user", "missing_experiment", "missing_action", "missing_time")
    }
    | {
        "of_people_left_out": "sum(exposures) FILTER (is_left_out)",
        "first": "count(*) FILTER (is_row)",
        "repeated": "sum(exposures - 1) FILTER (is_row)",
    },
    "metric": {
        fate: f"sum(uses) FILTER (metric_fate = '{fate}')"
        for fate in ("filtered", "missing_user", "missing_time", "missing_value", "user_not_exposed")
    }
    | {"user_exposed": "sum(uses) FILTER (place IN (SELECT place FROM leaders))"},
    "metric_uses": {
        "within_window": "sum(metric_rows) FILTER (is_row)",
        "before_window": "sum(uses_before) FILTER (is_row)",
        "after_window": "sum(uses - metric_rows - uses_before) FILTER (is_row)",
        "of_people_left_out": "sum(uses) FILTER (is_left_out)",
    },
    "result": {
        "rows": "count(*) FILTER (is_row)",
        "people": "(SELECT count(*) FROM leaders WHERE is_person)",
        "left_out_several_variants": "count(*) FILTER (is_left_out)",
        "rows_without_metric": "count(*) FILTER (is_row AND coalesce(metric_rows, 0) = 0)",
        "rows_with_open_window": "count(*) FILTER (is_row AND first + $window > last)",
        "rows_clipped": "count(*) FILTER (is_row AND reward <> unclipped)",
        "lowest_reward": "min(reward) FILTER (is_row)",
        "highest_reward": "max(reward) FILTER (is_row)",
    },
    "unreadable": {
        (0, "time"): "sum(exposures) FILTER (exposure_fate = 'unreadable_time')",
        (1, "time"): "sum(uses) FILTER (metric_fate = 'unreadable_time')",
        (1, "value"): "sum(uses) FILTER (metric_fate = 'unreadable_value')",
    },
    "last": {"exposure": "max(last_exposure)", "metric": "max(last_metric)"},
}
"""What is counted in the table of the join, in SQL."""
_EXPERIMENTS = """
    SELECT experiment, sum(left_out), list(variant ORDER BY variant.action) FILTER (variant.people > 0)
    FROM (
        SELECT experiment, count(*) FILTER (is_left_out) AS left_out,
            struct_pack(
                action := action,
                people := count(*) FILTER (is_row),
                exposures := sum(exposures) FILTER (is_row),
                with_metric := count(*) FILTER (is_row AND metric_rows > 0)
            ) AS variant
        FROM joined WHERE exposure_fate = 'used' GROUP BY experiment, action
    ) GROUP BY experiment ORDER BY experiment"""


@dataclass(frozen=True)
class Joined:
    """The result of `join_metrics`: what was written, and what became of every row that was read."""

    out: Path
    rows: int
    """One per person and experiment."""
    people: int
    left_out_several_variants: int
    """People, counted once per experiment, who saw several of its variants."""
    rows_without_metric: int
    rows_with_open_window: int
    """Rows whose window ends after the last time in both tables: their metric may still grow."""
    rows_clipped: int
    lowest_reward: float
    highest_reward: float
    exposures: Mapping[str, int]
    """Of those `read`: `filtered`, `missing_…`, `of_people_left_out`, `first` of each row, `repeated`."""
    metric: Mapping[str, int]
    """Of the rows `read`: `filtered`, `missing_…`, `user_not_exposed` and `user_exposed`."""
    metric_uses: Mapping[str, int]
    """The last of these, once for every experiment of the person: `within_window`, `before_window`, …"""
    experiments: tuple[Mapping[str, Any], ...]
    """Of each: `people`, `left_out_several_variants`, `equal_shares_p_value`, and its `variants`."""

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it."""
        return {**asdict(self), "out": str(self.out)}


def equal_shares_p_value(counts: Sequence[int]) -> float | None:
    """The p-value of Pearson's chi-square test that every variant was meant to get the same share.

    A small value shows a sample ratio mismatch, or that the shares were not meant to be equal. None if there
    is one variant only.

    >>> equal_shares_p_value([500, 500]), equal_shares_p_value([100])
    (1.0, None)
    """
    observed = np.asarray(counts, dtype=np.float64)
    if observed.size < 2:
        return None
    expected = observed.mean()
    return float(special.chdtrc(observed.size - 1, ((observed - expected) ** 2 / expected).sum()))


def count(connection: Connection, window: int, tables: Sequence[Table], out: Path) -> Joined:
    """Count everything in the table of the join; refuse what cannot be understood, and a log without rows."""
    expressions = [f"coalesce({sql}, 0)" for group in _COUNTS.values() for sql in group.values()]
    last = "greatest((SELECT max(last_exposure) FROM people), (SELECT max(last_metric) FROM sums))"
    sql = f"SELECT {', '.join(expressions)} FROM joined, (SELECT {last} AS last)"
    numbers = iter(connection.rows(sql, {"window": window})[0])
    found = {kind: {name: next(numbers) for name in group} for kind, group in _COUNTS.items()}
    for (at, role), number in found["unreadable"].items():
        if number:
            raise tables[at].refused(role)
    result, read = found["result"], sum(found["exposures"].values())
    if not result["rows"]:
        left_out = counted(result["left_out_several_variants"], "person", "people")
        raise InvalidLogError(
            f"no row is left for the log: {counted(read, 'exposure')} read,"
            f" {found['exposures']['of_people_left_out']} of them complete and selected, and {left_out} left"
            " out for several variants"
        )
    _warn(found["metric"], found["metric_uses"], found["last"])
    return Joined(
        out,
        **result,
        exposures={"read": read, **found["exposures"]},
        metric={"read": sum(found["metric"].values()), **found["metric"]},
        metric_uses=found["metric_uses"],
        experiments=tuple(map(_experiment, connection.rows(_EXPERIMENTS))),
    )


def _experiment(row: tuple[Any, ...]) -> dict[str, Any]:
    name, left_out, variants = row
    people = [variant["people"] for variant in variants or ()]
    return {
        "experiment": name,
        "people": sum(people),
        "left_out_several_variants": left_out,
        "equal_shares_p_value": equal_shares_p_value(people),
        "variants": variants or [],
    }


def _warn(metric: Mapping[str, int], uses: Mapping[str, int], last: Mapping[str, int]) -> None:
    """Warn of metrics that are all 0 because of how users or times are written."""
    if uses["within_window"] or not metric["user_not_exposed"] + metric["user_exposed"]:
        return
    if not metric["user_exposed"]:
        reason = "its users are not among those of the exposures; in CSV and JSON, 1 and 1.0 are different"
    else:
        of_metric, of_exposures = (
            f"{datetime(1970, 1, 1) + timedelta(microseconds=last[each]):%Y-%m-%d %H:%M:%S} UTC"
            for each in ("metric", "exposure")
        )
        reason = (
            f"{uses['before_window']} are before the first exposure, {uses['after_window']} after the window;"
            f" the last time of the metric is {of_metric}, that of the exposures {of_exposures}"
        )
    warnings.warn(
        f"no row of the metric lies in a window, so every reward is that of people without any: {reason}",
        stacklevel=4,
    )
