"""The join in SQL: one pass over the exposures, one over the metric, one over the people to write the log.

A row that cannot be used keeps a status, and groups by it, so that every row that is read is counted.
"""

from collections.abc import Sequence
from typing import NamedTuple

from armnesia.joining.event_table import VALUE_UNIT, EventTable, TimeColumn, ValueColumn
from armnesia.joining.presets import ExposureColumns, MetricColumns
from armnesia.logs.columns import quoted
from armnesia.logs.files.conditions import FileConditions

LOG_COLUMNS = ("experiment", "action", "reward", "user", "id", "first_exposure", "exposures", "metric_rows")
"""The columns of every log, before those that are kept of the exposures."""
EXPOSURE_STATUS = ("filtered", "missing_user", "missing_experiment", "missing_action", "missing_time")
METRIC_STATUS = ("filtered", "missing_user", "missing_time", "missing_value")
_PLACE = "CASE WHEN kept THEN people.rowid ELSE -1 - people.rowid END"
"""The number of a row of `people`; it is negative if the person is left out."""
USABLE, UNREADABLE_TIME, UNREADABLE_VALUE, NO_NUMBER = 0, 100, 101, 102
"""The statuses of rows that are used, or make the files refused; the others count from 1 in their list."""


def people(
    table: EventTable,
    columns: ExposureColumns,
    selection: FileConditions,
    time: TimeColumn,
    experiment_is: str | None,
    keep: Sequence[str],
    *,
    as_text: bool,
) -> str:
    """Make the table `people`: one row per person and experiment, and one per status of other exposures.

    Somebody saw one variant if the smallest and the largest are the same, and then it is the first one, too.
    The columns to keep are those of one exposure: the first, and of several at that time the smallest. A file
    of text has numbers `as_text`, by the rules of labels.
    """
    kept = [f"{table.kept(name, as_text=as_text)} AS keep{place}" for place, name in enumerate(keep)]
    kept_names = [f"keep{place}" for place in range(len(keep))]
    first_values = f"min(struct_pack({', '.join(f'{name} := {name}' for name in ['time', *kept_names])}))"
    experiment = "$name" if experiment_is is not None else table.label("experiment", columns.experiment)
    missing = ["NOT matches", "person IS NULL", "experiment IS NULL", "action IS NULL", "no_time"]
    return f"""
        CREATE TEMP TABLE people AS
        WITH matched AS ({_matched(table, selection)}),
        labelled AS (
            SELECT matches, no_number,
                CASE WHEN matches THEN {table.label("user", columns.user)} END AS person,
                CASE WHEN matches THEN {experiment} END AS experiment,
                CASE WHEN matches THEN {table.label("action", columns.action)} END AS action,
                CASE WHEN matches THEN {time.microseconds} END AS time,
                {", ".join([f"{time.is_missing} AS no_time", f"{time.is_date} AS is_date", *kept])}
            FROM matched
        ),
        judged AS (SELECT *, {_status(missing)} AS status FROM labelled)
        SELECT status,
            CASE WHEN status = {USABLE} THEN experiment END AS experiment,
            CASE WHEN status = {USABLE} THEN person END AS person,
            min(action) AS action,
            coalesce(min(action) = max(action), false) AS kept,
            min(time) AS first,
            max(time) AS last,
            count(*) AS exposures,
            count(*) FILTER (is_date) AS dates
            {f", {first_values} FILTER (status = {USABLE}) AS first_values" if keep else ""}
        FROM judged GROUP BY ALL"""


def sums(
    table: EventTable,
    columns: MetricColumns,
    selection: FileConditions,
    time: TimeColumn,
    value: ValueColumn | None,
    aggregate: str,
) -> str:
    """Make the table `sums`: the metric in the window of each row of `people`, and one row per status.

    A metric row of somebody in several experiments belongs to each of them. Rows of people who were never
    exposed have no row of `people`.
    """
    missing = ["NOT matches", "person IS NULL", "no_time"]
    missing += [] if value is None else ["no_value"]
    units = "1"
    if value is not None:
        units = value.nonzero if aggregate == "any" else value.units
    total = {
        "sum": "sum(units) FILTER (within)",
        "any": "count(*) FILTER (within AND units <> 0)",
        "count": "count(*) FILTER (within)",
    }[aggregate]
    return f"""
        CREATE TEMP TABLE sums AS
        WITH matched AS ({_matched(table, selection)}),
        labelled AS (
            SELECT matches, no_number,
                CASE WHEN matches THEN {table.label("user", columns.user)} END AS person,
                CASE WHEN matches THEN {time.microseconds} END AS time,
                CASE WHEN matches THEN {units} END AS units,
                {time.is_missing} AS no_time, {time.is_date} AS is_date,
                {"false" if value is None else value.is_missing} AS no_value
            FROM matched
        ),
        judged AS (SELECT *, {_status(missing, with_value=True)} AS status FROM labelled),
        paired AS (
            SELECT judged.status, judged.time, units, is_date, {_PLACE} AS place, first,
                coalesce(kept AND time >= first AND time < first + $window, false) AS within
            FROM judged
            LEFT JOIN people
            ON CASE WHEN judged.status = {USABLE} THEN judged.person END = people.person
        )
        SELECT status, place,
            count(*) AS metric_rows,
            count(*) FILTER (within) AS within,
            count(*) FILTER (time < first) AS before,
            {total} AS total,
            max(time) AS last,
            count(*) FILTER (is_date) AS dates
        FROM paired GROUP BY status, place"""


