"""The command `research sweep`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.output import print_result, progress_bar, table
from armnesia.cli.parameters import check_owners, with_parameters
from armnesia.cli.research.setting import (
    PAPER_MEANS,
    Accuracy,
    Backend,
    Datasets,
    Means,
    Protocol,
    as_in_the_paper,
    numbers,
    whole_numbers,
)
from armnesia.learners import LEARNERS
from armnesia.paper.settings import BASE_GAMMA, BASE_K, C_STAR, DELTA
from armnesia.plotting import save
from armnesia.simulation import sweep as run
from armnesia.simulation.parallel import backend_of_joblib
from armnesia.simulation.sweep import ORACLE
from armnesia.unlearners import UNLEARNERS

_SHOWN = ("model", "n", "arms", "k", "c_star", "epsilon", "delta", "learner", "confidence", "method")


@with_parameters(UNLEARNERS)
def sweep(
    n: Annotated[str, typer.Option("--n", help="Numbers of records: 1000,2000.")],
    unlearner: Annotated[
        str, typer.Option(metavar="NAMES", help=f"{ORACLE}, {', '.join(UNLEARNERS)} or MODULE:CLASS.")
    ] = "oracle,rollback,tilt",
    means: Means = PAPER_MEANS,
    deletions: Annotated[str, typer.Option(help="Deleted records of each arm: 20,80.")] = str(BASE_K),
    arms: Annotated[str, typer.Option(help="Arm or arms that lose records, as 0,0+1, or any.")] = "0",
    model: Annotated[str, typer.Option(metavar="fixed|distribution", help="Data models.")] = "fixed",
    c_star: Annotated[str, typer.Option(help="Coverages C* of the distribution model.")] = str(C_STAR),
    epsilon: Annotated[str | None, typer.Option(help="Privacy parameters ε: 1,3.")] = None,
    gamma: Annotated[str | None, typer.Option(help="Noise multipliers γ, instead of ε.")] = None,
    delta: Annotated[str, typer.Option(help="Privacy parameters δ.")] = str(DELTA),
    learner: Annotated[
        str | None, typer.Option(metavar="NAMES", help=f"{', '.join(LEARNERS)} or MODULE:CLASS.")
    ] = None,
    confidence: Annotated[str | None, typer.Option(help="Confidences τ of the learner; 1/N if none.")] = None,
    parameters: Any = None,
    protocol: Protocol = "auto",
    accuracy: Accuracy = 0.01,
    datasets: Datasets = None,
    seed: opt.Seed = 0,
    out: Annotated[
        Path | None, typer.Option(help="Folder for sweep.csv and finished settings; a sweep goes on there.")
    ] = None,
    picture: opt.Picture = None,
    x: Annotated[str | None, typer.Option("--x", help="Column on the x axis of the picture.")] = None,
    n_jobs: Annotated[int | None, typer.Option(min=1, help="Processes; all cores if not given.")] = None,
    backend: Backend = None,
    as_json: opt.AsJson = False,
) -> None:
    """Evaluate unlearners in many settings.

    Lists are separated by commas; every combination is a setting. An interrupted sweep can be continued.
    """
    names = unlearner.split(",")
    check_owners(parameters, (UNLEARNERS, names))
    if epsilon is None and gamma is None:
        gamma = str(BASE_GAMMA)
    methods = {
        name: None if name == ORACLE else as_in_the_paper(opt.unlearner_kind(name), parameters)
        for name in names
    }
    with backend_of_joblib(backend), progress_bar(quiet=as_json) as bar:
        task = bar.add_task("settings", total=None)
        found = run(
            methods,
            numbers("--means", means),
            n=whole_numbers("--n", n),
            k=whole_numbers("--deletions", deletions),
            arms=[_request(each) for each in arms.split(",")],
            model=model.split(","),
            c_star=numbers("--c-star", c_star),
            epsilon=None if epsilon is None else numbers("--epsilon", epsilon),
            gamma=None if gamma is None else numbers("--gamma", gamma),
            delta=numbers("--delta", delta),
            learner=None if learner is None else [opt.learner_kind(each)() for each in learner.split(",")],
            confidence=None if confidence is None else numbers("--confidence", confidence),
            protocol=protocol,
            accuracy=accuracy,
            datasets=datasets,
            seed=seed,
            n_jobs=n_jobs,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
            out=out,
        )
    files = {}
    if out is not None:
        files["csv"] = out / "sweep.csv"
        found.write_csv(files["csv"])
    if picture is not None:
        save(found.plot(x), picture)
        files["picture"] = picture
    names_shown = [name for name in _SHOWN if name != "confidence" or confidence is not None]
    varied = [name for name in names_shown if name == "method" or len({row[name] for row in found.rows}) > 1]
    header = [*varied, "suboptimality", "standard_error"]
    shown_rows = [[row[name] for name in header] for row in found.rows]
    notes = list(dict.fromkeys(row["note"] for row in found.rows if row["note"]))
    if notes:
        header.append("note")
        for cells, row in zip(shown_rows, found.rows, strict=True):
            cells.append(notes.index(row["note"]) + 1 if row["note"] else "")
    shown = table("Expected sub-optimality", header, shown_rows)
    places = {name: str(file) for name, file in files.items()}
    lines = [f"note {number}: {note}" for number, note in enumerate(notes, start=1)]
    lines += [f"{name}: {file}" for name, file in places.items()]
    print_result({**found.to_dict(), "files": places}, as_json, shown, *lines)


def _request(arms: str) -> Any:
    """One arm, several of them, or any."""
    if arms == "any":
        return arms
    each = tuple(number for part in arms.split("+") for number in whole_numbers("--arms", part))
    return each if len(each) > 1 else each[0]
