"""`join_metrics`: a log of decisions from a table of exposures and a table of a metric."""

import dataclasses
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.files import output_file
from armnesia.core.messages import counted, listed
from armnesia.joining import options, statements
from armnesia.joining.event_table import EventTable
from armnesia.joining.presets import ExposureColumns, MetricColumns, named_preset, with_named
from armnesia.joining.results import (
    ExperimentCount,
    ExposureRows,
    Joined,
    MetricRows,
    MetricUses,
    VariantCount,
    equal_shares_p_value,
)
from armnesia.logs.conditions import Where
from armnesia.logs.files.duckdb_engine import MEMORY_LIMIT, ScratchDatabase, checked_memory_limit
from armnesia.logs.limits import LONGEST_TEXT

_OUT_FORMATS = {
    ".parquet": "FORMAT parquet",
    ".pq": "FORMAT parquet",
    ".csv": "FORMAT csv, HEADER",
    ".csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip",
}


def join_metrics(
    exposures: str | os.PathLike[str],
    metric: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    window: str | timedelta,
    aggregate: str = "sum",
    clip: Iterable[float] | None = None,
    preset: str | None = None,
    experiment: str | None = None,
    experiment_column: str | None = None,
    action_column: str | None = None,
    user_column: str | None = None,
    time_column: str | None = None,
    time_unit: str | None = None,
    exposure_where: Where | None = None,
    keep: str | Iterable[str] = (),
    value_column: str | None = None,
    metric_user_column: str | None = None,
    metric_time_column: str | None = None,
    metric_time_unit: str | None = None,
    metric_where: Where | None = None,
    time_zone: str = "UTC",
    replace: bool = False,
    memory_limit: str = MEMORY_LIMIT,
) -> Joined:
    """Write a log with one row per person and experiment: the variant that they saw, and what they did then.

    `exposures` and `metric` are paths or globs of CSV, Parquet or JSON lines files. The reward of a person
    is the sum of their values from the first exposure on and before the first exposure plus `window`
    (`14d`, `36h`, a timedelta), or with `any` whether one of them is not 0, or with `count` how many rows
    there are; 0 for people without any. `clip` bounds it afterwards. People who saw several variants of an
    experiment are left out and counted. `out` is a new Parquet or CSV file, there when it is complete.

    A column may be `column.property` if it holds JSON objects. `preset` names the columns as a platform
    does: growthbook, posthog, statsig or launchdarkly. `user_column` and `time_column` are those of both
    tables, unless the metric has its own. `experiment` names the experiment of a table without such a column.
    `exposure_where` and `metric_where` are conditions that rows must satisfy, such as "country = DE", as for
    `read_log`. `keep` names columns of the exposures that the log gets as well, with the value of the
    person's first exposure in the experiment, such as the keys of decisions. `time_unit` says what times
    count that are numbers: s, ms, us or ns. Times without a zone are in `time_zone`.

    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> shown, bought, log = (pathlib.Path(folder.name) / name for name in ("e.csv", "m.csv", "log.csv"))
    >>> _ = shown.write_text("experiment,action,user,time\\n"
    ...     "checkout,A,ann,2026-01-01\\ncheckout,B,bob,2026-01-01\\ncheckout,A,bob,2026-01-02\\n")
    >>> _ = bought.write_text("user,time,value\\nann,2026-01-03,2.5\\nann,2026-01-15,4\\n")
    >>> joined = join_metrics(shown, bought, window="14d", clip=(0, 10), out=log)
    >>> joined.rows, joined.left_out_several_variants, joined.metric_uses.after_window
    (1, 1, 1)
    >>> print(log.read_text())
    experiment,action,reward,user,id,first_exposure,exposures,metric_rows
    checkout,A,2.5,ann,8:checkout:ann,2026-01-01 00:00:00+00,1,1
    <BLANKLINE>
    >>> folder.cleanup()

    docs/joining.md says what every count means.
    """
    checked = _Options(
        options.window_in_microseconds(window),
        options.checked_aggregate(aggregate),
        options.checked_clip(clip),
        experiment,
        options.checked_time_unit(time_unit, "time_unit"),
        options.checked_time_unit(metric_time_unit, "metric_time_unit"),
        options.checked_time_zone(time_zone),
        checked_memory_limit(memory_limit),
        options.checked_keep(keep, statements.LOG_COLUMNS),
    )
    if experiment is not None and experiment_column is not None:
        raise InvalidInputError("experiment names the only one, and experiment_column their column; give one")
    if experiment == "":
        raise InvalidInputError("experiment must be a name; got ''")
    chosen = named_preset(preset)
    exposure_columns = with_named(
        chosen.exposures,
        exposure_where,
        experiment=experiment_column,
        action=action_column,
        user=user_column,
        time=time_column,
    )
    metric_columns = with_named(
        chosen.metric,
        metric_where,
        user=metric_user_column or user_column,
        time=metric_time_column or (time_column if preset is None else None),
        value=value_column,
    )
    if aggregate != "sum" and value_column is None:  # rows count, whatever else they say
        metric_columns = dataclasses.replace(metric_columns, value=None)
    if aggregate == "sum" and metric_columns.value is None:
        raise InvalidInputError(
            f"preset {preset} has no column of values: name it with value_column, such as"
            " properties.revenue, or use aggregate any or count"
        )
    _check_metric(metric_columns, preset)
    target = Path(out)
    joining = _Join(checked, exposure_columns, metric_columns, target, _out_format(target))
    return joining.run(exposures, metric, replace=replace)


