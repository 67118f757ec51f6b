"""The command `demo`: decide, forget and audit on the bundled log, without and with a vault."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from armnesia import datasets
from armnesia.auditing import Audit, audit
from armnesia.cli.demo_steps import run_vault
from armnesia.cli.log.arms import arm_table
from armnesia.cli.log.request import UnlearningCase
from armnesia.cli.options import AsJson
from armnesia.cli.output import print_result, table
from armnesia.core.json_values import json_value
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import LCB, Learner
from armnesia.logs import Log
from armnesia.plotting import picture_of_forgetting, save
from armnesia.privacy import Budget
from armnesia.unlearners import Adaptive, Gaussian, MultiSource, Rollback, Tilt, Unlearner

BUDGET = Budget(epsilon=1.0, delta=1e-5)
_LEAST_SHOWN = 0.00005


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture and the numbers.")] = Path("demo-output"),
    as_json: AsJson = False,
) -> None:
    """Decide, forget and audit on the bundled log, then in a vault."""
    log = datasets.flights()
    statistics = log.statistics()
    learner = LCB().bind(statistics)
    four_busiest = [str(aircraft) for aircraft in log.users(action="DL")][:4]
    one_request = log.request(users=four_busiest)
    one_of_each = [next(iter(log.users(action=airline))) for airline in statistics.actions]
    wide_request = log.request(users=one_of_each)
    single = _run(learner, statistics, one_request, [Rollback(), Gaussian(), Adaptive(), Tilt()])
    several = _run(learner, statistics, wide_request, [MultiSource()])
    picture, numbers = out / "forgetting.png", out / "demo.json"
    title = "Forgetting the four busiest DL aircraft: 480 of 16,026 flights"
    releases = {found.unlearner.name: result.release for found, result in single}
    save(picture_of_forgetting(learner, statistics, one_request, releases, title), picture)
    steps = run_vault(out, four_busiest, confidence=1 / len(log))  # as the learner is bound
    decision = learner.decide(statistics)
    retrained = learner.decide(statistics.without(one_request))
    result = {
        "log": "flights",
        "decision": {"action": decision.action, "arms": decision.to_dict(statistics)["arms"]},
        "learner": learner.to_dict(),
        "single_source": [_facts(*pair) for pair in single],
        "multi_source": [_facts(*pair) for pair in several],
        "vault": steps.to_dict(),
        "picture": picture,
    }
    numbers.write_text(json.dumps(json_value(result), ensure_ascii=False, indent=2), encoding="utf-8")
    print_result(
        result,
        as_json,
        _introduction(log),
        *arm_table("1. Decide: the highest lower confidence bound is served", statistics, decision),
        _table(f"2. Forget the aircraft {', '.join(four_busiest)}", single),
        f"   Without these {one_request.counts.sum()} flights, retraining serves {retrained.action}; tilt"
        f" keeps {decision.action} and still forgets the rewards.\n",
        _table("3. Forget the busiest aircraft of every airline in one request", several),
        f"   Forgotten: {_shape(wide_request)}.\n",
        _explanation(learner),
        steps.table(four_busiest),
        f"   The certificate of {four_busiest[0]}, which anyone with the public key can verify:\n",
        steps.certificate.words().text() + "\n",
        f"Picture: {picture}\nNumbers: {numbers}\nCertificate: {steps.file}",
    )


def _run(
    learner: Learner, statistics: ArmStatistics, request: DeletionRequest, unlearners: list[Unlearner]
) -> list[tuple[UnlearningCase, Audit]]:
    cases = [UnlearningCase(learner, statistics, request, unlearner, BUDGET) for unlearner in unlearners]
    return [(case, audit(case.unlearner, learner, statistics, request, BUDGET)) for case in cases]


def _facts(case: UnlearningCase, found: Audit) -> dict[str, Any]:
    return {
        **case.to_dict(),
        **found.release.to_dict(),
        "delta": found.delta,
        "smallest_epsilon": found.smallest_epsilon,
        "holds": found.holds,
    }


def _table(title: str, results: list[tuple[UnlearningCase, Audit]]) -> Any:
    rows = [
        [
            case.unlearner.name,
            _chances(found),
            found.release.branch,
            f"({found.guarantee.epsilon:g}, {found.guarantee.delta:g})\n{found.guarantee.level}",
            f"δ = {float(found.delta):.2g}\n{'holds' if found.holds else 'does not hold'}",
        ]
        for case, found in results
    ]
    return table(title, ["unlearner", "released arm", "branch", "guarantee", "audit"], rows)


def _chances(found: Audit) -> str:
    likely_first = sorted(
        zip(found.release.probabilities.tolist(), found.release.actions, strict=True), reverse=True
    )
    return "\n".join(f"{action} {chance:.4f}" for chance, action in likely_first if chance >= _LEAST_SHOWN)


def _shape(request: DeletionRequest) -> str:
    parts = zip(request.counts.tolist(), request.actions, strict=True)
    return ", ".join(f"{count} of {action}" for count, action in parts)


def _introduction(log: Log) -> str:
    return (
        f"{len(log):,} flights from New York to Los Angeles in 2013. Arm: the airline. Reward: at most 15"
        " minutes late.\nUser: the aircraft. (An observational log, not a randomised one: it shows how"
        " forgetting works, not which airline is better.)\n"
    )


def _explanation(learner: Learner) -> str:
    return (
        f"The budget is ε = {BUDGET.epsilon:g}, δ = {BUDGET.delta:g}. Probabilities are exact; no arm is"
        " drawn.\n"
        "  guarantee: (ε, δ), and the level, which says what the reference may know:\n"
        "    retained           only the retained flights; those flown because of an earlier decision stay\n"
        "    request_shape      also how many flights of each airline were deleted\n"
        "    original_decision  also the decision made before, with the deleted flights\n"
        f"    every level        also the configuration: {learner.reveals}\n"
        "  audit: the δ measured on this request, release and reference compared exactly.\n"
    )
