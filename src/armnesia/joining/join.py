"""`join_metrics`: a log of decisions from a table of exposures and a table of a metric."""

import math
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.files import output_file
from armnesia.core.messages import any_of, listed
from armnesia.core.units import checked_reward_range
from armnesia.joining.presets import preset_of
from armnesia.joining.tables import VALUE_UNIT, Table, opened
from armnesia.logs.conditions import Where
from armnesia.logs.engine import Connection, connected
from armnesia.logs.sql import literal

AGGREGATES = {
    "sum": f"CAST(sum(units) FILTER (within) AS DOUBLE) / {VALUE_UNIT}::DOUBLE",
    "any": "CAST(count(*) FILTER (within AND units <> 0) > 0 AS DOUBLE)",
    "count": "CAST(count(*) FILTER (within) AS DOUBLE)",
}
"""How the values of a person become the reward, in SQL."""
_FORMATS = {
    ".parquet": "FORMAT parquet",
    ".csv": "FORMAT csv, HEADER",
    ".csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
}
_COLUMNS = {
    "experiment": "experiment",
    "action": "action",
    "reward": "reward",
    "user": "person",
    "id": "concat(length(experiment), ':', experiment, ':', person)",
    "first_exposure": "make_timestamptz(first)",
    "exposures": "exposures",
    "metric_rows": "coalesce(metric_rows, 0)",
}
"""The columns of every log, in SQL; the length in an id parts the names of experiment and user."""
_SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST_WINDOW = timedelta(days=36_525)


_EXPOSURES = ("used", "filtered", "missing_user", "missing_experiment", "missing_action", "missing_time")
_METRIC = ("filtered", "missing_user", "missing_time", "missing_value", "user_not_exposed")
_RESULT = {
    "rows": "count(*) FILTER (is_row)",
    "left_out_several_variants": "count(*) FILTER (is_left_out)",
    "rows_without_metric": "count(*) FILTER (is_row AND coalesce(metric_rows, 0) = 0)",
    "rows_with_open_window": "count(*) FILTER (is_row AND first + $window > last)",
    "rows_clipped": "count(*) FILTER (is_row AND reward <> unclipped)",
    "lowest_reward": "min(reward) FILTER (is_row)",
    "highest_reward": "max(reward) FILTER (is_row)",
}
"""What is counted in the table of the join, in SQL."""
_LAST = "greatest((SELECT max(last_exposure) FROM people), (SELECT max(last_metric) FROM sums))"
_VARIANTS = """
    SELECT experiment, action, count(*), count(*) FILTER (metric_rows > 0)
    FROM joined WHERE is_row GROUP BY ALL ORDER BY experiment, action"""