@dataclass(frozen=True)
class _Options:
    """The checked options of a join."""

    window: int
    aggregate: str
    clip: tuple[float, float] | None
    experiment: str | None
    time_unit: str | None
    metric_time_unit: str | None
    time_zone: str
    memory_limit: str
    keep: tuple[str, ...]


@dataclass(frozen=True)
class _Join:
    """A join that is about to run."""

    options: _Options
    exposure_columns: ExposureColumns
    metric_columns: MetricColumns
    out: Path
    out_format: str

    def run(
        self, exposures: str | os.PathLike[str], metric: str | os.PathLike[str], *, replace: bool
    ) -> Joined:
        """Read both tables, write the log, and count."""
        with output_file(self.out, replace=replace) as temporary:
            shown = EventTable.open(exposures, "exposures", self._wanted_exposures())
            measured = EventTable.open(metric, "metric", self._wanted_metric())
            _refuse_own_input(self.out, [*shown.files.paths, *measured.files.paths])
            limits = {"memory_limit": self.options.memory_limit, "time_zone": self.options.time_zone}
            with ScratchDatabase.opened(self.out.absolute().parent, **limits) as database:
                exposure_counts = self._read_exposures(database, shown)
                metric_counts = self._read_metric(database, measured)
                self._warn(exposure_counts, metric_counts)
                return self._write(database, temporary, exposure_counts, metric_counts)

    def _wanted_exposures(self) -> list[str]:
        columns = self.exposure_columns
        experiment = [] if self.options.experiment is not None else [columns.experiment]
        conditions = [condition.column for condition in columns.where]
        return [*experiment, columns.action, columns.user, columns.time, *conditions, *self.options.keep]

    def _wanted_metric(self) -> list[str]:
        columns = self.metric_columns
        value = [] if columns.value is None else [columns.value]
        return [*value, columns.user, columns.time, *(condition.column for condition in columns.where)]

    def _read_exposures(self, database: ScratchDatabase, table: EventTable) -> "_ReadExposures":
        time = table.time(self.exposure_columns.time, self.options.time_unit, self.options.time_zone)
        selection = table.select(self.exposure_columns.where)
        sql = statements.people(
            table,
            self.exposure_columns,
            selection,
            time,
            self.options.experiment,
            self.options.keep,
            as_text="parquet" not in self.out_format,
        )
        name = {} if self.options.experiment is None else {"name": self.options.experiment}
        _run_on_files(database, table, sql, name)
        found = database.run(statements.COUNT_EXPOSURES, {}, failed=table.failed)
        by_status = {row[0]: statements.ExposureCounts(*row) for row in found}
        n_read = sum(counts.exposures for counts in by_status.values())
        table.files.check_count(n_read)
        if statements.NO_NUMBER in by_status:
            raise table.refused_conditions(selection)
        if statements.UNREADABLE_TIME in by_status:
            raise time.refused(table, selection.satisfied)
        usable = by_status.get(
            statements.USABLE, statements.ExposureCounts(statements.USABLE, 0, 0, 0, 0, None, 0)
        )
        if not usable.rows:
            raise InvalidLogError(
                f"no row is left for the log: {counted(n_read, 'exposure')} read,"
                f" {usable.exposures} of them complete and selected, and"
                f" {counted(usable.left_out, 'person', 'people')} left out for several variants"
            )
        ((longest_id, longest_action),) = database.run(statements.LONGEST_LABEL, {}, failed=table.failed)
        if max(longest_id + 16, longest_action) > LONGEST_TEXT:
            raise InvalidLogError(
                f"the id of a row, which is made of experiment and user, and the action must have at most"
                f" {LONGEST_TEXT:,} bytes; got {max(longest_id, longest_action):,}"
            )
        skipped = {
            reason: by_status[number].exposures if number in by_status else 0
            for number, reason in enumerate(statements.EXPOSURE_STATUS, start=1)
        }
        read = ExposureRows(
            read=n_read,
            **skipped,
            of_people_left_out=usable.exposures - usable.of_kept,
            first=usable.rows,
            repeated=usable.of_kept - usable.rows,
        )
        last = max(counts.last for counts in by_status.values() if counts.last is not None)
        return _ReadExposures(read, usable.left_out, last, usable.dates)

    def _read_metric(self, database: ScratchDatabase, table: EventTable) -> "_ReadMetric":
        columns = self.metric_columns
        time = table.time(columns.time, self.options.metric_time_unit, self.options.time_zone)
        value = None if columns.value is None else table.value(columns.value)
        selection = table.select(columns.where)
        sql = statements.sums(table, columns, selection, time, value, self.options.aggregate)
        _run_on_files(database, table, sql, {"window": self.options.window})
        found = database.run(statements.COUNT_METRIC, {}, failed=table.failed)
        rows = [statements.MetricCounts(*row) for row in found]
        database.run(statements.LEADERS, {}, failed=table.failed)
        ((people, exposed, dates),) = database.run(statements.COUNT_PEOPLE, {}, failed=table.failed)
        skipped = {row.status: row.pairs for row in rows if row.status != statements.USABLE}
        by_kept = {row.kept: row for row in rows if row.status == statements.USABLE}
        not_exposed, of_left_out = (by_kept[kept].pairs if kept in by_kept else 0 for kept in (None, False))
        dates += by_kept[None].dates if None in by_kept else 0
        uses = MetricUses(0, 0, 0, of_left_out)
        if True in by_kept:
            of_kept = by_kept[True]
            after = of_kept.pairs - of_kept.within - of_kept.before
            uses = MetricUses(of_kept.within, of_kept.before, after, of_left_out)
        read = sum(skipped.values()) + not_exposed + exposed
        table.files.check_count(read)
        if statements.NO_NUMBER in skipped:
            raise table.refused_conditions(selection)
        if statements.UNREADABLE_TIME in skipped:
            raise time.refused(table, selection.satisfied)
        if statements.UNREADABLE_VALUE in skipped and value is not None:
            raise value.refused(table, selection.satisfied)
        reasons = {
            reason: skipped.get(number, 0) for number, reason in enumerate(statements.METRIC_STATUS, start=1)
        }
        last = max((row.last for row in rows if row.last is not None), default=None)
        counts = MetricRows(read=read, **reasons, user_not_exposed=not_exposed, user_exposed=exposed)
        return _ReadMetric(counts, uses, people, last, dates)

    def _warn(self, exposures: "_ReadExposures", metric: "_ReadMetric") -> None:
        """Warn of metrics that are 0 because of how users or times are written."""
        if metric.rows.user_not_exposed and not metric.rows.user_exposed:
            warnings.warn(
                "no user of the metric is among those of the exposures, so every reward is that of people"
                " without metric rows; are users spelled alike? In CSV and JSON, 1 and 1.0 are different",
                stacklevel=4,
            )
        if metric.dates and not exposures.dates:
            warnings.warn(
                f"the metric has {counted(metric.dates, 'date')} without a time of day, taken as midnight:"
                " before any exposure of the same day; give times of day, or cut the exposures to dates, too",
                stacklevel=4,
            )
        elif not metric.uses.within_window and (metric.uses.before_window or metric.uses.after_window):
            warnings.warn(
                f"no row of the metric lies in a window, so every reward is that of people without metric"
                f" rows: {metric.uses.before_window} before the first exposure, {metric.uses.after_window}"
                f" after the window; the last time of the metric is {_moment(metric.last)}, that of the"
                f" exposures {_moment(exposures.last)}: are the window, time_unit, metric_time_unit and the"
                " zones right?",
                stacklevel=4,
            )

    def _write(
        self,
        database: ScratchDatabase,
        temporary: Path,
        exposures: "_ReadExposures",
        metric: "_ReadMetric",
    ) -> Joined:
        failed = f"{str(self.out)!r} cannot be written"
        rows = statements.rows(self.options.aggregate, self.options.clip)
        database.run("SET TimeZone = 'UTC'", {}, failed=failed)
        sql = statements.written(rows, str(temporary), self.out_format, self.options.keep)
        database.run(sql, {}, failed=failed)
        last = max(time for time in (exposures.last, metric.last) if time is not None)
        limits = {"window": self.options.window, "last": last}
        found = [
            statements.RowCounts(*row)
            for row in database.run(statements.count_rows(rows), limits, failed=failed)
        ]
        left_out = dict(database.run(statements.COUNT_LEFT_OUT, {}, failed=failed))
        by_experiment: dict[str, list[VariantCount]] = {name: [] for name in left_out}
        for row in found:
            variant = VariantCount(row.action, row.rows, row.exposures, row.with_metric)
            by_experiment.setdefault(row.experiment, []).append(variant)
        experiments = tuple(
            ExperimentCount(
                name,
                sum(variant.people for variant in variants),
                left_out.get(name, 0),
                equal_shares_p_value([variant.people for variant in variants]),
                tuple(variants),
            )
            for name, variants in sorted(by_experiment.items())
        )
        return Joined(
            out=self.out,
            rows=exposures.rows.first,
            people=metric.people,
            left_out_several_variants=exposures.left_out,
            rows_without_metric=exposures.rows.first - sum(row.with_metric for row in found),
            rows_with_open_window=sum(row.open_window for row in found),
            rows_clipped=sum(row.clipped for row in found),
            lowest_reward=min(row.lowest_reward for row in found),
            highest_reward=max(row.highest_reward for row in found),
            exposures=exposures.rows,
            metric=metric.rows,
            metric_uses=metric.uses,
            experiments=experiments,
        )


