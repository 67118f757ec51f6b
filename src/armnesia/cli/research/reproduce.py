"""The command `research reproduce`."""

from pathlib import Path
from typing import Annotated

import typer
from rich.progress import TaskID

from armnesia.cli import options as opt
from armnesia.cli.output import print_result, progress_bar, table
from armnesia.cli.research.setting import Backend
from armnesia.paper.reproduce import PART_KEYS, PROTOCOLS
from armnesia.paper.reproduce import reproduce as run
from armnesia.simulation.parallel import backend_of_joblib


def reproduce(
    part: Annotated[
        list[str] | None,
        typer.Option(
            "--part",
            metavar="PART",
            help=f"{', '.join(PART_KEYS)} or all (repeatable); all if not given.",
        ),
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
    for_print: Annotated[
        bool,
        typer.Option("--for-print", help="Pictures with panel letters, and their titles in the captions."),
    ] = False,
    n_jobs: Annotated[int | None, typer.Option(min=1, help="Processes; all cores if not given.")] = None,
    backend: Backend = None,
    as_json: opt.AsJson = False,
) -> None:
    """Reproduce the figures, tables and claims of the paper.

    An interrupted run can be continued.
    """
    parts = PART_KEYS if not part or "all" in part else part
    with backend_of_joblib(backend), progress_bar(quiet=as_json) as bar:
        tasks: dict[str, TaskID] = {}

        def show(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = bar.add_task(label)
            bar.update(tasks[label], completed=done, total=total)

        found = run(
            out,
            parts=parts,
            protocol=protocol,
            quick=quick,
            datasets=datasets,
            seed=seed,
            n_jobs=n_jobs,
            progress=show,
            for_print=for_print,
        )
    rows = [[claim.text, claim.paper, claim.ours, claim.verdict] for claim in found.claims]
    shown = [table("The paper's claims", ["claim", "paper", "ours", "verdict"], rows)] if rows else []
    print_result(found.to_dict, as_json, *shown, f"Report: {found.report}")