@dataclass(frozen=True)
class Joined:
    """The result of `join_metrics`: what was written, and what was left out."""

    out: Path
    rows: int
    left_out_several_variants: int
    """How many people are left out of an experiment, because they saw several of its variants."""
    rows_without_metric: int
    rows_with_open_window: int
    """Rows whose window ends after the last time of both tables: their reward may still grow."""
    rows_clipped: int
    lowest_reward: float
    highest_reward: float
    exposures: Mapping[str, int]
    """How many are `used`, `filtered` by a condition, or without a value, `missing_…`."""
    metric: Mapping[str, int]
    """How many rows are `filtered`, `missing_…`, or `user_not_exposed`."""
    variants: tuple[Mapping[str, Any], ...]
    """The `people` of each `experiment` and `action`, and how many of them are `with_metric`."""

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it."""
        return {**asdict(self), "out": str(self.out)}


def count(connection: Connection, window: int, tables: Sequence[Table], out: Path) -> Joined:
    """Count everything in the table of the join; refuse what cannot be understood, and a log without rows."""
    exposures: dict[str, int] = dict(connection.rows("SELECT fate, sum(exposures) FROM people GROUP BY fate"))
    metric: dict[str, int] = dict(connection.rows("SELECT fate, sum(uses) FROM sums GROUP BY fate"))
    for table, fates in zip(tables, (exposures, metric), strict=True):
        for role in ("time", "value"):
            if f"unreadable_{role}" in fates:
                raise table.refused(role)
    sql = f"SELECT {', '.join(_RESULT.values())} FROM joined, (SELECT {_LAST} AS last)"
    result = dict(zip(_RESULT, connection.rows(sql, {"window": window})[0], strict=True))
    if not result["rows"]:
        used = exposures.get("used", 0)
        raise InvalidLogError(
            f"no row is left for the log: of {sum(exposures.values())} exposures, {used} are complete and"
            f" selected{', all of people who saw several variants' if used else ''}"
        )
    if result["rows_without_metric"] == result["rows"] and metric.keys() & {"used", "user_not_exposed"}:
        warnings.warn(
            "no row of the metric lies in a window, so every reward is that of people without any:"
            f" {metric.get('user_not_exposed', 0)} are of users who are not among those of the exposures (in"
            " CSV and JSON, 1 and 1.0 are different), and others are too early or too late",
            stacklevel=3,
        )
    names = ("experiment", "action", "people", "with_metric")
    variants = tuple(dict(zip(names, row, strict=True)) for row in connection.rows(_VARIANTS))
    shown = {name: int(exposures.get(name, 0)) for name in _EXPOSURES}
    measured = {name: int(metric.get(name, 0)) for name in _METRIC}
    return Joined(out, **result, exposures=shown, metric=measured, variants=variants)


def join_metrics(
    exposures: Any,
    metric: Any,
    *,
    out: str | os.PathLike[str],
    window: str | timedelta,
    aggregate: str = "sum",
    clip: Iterable[float] | None = None,
    preset: str | None = None,
    columns: Mapping[str, str] | None = None,
    experiment: str | None = None,
    exposure_where: Where | None = None,
    metric_where: Where | None = None,
    replace: bool = False,
) -> Joined:
    """Write a log with one row per person and experiment: the variant that they saw, and what they did then.

    `exposures` and `metric` are files, dataframes or tables of lakes as for `read_log`, or files of JSON
    objects. The values of a person count from the first exposure on, and before the first exposure plus
    `window` (`14d`, `36h`, a timedelta). The reward is their sum. With `any` it is whether one of them is not
    0, with `count` how many there are. People without any have 0. `clip` bounds it afterwards. People who saw
    several variants of an experiment are left out and counted. `out` is a new Parquet or CSV file, there when
    it is complete.

    `preset` names the columns as a platform does: growthbook, posthog, statsig or launchdarkly. `columns`
    names single ones: experiment, action, user, time, metric_user, metric_time, value. A column may be
    `column.property` of JSON objects. `experiment` names the experiment of a table without such a column.
    Times without a zone are those of UTC.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = pathlib.Path(folder.name) / "log.csv"
    >>> shown = {"experiment": ["checkout"] * 3, "action": ["A", "B", "A"], "user": ["ann", "bob", "bob"],
    ...     "time": ["2026-01-01", "2026-01-01", "2026-01-02"]}
    >>> bought = {"user": ["ann", "ann"], "time": ["2026-01-03", "2026-01-15"], "value": [2.5, 4]}
    >>> joined = join_metrics(shown, bought, window="14d", clip=(0, 10), out=log)
    >>> joined.rows, joined.left_out_several_variants, joined.metric["user_not_exposed"]
    (1, 1, 0)
    >>> print(log.read_text())
    experiment,action,reward,user,id,first_exposure,exposures,metric_rows
    checkout,A,2.5,ann,8:checkout:ann,2026-01-01 00:00:00+00,1,1
    <BLANKLINE>
    >>> folder.cleanup()

    docs/joining.md says what every count means.
    """
    if aggregate not in AGGREGATES:
        raise InvalidInputError(f"aggregate must be {any_of(list(AGGREGATES))}; got {aggregate!r}")
    target = Path(out)
    format_ = next((how for end, how in _FORMATS.items() if target.name.lower().endswith(end)), None)
    if format_ is None:
        raise InvalidInputError(f"out must end in one of {listed(_FORMATS)}; got {target.name!r}")
    shown, measured = preset_of(preset).roles(columns or {}, experiment, with_value=aggregate == "sum")
    where = preset_of(preset).where(exposure_where, metric_where)
    length, bounds = _microseconds(window), _checked_clip(clip)
    with output_file(target, replace=replace) as temporary, ExitStack() as stack:
        sources = opened(exposures, "exposures", target), opened(metric, "metric", target)
        for source in sources:  # each loads what its kind needs, into the one database of this process
            stack.enter_context(source.connection())
        connection = stack.enter_context(connected(" and ".join(dict.fromkeys(s.location for s in sources))))
        tables = (
            Table.read(sources[0], connection, "exposures", shown, where[0]),
            Table.read(sources[1], connection, "metric", measured, where[1]),
        )
        parameters = [table.reading.parameters for table in tables]
        connection.rows(_people(tables[0]), {**parameters[0], "name": [experiment or ""]})
        connection.rows(_sums(tables[1], length, aggregate), parameters[1])
        connection.rows(_joined(bounds))
        found = count(connection, length, tables, target)
        log = ", ".join(f'{sql} AS "{name}"' for name, sql in _COLUMNS.items())
        how = f"{format_}, USE_TMP_FILE false"  # which a process that is killed would leave
        connection.rows(f"COPY (SELECT {log} FROM joined WHERE is_row) TO {literal(str(temporary))} ({how})")
        return found


def _people(exposures: Table) -> str:
    """One row for each person and experiment, and one for each reason not to use exposures.

    Somebody saw one variant if the smallest and the largest are the same, and then it is the first one, too.
    """
    labels = {role: exposures.label(role) for role in ("experiment", "action") if role in exposures.names}
    return f"""
        CREATE TEMP TABLE people AS
        SELECT fate,
            CASE WHEN fate = 'used' THEN experiment END AS experiment,
            CASE WHEN fate = 'used' THEN person END AS person,
            min(action) AS action,
            fate = 'used' AND min(action) = max(action) AS is_row,
            fate = 'used' AND min(action) <> max(action) AS is_left_out,
            min(time) AS first,
            max(time) AS last_exposure,
            count(*) AS exposures
        FROM ({exposures.judged({"experiment": "$name[1]", **labels})}) GROUP BY fate, 2, 3"""


def _sums(metric: Table, window: int, aggregate: str) -> str:
    """The metric of each row of people, and rows for each reason not to use rows of the metric.

    A row of the metric belongs to each experiment of its person.
    """
    return f"""
        CREATE TEMP TABLE sums AS
        WITH uses AS (
            SELECT people.rowid AS place, metric.time, units,
                CASE WHEN metric.fate = 'used' AND people.person IS NULL THEN 'user_not_exposed'
                    ELSE metric.fate END AS fate,
                coalesce(is_row AND time >= first AND time < first + {window}, false) AS within
            FROM ({metric.judged({"units": metric.units(aggregate)})}) AS metric LEFT JOIN people
            ON CASE WHEN metric.fate = 'used' THEN metric.person END = people.person
        )
        SELECT fate, place,
            count(*) AS uses,
            count(*) FILTER (within) AS metric_rows,
            max(time) AS last_metric,
            {AGGREGATES[aggregate]} AS total
        FROM uses GROUP BY ALL"""


def _joined(clip: tuple[float, float] | None) -> str:
    """Both together, with the reward of each row."""
    low, high = clip or (-math.inf, math.inf)
    return f"""
        CREATE TEMP VIEW joined AS
        SELECT people.*, metric_rows, coalesce(total, 0) AS unclipped,
            greatest('{low!r}'::DOUBLE, least('{high!r}'::DOUBLE, unclipped)) AS reward
        FROM people LEFT JOIN sums ON people.rowid = place"""


def _microseconds(window: str | timedelta) -> int:
    """The length of a window.

    >>> _microseconds("14d") == _microseconds("2w") == _microseconds("336h")
    True
    """
    length = window
    if isinstance(window, str):
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(s|min|h|d|w)", window.strip())
        seconds = float(found[1]) * _SECONDS[found[2]] if found else 0.0
        length = timedelta(seconds=min(seconds, 1e11))
    if not isinstance(length, timedelta) or not timedelta(0) < length <= _LONGEST_WINDOW:
        raise InvalidInputError(
            "window must be a time of more than 0 and at most 100 years, such as 14d, 36h, 90min or 30s;"
            f" got {window!r}"
        )
    return length // timedelta(microseconds=1)


def _checked_clip(clip: Iterable[float] | None) -> tuple[float, float] | None:
    """The lowest and the highest reward."""
    try:
        return None if clip is None else checked_reward_range(tuple(clip))  # type: ignore[arg-type]
    except (InvalidInputError, TypeError):
        raise InvalidInputError(
            f"clip must be two finite numbers, the lower one first, such as (0, 100); got {clip!r}"
        ) from None
