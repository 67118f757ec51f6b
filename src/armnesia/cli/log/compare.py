"""The command `compare`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from armnesia.auditing import Comparison, JointComparison, compare_jointly
from armnesia.auditing import compare as compare_unlearners
from armnesia.cli import options as opt
from armnesia.cli.log.arms import likely_arms
from armnesia.cli.log.request import LogRequest, RequestArguments, checked_over, request_arguments
from armnesia.cli.output import print_result, table
from armnesia.cli.parameters import check_owners, of_kind, with_options_of
from armnesia.core.messages import counted
from armnesia.learners import LEARNERS
from armnesia.privacy import Budget, Guarantee
from armnesia.unlearners import UNLEARNERS, Unlearner
from armnesia.unlearners.joint import Over

_JUDGED = (
    "judged by the retained records with a uniform prior, as if those who leave resembled those who stay; for"
    " the operator, not to be published."
)
_NOT_FOR_CHOOSING = (
    "Choose an unlearner and a budget by made-up requests, such as a random sample of people, and before a"
    " real request is compared: a choice made after seeing what each would release is not covered by any of"
    " these guarantees."
)


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
    variants = [each for kind in UNLEARNERS.values() for each in _variants(kind, request.parameters)]
    on = request.read(learner)
    compared = (
        _in_one_decision(on, budget, variants)
        if on.decisions is None
        else _in_all_decisions(on, budget, variants, split_over)
    )
    refused = [f"{each.name}: {each.refused}" for each in compared.found if each.refused]
    print_result(
        {
            **on.to_dict(),
            "budget": budget.to_dict(),
            "unlearners": [each.to_dict() for each in compared.found],
        },
        as_json,
        compared.table,
        compared.explanation,
        _NOT_FOR_CHOOSING,
        *opt.revealed(on.learner),
        *(["Not possible here:", *refused] if refused else []),
    )


def _variants(kind: type[Unlearner], parameters: Mapping[str, Any]) -> list[Unlearner]:
    """The unlearner with the parameters that are given; also at its usual level, if they select another.

    >>> found = _variants(UNLEARNERS["tilt"], {"assumed_share": 0.95, "insurance": 0.01})
    >>> [each.described for each in found]
    ['tilt (assumed_share=0.95, predictive=by_counts, insurance=0.01)',
    'tilt (predictive=flat, insurance=0.01)']
    """
    given = of_kind(parameters, kind)
    if not given:
        return []
    asked = kind(**given)
    fewer = [{name: value for name, value in given.items() if name != left_out} for left_out in given]
    usual = [other for one_less in fewer if (other := kind(**one_less)).level is kind.level]
    return [asked] if asked.level is kind.level else [asked, *usual[:1]]


class _Compared(NamedTuple):
    """What a comparison found, and the table and the words that show it."""

    found: Sequence[Comparison | JointComparison]
    table: Any
    explanation: str


def _in_one_decision(on: LogRequest, budget: Budget, variants: Iterable[Unlearner]) -> _Compared:
    found = compare_unlearners(on.learner, on.statistics, on.request, budget, variants=variants)
    shown = table(
        f"Forgetting {counted(on.request.counts.sum(), 'record')}, at {_at(budget)}",
        ["unlearner", "guarantee", "released arm", "change", "loss"],
        [
            [
                each.name,
                _in_table(guarantee),
                likely_arms(each.actions, chances),
                each.change,
                each.expected_loss,
            ]
            for each in found
            if (guarantee := each.guarantee) is not None and (chances := each.probabilities) is not None
        ],
    )
    return _Compared(
        found,
        shown,
        f"Served before: {on.decision_before.action}. Strictest level first. Change: the probability that"
        f" another arm is released. Loss: expected, {_JUDGED}",
    )


def _in_all_decisions(on: LogRequest, budget: Budget, variants: Iterable[Unlearner], over: Over) -> _Compared:
    found = compare_jointly(on.learner, on.statistics, on.request, budget, variants=variants, over=over)
    touched = int((~on.request.is_empty).sum())
    shown = table(
        f"Forgetting {counted(on.request.counts.sum(), 'record')} in {counted(touched, 'decision')},"
        f" at {_at(budget)} for all of them together",
        ["unlearner", "guarantee", "changes", "loss"],
        [
            [each.name, _in_table(guarantee), each.changes, each.expected_loss]
            for each in found
            if (guarantee := each.guarantee) is not None
        ],
    )
    return _Compared(
        found,
        shown,
        "A guarantee is that of all releases together. Strictest level first. Changes: the expected number of"
        " decisions in which another arm is released. Loss: expected, added up over the decisions,"
        f" {_JUDGED}",
    )


def _at(budget: Budget) -> str:
    return f"ε = {budget.epsilon:g}, δ = {budget.delta:g}"


def _in_table(guarantee: Guarantee) -> str:
    return f"({guarantee.epsilon:g}, {guarantee.delta:.2g})\n{guarantee.level}"
