"""`join_metrics`: a log of decisions from a table of exposures and a table of a metric."""

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.core.files import output_file
from armnesia.core.messages import any_of, listed
from armnesia.core.units import checked_reward_range
from armnesia.joining.presets import preset_of
from armnesia.joining.results import Joined, count
from armnesia.joining.tables import VALUE_UNIT, Table, opened
from armnesia.logs.conditions import Where
from armnesia.logs.engine import connected
from armnesia.logs.sql import literal, quoted

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
    keep: str | Iterable[str] = (),
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
    `keep` names columns of the exposures that the log gets as well, with the value of the person's first
    exposure. Times without a zone are those of UTC.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> log = pathlib.Path(folder.name) / "log.csv"
    >>> shown = {"experiment": ["checkout"] * 3, "action": ["A", "B", "A"], "user": ["ann", "bob", "bob"],
    ...     "time": ["2026-01-01", "2026-01-01", "2026-01-02"]}
    >>> bought = {"user": ["ann", "ann"], "time": ["2026-01-03", "2026-01-15"], "value": [2.5, 4]}
    >>> joined = join_metrics(shown, bought, window="14d", clip=(0, 10), out=log)
    >>> joined.rows, joined.left_out_several_variants, joined.metric_uses["after_window"]
    (1, 1, 1)
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
    kept = {f"keep_{at}": name for at, name in enumerate(_checked_keep(keep))}
    shown, measured = preset_of(preset).roles(columns or {}, experiment, with_value=aggregate == "sum")
    where = preset_of(preset).where(exposure_where, metric_where)
    length, bounds = _microseconds(window), _checked_clip(clip)
    with output_file(target, replace=replace) as temporary, ExitStack() as stack:
        sources = opened(exposures, "exposures", target), opened(metric, "metric", target)
        for source in sources:  # each loads what its kind needs, into the one database of this process
            stack.enter_context(source.connection())
        connection = stack.enter_context(connected(" and ".join(dict.fromkeys(s.location for s in sources))))
        tables = (
            Table.read(sources[0], connection, "exposures", shown | kept, where[0]),
            Table.read(sources[1], connection, "metric", measured, where[1]),
        )
        named = {**tables[0].parameters, "exposures_name": [experiment or ""]}
        connection.rows(_people(tables[0], list(kept), as_text="csv" in format_), named)
        connection.rows(_sums(tables[1], length, aggregate), tables[1].parameters)
        connection.rows(_LEADERS)
        connection.rows(_joined(bounds))
        found = count(connection, length, tables, target)
        written = _COLUMNS | {name: f"kept.{role}" for role, name in kept.items()}
        log = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in written.items())
        how = f"{format_}, USE_TMP_FILE false"  # which a process that is killed would leave
        connection.rows(f"COPY (SELECT {log} FROM joined WHERE is_row) TO {literal(str(temporary))} ({how})")
        return found


def _people(exposures: Table, kept: Sequence[str], *, as_text: bool) -> str:
    """One row for each person and experiment, and one for each reason not to use exposures.

    Somebody saw one variant if the smallest and the largest are the same, and then it is the first one, too.
    The columns to keep are those of one exposure: the first, and of several at that time the smallest.
    """
    labels = {role: exposures.label(role) for role in ("experiment", "action") if role in exposures.names}
    values = {role: exposures.kept(role, as_text=as_text) for role in kept}
    first = f"struct_pack(at := time{''.join(f', {role} := {role}' for role in kept)})"
    return f"""
        CREATE TEMP TABLE people AS
        SELECT fate AS exposure_fate,
            CASE WHEN fate = 'used' THEN experiment END AS experiment,
            CASE WHEN fate = 'used' THEN person END AS person,
            min(action) AS action,
            fate = 'used' AND min(action) = max(action) AS is_row,
            fate = 'used' AND min(action) <> max(action) AS is_left_out,
            min(time) AS first,
            max(time) AS last_exposure,
            {f"min({first}) FILTER (fate = 'used')" if kept else "NULL"} AS kept,
            count(*) AS exposures
        FROM ({exposures.judged({"experiment": "$name[1]", **labels, **values})}) GROUP BY fate, 2, 3"""


def _sums(metric: Table, window: int, aggregate: str) -> str:
    """The metric of each row of people, and one row for each reason not to use rows of the metric.

    A row of the metric belongs to each experiment of its person.
    """
    return f"""
        CREATE TEMP TABLE sums AS
        WITH uses AS (
            SELECT people.rowid AS place, metric.time, units,
                CASE WHEN fate <> 'used' THEN fate WHEN people.person IS NULL THEN 'user_not_exposed'
                    ELSE 'user_exposed' END AS metric_fate,
                coalesce(is_row AND time >= first AND time < first + {window}, false) AS within,
                time < first AS is_before
            FROM ({metric.judged({"units": metric.units(aggregate)})}) AS metric LEFT JOIN people
            ON CASE WHEN fate = 'used' THEN metric.person END = people.person
        )
        SELECT metric_fate, place,
            count(*) AS uses,
            count(*) FILTER (within) AS metric_rows,
            count(*) FILTER (is_before) AS uses_before,
            max(time) AS last_metric,
            {AGGREGATES[aggregate]} AS total
        FROM uses GROUP BY ALL"""


_LEADERS = """
    CREATE TEMP TABLE leaders AS
    SELECT min(rowid) AS place, bool_or(is_row) AS is_person FROM people GROUP BY person"""
"""One row of each person, to count them and their metric once."""


def _joined(clip: tuple[float, float] | None) -> str:
    """Both together, with the reward of each row."""
    low, high = clip or (-math.inf, math.inf)
    return f"""
        CREATE TEMP VIEW joined AS
        SELECT people.*, sums.*, coalesce(total, 0) AS unclipped,
            greatest('{low!r}'::DOUBLE, least('{high!r}'::DOUBLE, unclipped)) AS reward
        FROM people FULL JOIN sums ON people.rowid = place"""


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


def _checked_keep(keep: str | Iterable[str]) -> tuple[str, ...]:
    """The columns to keep of the exposures, which the log does not have anyway."""
    names = (keep,) if isinstance(keep, str) else tuple(keep)
    used = set(_COLUMNS)
    for name in names:
        if not isinstance(name, str) or not name or name.lower() in used:
            raise InvalidInputError(
                f"keep must be names of different columns, other than {listed(_COLUMNS)}, which the log has;"
                f" got {name!r}"
            )
        used.add(name.lower())
    return names