def rows(aggregate: str, clip: tuple[float, float] | None) -> str:
    """The rows of the log, in no particular order; `unclipped` is the reward before it is clipped."""
    reward = {
        "sum": f"coalesce(CAST(total AS DOUBLE) / {VALUE_UNIT}::DOUBLE, 0)",
        "any": "CASE WHEN total > 0 THEN 1 ELSE 0 END",
        "count": "coalesce(total, 0)",
    }[aggregate]
    clipped = (
        "unclipped"
        if clip is None
        else f"greatest({clip[0]!r}::DOUBLE, least({clip[1]!r}::DOUBLE, unclipped))"
    )
    return f"""
        SELECT *, {clipped} AS reward FROM (
            SELECT people.*, coalesce(within, 0) AS metric_rows, CAST({reward} AS DOUBLE) AS unclipped
            FROM people LEFT JOIN sums ON sums.place = people.rowid
            WHERE people.status = {USABLE} AND kept
        )"""


def written(rows_: str, path: str, options: str, keep: Sequence[str]) -> str:
    """Write the log to a file; the id of a row is the length of the experiment's name, the name, the user.

    Without a temporary file of DuckDB's own, which a killed process would leave.
    """
    kept = [f", first_values.keep{place} AS {quoted(name)}" for place, name in enumerate(keep)]
    return f"""
        COPY (
            SELECT experiment, action, reward, person AS "user",
                concat(length(experiment), ':', experiment, ':', person) AS id,
                make_timestamptz(first) AS first_exposure, exposures, metric_rows{"".join(kept)}
            FROM ({rows_})
        ) TO '{path.replace("'", "''")}' ({options}, USE_TMP_FILE false)"""


class ExposureCounts(NamedTuple):
    """A row of `COUNT_EXPOSURES`: what one status of exposures has."""

    status: int
    exposures: int
    of_kept: int
    """Exposures of people who are kept."""
    rows: int
    """People who are kept, once per experiment: each of them becomes a row of the log."""
    left_out: int
    last: int | None
    """The last time."""
    dates: int
    """Times that are dates without a time of day."""


COUNT_EXPOSURES = """
    SELECT status, sum(exposures)::BIGINT, sum(exposures) FILTER (kept)::BIGINT, count(*) FILTER (kept),
        count(*) FILTER (NOT kept), max(last), sum(dates)::BIGINT
    FROM people GROUP BY status ORDER BY status"""
"""Per status; the rows are `ExposureCounts`."""

LEADERS = f"""
    CREATE TEMP TABLE leaders AS
    SELECT min({_PLACE}) AS place, bool_or(kept) AS kept FROM people WHERE status = {USABLE}
    GROUP BY person"""
"""One row of `people` per person."""

COUNT_PEOPLE = """
    SELECT (SELECT count(*) FROM leaders WHERE kept), coalesce(sum(metric_rows), 0)::BIGINT,
        coalesce(sum(dates), 0)::BIGINT
    FROM sums JOIN leaders ON sums.place = leaders.place"""
"""People who are kept; the metric rows of people who were exposed, and how many have dates, each once."""

LONGEST_LABEL = f"""
    SELECT max(strlen(experiment) + strlen(person)), max(strlen(action))
    FROM people WHERE status = {USABLE}"""


class MetricCounts(NamedTuple):
    """A row of `COUNT_METRIC`: pairs of a metric row and an experiment of its person."""

    status: int
    kept: bool | None
    """Whether the person is kept; None if they were not exposed."""
    pairs: int
    within: int
    """Pairs within the window."""
    before: int
    last: int | None
    dates: int


COUNT_METRIC = """
    SELECT status, place >= 0, sum(metric_rows)::BIGINT, sum(within)::BIGINT, sum(before)::BIGINT,
        max(last), sum(dates)::BIGINT
    FROM sums GROUP BY ALL"""
"""Per status, and whether people are kept; the rows are `MetricCounts`."""


class RowCounts(NamedTuple):
    """A row of `count_rows`: what one variant of one experiment has in the log."""

    experiment: str
    action: str
    rows: int
    exposures: int
    with_metric: int
    clipped: int
    open_window: int
    lowest_reward: float
    highest_reward: float


def count_rows(rows_: str) -> str:
    """Per experiment and variant; the rows are `RowCounts`."""
    return f"""
        SELECT experiment, action, count(*), sum(exposures)::BIGINT, count(*) FILTER (metric_rows > 0),
            count(*) FILTER (reward <> unclipped), count(*) FILTER (first + $window > $last),
            min(reward), max(reward)
        FROM ({rows_}) GROUP BY ALL ORDER BY experiment, action"""


COUNT_LEFT_OUT = f"""
    SELECT experiment, count(*) FROM people WHERE status = {USABLE} AND NOT kept
    GROUP BY experiment ORDER BY experiment"""


def _matched(table: EventTable, selection: FileConditions) -> str:
    """The rows of a table: whether they satisfy all conditions, and whether one could not be compared."""
    no_number = " OR ".join(selection.no_numbers().values()) or "false"
    return f"SELECT *, {selection.satisfied} AS matches, {no_number} AS no_number FROM {table.sql}"


def _status(missing: list[str], *, with_value: bool = False) -> str:
    """The first reason why a row cannot be used."""
    cases = [f"WHEN no_number THEN {NO_NUMBER}"]
    cases += [f"WHEN {condition} THEN {number}" for number, condition in enumerate(missing, start=1)]
    cases.append(f"WHEN time IS NULL THEN {UNREADABLE_TIME}")
    if with_value:
        cases.append(f"WHEN units IS NULL THEN {UNREADABLE_VALUE}")
    return f"CASE {' '.join(cases)} ELSE {USABLE} END"
