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

_MISSING = ("user", "experiment", "action", "time", "value")
_COUNTS = {
    "exposures": {
        fate: f"sum(exposures) FILTER (exposure_fate = '{fate}')"
        for fate in ("filtered", *(f"missing_{each}" for each in _MISSING[:4]))
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
    | {"user_exposed": "sum(uses) FILTER (metric_fate = 'user_exposed' AND is_first_of_person)"},
    "metric_uses": {
        "within_window": "sum(metric_rows) FILTER (is_row)",
        "before_window": "sum(uses_before) FILTER (is_row)",
        "after_window": "sum(uses - metric_rows - uses_before) FILTER (is_row)",
        "of_people_left_out": "sum(uses) FILTER (is_left_out)",
    },
    "result": {
        "rows": "count(*) FILTER (is_row)",
        "people": "count(DISTINCT person) FILTER (is_row)",
        "left_out_several_variants": "count(*) FILTER (is_left_out)",
        "rows_without_metric": "count(*) FILTER (is_row AND coalesce(metric_rows, 0) = 0)",
        "rows_with_open_window": "count(*) FILTER (is_row AND first + $window > last)",
        "rows_clipped": "count(*) FILTER (is_row AND reward <> unclipped)",
    },
    "rewards": {
        "lowest_reward": "min(reward) FILTER (is_row)",
        "highest_reward": "max(reward) FILTER (is_row)",
    },
    "other": {
        "unreadable_exposures": "sum(exposures) FILTER (exposure_fate = 'unreadable_time')",
        "unreadable_times": "sum(uses) FILTER (metric_fate = 'unreadable_time')",
        "unreadable_values": "sum(uses) FILTER (metric_fate = 'unreadable_value')",
        "exposure_dates": "sum(exposure_dates) FILTER (exposure_fate = 'used')",
        "metric_dates": "sum(metric_dates) FILTER (metric_fate = 'user_not_exposed' OR is_first_of_person)",
        "last_exposure": "max(last_exposure)",
        "last_metric": "max(last_metric)",
    },
}
"""What is counted in the table of the join, in SQL."""


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
    """Of those `read`: `filtered`, `missing_…`, `of_people_left_out`, `first` (one per row) and `repeated`."""
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
    >>> round(equal_shares_p_value([5200, 4800]), 6)
    6.3e-05
    """
    observed = np.asarray(counts, dtype=np.float64)
    if observed.size < 2:
        return None
    expected = observed.mean()
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return float(special.chdtrc(observed.size - 1, statistic))


def count(connection: Connection, window: int, shown: Table, measured: Table, out: Path) -> Joined:
    """Count everything in the table of the join; refuse what cannot be understood, and a log without rows."""
    expressions = [sql for group in _COUNTS.values() for sql in group.values()]
    last = "(SELECT greatest(max(last_exposure), max(last_metric)) AS last FROM joined) AS times"
    sql = f"SELECT {', '.join(expressions)} FROM joined, {last}"
    ((*numbers,),) = connection.rows(sql, {"window": window})
    values = iter(numbers)
    found = {kind: {name: next(values) or 0 for name in group} for kind, group in _COUNTS.items()}
    result, other = found["result"], found["other"]
    exposures, metric = (
        {"read": sum(found[each].values()), **found[each]} for each in ("exposures", "metric")
    )
    for table, fault, role in (
        (shown, "unreadable_exposures", "time"),
        (measured, "unreadable_times", "time"),
        (measured, "unreadable_values", "value"),
    ):
        if other[fault]:
            raise table.refused(role)
    if not result["rows"]:
        usable = exposures["of_people_left_out"]
        raise InvalidLogError(
            f"no row is left for the log: {counted(exposures['read'], 'exposure')} read, {usable} of them"
            f" complete and selected, and {counted(result['left_out_several_variants'], 'person', 'people')}"
            " left out for several variants"
        )
    _warn(metric, found["metric_uses"], other)
    return Joined(
        out=out,
        **{name: int(number) for name, number in result.items()},
        **found["rewards"],
        exposures=exposures,
        metric=metric,
        metric_uses=found["metric_uses"],
        experiments=tuple(map(_experiment, connection.rows(_EXPERIMENTS))),
    )


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


def _warn(metric: Mapping[str, int], uses: Mapping[str, int], other: Mapping[str, int]) -> None:
    """Warn of metrics that are 0 because of how users or times are written."""
    if metric["user_not_exposed"] and not metric["user_exposed"]:
        warnings.warn(
            "no user of the metric is among those of the exposures, so every reward is that of people"
            " without metric rows; are users spelled alike? In CSV and JSON, 1 and 1.0 are different",
            stacklevel=5,
        )
    before, after = uses["before_window"], uses["after_window"]
    if other["metric_dates"] and not other["exposure_dates"]:
        warnings.warn(
            f"the metric has {counted(other['metric_dates'], 'date')} without a time of day, taken as midnight:"
            " before any exposure of the same day; give times of day, or cut the exposures to dates, too",
            stacklevel=5,
        )
    elif not uses["within_window"] and before + after:
        warnings.warn(
            "no row of the metric lies in a window, so every reward is that of people without metric rows:"
            f" {before} before the first exposure, {after} after the window; the last time of the metric is"
            f" {_moment(other['last_metric'])}, that of the exposures {_moment(other['last_exposure'])}: are"
            " the window, time_unit and the zones right?",
            stacklevel=5,
        )


def _moment(microseconds: int) -> str:
    """A time since 1970 in UTC.

    >>> _moment(1_768_003_200_000_000)
    '2026-01-10 00:00:00 UTC'
    """
    moment = datetime(1970, 1, 1) + timedelta(microseconds=microseconds)
    return f"{moment.isoformat(' ', 'seconds')} UTC"
