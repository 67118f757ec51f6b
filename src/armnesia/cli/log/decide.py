"""Commands on a log: decide, unlearn, audit."""

from typing import Annotated

import typer

from armnesia.auditing import audit as run_audit
from armnesia.cli import options as opt
from armnesia.cli.log.case import Case, arm_rows, arm_table, case_facts, learner_facts
from armnesia.cli.output import emit, table
from armnesia.cli.vault.init import decide_in_vault
from armnesia.cli.vault.options import Keys, Url
from armnesia.core.errors import InvalidInputError
from armnesia.vault import DEFAULT_URL

_OF_A_LOG = ("action", "reward", None, "0,1", None, None)


def decide(
    log: opt.LogOrVault = None,
    action: opt.ActionColumn = "action",
    reward: opt.RewardColumn = "reward",
    actions: opt.Actions = None,
    reward_range: opt.RewardRange = "0,1",
    learner: opt.LearnerName = None,
    confidence: opt.Confidence = None,
    url: Url = DEFAULT_URL,
    keys: Keys = None,
    as_json: opt.AsJson = False,
) -> None:
    """Which arm to serve: by LOG, with every arm's count, mean and score; without LOG, by the vault."""
    if log is None:
        if (action, reward, actions, reward_range, learner, confidence) != _OF_A_LOG:
            raise InvalidInputError(
                "the vault has its own columns, actions and learner; such options need LOG"
            )
        decide_in_vault(url, keys, as_json)
        return
    statistics = opt.open_log(log, action, reward, None, actions, reward_range).statistics()
    bound = opt.make_learner(learner, confidence, statistics)
    decision = bound.decide(statistics)
    result = {
        "action": decision.action,
        "no_data": decision.no_data,
        "learner": learner_facts(bound),
        "n_rows": statistics.total,
        "arms": arm_rows(statistics, decision),
    }
    emit(result, as_json, arm_table(f"{log}: {statistics.total} decisions", statistics, decision))


def unlearn(
    case: Case,
    draw: Annotated[bool, typer.Option("--draw", help="Draw the released arm, once.")] = False,
    picture: opt.Picture = None,
    as_json: opt.AsJson = False,
) -> None:
    """Forget records: the exact probabilities of the released arm; an arm is drawn only with --draw."""
    release = case.unlearner.release(case.learner, case.statistics, case.request, case.budget)
    result = {**case_facts(case, release), "drawn": release.draw() if draw else None, "picture": picture}
    if picture is not None:
        from armnesia.plotting import picture_of_forgetting, save  # noqa: PLC0415 (matplotlib is an extra)

        releases = {case.unlearner.name: release}
        save(picture_of_forgetting(case.learner, case.statistics, case.request, releases), picture)
    before = case.learner.decide(case.statistics)
    after = case.learner.decide(case.statistics.without(case.request))
    shown = table(
        f"Forgetting {case.request.counts.sum()} records by {case.unlearner.name}",
        ["action", "forgotten", "score before", "score after", "P(released)"],
        zip(
            case.statistics.actions,
            case.request.counts.tolist(),
            before.scores.tolist(),
            after.scores.tolist(),
            release.probabilities.tolist(),
            strict=True,
        ),
    )
    lines = [
        shown,
        f"Served before: {before.action}",
        f"Branch: {release.branch}",
        f"Guarantee: {release.guarantee}",
    ]
    emit(result, as_json, *lines, *([f"Released: {result['drawn']}"] if draw else []))


def audit(case: Case, as_json: opt.AsJson = False) -> None:
    """Compare release and reference exactly, both ways. Exit code 1 if the claim does not hold here."""
    found = run_audit(case.unlearner, case.learner, case.statistics, case.request, case.budget)
    actions = case.statistics.actions
    result = {
        **case_facts(case, found.release),
        "reference": dict(zip(actions, found.reference.tolist(), strict=True)),
        "delta_forward": found.delta_forward,
        "delta_backward": found.delta_backward,
        "delta": found.delta,
        "smallest_epsilon": found.smallest_epsilon,
        "holds": found.holds,
    }
    shown = table(
        f"Audit of {case.unlearner.name}",
        ["action", "P(released)", "P(reference)"],
        zip(actions, found.release.probabilities.tolist(), found.reference.tolist(), strict=True),
    )
    emit(
        result,
        as_json,
        shown,
        f"Claimed: {found.guarantee}",
        f"Measured here: δ = {float(found.delta):.6g} at ε = {case.budget.epsilon:.6g}"
        f" (release → reference {float(found.delta_forward):.6g}, back {float(found.delta_backward):.6g});"
        f" ε = {float(found.smallest_epsilon):.6g} at δ = {case.budget.delta:.3g}",
        "The claim holds on this log and request." if found.holds else "THE CLAIM DOES NOT HOLD HERE.",
    )
    if not found.holds:
        raise typer.Exit(1)
