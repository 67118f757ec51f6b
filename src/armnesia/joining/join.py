"""`join_metrics`: a log of decisions from a table of exposures and a table of a metric."""

import dataclasses
import math
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from armnesia.core.errors import InvalidInputError
from armnesia.core.files import output_file
from armnesia.core.messages import any_of, listed
from armnesia.joining.presets import JoinColumns, named_preset
from armnesia.joining.results import Joined, count
from armnesia.joining.tables import TIME_UNITS, VALUE_UNIT, Table, opened
from armnesia.logs.conditions import Where
from armnesia.logs.engine import connected
from armnesia.logs.sql import quoted

AGGREGATES = {
    "sum": f"CAST(sum(units) FILTER (within) AS DOUBLE) / {VALUE_UNIT}::DOUBLE",
    "any": "CAST(count(*) FILTER (within AND units <> 0) > 0 AS DOUBLE)",
    "count": "CAST(count(*) FILTER (within) AS DOUBLE)",
}
"""How the values of a person become the reward, in SQL."""
_FORMATS = {
    ".parquet": "FORMAT parquet",
    ".pq": "FORMAT parquet",
    ".csv": "FORMAT csv, HEADER",
    ".csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
}
_COLUMNS = ("experiment", "action", "reward", "user", "id", "first_exposure", "exposures", "metric_rows")
"""The columns of every log, before those that are kept of the exposures."""
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
    time_unit: str | None = None,
    time_zone: str = "UTC",
    replace: bool = False,
) -> Joined:
    """Write a log with one row per person and experiment: the variant that they saw, and what they did then.

    `exposures` and `metric` are files or dataframes as for `read_log`, or files of JSON lines. The reward of
    a person is the sum of their values from the first exposure on and before the first exposure plus
    `window` (`14d`, `36h`, a timedelta), or with `any` whether one of them is not 0, or with `count` how many
    rows there are; 0 for people without any. `clip` bounds it afterwards. People who saw several variants of
    an experiment are left out and counted. `out` is a new Parquet or CSV file, there when it is complete.

    `preset` names the columns as a platform does: growthbook, posthog, statsig or launchdarkly. `columns`
    names single ones: experiment, action, user, time, metric_user, metric_time, value. A column may be
    `column.property` of JSON objects. `experiment` names the experiment of a table without such a column.
    `keep` names columns of the exposures that the log gets as well, with the value of the person's first
    exposure. Times that are numbers count s, ms, us or ns (`time_unit`); others without a zone are in
    `time_zone`.

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
    named = named_preset(preset).named(columns or {}).only(exposure_where, metric_where)
    if aggregate != "sum" and "value" not in (columns or {}):
        named = dataclasses.replace(named, value=None)  # rows count, whatever else they say
    named.check_metric(preset, aggregate)
    if experiment is not None and (not experiment or "experiment" in (columns or {})):
        raise InvalidInputError(
            f"experiment must be the name of the only one, without a column of it; got {experiment!r}"
        )
    for name, given, known in (("aggregate", aggregate, AGGREGATES), ("time_unit", time_unit, TIME_UNITS)):
        if given is not None and given not in known:
            raise InvalidInputError(f"{name} must be {any_of(list(known))}; got {given!r}")
    target, bounds, length = Path(out), _checked_clip(clip), _microseconds(window)
    format_ = next((how for end, how in _FORMATS.items() if target.name.lower().endswith(end)), None)
    if format_ is None:
        raise InvalidInputError(f"out must end in one of {listed(_FORMATS)}; got {target.name!r}")
    join = _Join(named, length, aggregate, bounds, experiment, _checked_keep(keep), time_unit, format_)
    zone = _checked_time_zone(time_zone)
    with output_file(target, replace=replace) as temporary:
        return join.run(exposures, metric, zone, target, temporary)


@dataclass(frozen=True)
class _Join:
    """A join with checked options; the window is in microseconds."""

    columns: JoinColumns
    window: int
    aggregate: str
    clip: tuple[float, float] | None
    experiment: str | None
    keep: tuple[str, ...]
    time_unit: str | None
    format: str

    def run(self, exposures: Any, metric: Any, time_zone: str, out: Path, temporary: Path) -> Joined:
        """Read both tables, write the log, and count."""
        sources = opened(exposures, "exposures"), opened(metric, "metric")
        for path in (path for source in sources for path in getattr(source, "paths", ())):
            if out.exists() and os.path.exists(path) and os.path.samefile(out, path):
                raise InvalidInputError(
                    f"out must not be a file that is read: {str(out)!r} is {path!r} of the exposures or the"
                    " metric; choose another file; nothing was written"
                )
        roles = self.columns.of_exposures(), self.columns.of_metric()
        if self.experiment is not None:
            del roles[0]["experiment"]
        roles[0].update({f"keep_{at}": name for at, name in enumerate(self.keep)})
        with connected(" and ".join(dict.fromkeys(source.location for source in sources))) as connection:
            connection.rows(f"SET TimeZone = '{time_zone}'")
            where = self.columns.exposure_where, self.columns.metric_where
            shown, measured = (
                Table.read(sources[at], connection, what, roles[at], where[at], self.time_unit)
                for at, what in enumerate(("exposures", "metric"))
            )
            parameters = {
                **shown.parameters,
                **measured.parameters,
                "exposures_name": [self.experiment or ""],
            }
            connection.rows(self._statement(shown, measured), parameters)
            found = count(connection, self.window, shown, measured, out)
            connection.rows("SET TimeZone = 'UTC'")
            connection.rows(self._written(str(temporary)))
            return found

    def _statement(self, shown: Table, measured: Table) -> str:
        """The join: one row for each person and experiment, and one for each reason not to use a row.

        Somebody saw one variant if the smallest and the largest are the same, and then it is the first one,
        too. The columns to keep are those of one exposure: the first, and of several at that time the
        smallest. A row of the metric belongs to each experiment of its person.
        """
        as_text = "csv" in self.format
        kept = {f"keep_{at}": shown.kept(f"keep_{at}", as_text=as_text) for at in range(len(self.keep))}
        experiment = shown.label("experiment") if self.experiment is None else "$name[1]"
        exposures = shown.judged({"experiment": experiment, "action": shown.label("action"), **kept})
        metric = measured.judged({"units": measured.units(self.aggregate)})
        values = ", ".join(f"{name} := {name}" for name in ("time", *kept))
        clipped = "unclipped"
        if self.clip is not None:
            clipped = f"greatest({self.clip[0]!r}::DOUBLE, least({self.clip[1]!r}::DOUBLE, unclipped))"
        return f"""
            CREATE TEMP TABLE joined AS
            WITH exposures AS ({exposures}),
            people AS MATERIALIZED (
                SELECT fate AS exposure_fate,
                    CASE WHEN fate = 'used' THEN experiment END AS experiment,
                    CASE WHEN fate = 'used' THEN person END AS person,
                    min(action) AS action,
                    fate = 'used' AND min(action) = max(action) AS is_row,
                    fate = 'used' AND min(action) <> max(action) AS is_left_out,
                    min(time) AS first,
                    max(time) AS last_exposure,
                    {f"min(struct_pack({values})) FILTER (fate = 'used')" if kept else "NULL"} AS kept,
                    count(*) AS exposures,
                    count(*) FILTER (is_date) AS exposure_dates
                FROM exposures GROUP BY fate, 2, 3
            ),
            metric AS ({metric}),
            uses AS (
                SELECT people.experiment, people.person, metric.time, units, is_date,
                    CASE WHEN fate <> 'used' THEN fate WHEN people.person IS NULL THEN 'user_not_exposed'
                        ELSE 'user_exposed' END AS metric_fate,
                    coalesce(is_row AND time >= first AND time < first + {self.window}, false) AS within,
                    time < first AS is_before
                FROM metric LEFT JOIN people
                ON CASE WHEN fate = 'used' THEN metric.person END = people.person
            ),
            sums AS (
                SELECT metric_fate, experiment, person,
                    count(*) AS uses,
                    count(*) FILTER (within) AS metric_rows,
                    count(*) FILTER (is_before) AS uses_before,
                    max(time) AS last_metric,
                    count(*) FILTER (is_date) AS metric_dates,
                    coalesce({AGGREGATES[self.aggregate]}, 0) AS total
                FROM uses GROUP BY ALL
            ),
            log AS (
                SELECT *, coalesce(total, 0) AS unclipped,
                    row_number() OVER (PARTITION BY person) = 1 AS is_first_of_person
                FROM people FULL JOIN sums USING (experiment, person)
            )
            SELECT *, {clipped} AS reward FROM log"""

    def _written(self, path: str) -> str:
        """Write the log: the id of a row is the length of the experiment's name, the name, the user.

        Without a temporary file of DuckDB's own, which a killed process would leave.
        """
        kept = [f", kept.keep_{at} AS {quoted(name)}" for at, name in enumerate(self.keep)]
        return f"""
            COPY (
                SELECT experiment, action, reward, person AS "user",
                    concat(length(experiment), ':', experiment, ':', person) AS id,
                    make_timestamptz(first) AS first_exposure, exposures,
                    coalesce(metric_rows, 0) AS metric_rows{"".join(kept)}
                FROM joined WHERE is_row
            ) TO '{path.replace("'", "''")}' ({self.format}, USE_TMP_FILE false)"""


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
        low, high = (-1.0, 1.0) if clip is None else map(float, clip)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InvalidInputError(
            f"clip must be two finite numbers, the lower one first, such as (0, 100); got {clip!r}"
        )
    return None if clip is None else (low, high)


def _checked_time_zone(name: str) -> str:
    """Refuse a name that the database of time zones does not have."""
    try:
        return ZoneInfo(name).key
    except (OSError, ValueError, TypeError, KeyError):
        raise InvalidInputError(
            f"time_zone must be a name such as UTC or Europe/Berlin; got {name!r}"
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
