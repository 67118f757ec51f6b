"""The commands `unlearn` and `audit` with --by: one request in all decisions of a log."""

from typing import Any

import numpy as np
import typer

from armnesia.auditing import JointAudit, audit_jointly
from armnesia.cli.log.arms import likely_arms
from armnesia.cli.log.request import UnlearningCase
from armnesia.cli.output import print_result, table
from armnesia.core.messages import counted
from armnesia.logs import Decisions
from armnesia.plotting import margins
from armnesia.unlearners import JointRelease, release_jointly

_SHOWN = 20


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
        *case.method_lines(),
        *_promise(release),
    )


def print_joint_audit(case: UnlearningCase, decisions: Decisions, as_json: bool) -> None:
    """Compare the releases of all decisions with their references; exit code 1 unless the claim holds."""
    budget = case.budget
    found = audit_jointly(case.unlearner, case.learner, case.statistics, case.request, budget, over=case.over)
    likely = [likely_arms(case.statistics.actions, row) for row in found.reference]
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
        *case.method_lines(),
        *_promise(found.release),
        f"Measured here, all releases together: δ = {found.delta:.6g}{about} at ε = {budget.epsilon:.6g}"
        f" (release → reference {found.delta_forward:.6g}, back {found.delta_backward:.6g});"
        f" ε {'=' if found.is_exact else '≤'} {found.smallest_epsilon:.6g} at δ = {budget.delta:.3g}",
        _verdict(found),
    )
    if not found.holds:
        raise typer.Exit(1)


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
        [*names, "forgotten", "served\nbefore", "margin\nbefore", "P(released)", *more],
        [
            [
                *decisions.keys[place],
                int(case.request.counts[place].sum()),
                case.statistics.actions[int(before.index[place])],
                float(ahead[place]),
                likely_arms(case.statistics.actions, release.probabilities[place]),
                *(values[place] for values in more.values()),
            ]
            for place in closest
        ],
    )


def _rest(decisions: Decisions, release: JointRelease) -> list[str]:
    """What the table leaves out."""
    touched = int(release.touched.sum())
    hidden, others = touched - min(touched, _SHOWN), len(decisions) - touched
    if len(release.answered) > touched:
        kept = "is answered as well" if others == 1 else "are answered as well"
    else:
        kept = "keeps its arm" if others == 1 else "keep their arms"
    return [
        *(
            [f"{counted(hidden, 'more decision')} with records of the request: --json prints all."]
            * (hidden > 0)
        ),
        *([f"{counted(others, 'decision')} without records of the request {kept}."] * (others > 0)),
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
