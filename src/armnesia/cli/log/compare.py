"""The command `compare`."""

from armnesia.auditing import Comparison
from armnesia.auditing import compare as compare_unlearners
from armnesia.cli import options as opt
from armnesia.cli.log.jointly import print_joint_comparison
from armnesia.cli.log.request import RequestArguments, checked_over, request_arguments
from armnesia.cli.output import print_result, table
from armnesia.cli.parameters import check_owners, of_kind, with_options_of
from armnesia.core.messages import counted
from armnesia.learners import LEARNERS
from armnesia.unlearners import UNLEARNERS

_LEAST_SHOWN = 0.0005


@with_options_of(request_arguments, "request")
def compare(
    request: RequestArguments,
    epsilon: opt.Epsilon = None,
    delta: opt.Delta = None,
    gamma: opt.Gamma = None,
    over: opt.Over = "touched",
    as_json: opt.AsJson = False,
) -> None:
    """Compare all unlearners on one request.

    By level, exact probabilities, probability of a change and expected loss; with --by, in all decisions.
    """
    budget = opt.make_budget(epsilon, delta, gamma)
    split_over = checked_over(over, request.by)
    learner = opt.learner_kind(request.learner)
    check_owners(request.parameters, (UNLEARNERS, UNLEARNERS), (LEARNERS, [learner.name]))
    variants = [
        opt.make_unlearner(kind, request.parameters)
        for kind in UNLEARNERS.values()
        if of_kind(request.parameters, kind)
    ]
    on = request.read(learner)
    if on.decisions is not None:
        print_joint_comparison(on, budget, variants, split_over, as_json)
        return
    found = compare_unlearners(on.learner, on.statistics, on.request, budget, variants=variants)
    shown = table(
        f"Forgetting {counted(on.request.counts.sum(), 'record')}, at ε = {budget.epsilon:g},"
        f" δ = {budget.delta:g}",
        ["unlearner", "guarantee", "released arm", "change", "loss"],
        [
            [each.name, _guarantee(each), _likely_arms(each), each.change, each.expected_loss]
            for each in found
            if each.guarantee is not None
        ],
    )
    refused = [f"{each.name}: {each.refused}" for each in found if each.refused]
    print_result(
        {
            **on.to_dict(),
            "budget": budget.to_dict(),
            "unlearners": [each.to_dict() for each in found],
        },
        as_json,
        shown,
        f"Served before: {on.decision_before.action}. Strictest level first. Change: the probability that"
        " another arm is released. Loss: expected, judged by the retained records with a uniform prior; for"
        " the operator, not to be published.",
        *opt.revealed(on.learner),
        *(["Not possible here:", *refused] if refused else []),
    )


def _guarantee(found: Comparison) -> str:
    promise = found.guarantee
    return "" if promise is None else f"({promise.epsilon:g}, {promise.delta:.2g})\n{promise.level}"


def _likely_arms(found: Comparison) -> str:
    """The three most likely arms."""
    if found.probabilities is None:
        return ""
    chances = sorted(zip(found.probabilities.tolist(), map(str, found.actions), strict=True), reverse=True)
    return "\n".join(f"{action} {chance:.3f}" for chance, action in chances[:3] if chance >= _LEAST_SHOWN)
