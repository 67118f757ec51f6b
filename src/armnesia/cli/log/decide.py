"""The command `decide`."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from armnesia.cli import options as opt
from armnesia.cli.log.arms import arm_table
from armnesia.cli.log.decide_by import print_decisions
from armnesia.cli.output import print_result
from armnesia.cli.parameters import check_owners, with_options_of, with_parameters
from armnesia.cli.vault.options import with_vault_options
from armnesia.cli.vault.served import print_served
from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import counted
from armnesia.learners import LEARNERS
from armnesia.learners.penalty_warning import warn_of_a_dominating_penalty


@with_parameters(LEARNERS)
@with_options_of(opt.LogOptions, "source")
@with_vault_options
def decide(
    log: Annotated[
        str | None, typer.Argument(metavar="LOG", help=f"{opt.LOG_HELP} If not given, the vault.")
    ] = None,
    source: Any = None,
    learner: opt.LearnerName = None,
    parameters: Any = None,
    by: opt.By = None,
    picture: opt.Picture = None,
    options: Any = None,
    signed: Annotated[
        bool,
        typer.Option("--signed", help="What the vault serves, signed: certificate verify checks it."),
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Print the arm to serve, from a log or from the vault.

    With LOG, also the count, mean and score of every arm; with LOG and --by, the arm of every decision.
    Without LOG, what the vault serves; --where country=DE,age=25 names one of its decisions.
    """
    if picture is not None and not by:
        raise InvalidInputError("--picture draws the decisions of --by, which was not given")
    if log is None:
        if by or replace(source, where=None) != opt.LogOptions() or learner is not None or parameters:
            raise InvalidInputError(
                "the vault has its own columns, actions and learner; such options need LOG"
            )
        with options.open() as vault:
            print_served(vault, source.where, as_json, signed=signed)
        return
    if signed:
        raise InvalidInputError("--signed is for what a vault serves; leave LOG out")
    kind = opt.learner_kind(learner)
    check_owners(parameters, (LEARNERS, [kind.name]))
    read = source.read(log, with_users=False, by=by)
    if by:
        decisions = read.by(*by)
        bound = opt.make_learner(kind, parameters, decisions.pooled)
        print_decisions(log, decisions, bound, picture, as_json)
        return
    statistics = read.statistics()
    bound = opt.make_learner(kind, parameters, statistics)
    decision = bound.decide(statistics)
    warn_of_a_dominating_penalty(decision.scores, decision.no_data, statistics.reward_range)
    result = {**decision.to_dict(statistics), "learner": bound.to_dict()}
    title = f"{log}: {counted(int(statistics.total), 'row')}"
    print_result(result, as_json, *arm_table(title, statistics, decision), *opt.revealed(bound))
