"""The command `research levels`."""

from typing import Annotated, Any

import typer

from armnesia.auditing import feasible_reference
from armnesia.auditing.small_worlds import LARGEST_COUNT
from armnesia.cli import options as opt
from armnesia.cli.output import print_result, progress_bar, table
from armnesia.cli.parameters import with_parameters
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.messages import counted
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import LEARNERS
from armnesia.privacy import Guarantee, Level
from armnesia.unlearners import UNLEARNERS


@with_parameters(UNLEARNERS, LEARNERS)
def levels(
    unlearner: opt.UnlearnerName = "rollback",
    epsilon: opt.Epsilon = None,
    delta: opt.Delta = None,
    gamma: opt.Gamma = None,
    learner: opt.LearnerName = None,
    parameters: Any = None,
    max_count: Annotated[int, typer.Option(help="Records per arm, at most.")] = 6,
    as_json: opt.AsJson = False,
) -> None:
    """Find the smallest δ at which each level holds.

    Over all data sets of two arms with rewards 0 and 1, and any reference. A level that fails here is
    refuted; one that holds is confirmed for these data sets only. Exit code 1 if the claimed level fails.
    """
    kind, learner_kind = opt.chosen_kinds(unlearner, learner, parameters)
    method = opt.make_unlearner(kind, parameters)
    budget = opt.make_budget(epsilon, delta, gamma, needed=kind.needs_budget)
    if not 1 <= max_count <= LARGEST_COUNT:
        raise InvalidInputError(f"--max-count must lie between 1 and {LARGEST_COUNT}; got {max_count}")
    largest = ArmStatistics.from_rewards({0: [0] * max_count, 1: [0] * max_count})
    bound = opt.make_learner(learner_kind, parameters, largest)
    rows: list[dict[str, Any]] = []
    branches: dict[str, int] = {}
    with progress_bar(quiet=as_json) as bar:
        for level in Level:
            bar.add_task(f"level {level}")
            try:
                found = feasible_reference(
                    method,
                    bound,
                    level=level,
                    budget=budget,
                    max_count=max_count,
                    progress=lambda done, total: bar.update(bar.task_ids[-1], completed=done, total=total),
                )
            except UnsupportedError as reason:
                rows.append({"level": level, "smallest_delta": None, "holds": None, "note": str(reason)})
                continue
            branches = found.branches
            note = "claimed" if level is method.level else ""
            rows.append({"level": level, "smallest_delta": found.delta, "holds": found.holds, "note": note})
    result = {
        "unlearner": unlearner,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "max_count": max_count,
        "learner": bound.to_dict(),
        "branches": branches,
        "levels": rows,
    }
    needs_budget = method.needs_budget
    claimed = Guarantee(
        budget.epsilon if needs_budget else 0.0, budget.delta if needs_budget else 0.0, method.level
    )
    title = f"{unlearner} at ε = {budget.epsilon:.6g}, δ = {budget.delta:.3g}"
    taken = ", ".join(f"{branch}: {times}" for branch, times in branches.items())
    print_result(
        result,
        as_json,
        table(title, ["level", "smallest δ", "holds", ""], [row.values() for row in rows]),
        f"Claimed: {claimed}.",
        f"All data sets of two arms with up to {counted(max_count, 'record')} per arm."
        f" Branches taken: {taken}.",
        "A level that fails here is refuted. One that holds is confirmed for these data sets only; where no"
        " noise was added, only rollback was tested.",
    )
    if any(row["holds"] is False and row["note"] == "claimed" for row in rows):
        raise typer.Exit(1)
