"""What a request to forget comes to: the touched decisions, the released arms, and its ledger facts."""

from collections.abc import Hashable, Mapping, Sequence
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
from armnesia.vault.state.decision_table import put_decisions, read_decisions
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
from armnesia.vault.state.request_options import ResolvedRequest
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.schema import DecisionRow


class TouchedDecisions(NamedTuple):
    """The decisions that a request takes records from, and these records."""

    decisions: list[VaultDecision]
    stream: Stream
    """Their records; in a vault with key columns the decisions are on its first axis."""
    request: DeletionRequest
    visible: DeletionRequest
    """Its records of offered arms: all that an unlearner sees of it."""


def read_touched_decisions(transaction: Transaction, sums: DecisionSums) -> TouchedDecisions | None:
    """Read the decisions that a request takes records from; None if it takes none."""
    if not any(count for own in sums.values() for _, count, _, _ in own):
        return None
    configuration, decisions = transaction.state.configuration, read_decisions(transaction, sums)
    stream = stacked(decisions, configuration, jointly=bool(configuration.by))
    request = visible = _request(decisions, sums, configuration)
    if stream.offered is not None:
        offered = dict(zip([each.number for each in decisions], np.atleast_2d(stream.offered), strict=True))
        seen = {each: [own for own in sums[each] if offered[each][own[0]]] for each in offered}
        visible = _request(decisions, seen, configuration)
    return TouchedDecisions(decisions, stream, request, visible)


def _request(
    decisions: Sequence[VaultDecision], sums: DecisionSums, configuration: Configuration
) -> DeletionRequest:
    """The records of a request, with the decisions on the first axis if there can be many."""
    actions = configuration.actions
    assert actions is not None  # there are records
    counts = np.zeros((len(decisions), len(actions)), dtype=np.int64)
    units, binary = np.zeros((len(decisions), len(actions)), dtype=object), True
    for place, decision in enumerate(decisions):
        for arm, count, total, only_extremes in sums.get(decision.number, ()):
            counts[place, arm] += count
            units[place, arm] += total
            binary &= only_extremes
    which = slice(None) if configuration.by else 0
    records = ArmStatistics(actions, counts[which], units[which], configuration.reward_range)
    return DeletionRequest(records, binary)


def describe_touched(
    state: State, touched: TouchedDecisions | None, served: Sequence[Hashable] | None = None
) -> tuple[TouchedDecision, ...]:
    """What a request does in each decision that it touches; `served` are the released arms."""
    if touched is None:
        return ()
    columns, actions = state.configuration.key_columns, state.actions
    after = [None] * len(touched.decisions) if served is None else served
    return tuple(
        TouchedDecision(
            key=key_dict(columns, decision.key),
            counts=dict(zip(actions, counts, strict=True)),
            served_before=None if decision.served is None else actions[decision.served],
            served=arm,
        )
        for decision, counts, arm in zip(
            touched.decisions, touched.request.counts.tolist(), after, strict=True
        )
    )


def counts_by_action(state: State, deleted: DeletionRequest | None) -> dict[Hashable, int]:
    """The deleted records per action, of all decisions together."""
    if deleted is None:
        return dict.fromkeys(state.actions, 0)
    return dict(zip(state.actions, np.atleast_2d(deleted.counts).sum(axis=0).tolist(), strict=True))


class RequestOutcome(NamedTuple):
    """What a request comes to: what the ledger says of it, and the state after it."""

    kind: str
    facts: Mapping[str, Any]
    state: State
    release: Release | JointRelease | None
    served: Sequence[Hashable] = ()
    """The released arms, of each touched decision."""
    fallback_because: str | None = None
    decided_again: int | None = None
    """See `Forgotten`."""


def decide_request(
    transaction: Transaction, touched: TouchedDecisions | None, resolved: ResolvedRequest
) -> RequestOutcome:
    """Release an arm in each decision and roll the statistics back, if there were records.

    With many decisions, where the level conceals which of them were touched, so does what is said to have
    chosen their arms: all served arms are then those of the learner, also in decisions that served what an
    earlier request released.
    """
    before, configuration = transaction.state, transaction.state.configuration
    if touched is None:
        again = 0 if configuration.by else None
        return RequestOutcome("nothing_held", {}, before, None, decided_again=again)
    used, release, stream = release_within_policy(configuration, touched, resolved)
    served = release.draw() if isinstance(release, JointRelease) else [release.draw()]
    conceals = bool(configuration.by) and not release.guarantee.level.sees_shape
    by = [RELEASE] * len(served)
    if conceals:
        by = [DEFAULT if empty else LEARNER for empty in stream.decision().no_data.tolist()]
    arms = [before.actions.index(action) for action in served]
    changed = unstacked(touched.decisions, stream, arms, by)
    others = released_elsewhere(transaction, touched) if conceals else set()
    if others:
        changed += decided(read_decisions(transaction, others), configuration)
    state = put_decisions(transaction, before, changed)
    facts = _ledger_facts(configuration, release.guarantee, used)
    facts |= (_joint_facts if configuration.by else _single_facts)(before, touched, release.guarantee, served)
    again = len(others) if configuration.by else None
    return RequestOutcome("forget", facts, state, release, served, used.fallback_because, again)


