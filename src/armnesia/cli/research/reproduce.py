"""The command `reproduce`."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import TaskID

from armnesia.cli import options as opt
from armnesia.cli.output import print_result, progress_bar, table
from armnesia.paper.reproduce import PARTS, PROTOCOLS
from armnesia.paper.reproduce import reproduce as run


def reproduce(
    figure: Annotated[
        list[str] | None,
        typer.Option(metavar="PART", help=f"{', '.join(PARTS)} or all (repeatable); all if not given."),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(metavar="|".join(PROTOCOLS), help="How values are computed; paper: as in the paper."),
    ] = "exact",
    out: Annotated[Path, typer.Option(help="Folder for the report, the pictures and the results.")] = Path(
        "paper"
    ),
    quick: Annotated[bool, typer.Option(help="Coarser grids and fewer data sets: about a minute.")] = False,
    datasets: Annotated[int | None, typer.Option(min=1, help="Data sets per point, where sampled.")] = None,
    seed: opt.Seed = 0,
    n_jobs: Annotated[int | None, typer.Option(min=1, help="Processes; all cores if not given.")] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Reproduce the figures, tables and claims of the paper.

    An interrupted run can be continued.
    """
    parts = PARTS if not figure or "all" in figure else figure
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
    result = {
        "report": found["report"],
        "files": found["files"],
        "seconds": found["seconds"],
        "claims": [dataclasses.asdict(claim) for claim in found["claims"]],
    }
    rows = [[claim.text, claim.paper, claim.ours, claim.verdict] for claim in found["claims"]]
    shown = [table("The paper's claims", ["claim", "paper", "ours", "verdict"], rows)] if rows else []
    print_result(result, as_json, *shown, f"Report: {found['report']}")
