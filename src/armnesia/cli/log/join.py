"""The command `join`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.interrupts import Interrupted, import_before_work
from armnesia.cli.output import counting_seconds, print_result, table
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import any_of, counted, listed
from armnesia.joining import AGGREGATES, PRESETS, Joined, join_metrics

_MOST_VARIANTS = 100
_MISMATCH = 0.001
"""The p-value from which a line is printed about unequal shares."""
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="CONDITION", help="Only rows such as 'event = purchase' (repeatable)."),
]


def join(
    exposures: Annotated[
        str, typer.Option(metavar="FILES", help="Exposures: CSV, Parquet or JSON, or a table of a lake.")
    ],
    metric: Annotated[str, typer.Option(metavar="FILES", help="Rows of the metric, in the same formats.")],
    out: Annotated[Path, typer.Option(help="The log to write: a new .parquet or .csv file.")],
    window: Annotated[str, typer.Option(help="How long the metric counts: 14d, 36h, 90min.")],
    aggregate: Annotated[
        str, typer.Option(metavar="|".join(AGGREGATES), help="How a person's values become the reward.")
    ] = "sum",
    clip: Annotated[str | None, typer.Option(help="Lowest and highest reward of a person: 0,100.")] = None,
    preset: Annotated[
        str | None, typer.Option(help=f"Whose exports name the columns: {any_of(list(PRESETS))}.")
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=NAME",
            help="A column: experiment, action, user, time, metric_user, metric_time or value (repeatable).",
        ),
    ] = None,
    experiment: Annotated[
        str | None, typer.Option(help="The experiment, if the exposures have no column of it.")
    ] = None,
    exposure_where: Where = None,
    metric_where: Where = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="A column of the first exposure for the log (repeatable)."),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the file of --out.")] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Make a log of exposures and a metric.

    One row per person and experiment, with the variant and what the person did in a window afterwards.
    People who saw several variants of an experiment are left out and counted.
    """
    columns, bounds = _columns(column or []), None if clip is None else _two_numbers(clip)
    import_before_work("duckdb")
    try:
        with counting_seconds(None, quiet=as_json):
            done = join_metrics(
                exposures,
                metric,
                out=out,
                window=window,
                aggregate=aggregate,
                clip=bounds,
                preset=preset,
                columns=columns,
                experiment=experiment,
                exposure_where=exposure_where,
                metric_where=metric_where,
                keep=keep or (),
                replace=replace,
            )
    except KeyboardInterrupt:
        raise Interrupted("interrupted; nothing was written") from None
    print_result(done.to_dict, as_json, *_shown(done))


def _shown(done: Joined) -> list[Any]:
    """The table of variants, and what became of the rows."""
    exposures, metric, uses = done.exposures, done.metric, done.metric_uses
    rows = [
        [each["experiment"], *(variant[name] for name in ("action", "people", "exposures", "with_metric"))]
        for each in done.experiments
        for variant in each["variants"]
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
            f"Unequal shares in {each['experiment']!r}: p = {each['equal_shares_p_value']:.2g} if all"
            " variants were meant to get the same share"
            for each in done.experiments
            if each["equal_shares_p_value"] is not None and each["equal_shares_p_value"] < _MISMATCH
        ),
        f"Rewards from {done.lowest_reward:g} to {done.highest_reward:g}; {done.rows_clipped} clipped,"
        f" {done.rows_without_metric} without metric, {done.rows_with_open_window} with an open window",
        f"{counted(exposures['read'], 'exposure')}: {exposures['first']} first,"
        f" {exposures['repeated']} repeated, {exposures['of_people_left_out']} of {left_out} left out for"
        f" several variants, {exposures['filtered']} not selected; missing: {_missing(exposures)}",
        f"{counted(metric['read'], 'metric row')}: {metric['user_exposed']} of people exposed,"
        f" {metric['user_not_exposed']} of others, {metric['filtered']} not selected; missing:"
        f" {_missing(metric)}",
        f"In their experiments: {uses['within_window']} in the window, {uses['before_window']} before,"
        f" {uses['after_window']} after, {uses['of_people_left_out']} of people left out",
    ]


def _missing(counts: Mapping[str, int]) -> str:
    """How many rows had no value in which column."""
    name = "missing_"
    return ", ".join(f"{n} {each.removeprefix(name)}" for each, n in counts.items() if each.startswith(name))


def _columns(given: list[str]) -> dict[str, str]:
    """The names of columns by their roles."""
    found = {role.strip(): name.strip() for role, _, name in (each.partition("=") for each in given)}
    if len(found) < len(given) or not all(found.values()):
        raise InvalidInputError(
            "--column must be ROLE=NAME such as user=anonymous_id, once for each role; got"
            f" {listed(given, 10)}"
        )
    return found


def _two_numbers(given: str) -> list[float]:
    try:
        return [float(number) for number in given.split(",")]
    except ValueError:
        raise InvalidInputError(f"--clip must be two numbers such as 0,100; got {given!r}") from None
