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
                replace=replace,
            )
    except KeyboardInterrupt:
        raise Interrupted("interrupted; nothing was written") from None
    print_result(done.to_dict, as_json, *_shown(done))


def _shown(done: Joined) -> list[Any]:
    """The table of variants, and what is not in the log."""
    names = ("experiment", "action", "people", "with_metric")
    rows = [[each[name] for name in names] for each in done.variants]
    experiments = {each["experiment"] for each in done.variants}
    more = len(rows) - _MOST_VARIANTS
    left_out = counted(done.left_out_several_variants, "person", "people")
    return [
        table(f"{done.out}: {counted(done.rows, 'row')}", [*names[:3], "with metric"], rows[:_MOST_VARIANTS]),
        *([f"and {counted(more, 'more variant')}; --json lists all"] if more > 0 else []),
        *(
            [f"{len(experiments)} experiments: read the log with --by experiment, or rewards are mixed"]
            if len(experiments) > 1
            else []
        ),
        f"Rewards from {done.lowest_reward:g} to {done.highest_reward:g}; {done.rows_clipped} clipped,"
        f" {done.rows_without_metric} without metric, {done.rows_with_open_window} with an open window",
        f"Left out for several variants: {left_out}",
        f"Exposures: {_counts(done.exposures)}",
        f"Rows of the metric that are not used: {_counts(done.metric)}",
    ]


def _counts(counts: Mapping[str, int]) -> str:
    """How many rows of each fate, in words."""
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in counts.items())


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
