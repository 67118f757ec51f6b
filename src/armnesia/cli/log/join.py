"""The command `join`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.interrupts import Interrupted, import_before_work
from armnesia.cli.output import counting_seconds, print_result, table
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import counted
from armnesia.joining import AGGREGATES, PRESETS, TIME_UNITS, Joined, join_metrics
from armnesia.logs.files.duckdb_engine import MEMORY_LIMIT

_MOST_VARIANTS = 100
_MISMATCH = 0.001
"""The p-value from which a line is printed about unequal shares."""
Unit = Annotated[
    str | None,
    typer.Option(metavar="|".join(TIME_UNITS), help="What times count since 1970, if they are numbers."),
]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="CONDITION", help="Only rows such as 'event = purchase' (repeatable)."),
]


def join(
    exposures: Annotated[str, typer.Option(metavar="FILES", help="Exposures: CSV, Parquet or JSON lines.")],
    metric: Annotated[str, typer.Option(metavar="FILES", help="Rows of the metric: the same formats.")],
    out: Annotated[Path, typer.Option(help="The log to write: a new .parquet or .csv file.")],
    window: Annotated[str, typer.Option(help="How long the metric counts: 14d, 36h, 90min.")],
    aggregate: Annotated[
        str, typer.Option(metavar="|".join(AGGREGATES), help="How a person's values become the reward.")
    ] = "sum",
    clip: Annotated[str | None, typer.Option(help="Lowest and highest reward of a person: 0,100.")] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="|".join(PRESETS), help="Whose exports the columns are named by.")
    ] = None,
    experiment: Annotated[
        str | None, typer.Option(help="The experiment, if the exposures have no column of it.")
    ] = None,
    experiment_column: Annotated[str | None, typer.Option(help="Column of the experiment.")] = None,
    action_column: Annotated[str | None, typer.Option(help="Column of the action.")] = None,
    user_column: Annotated[str | None, typer.Option(help="Column of the user, in both tables.")] = None,
    time_column: Annotated[str | None, typer.Option(help="Column of the time, in both tables.")] = None,
    time_unit: Unit = None,
    exposure_where: Where = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of the first exposure for the log (repeatable)."),
    ] = None,
    value_column: Annotated[str | None, typer.Option(help="Column of the metric's value.")] = None,
    metric_user_column: Annotated[str | None, typer.Option(help="The user's, if another one.")] = None,
    metric_time_column: Annotated[str | None, typer.Option(help="The time's, if another one.")] = None,
    metric_time_unit: Unit = None,
    metric_where: Where = None,
    time_zone: Annotated[str, typer.Option(help="The zone of times that have none.")] = "UTC",
    memory_limit: opt.MemoryLimit = MEMORY_LIMIT,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the file of --out.")] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Make a log of exposures and a metric.

    One row per person and experiment, with the variant and what the person did in a window afterwards.
    People who saw several variants of an experiment are left out and counted.
    """
    import_before_work("duckdb")
    try:
        with counting_seconds(None, quiet=as_json):
            done = join_metrics(
                exposures,
                metric,
                out=out,
                window=window,
                aggregate=aggregate,
                clip=None if clip is None else _two_numbers(clip),
                preset=preset,
                experiment=experiment,
                experiment_column=experiment_column,
                action_column=action_column,
                user_column=user_column,
                time_column=time_column,
                time_unit=time_unit,
                exposure_where=exposure_where,
                keep=keep or (),
                value_column=value_column,
                metric_user_column=metric_user_column,
                metric_time_column=metric_time_column,
                metric_time_unit=metric_time_unit,
                metric_where=metric_where,
                time_zone=time_zone,
                replace=replace,
                memory_limit=memory_limit,
            )
    except KeyboardInterrupt:
        raise Interrupted("interrupted; nothing was written") from None
    print_result(done.to_dict, as_json, *_shown(done))


def _shown(done: Joined) -> list[Any]:
    """The table of variants, and what became of the rows."""
    exposures, metric, uses = done.exposures, done.metric, done.metric_uses
    rows = [
        [each.experiment, variant.action, variant.people, variant.exposures, variant.with_metric]
        for each in done.experiments
        for variant in each.variants
    ]
    columns = ["experiment", "action", "people", "exposures", "with metric"]
    title = (
        f"{done.out}: {counted(done.rows, 'row')} of {counted(done.people, 'person', 'people')} in"
        f" {counted(len(done.experiments), 'experiment')}"
    )
    left_out = counted(done.left_out_several_variants, "person", "people")
    more = len(rows) - _MOST_VARIANTS
    return [
        table(title, columns, rows[:_MOST_VARIANTS]),
        *([f"and {counted(more, 'more variant')}; --json lists all"] if more > 0 else []),
        *(
            f"Unequal shares in {each.experiment!r}: p = {each.equal_shares_p_value:.2g} if all variants were"
            " meant to get the same share"
            for each in done.experiments
            if each.equal_shares_p_value is not None and each.equal_shares_p_value < _MISMATCH
        ),
        f"Rewards from {done.lowest_reward:g} to {done.highest_reward:g}; {done.rows_clipped} clipped,"
        f" {done.rows_without_metric} without metric, {done.rows_with_open_window} with an open window",
        f"{counted(exposures.read, 'exposure')}: {exposures.first} first, {exposures.repeated} repeated,"
        f" {exposures.of_people_left_out} of {left_out} left out for several variants,"
        f" {exposures.filtered} not selected; missing: {exposures.missing_user} user,"
        f" {exposures.missing_experiment} experiment, {exposures.missing_action} action,"
        f" {exposures.missing_time} time",
        f"{counted(metric.read, 'metric row')}: {metric.user_exposed} of people exposed,"
        f" {metric.user_not_exposed} of others, {metric.filtered} not selected; missing:"
        f" {metric.missing_user} user, {metric.missing_time} time, {metric.missing_value} value",
        f"In their experiments: {uses.within_window} in the window, {uses.before_window} before,"
        f" {uses.after_window} after, {uses.of_people_left_out} of people left out",
    ]


def _two_numbers(given: str) -> list[float]:
    try:
        return [float(number) for number in given.split(",")]
    except ValueError:
        raise InvalidInputError(f"--clip must be two numbers such as 0,100; got {given!r}") from None
