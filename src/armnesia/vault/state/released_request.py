"""What a request to forget comes to: the touched decisions, the released arms, and its ledger facts."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from armnesia.core.arrays import scalar_or_array
from armnesia.core.errors import ArmnesiaError, UnsupportedError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.privacy import Guarantee, Level
from armnesia.unlearners import JointRelease, Release, Rollback
from armnesia.unlearners.base import Branch
from armnesia.unlearners.stream import Stream
from armnesia.vault.configuration import Configuration, check_joint, meaningful_budget
from armnesia.vault.results.forgotten import TouchedDecision
from armnesia.vault.state.decision_statistics import ArmSums
from armnesia.vault.state.decision_table import (
    decided,
    joint_request,
    key_dict,
    put_decisions,
    read_decisions,
    stacked,
    unstacked,
)
from armnesia.vault.state.decisions import DEFAULT, FIRST, LEARNER, RELEASE, VaultDecision
from armnesia.vault.state.records import DecisionSums
from armnesia.vault.state.request_options import ResolvedRequest
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables


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
    if not sums:
        return None
    state = transaction.state
    if state.configuration.by:
        decisions = read_decisions(transaction, sums)
        stream, numbers = stacked(decisions, state.configuration), [each.number for each in decisions]
        request = visible = joint_request(numbers, sums, state.configuration)
        if stream.offered is not None:
            offered = dict(zip(numbers, stream.offered, strict=True))
            seen = {each: [own for own in sums[each] if offered[each][own[0]]] for each in numbers}
            visible = joint_request(numbers, seen, state.configuration)
        return TouchedDecisions(decisions, stream, request, visible)
    assert state.decision is not None  # it has the records
    stream = state.decision.statistics.stream(state.configuration)
    alone = DeletionRequest.from_sums(stream.statistics, sums[FIRST])
    if alone is None:
        return None
    if stream.offered is None:
        return TouchedDecisions([state.decision], stream, alone, alone)
    found = DeletionRequest.from_sums(
        stream.statistics, [own for own in sums[FIRST] if stream.offered[own[0]]]
    )
    nothing = ArmStatistics.empty(state.actions, state.configuration.reward_range)
    return TouchedDecisions([state.decision], stream, alone, found or DeletionRequest(nothing, binary=True))


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
    counts = deleted.records.counts
    totals = counts if counts.ndim == 1 else counts.sum(axis=0)
    return dict(zip(state.actions, totals.tolist(), strict=True))


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
    """Release an arm in each decision and roll the statistics back, if there were records."""
    before = transaction.state
    if touched is None:
        again = 0 if before.configuration.by else None
        return RequestOutcome("nothing_held", {}, before, None, decided_again=again)
    used, release, stream = release_within_policy(before.configuration, touched, resolved)
    if isinstance(release, JointRelease):
        served = release.draw()
        state, again = _with_released(transaction, touched, release, stream, served)
        facts = _joint_facts(before, touched, release, used, served)
    else:
        served = [release.draw()]
        arm = before.actions.index(served[0])
        sums = ArmSums.of(stream, before.configuration)
        kept = touched.visible is not touched.request and _keep_their_arm(touched, release.guarantee)[0]
        by = touched.decisions[0].served_by if kept else RELEASE
        state, again = before.changed(decision=VaultDecision(FIRST, (), sums, arm, by)), None
        facts = _ledger_facts(before.configuration, release.guarantee, used) | {"released": served[0]}
        facts |= {"kept": True} if kept else {}
        if release.guarantee.level.sees_shape:
            facts["counts"] = list(touched.request.counts.tolist())
    return RequestOutcome("forget", facts, state, release, served, used.fallback_because, again)


def _with_released(
    transaction: Transaction,
    touched: TouchedDecisions,
    release: JointRelease,
    stream: Stream,
    served: Sequence[Hashable],
) -> tuple[State, int]:
    """Store the touched decisions, which serve the released arms; also, how many others were decided again.

    Where the level conceals which decisions were touched, so does what is said to have chosen their arms: all
    served arms are then those of the learner, also in decisions that served what an earlier request released.
    """
    decisions, state = touched.decisions, transaction.state
    arms = [state.actions.index(action) for action in served]
    if release.guarantee.level.sees_shape:
        kept = _keep_their_arm(touched, release.guarantee)
        by = [each.served_by if keeps else RELEASE for each, keeps in zip(decisions, kept, strict=True)]
        return put_decisions(transaction, state, unstacked(decisions, stream, arms, by)), 0
    by = [DEFAULT if empty else LEARNER for empty in stream.decision().no_data.tolist()]
    others = read_decisions(transaction, released_elsewhere(transaction, touched))
    changed = [*unstacked(decisions, stream, arms, by), *decided(others, state.configuration)]
    return put_decisions(transaction, state, changed), len(others)


def released_elsewhere(transaction: Transaction, touched: TouchedDecisions) -> set[int]:
    """The numbers of the other decisions that serve what an earlier request released."""
    if not transaction.state.configuration.may_serve_releases:
        return set()
    numbers = tables.numbers_served_by(transaction.session, RELEASE)
    return set(numbers) - {each.number for each in touched.decisions}


def _keep_their_arm(touched: TouchedDecisions, guarantee: Guarantee) -> list[bool]:
    """Which touched decisions keep the served arm: those that lose records of no arm that they offer.

    Such records have no influence. Where the level conceals which decisions were touched, all decide again.
    """
    if touched.visible is touched.request or not guarantee.level.sees_shape:
        return [False] * len(touched.decisions)
    return list(np.atleast_1d(touched.visible.is_empty).tolist())


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
            if touched.visible is not touched.request:
                release, later = _with_kept_arms(touched, release), stream.remove(touched.request)
            return resolved, release, later
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
    if touched.visible is not touched.request:
        release, later = _with_kept_arms(touched, release), stream.remove(touched.request)
    return exact, release, later


def _with_kept_arms(touched: TouchedDecisions, release: Release | JointRelease) -> Release | JointRelease:
    """The release, which is the served arm in decisions that keep it."""
    kept = np.flatnonzero(_keep_their_arm(touched, release.guarantee))
    if not kept.size:
        return release
    own = release.release if isinstance(release, JointRelease) else release
    probabilities, branches = np.array(own.probabilities), np.array(own.branch, dtype=object)
    rows, row_branches = np.atleast_2d(probabilities), np.atleast_1d(branches)  # views, of one decision too
    rows[kept] = 0.0
    for place in kept.tolist():
        rows[place, touched.decisions[place].served] = 1.0
    row_branches[kept] = Branch.UNCHANGED
    own = replace(own, probabilities=probabilities, branch=scalar_or_array(branches))
    return replace(release, release=own) if isinstance(release, JointRelease) else own


def _joint_facts(
    state: State,
    touched: TouchedDecisions,
    release: JointRelease,
    used: ResolvedRequest,
    served: Sequence[Hashable],
) -> dict[str, Any]:
    """What the ledger says of a deletion in many decisions: which they are only if that is public."""
    configuration = state.configuration
    facts = _ledger_facts(configuration, release.guarantee, used) | {"by": list(configuration.by)}
    if not release.guarantee.level.sees_shape:
        return facts
    columns, counts = configuration.key_columns, touched.request.counts.tolist()
    each = zip(touched.decisions, counts, served, strict=True)
    kept = _keep_their_arm(touched, release.guarantee)
    facts["decisions"] = [
        {"key": key_dict(columns, decision.key), "counts": own, "released": arm}
        | ({"kept": True} if keeps else {})
        for (decision, own, arm), keeps in zip(each, kept, strict=True)
    ]
    return facts


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