@dataclass(frozen=True)
class _ReadExposures:
    """What was read of the exposures; `last` is the last time."""

    rows: ExposureRows
    left_out: int
    last: int
    dates: int


@dataclass(frozen=True)
class _ReadMetric:
    """What was read of the metric; `people` are those who are kept."""

    rows: MetricRows
    uses: MetricUses
    people: int
    last: int | None
    dates: int
    """Rows that can be used and have a date without a time of day."""


def _moment(microseconds: int | None) -> str:
    """A time since 1970 in UTC; None has no time.

    >>> _moment(1_768_003_200_000_000)
    '2026-01-10 00:00:00 UTC'
    """
    if microseconds is None:
        return "unknown"
    moment = datetime(1970, 1, 1) + timedelta(microseconds=microseconds)
    return f"{moment.isoformat(' ', 'seconds')} UTC"


def _run_on_files(database: ScratchDatabase, table: EventTable, sql: str, parameters: dict[str, Any]) -> None:
    """Run a statement that reads a table; refuse files that change meanwhile."""
    table.files.check_unchanged()
    database.run(sql, {**table.used_in(sql), **parameters}, failed=table.failed)
    table.files.check_unchanged()


def _out_format(path: Path) -> str:
    """How DuckDB writes a file with this name."""
    for suffix, written in _OUT_FORMATS.items():
        if path.name.lower().endswith(suffix):
            return written
    raise InvalidInputError(f"out must end in one of {listed(_OUT_FORMATS)}; got {path.name!r}")


def _check_metric(columns: MetricColumns, preset: str | None) -> None:
    """Refuse a metric of which it is not said what to add up."""
    selected = {condition.column for condition in columns.where}
    if columns.event is not None and columns.event not in selected:
        raise InvalidInputError(
            f"a metric of preset {preset} is a table of all events: select one with metric_where"
            f" (--metric-where '{columns.event} = NAME')"
        )


def _refuse_own_input(out: Path, paths: Iterable[str]) -> None:
    """Refuse to replace a file that is read, however its path is written."""
    for path in paths:
        if out.exists() and os.path.samefile(out, path):
            raise InvalidInputError(
                f"out must not be a file that is read: {str(out)!r} is {path!r} of the exposures or the"
                " metric; choose another file; nothing was written"
            )
