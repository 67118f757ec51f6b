"""What a request to forget comes to: the touched decisions, the released arms, and its ledger facts."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from armnesia.core.errors import ArmnesiaError, UnsupportedError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.privacy import Guarantee, Level
from armnesia.unlearners import JointRelease, Release, Rollback
from armnesia.unlearners.stream import Stream
from armnesia.vault.configuration import Configuration, check_joint, meaningful_budget
from armnesia.vault.results import TouchedDecision
from armnesia.vault.state.decision_table import put_decisions, read_decisions, read_released, served_action
from armnesia.vault.state.decisions import (
    DEFAULT,
    LEARNER,
    RELEASE,
    VaultDecision,
    decided,
    key_dict,
    stacked,
    unstacked,
)
from armnesia.vault.state.records import DecisionSums
from armnesia.vault.state.requests import Found, Method
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.transaction import Transaction


class TouchedDecisions(NamedTuple):
    """The decisions that a request takes records from, and these records."""

    decisions: list[VaultDecision]
    stream: Stream
    """Their records; in a vault with key columns the decisions are on its first axis."""
    records: ArmStatistics
    """The records of the request."""
    visible: DeletionRequest
    """Its records of offered arms: all that an unlearner sees of it."""


def read_touched_decisions(transaction: Transaction, sums: DecisionSums) -> TouchedDecisions | None:
    """Read the decisions that a request takes records from; None if it takes none."""
    if not any(count for own in sums.values() for _, count, _, _ in own):
        return None
    configuration, decisions = transaction.state.configuration, read_decisions(transaction, sums)
    stream = stacked(decisions, configuration, jointly=bool(configuration.by))
    shape: tuple[int, ...] = (len(decisions), len(stream.statistics.actions))
    offered = np.ones(shape, bool) if stream.offered is None else stream.offered.reshape(shape)
    counts, units, binary = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=object), True
    for place, decision in enumerate(decisions):
        for arm, count, total, only_extremes in sums[decision.number]:
            counts[place, arm] += count
            units[place, arm] += total
            binary &= only_extremes or not offered[place, arm]
    own, shape = stream.statistics, stream.statistics.counts.shape
    records = seen = ArmStatistics(own.actions, counts.reshape(shape), units.reshape(shape), own.reward_range)
    if stream.offered is not None:
        seen = records.selected(lambda every: np.where(offered.reshape(every.shape), every, 0))
    return TouchedDecisions(decisions, stream, records, DeletionRequest(seen, binary))


def describe(
    state: State,
    found: Found,
    touched: TouchedDecisions | None,
    served: Sequence[Hashable] = (),
    decided_again: int = 0,
) -> dict[str, Any]:
    """What a request and its preview tell alike: fields of `Answer`; `served` are the released arms."""
    keyed, counts = bool(state.configuration.by), [0] * len(state.actions)
    if touched is not None:
        counts = np.atleast_2d(touched.records.counts).sum(axis=0).tolist()
    return {
        "repeated": not found.target.names,
        "named": len(found.named.names),
        "held": len(found.rows.held),
        "counts": dict(zip(state.actions, counts, strict=True)),
        "decisions": tuple(_each_decision(state, touched, served)) if keyed else None,
        "decided_again": decided_again if keyed else None,
        "may_be_without_user": found.may_be_without_user,
        "not_held": found.not_held,
    }


def _each_decision(
    state: State, touched: TouchedDecisions | None, served: Sequence[Hashable]
) -> Iterator[TouchedDecision]:
    """What a request does in each decision that it touches, in a vault with key columns."""
    if touched is None:
        return
    columns, actions, counts = state.configuration.key_columns, state.actions, touched.records.counts.tolist()
    for place, (decision, own) in enumerate(zip(touched.decisions, counts, strict=True)):
        yield TouchedDecision(
            key=key_dict(columns, decision.key),
            counts=dict(zip(actions, own, strict=True)),
            served_before=None if decision.served is None else actions[decision.served],
            served=served[place] if served else None,
        )


class MethodAnswer(NamedTuple):
    """How a request is answered."""

    method: Method
    guarantee: Guarantee
    release: Release | JointRelease | None
    """None if nothing is held."""
    later: Stream | None
    """The touched decisions without the records."""


def answer_within_policy(
    configuration: Configuration, touched: TouchedDecisions | None, method: Method
) -> MethodAnswer:
    """The answer by a method; nothing is drawn.

    A request that the policy does not allow, or that touches several arms where the unlearner handles one, is
    refused; or answered by exact rollback, if the policy says so. Whatever else an unlearner cannot answer is
    refused: that may depend on the rewards, which must not choose the unlearner.
    """
    policy = configuration.policy
    try:
        found = _answer(configuration, touched, method)
        if policy.allows(found.guarantee):
            return found
        refusal: ArmnesiaError = policy.refusal(found.guarantee)
    except UnsupportedError as error:
        if touched is None or method.unlearner.several_arms or touched.visible.n_sources.max() < 2:
            raise
        refusal = error
    if policy.beyond == "refuse":
        raise refusal
    exact = Method(Rollback(), {}, meaningful_budget(0.0, 0.0), fallback_because=str(refusal))
    found = _answer(configuration, touched, exact)
    weakest = Level.weakest(method.unlearner.level, found.guarantee.level)
    if policy.allows(Guarantee(method.budget.epsilon, method.budget.delta, weakest)):
        # Other requests are answered as asked, so that an answer by rollback reveals this one's shape.
        guarantee = replace(found.guarantee, level=weakest)
        release = None if found.release is None else replace(found.release, guarantee=guarantee)
        found = found._replace(guarantee=guarantee, release=release)
    return found


def _answer(configuration: Configuration, touched: TouchedDecisions | None, method: Method) -> MethodAnswer:
    """The answer by a method, not yet compared with the policy; nothing held is claimed as anything else."""
    if configuration.by:
        check_joint(method.unlearner)
    if touched is None:
        of_penalty = Level.RETAINED if configuration.penalty == "retained" else Level.REQUEST_SHAPE
        budget = method.budget if method.unlearner.needs_budget else meaningful_budget(0.0, 0.0)
        level = Level.weakest(method.unlearner.level, of_penalty)
        return MethodAnswer(method, Guarantee(budget.epsilon, budget.delta, level), None, None)
    answer = touched.stream.forget_jointly if configuration.by else touched.stream.forget
    release, later = answer(method.unlearner, touched.visible, method.budget)
    if touched.visible.records is not touched.records:
        later = touched.stream.remove(DeletionRequest(touched.records))
    return MethodAnswer(method, release.guarantee, release, later)


class RequestOutcome(NamedTuple):
    """What a request comes to."""

    answer: MethodAnswer
    facts: dict[str, Any]
    """What the ledger says of it."""
    served: Sequence[Hashable]
    """The released arms, of each touched decision."""
    decided_again: int
    """See `Forgotten`."""


def decide_request(
    transaction: Transaction, touched: TouchedDecisions | None, method: Method
) -> RequestOutcome:
    """Release an arm in each decision and roll the statistics back, if there were records.

    Where the level conceals whether anybody was held, and in which decisions, so does what is said to have
    chosen their arms. Many decisions then serve the learner's, also those that served what an earlier request
    released. The one decision of a vault without keys is said to answer the request, held or not.
    """
    state, configuration = transaction.state, transaction.state.configuration
    answer = answer_within_policy(configuration, touched, method)
    served: Sequence[Hashable] = ()
    others = released_elsewhere(transaction, touched, answer)
    before, changed = others or [], list[VaultDecision]()
    if touched is not None and answer.release is not None and answer.later is not None:
        release, later = answer.release, answer.later
        served = release.draw() if isinstance(release, JointRelease) else [release.draw()]
        by = [RELEASE] * len(served)
        if others is not None:
            by = [DEFAULT if empty else LEARNER for empty in later.decision().no_data.tolist()]
        arms = [state.actions.index(action) for action in served]
        before = [*before, *touched.decisions]
        changed = unstacked(touched.decisions, later, arms, by)
    elif not configuration.by:
        before = read_decisions(transaction)
        changed = [replace(each, served_by=RELEASE) for each in before]
    put_decisions(transaction, [*changed, *decided(others or [], configuration)], before)
    arm = None if configuration.by else served[0] if served else served_action(transaction)
    facts = _ledger_facts(state, answer, touched, served, arm)
    return RequestOutcome(answer, facts, served, len(others or ()))


def released_elsewhere(
    transaction: Transaction, touched: TouchedDecisions | None, answer: MethodAnswer
) -> list[VaultDecision] | None:
    """The other decisions that serve what an earlier request released.

    None where nobody has to decide again: with one decision, and where the touched ones are public.
    """
    if not transaction.state.configuration.by or answer.guarantee.level.sees_shape:
        return None
    own = {each.number for each in touched.decisions} if touched is not None else set[int]()
    return [each for each in read_released(transaction) if each.number not in own]


def _ledger_facts(
    state: State,
    answer: MethodAnswer,
    touched: TouchedDecisions | None,
    served: Sequence[Hashable],
    arm: Hashable | None,
) -> dict[str, Any]:
    """What the ledger says of a request: no identifier, no reward; what was lost only if that is public.

    Of a request that found nothing it is of the same kind. `arm` is the one of a vault without key columns.
    """
    configuration, method, guarantee = state.configuration, answer.method, answer.guarantee
    facts: dict[str, Any] = {
        "unlearner": {"name": method.unlearner.name, **method.options},
        "learner": configuration.learner_facts,
        "penalty": configuration.penalty,
        "budget": {"epsilon": guarantee.epsilon, "delta": guarantee.delta},
        "level": str(guarantee.level),
        **({"by": list(configuration.by)} if configuration.by else {"released": arm}),
    }
    if guarantee.level.sees_shape and not configuration.by:
        facts["counts"] = [0] * len(state.actions) if touched is None else touched.records.counts.tolist()
    elif guarantee.level.sees_shape:
        facts["decisions"] = [
            {"key": each.key, "counts": list(each.counts.values()), "released": each.served}
            for each in _each_decision(state, touched, served)
        ]
    return facts
