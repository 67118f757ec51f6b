"""The command that sets all unlearners side by side on one request."""

from typing import Any

from armnesia.auditing import Comparison
from armnesia.auditing import compare as compare_unlearners
from armnesia.cli import options as opt
from armnesia.cli.log.case import Case, guarantee_facts, learner_facts
from armnesia.cli.output import emit, table
from armnesia.core.errors import InvalidInputError
from armnesia.unlearners import Tilt

OF_ONE_UNLEARNER = (
    "unlearner",
    "threshold",
    "threshold_scale",
    "sensitivity",
    "ratio",
    "joint",
    "assumed_share",
    "predictive",
)
"""The options that belong to one unlearner; this command has its own way with them."""


def compare(
    case: Case,
    assumed_share: opt.AssumedShare = None,
    predictive: opt.PredictiveName = None,
    as_json: opt.AsJson = False,
) -> None:
    """All unlearners on one request: level, exact probabilities, chance of a change, expected loss."""
    if case.budget.epsilon == 0 and case.budget.delta == 0:
        raise InvalidInputError("a comparison needs a budget: --epsilon or --gamma, with --delta")
    tilt = Tilt(assumed_share=assumed_share, predictive="flat" if predictive is None else predictive)
    found = compare_unlearners(case.learner, case.statistics, case.request, case.budget, variants=[tilt])
    before = case.learner.decide(case.statistics)
    actions = case.statistics.actions
    result = {
        "learner": learner_facts(case.learner),
        "decision_before": before.action,
        "request": {
            "records": case.request.counts.sum(),
            "counts": dict(zip(actions, case.request.counts.tolist(), strict=True)),
        },
        "budget": {"epsilon": case.budget.epsilon, "delta": case.budget.delta, "gamma": case.budget.gamma},
        "unlearners": [_facts(each, actions) for each in found],
    }
    epsilon, delta = case.budget.epsilon, case.budget.delta
    shown = table(
        f"Forgetting {case.request.counts.sum()} records, at ε = {epsilon:g}, δ = {delta:g}",
        ["unlearner", "guarantee", "released arm", "change", "loss"],
        [
            [each.name, _promise(each), _likely(each, actions), each.change, each.expected_loss]
            for each in found
            if each.guarantee is not None
        ],
    )
    refused = [f"{each.name}: {each.refused}" for each in found if each.refused]
    emit(
        result,
        as_json,
        shown,
        f"Served before: {before.action}. Strictest level first. Change: the chance that another arm is"
        " released. Loss: expected, judged by what is left of the log with a uniform prior; for the"
        " operator, not to be published.",
        *(["Not possible here:", *refused] if refused else []),
    )


def _facts(found: Comparison, actions: tuple[Any, ...]) -> dict[str, Any]:
    probabilities = None
    if found.probabilities is not None:
        probabilities = dict(zip(actions, found.probabilities.tolist(), strict=True))
    return {
        "name": found.name,
        "guarantee": None if found.guarantee is None else guarantee_facts(found.guarantee),
        "probabilities": probabilities,
        "change": found.change,
        "expected_loss": found.expected_loss,
        "refused": found.refused or None,
    }


def _promise(found: Comparison) -> str:
    promise = found.guarantee
    return "" if promise is None else f"({promise.epsilon:g}, {promise.delta:.2g})\n{promise.level}"


def _likely(found: Comparison, actions: tuple[Any, ...]) -> str:
    if found.probabilities is None:
        return ""
    chances = sorted(zip(found.probabilities.tolist(), map(str, actions), strict=True), reverse=True)
    return "\n".join(f"{action} {chance:.3f}" for chance, action in chances[:3] if chance >= 0.0005)
