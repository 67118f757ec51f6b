"""What the commands about forgetting share: a log, a learner, a request, an unlearner and a budget."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from armnesia.cli import options as opt
from armnesia.cli.output import table
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import ConfidenceLearner, Decision, Learner
from armnesia.privacy import Budget, Guarantee
from armnesia.unlearners import UNLEARNERS, Release, Unlearner


@dataclass(frozen=True)
class Case:
    """One request on one log, ready to be released or audited."""

    learner: Learner
    statistics: ArmStatistics
    request: DeletionRequest
    unlearner: Unlearner
    budget: Budget


def read_variants(
    threshold: opt.ThresholdOption = None,
    threshold_scale: opt.ThresholdScale = None,
    sensitivity: opt.SensitivityOption = None,
    ratio: opt.Ratio = None,
    joint: opt.Joint = None,
    assumed_share: opt.AssumedShare = None,
    predictive: opt.PredictiveName = None,
) -> dict[str, Any]:
    """The options of one unlearner among those that a command takes.

    >>> read_variants(ratio=0.5)
    {'ratio': 0.5}
    """
    given = {
        "threshold": threshold,
        "threshold_scale": threshold_scale,
        "sensitivity": sensitivity,
        "ratio": ratio,
        "joint": joint,
        "assumed_share": assumed_share,
        "predictive": predictive,
    }
    return {name: value for name, value in given.items() if value is not None}


def with_options_of(
    read: Callable[..., Any], command: Callable[..., Any], stand_for: str, without: Collection[str] = ()
) -> Callable[..., Any]:
    """Put the options of `read` where the command has the parameter that they stand for."""
    shared = {n: p for n, p in inspect.signature(read).parameters.items() if n not in without}
    own = inspect.signature(command).parameters
    listed = [p for name in own for p in (shared.values() if name == stand_for else [own[name]])]

    def run(**given: Any) -> Any:
        value = read(**{name: given.pop(name) for name in shared if name in given})
        return command(**{stand_for: value}, **given)

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in listed]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return run


def with_variants(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that takes `variants` the options of all unlearners instead."""
    return with_options_of(read_variants, command, "variants")


@with_variants
def read_case(
    log: opt.LogArgument,
    user: opt.Users = None,
    rows: opt.Rows = None,
    unlearner: opt.UnlearnerName = "rollback",
    epsilon: opt.Epsilon = None,
    delta: opt.Delta = None,
    gamma: opt.Gamma = None,
    action: opt.ActionColumn = "action",
    reward: opt.RewardColumn = "reward",
    user_column: opt.UserColumn = "user",
    actions: opt.Actions = None,
    reward_range: opt.RewardRange = "0,1",
    learner: opt.LearnerName = None,
    confidence: opt.Confidence = None,
    variants: Any = None,
) -> Case:
    """Turn options into a case; everything cheap is checked before the log is read."""
    method = opt.make_unlearner(unlearner, **variants)
    budget = opt.make_budget(epsilon, delta, gamma, UNLEARNERS[unlearner])
    wanted = opt.WhatToForget(user, rows)
    source = opt.open_log(log, action, reward, user_column if user else None, actions, reward_range)
    statistics = source.statistics()
    bound = opt.make_learner(learner, confidence, statistics, unlearner)
    return Case(bound, statistics, wanted.request(source), method, budget)


def on_a_case(command: Callable[..., None], without: Collection[str] = ()) -> Callable[..., None]:
    """Give a command that takes `case` the options of `read_case` instead; some may be left out."""
    return with_options_of(read_case, command, "case", without)


def arm_rows(statistics: ArmStatistics, decision: Decision) -> list[dict[str, Any]]:
    """One row an arm: what the decision was made from."""
    columns = (
        statistics.actions,
        statistics.counts.tolist(),
        statistics.means.tolist(),
        decision.scores.tolist(),
    )
    return [
        {"action": action, "count": count, "mean": mean, "score": score}
        for action, count, mean, score in zip(*columns, strict=True)
    ]


def arm_table(title: str, statistics: ArmStatistics, decision: Decision) -> Any:
    """The same rows for people, the served arm marked."""
    rows = [
        [*row.values(), "← served" if row["action"] == decision.action else ""]
        for row in arm_rows(statistics, decision)
    ]
    return table(title, ["action", "count", "mean", "score", ""], rows)


def learner_facts(learner: Learner) -> dict[str, Any]:
    """The learner as JSON names it."""
    confidence = learner.confidence if isinstance(learner, ConfidenceLearner) else None
    return {"name": learner.name, "confidence": confidence}


def guarantee_facts(guarantee: Guarantee) -> dict[str, Any]:
    """The guarantee as JSON names it."""
    return {
        "epsilon": guarantee.epsilon,
        "delta": guarantee.delta,
        "level": guarantee.level,
        "meaning": guarantee.level.meaning,
    }


def case_facts(case: Case, release: Release) -> dict[str, Any]:
    """The result of a release as JSON names it."""
    actions = case.statistics.actions
    return {
        "unlearner": case.unlearner.name,
        "learner": learner_facts(case.learner),
        "decision_before": case.learner.decide(case.statistics).action,
        "request": {
            "records": case.request.counts.sum(),
            "counts": dict(zip(actions, case.request.counts.tolist(), strict=True)),
        },
        "budget": {"epsilon": case.budget.epsilon, "delta": case.budget.delta, "gamma": case.budget.gamma},
        "probabilities": dict(zip(actions, release.probabilities.tolist(), strict=True)),
        "branch": release.branch,
        "guarantee": guarantee_facts(release.guarantee),
    }
