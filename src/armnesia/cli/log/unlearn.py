"""The command `unlearn`."""

from typing import Annotated

import typer

from armnesia.cli import options as opt
from armnesia.cli.log.jointly import print_joint_release
from armnesia.cli.log.request import UnlearningCase, read_request
from armnesia.cli.output import print_result, table
from armnesia.cli.parameters import with_options_of
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import counted
from armnesia.plotting import picture_of_forgetting, save


@with_options_of(read_request, "case")
def unlearn(
    case: UnlearningCase,
    draw: Annotated[bool, typer.Option("--draw", help="Draw the released arm, once.")] = False,
    picture: opt.Picture = None,
    as_json: opt.AsJson = False,
) -> None:
    """Forget records: the exact distribution of the released arm.

    An arm is drawn only with --draw. With --by, in all decisions of the log, with one guarantee.
    """
    if case.decisions is not None:
        if picture is not None:
            raise InvalidInputError("--picture draws the arms of one decision; leave it out with --by")
        print_joint_release(case, case.decisions, draw, as_json)
        return
    learner, statistics, request = case.learner, case.statistics, case.request
    release = case.unlearner.release(learner, statistics, request, case.budget)
    drawn = release.draw() if draw else None
    if picture is not None:
        save(picture_of_forgetting(learner, statistics, request, {case.unlearner.name: release}), picture)
    after = learner.decide(statistics.without(request))
    shown = table(
        f"Forgetting {counted(request.counts.sum(), 'record')} by {case.unlearner.name}",
        ["action", "forgotten", "score before", "score after", "P(released)"],
        zip(
            statistics.actions,
            request.counts.tolist(),
            case.decision_before.scores.tolist(),
            after.scores.tolist(),
            release.probabilities.tolist(),
            strict=True,
        ),
    )
    print_result(
        {**case.to_dict(), **release.to_dict(), "drawn": drawn, "picture": picture},
        as_json,
        shown,
        f"Served before: {case.decision_before.action}",
        *case.method_lines(),
        f"Branch: {release.branch}",
        f"Guarantee: {release.guarantee}",
        *([f"Released: {drawn}"] if draw else []),
    )
