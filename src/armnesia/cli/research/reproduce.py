"""The command that reproduces the paper: figures, tables, claims, one report."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import TaskID

from armnesia.cli.options import AsJson
from armnesia.cli.output import emit, progress_bar, table
from armnesia.cli.research.evaluate import check_seed
from armnesia.core.errors import InvalidInputError


def reproduce(
    figure: Annotated[
        list[str] | None,
        typer.Option(
            help="1, 2, 3, table2, bounds, phase, requests, claims, beyond, tradeoff, stream or all."
        ),
    ] = None,
    protocol: Annotated[str, typer.Option(help="exact, sampled, or paper for its own protocol.")] = "exact",
    out: Annotated[Path, typer.Option(help="Folder for the report, the pictures and the results.")] = Path(
        "paper"
    ),
    quick: Annotated[bool, typer.Option(help="Coarser grids and fewer data sets: about a minute.")] = False,
    datasets: Annotated[int | None, typer.Option(help="Data sets a point, where sampled.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of what is sampled.")] = 0,
    n_jobs: Annotated[int | None, typer.Option(help="Processes; all cores if not given.")] = None,
    as_json: AsJson = False,
) -> None:
    """Every figure, table and claim of the paper beside our value; an interrupted run goes on later."""
    from armnesia.paper.reproduce import PARTS  # noqa: PLC0415 (matplotlib is an extra)
    from armnesia.paper.reproduce import reproduce as run  # noqa: PLC0415

    check_seed(seed)
    if (datasets is not None and datasets < 1) or (n_jobs is not None and n_jobs < 1):
        raise InvalidInputError(f"--datasets and --n-jobs must be 1 or more; got {datasets} and {n_jobs}")
    parts = PARTS if not figure or "all" in figure else tuple(dict.fromkeys(figure))
    with progress_bar(quiet=as_json) as bar:
        tasks: dict[str, TaskID] = {}

        def show(part: str, done: int, total: int) -> None:
            if part not in tasks:
                tasks[part] = bar.add_task(part)
            bar.update(tasks[part], completed=done, total=total)

        found = run(
            out,
            parts=parts,
            protocol=protocol,
            quick=quick,
            datasets=datasets,
            seed=seed,
            n_jobs=n_jobs,
            progress=show,
        )
    claims = [dataclasses.asdict(claim) for claim in found["claims"]]
    result = {
        "report": found["report"],
        "files": found["files"],
        "seconds": found["seconds"],
        "claims": claims,
    }
    shown = []
    if claims:
        keys = ("text", "paper", "ours", "verdict")
        shown.append(
            table(
                "The paper's claims",
                ["claim", "paper", "ours", "verdict"],
                [[c[k] for k in keys] for c in claims],
            )
        )
    emit(result, as_json, *shown, f"Report: {found['report']}")