def released_elsewhere(transaction: Transaction, touched: TouchedDecisions) -> set[int]:
    """The numbers of the other decisions that serve what an earlier request released."""
    serving = tables.read(transaction.session, DecisionRow, served_by=RELEASE)
    return {row.number for row in serving} - {each.number for each in touched.decisions}


def release_within_policy(
    configuration: Configuration, touched: TouchedDecisions, resolved: ResolvedRequest
) -> tuple[ResolvedRequest, Release | JointRelease, Stream]:
    """The release, within the policy, and the stream without the records.

    A request that the policy does not allow, or that touches several arms where the unlearner handles one, is
    refused; or answered by exact rollback, if the policy says so. Whatever else an unlearner cannot answer is
    refused: that may depend on the rewards, which must not choose the unlearner.
    """
    stream, policy = touched.stream, configuration.policy
    answer = stream.forget_jointly if configuration.by else stream.forget
    if configuration.by:
        check_joint(resolved.unlearner)
    release: Release | JointRelease
    try:
        release, later = answer(resolved.unlearner, touched.visible, resolved.budget)
        if policy.allows(release.guarantee):
            return resolved, release, _without_all(touched, later)
        refusal: ArmnesiaError = policy.refusal(release.guarantee)
    except UnsupportedError as error:
        if resolved.unlearner.several_arms or touched.visible.n_sources.max() < 2:
            raise
        refusal = error
    if policy.beyond == "refuse":
        raise refusal
    exact = ResolvedRequest(Rollback(), {}, meaningful_budget(0.0, 0.0), fallback_because=str(refusal))
    release, later = answer(exact.unlearner, touched.visible, exact.budget)
    weakest = Level.weakest(resolved.unlearner.level, stream.level)
    if policy.allows(Guarantee(resolved.budget.epsilon, resolved.budget.delta, weakest)):
        # Other requests are answered as asked, so that an answer by rollback reveals this one's shape.
        release = replace(release, guarantee=replace(release.guarantee, level=weakest))
    return exact, release, _without_all(touched, later)


def _without_all(touched: TouchedDecisions, later: Stream) -> Stream:
    """The stream without the records of arms that are not offered, either."""
    return later if touched.visible is touched.request else touched.stream.remove(touched.request)


def _ledger_facts(
    configuration: Configuration, guarantee: Guarantee, resolved: ResolvedRequest
) -> dict[str, Any]:
    """What the ledger says of every deletion: no identifier, no reward, no counts."""
    return {
        "unlearner": {"name": resolved.unlearner.name, **resolved.options},
        "learner": {
            "name": configuration.learner,
            "confidence": configuration.confidence,
            **configuration.learner_options,
        },
        "penalty": configuration.penalty,
        "budget": {"epsilon": guarantee.epsilon, "delta": guarantee.delta},
        "level": str(guarantee.level),
    }


def _single_facts(
    state: State, touched: TouchedDecisions, guarantee: Guarantee, served: Sequence[Hashable]
) -> dict[str, Any]:
    """What the ledger says of a deletion in the one decision: what was lost only if that is public."""
    facts: dict[str, Any] = {"released": served[0]}
    return facts | ({"counts": touched.request.counts.tolist()} if guarantee.level.sees_shape else {})


def _joint_facts(
    state: State, touched: TouchedDecisions, guarantee: Guarantee, served: Sequence[Hashable]
) -> dict[str, Any]:
    """What the ledger says of a deletion in many decisions: which they are only if that is public."""
    facts: dict[str, Any] = {"by": list(state.configuration.by)}
    if guarantee.level.sees_shape:
        columns, counts = state.configuration.key_columns, touched.request.counts.tolist()
        facts["decisions"] = [
            {"key": key_dict(columns, decision.key), "counts": own, "released": arm}
            for decision, own, arm in zip(touched.decisions, counts, served, strict=True)
        ]
    return facts
