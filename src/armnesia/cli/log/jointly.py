"""The commands `unlearn`, `audit` and `compare` with --by: one request in all decisions of a log."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import typer

from armnesia.auditing import JointAudit, audit_jointly, compare_jointly
from armnesia.cli import options as opt
from armnesia.cli.log.request import LogRequest, UnlearningCase
from armnesia.cli.output import print_result, table
from armnesia.core.arrays import FloatArray
from armnesia.core.messages import counted
from armnesia.logs import Decisions
from armnesia.plotting import margins
from armnesia.privacy import Budget
from armnesia.unlearners import JointRelease, Unlearner, release_jointly
from armnesia.unlearners.joint import Over

_SHOWN = 20
_LEAST_SHOWN = 0.0005


def print_joint_release(case: UnlearningCase, decisions: Decisions, draw: bool, as_json: bool) -> None:
    """Forget a request in all decisions, with one guarantee."""
    release = release_jointly(
        case.unlearner, case.learner, case.statistics, case.request, case.budget, over=case.over
    )
    drawn = release.draw() if draw else None
    facts = {}
    if as_json:
        each_drawn = [None] * len(decisions) if drawn is None else drawn
        facts = _facts(case, decisions, release.to_dict(), drawn=each_drawn)
    records, touched = int(case.request.counts.sum()), int(release.touched.sum())
    print_result(
        facts,
        as_json,
        _table(
            f"Forgetting {counted(records, 'record')} in {counted(touched, 'decision')} by"
            f" {case.unlearner.name}, smallest margins first",
            case,
            decisions,
            release,
            {} if drawn is None else {"released": drawn},
        ),
        *_rest(decisions, release),
        *_promise(release),
    )


def print_joint_audit(case: UnlearningCase, decisions: Decisions, as_json: bool) -> None:
    """Compare the releases of all decisions with their references; exit code 1 unless the claim holds."""
    budget = case.budget
    found = audit_jointly(case.unlearner, case.learner, case.statistics, case.request, budget, over=case.over)
    likely = [_likely_arms(case, row) for row in found.reference]
    about = "" if not found.delta_error else f" (at most; at least {found.delta - found.delta_error:.6g})"
    print_result(
        _facts(case, decisions, found.to_dict()) if as_json else {},
        as_json,
        _table(
            f"Audit of {case.unlearner.name} in {counted(int(found.release.touched.sum()), 'decision')},"
            " smallest margins first",
            case,
            decisions,
            found.release,
            {"P(reference)": likely},
        ),
        *_rest(decisions, found.release),
        *_promise(found.release),
        f"Measured here, all releases together: δ = {found.delta:.6g}{about} at ε = {budget.epsilon:.6g}"
        f" (release → reference {found.delta_forward:.6g}, back {found.delta_backward:.6g});"
        f" ε {'=' if found.is_exact else '≤'} {found.smallest_epsilon:.6g} at δ = {budget.delta:.3g}",
        _verdict(found),
    )
    if not found.holds:
        raise typer.Exit(1)


def print_joint_comparison(
    on: LogRequest, budget: Budget, variants: Iterable[Unlearner], over: Over, as_json: bool
) -> None:
    """Compare all unlearners on a request in all decisions."""
    found = compare_jointly(on.learner, on.statistics, on.request, budget, variants=variants, over=over)
    touched = int((~on.request.is_empty).sum())
    shown = table(
        f"Forgetting {counted(int(on.request.counts.sum()), 'record')} in {counted(touched, 'decision')},"
        f" at ε = {budget.epsilon:g}, δ = {budget.delta:g} for all of them together",
        ["unlearner", "guarantee", "changes", "loss"],
        [
            [
                each.name,
                f"({promise.epsilon:g}, {promise.delta:.2g})\n{promise.level}",
                each.changes,
                each.expected_loss,
            ]
            for each in found
            if (promise := each.guarantee) is not None
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
        "A guarantee is that of all releases together. Strictest level first. Changes: the expected number of"
        " decisions in which another arm is released. Loss: expected, added up over the decisions, judged by"
        " the retained records with a uniform prior; for the operator, not to be published.",
        *opt.revealed(on.learner),
        *(["Not possible here:", *refused] if refused else []),
    )


def _facts(
    case: UnlearningCase, decisions: Decisions, result: dict[str, Any], **more: list[Any]
) -> dict[str, Any]:
    """A result on all decisions as JSON holds it; each decision with its key and what was there before."""
    actions = case.statistics.actions
    columns = zip(
        case.request.counts.tolist(), case.decision_before.index.tolist(), result["decisions"], strict=True
    )
    each = [
        {
            "key": decisions.key_of(place),
            "counts": dict(zip(actions, counts, strict=True)),
            "decision_before": actions[served],
            **released,
            **{name: values[place] for name, values in more.items()},
        }
        for place, (counts, served, released) in enumerate(columns)
    ]
    return {**case.to_dict(), **result, "decisions": each}


def _table(
    title: str, case: UnlearningCase, decisions: Decisions, release: JointRelease, more: dict[str, list[Any]]
) -> Any:
    """The decisions that lose records, those with the smallest margins first."""
    before = case.decision_before
    ahead, _ = margins(before)
    touched = np.flatnonzero(release.touched)
    closest = touched[np.argsort(ahead[touched], kind="stable")][:_SHOWN].tolist()
    names = [column.name for column in decisions.columns]
    return table(
        title,
        [*names, "forgotten", "served before", "margin before", "P(released)", *more],
        [
            [
                *decisions.keys[place],
                int(case.request.counts[place].sum()),
                case.statistics.actions[int(before.index[place])],
                float(ahead[place]),
                _likely_arms(case, release.probabilities[place]),
                *(values[place] for values in more.values()),
            ]
            for place in closest
        ],
    )


def _rest(decisions: Decisions, release: JointRelease) -> list[str]:
    """What the table leaves out."""
    touched = int(release.touched.sum())
    hidden, others = touched - min(touched, _SHOWN), len(decisions) - touched
    kept = "are answered as well" if len(release.answered) > touched else "keep their arms"
    return [
        *(
            [f"{counted(hidden, 'more decision')} with records of the request: --json prints all."]
            * (hidden > 0)
        ),
        *([f"{counted(others, 'decision')} without records of the request: they {kept}."] * (others > 0)),
    ]


def _promise(release: JointRelease) -> list[str]:
    """The guarantee of the request, and how it was divided."""
    number, each = release.n_sharing, release.each
    shared = number > 1 and (each.epsilon, each.delta) != (release.guarantee.epsilon, release.guarantee.delta)
    divided = (
        f"; each of {number} decisions gets (ε = {each.epsilon:.6g}, δ = {each.delta:.3g})" if shared else ""
    )
    return [f"Guarantee of all releases together: {release.guarantee}{divided}"]


def _verdict(found: JointAudit) -> str:
    """Whether the claim holds; δ is only enclosed in some audits of many decisions."""
    if found.verdict != "not shown":
        return f"The claim {found.verdict} on this log and request."
    lower, upper = found.delta_at_claim
    return (
        f"The claim is not shown on this log and request: δ is between {lower:.6g} and {upper:.6g}"
        f" at ε = {found.guarantee.epsilon:.6g}."
    )


def _likely_arms(on: LogRequest, probabilities: FloatArray) -> str:
    """The three most likely arms."""
    chances = sorted(zip(probabilities.tolist(), map(str, on.statistics.actions), strict=True), reverse=True)
    return "\n".join(f"{action} {chance:.3f}" for chance, action in chances[:3] if chance >= _LEAST_SHOWN)
