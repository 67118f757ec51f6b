"""The command that checks an unlearner at every level, on all small data sets."""

from typing import Annotated, Any

import typer

from armnesia.auditing import feasible_reference
from armnesia.auditing.small_worlds import LARGEST_COUNT
from armnesia.cli import options as opt
from armnesia.cli.log.case import learner_facts
from armnesia.cli.output import emit, progress_bar, table
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.statistics import ArmStatistics
from armnesia.privacy import Level
from armnesia.unlearners import UNLEARNERS


def levels(
    unlearner: opt.UnlearnerName = "rollback",
    epsilon: opt.Epsilon = None,
    delta: opt.Delta = None,
    gamma: opt.Gamma = None,
    learner: opt.LearnerName = None,
    confidence: opt.Confidence = None,
    threshold: opt.ThresholdOption = None,
    threshold_scale: opt.ThresholdScale = None,
    sensitivity: opt.SensitivityOption = None,
    max_count: Annotated[int, typer.Option(help="Records an arm, at most.")] = 6,
    as_json: opt.AsJson = False,
) -> None:
    """Check each level on all small data sets: the smallest δ for which any reference exists.

    Two arms, rewards 0 and 1. A level that fails here is refuted; one that holds is confirmed here only.
    """
    method = opt.make_unlearner(
        unlearner, threshold=threshold, threshold_scale=threshold_scale, sensitivity=sensitivity
    )
    budget = opt.make_budget(epsilon, delta, gamma, UNLEARNERS[unlearner])
    if not 1 <= max_count <= LARGEST_COUNT:
        raise InvalidInputError(f"--max-count must lie between 1 and {LARGEST_COUNT}; got {max_count}")
    biggest = ArmStatistics.from_rewards({0: [0] * max_count, 1: [0] * max_count})
    bound = opt.make_learner(learner, confidence, biggest, unlearner)
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
        "learner": learner_facts(bound),
        "branches": branches,
        "levels": rows,
    }
    title = f"{unlearner} at ε = {budget.epsilon:.6g}, δ = {budget.delta:.3g}"
    took = ", ".join(f"{branch}: {times}" for branch, times in branches.items())
    emit(
        result,
        as_json,
        table(title, ["level", "smallest δ", "holds", ""], [row.values() for row in rows]),
        f"All data sets of two arms with up to {max_count} records an arm. What was done: {took}.",
        "A level that fails here is refuted. One that holds is confirmed here only; where no noise was added,"
        " nothing but rollback was tested.",
    )
    if any(row["holds"] is False and row["note"] == "claimed" for row in rows):
        raise typer.Exit(1)
