"""Forgetting: one transaction from the request to the draft of its certificate."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from armnesia.core.errors import (
    ArmnesiaError,
    DatabaseError,
    UnfinishedError,
    UnsupportedError,
    VaultBusyError,
    VaultError,
)
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.privacy import Budget, Guarantee, Level
from armnesia.unlearners import JointRelease, Release, Rollback, Unlearner
from armnesia.unlearners.base import Branch
from armnesia.unlearners.stream import Stream
from armnesia.vault.configuration import (
    MANAGED,
    Configuration,
    check_joint,
    make_unlearner,
    meaningful_budget,
    stored_options,
)
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate, CertificateDraft, certificate_words
from armnesia.vault.ledger.certificate_text import claims_of
from armnesia.vault.ledger.commitments import commit_to
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.ledger.source_claim import source_claim
from armnesia.vault.results.forgotten import Forgotten, Preview, TouchedDecision
from armnesia.vault.state.certificates import certificate_of_target
from armnesia.vault.state.connection import VaultConnection
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
from armnesia.vault.state.grouped_requests import GroupedRecords, GroupTransaction
from armnesia.vault.state.inheritance import warn_of_successors
from armnesia.vault.state.records import DecisionSums, DeletedRecords
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.similar_names import records_compared_before, refuse_similar_names
from armnesia.vault.state.source_lookup import SourceLookup
from armnesia.vault.state.suppression import RequestHistory
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")
_FORGET_THERE = "forget there as well: it knows its own requests only"


@dataclass(frozen=True, kw_only=True)
class RequestOptions:
    """What a request asks for instead of the vault's defaults; None: the default.

    With the vault's unlearner, `unlearner_options` replace the vault's parameters of the same names.
    """

    unlearner: str | None = None
    unlearner_options: Mapping[str, Any] | None = None
    epsilon: float | None = None
    delta: float | None = None
    exactly: bool = False
    """Whether the names are meant as they are, though the vault holds rows of similar ones."""
    rows: Any = None
    """A log of the rows of the request, as somebody else has found them; only for external vaults."""

    def resolve(self, configuration: Configuration) -> "ResolvedRequest":
        """The unlearner and the budget, not yet compared with the policy."""
        name = configuration.unlearner if self.unlearner is None else self.unlearner
        if self.unlearner_options is None and name == configuration.unlearner:
            options = configuration.unlearner_options
            unlearner = make_unlearner(name, options, stored=True)
        else:  # the vault's parameters stay, except those that are given; another unlearner has its defaults
            kept = configuration.current_options() if name == configuration.unlearner else {}
            given = {**kept, **(self.unlearner_options or {})}
            unlearner = make_unlearner(name, given)
            options = stored_options(unlearner, given)
        epsilon = configuration.epsilon if self.epsilon is None else self.epsilon
        delta = configuration.delta if self.delta is None else self.delta
        budget = meaningful_budget(epsilon, delta)
        return ResolvedRequest(unlearner, options, budget, self.exactly)


@dataclass(frozen=True)
class ResolvedRequest:
    """How a request is answered: by which unlearner, with which options and budget, and how names count."""

    unlearner: Unlearner
    options: Mapping[str, Any]
    budget: Budget
    exactly: bool = False
    fallback_because: str | None = None
    """Why exact rollback is in the place of what was asked for."""

    def lines_about(
        self, stream: Stream, request: DeletionRequest, release: Release | JointRelease
    ) -> tuple[str, ...]:
        """The unlearner with its parameters, and what it says about this request."""
        budget = release.each if isinstance(release, JointRelease) else self.budget
        remark = stream.remark(self.unlearner, request, budget)
        return (f"Unlearner: {self.unlearner.described}", *([remark] if remark else []))


@dataclass(frozen=True, kw_only=True)
class ForgetRequest(RequestOptions):
    """One of several requests that are answered together; its fields are the arguments of `Vault.forget`.

    >>> ForgetRequest(users=["ann"]).exactly
    False
    """

    users: Iterable[Any] | None = None
    records: Iterable[Any] | None = None


class _Asked(NamedTuple):
    """A request, and what was looked up for it before the lock was taken."""

    target: ErasureTarget
    options: RequestOptions
    lookup: SourceLookup | None
    compared: int | None
    """The digest of the records that its names were compared with."""


class _Answered(NamedTuple):
    """A request in the spelling of the vault, the states before and after it, and what it deleted."""

    target: ErasureTarget
    before: State
    after: State
    keyring: Keyring
    looked_up: bool
    """Whether it was looked up at the sources of an external vault."""
    deletion: "_Deletion | None"
    """None if the same request was answered before."""


def forget(connection: VaultConnection, target: ErasureTarget, options: RequestOptions) -> Forgotten:
    """Find the rows, draw the arm, roll back, delete, and note it in the ledger: all or nothing."""
    asked = _look_up(connection, target, options)
    with connection.writing() as transaction:
        answered = _answer(connection, transaction, asked)
        deletion, head = answered.deletion, transaction.state.head
        expected = connection.database.erases_at_once
        # A server still stores the request meanwhile; nothing is handed out before the commit.
        certificate = None if deletion is None else _signed(answered, deletion, head, expected)
    if answered.before.configuration.successors:
        warn_of_successors(answered.before.configuration, _FORGET_THERE)
    if deletion is None or certificate is None:
        return _repeated(connection, transaction.state, answered.target)
    erased = connection.erase(head)
    if erased != expected:
        certificate = _signed(answered, deletion, head, erased)
    return _forgotten(connection, answered, deletion, certificate, head, erased)


def forget_many(
    connection: VaultConnection, requests: Iterable[ForgetRequest]
) -> list[Forgotten | ArmnesiaError]:
    """Answer requests in one transaction, in their order, each with a ledger entry and a certificate.

    One that is refused leaves nothing and does not harm the others: its error stands in its place. If the new
    head cannot be pinned, an UnfinishedError stands in the place of everyone that is done.
    """
    asked = [_or_error(_look_up_request, connection, request) for request in requests]
    if all(isinstance(each, ArmnesiaError) for each in asked):
        return [each for each in asked if isinstance(each, ArmnesiaError)]
    unpinned: UnfinishedError | None = None
    try:
        with connection.writing() as transaction:
            answered = _answer_in_groups(connection, transaction, asked)
    except UnfinishedError as error:  # after the commit
        unpinned = error.with_traceback(None)
    state = transaction.state
    if state.configuration.successors:
        warn_of_successors(state.configuration, _FORGET_THERE)
    erased = connection.erase(state.head)
    if unpinned is not None:
        return [each if isinstance(each, ArmnesiaError) else unpinned for each in answered]
    return [_stored_result(connection, state, erased, each) for each in answered]


def _or_error(function: Callable[..., _Made], *arguments: Any) -> _Made | ArmnesiaError:
    """What a function returns, or why it refuses; what the database refuses is no matter of one request."""
    try:
        return function(*arguments)
    except (DatabaseError, VaultBusyError):
        raise
    except ArmnesiaError as error:
        return error.with_traceback(None)  # which would keep the rows that its frames have seen


def _unless_refused(
    each: _Given | ArmnesiaError, function: Callable[..., _Made], *arguments: Any
) -> _Made | ArmnesiaError:
    """Go on with a request, unless it was refused before."""
    return each if isinstance(each, ArmnesiaError) else _or_error(function, *arguments, each)


def _look_up_request(connection: VaultConnection, request: ForgetRequest) -> _Asked:
    return _look_up(connection, ErasureTarget.of(request.users, request.records), request)


def _look_up(connection: VaultConnection, target: ErasureTarget, options: RequestOptions) -> _Asked:
    """Look up what takes long, before the lock is taken."""
    lookup = connection.records.look_up(
        connection.reading, target, exactly=options.exactly, given=options.rows
    )
    compared = None if options.exactly else records_compared_before(connection, target)
    return _Asked(target, options, lookup, compared)


def _answer_in_groups(
    connection: VaultConnection, transaction: Transaction, asked: Iterable[_Asked | ArmnesiaError]
) -> list[_Answered | ArmnesiaError]:
    """Answer requests in their order: together as long as they are for different people, else one by one."""
    answered: list[_Answered | ArmnesiaError] = []
    layout = connection.records.layout
    for some, targets in _groups(asked, transaction.state.configuration):
        if len(targets) < 2:
            answered += [_unless_refused(each, _attempt, connection, transaction) for each in some]
            continue
        group = GroupTransaction.read_ahead(transaction, layout, targets)
        grouped = replace(connection, records=GroupedRecords(layout, group))
        answered += [_unless_refused(each, _attempt, grouped, group) for each in some]
        group.send(transaction)
    return answered


def _groups(
    asked: Iterable[_Asked | ArmnesiaError], configuration: Configuration
) -> Iterator[tuple[list[_Asked | ArmnesiaError], list[ErasureTarget]]]:
    """Split requests before each that cannot be answered together with those before it.

    Yields some of them, and the targets, in the spelling of the vault, of those that can: none of their names
    is in two of them.
    """
    some, targets, names = list[_Asked | ArmnesiaError](), list[ErasureTarget](), set[str]()
    for each in asked:
        target = _target_in_group(each, configuration)
        if target is None or not names.isdisjoint(target.users):
            yield some, targets
            some, targets, names = [], [], set()
        if target is None:
            yield [each], []
            continue
        some.append(each)
        targets.append(target)
        names.update(target.users)
    yield some, targets


def _target_in_group(asked: _Asked | ArmnesiaError, configuration: Configuration) -> ErasureTarget | None:
    """The people of a request, in the spelling of the vault; None if it has to be answered alone."""
    if isinstance(asked, ArmnesiaError) or not asked.target.users or configuration.mode != MANAGED:
        return None
    target = _or_error(asked.target.normalised, configuration.user_type)
    return None if isinstance(target, ArmnesiaError) else target


def _attempt(connection: VaultConnection, transaction: Transaction, asked: _Asked) -> _Answered:
    """Answer one of several requests: if it is refused, the transaction is as before."""
    with transaction.attempt():
        return _answer(connection, transaction, asked)


def _answer(connection: VaultConnection, transaction: Transaction, asked: _Asked) -> _Answered:
    """Answer a request in the spelling, and within the configuration, of the vault."""
    before, keyring = transaction.state, transaction.keyring
    resolved = asked.options.resolve(before.configuration)  # refused before anything is looked up
    target = asked.target.normalised(before.configuration.user_type)
    if asked.compared == before.digests.record:
        resolved = replace(resolved, exactly=True)  # its names were compared with these records
    deletion = _delete_and_store(connection, transaction, target, asked.lookup, resolved)
    return _Answered(target, before, transaction.state, keyring, asked.lookup is not None, deletion)


def _stored_result(
    connection: VaultConnection, state: State, erased: bool, answered: _Answered | ArmnesiaError
) -> Forgotten | ArmnesiaError:
    """What one of several requests returns; `state` is the one after all of them.

    Whatever fails now, all of them are stored.
    """
    if isinstance(answered, ArmnesiaError):
        return answered
    try:
        if answered.deletion is None:
            return _repeated(connection, state, answered.target)
        certificate = _signed(answered, answered.deletion, state.head, erased)
        return _forgotten(connection, answered, answered.deletion, certificate, state.head, erased)
    except ArmnesiaError as error:
        return error.with_traceback(None)


def _signed(answered: _Answered, deletion: "_Deletion", head: Head, erased: bool) -> Certificate:
    """Sign the certificate of a request at a head of the ledger."""
    return deletion.draft.issue(
        answered.keyring,
        head=head,
        erasure="complete" if erased else "pending",
        source=source_claim(deletion.draft.body["entry"], ()) if answered.looked_up else None,
        opening=deletion.opening,
    )


def _forgotten(
    connection: VaultConnection,
    answered: _Answered,
    deletion: "_Deletion",
    certificate: Certificate,
    head: Head,
    erased: bool,
) -> Forgotten:
    """What a request did, which is stored at this head of the ledger."""
    keys = zip(answered.target.names, answered.target.row_keys(answered.keyring), strict=True)
    return Forgotten(
        repeated=False,
        named=len(answered.target.names),
        held=len(deletion.deleted.held),
        not_held=tuple(name for name, key in keys if key not in deletion.deleted.held),
        counts=counts_by_action(answered.before, deletion.request),
        served_before=answered.before.served_action,
        served=answered.after.served_action,
        release=deletion.outcome.release,
        decisions=deletion.decisions,
        decided_again=deletion.outcome.decided_again,
        head=head,
        certificate=certificate,
        pending_because=None if erased else connection.database.erasure_obstacle,
        erasure_steps=None if erased else connection.database.erasure_steps,
        fallback_because=deletion.outcome.fallback_because,
        may_be_without_user=deletion.may_be_without_user,
        successors=answered.before.configuration.successors,
    )


def preview(connection: VaultConnection, target: ErasureTarget, options: RequestOptions) -> Preview:
    """What the request would do now; nothing is written."""
    (found,) = preview_methods(connection, target, options, [options])
    if isinstance(found, ArmnesiaError):
        raise found
    return found


def preview_methods(
    connection: VaultConnection,
    target: ErasureTarget,
    options: RequestOptions,
    methods: Sequence[RequestOptions],
) -> list[Preview | ArmnesiaError]:
    """What the request would do by each of several methods, or why one is refused.

    The people are looked up once, by `options.exactly` and `options.rows`.
    """
    lookup = connection.records.look_up(
        connection.reading, target, exactly=options.exactly, given=options.rows
    )
    with connection.reading() as transaction:
        state = transaction.state
        resolved = [_or_error(method.resolve, state.configuration) for method in methods]
        if all(isinstance(each, ArmnesiaError) for each in resolved):
            return [each for each in resolved if isinstance(each, ArmnesiaError)]
        target = target.normalised(state.configuration.user_type)
        history = RequestHistory.read(transaction, target)
        records = connection.records
        if lookup is not None:
            lookup = records.current(transaction, target, lookup, exactly=options.exactly)
        sums = records.find(transaction, target, lookup)
        held = records.names_held(transaction, target, lookup)
        if not history.answered_before and not options.exactly:
            holds = partial(records.keys_held, transaction, target, lookup=lookup)
            refuse_similar_names(transaction, target, held, history.suppressed, holds)
        touched = _touched(transaction, sums)
        some_not_held = not history.answered_before and len(held) < len(target.users)
        unknown = some_not_held and records.some_without_user(transaction.session)
        keys = zip(target.names, target.row_keys(transaction.keyring), strict=True)
        not_held = tuple(name for name, key in keys if key not in held)
        nothing = Preview(
            repeated=history.answered_before,
            named=len(target.names),
            held=len(held),
            unlearner=None,
            counts=counts_by_action(state, None if touched is None else touched.request),
            served_before=state.served_action,
            release=None,
            not_held=() if history.answered_before else not_held,
            decisions=_described(state, touched) if state.configuration.by else None,
            decided_again=0 if state.configuration.by else None,
            may_be_without_user=unknown,
        )
        if touched is None:
            return [each if isinstance(each, ArmnesiaError) else nothing for each in resolved]
        return [_unless_refused(each, _preview_by, transaction, touched, nothing) for each in resolved]


def _preview_by(
    transaction: Transaction, touched: "_Touched", nothing: Preview, resolved: ResolvedRequest
) -> Preview:
    """What one method would do with the records that a request touches."""
    configuration = transaction.state.configuration
    used, release, _ = _release(configuration, touched, resolved)
    again = nothing.decided_again
    if configuration.by and not release.guarantee.level.sees_shape:
        again = len(_released_elsewhere(transaction, touched))
    return replace(
        nothing,
        unlearner=used.unlearner.name,
        release=release,
        fallback_because=used.fallback_because,
        method_lines=used.lines_about(touched.stream, touched.visible, release),
        decided_again=again,
    )


def _repeated(connection: VaultConnection, state: State, target: ErasureTarget) -> Forgotten:
    """What a request returns that was answered before: its certificate."""
    connection.pinned_head.write(state.head)  # also where no head was pinned yet
    certificate = certificate_of_target(connection, target)
    pending = certificate.erasure == "pending"
    return Forgotten(
        repeated=True,
        named=len(target.names),
        held=0,
        counts=counts_by_action(state, None),
        served_before=state.served_action,
        served=state.served_action,
        release=None,
        head=state.head,
        certificate=certificate,
        decisions=() if state.configuration.by else None,
        decided_again=0 if state.configuration.by else None,
        pending_because=connection.database.erasure_obstacle if pending else None,
        erasure_steps=connection.database.erasure_steps if pending else None,
        successors=state.configuration.successors,
    )


class _Deletion(NamedTuple):
    """What answering a request in this transaction came to."""

    deleted: DeletedRecords
    request: DeletionRequest | None
    outcome: "_Outcome"
    may_be_without_user: bool
    decisions: tuple[TouchedDecision, ...] | None
    """Those that were touched; None in a vault without key columns."""
    draft: CertificateDraft
    opening: Mapping[str, Any] | None


def _delete_and_store(
    connection: VaultConnection,
    transaction: Transaction,
    target: ErasureTarget,
    lookup: SourceLookup | None,
    resolved: ResolvedRequest,
) -> _Deletion | None:
    """Delete the records, decide and store; None if the same request was answered before."""
    history = RequestHistory.read(transaction, target)
    if history.answered_before:
        _refuse_returned_records(connection, transaction, target)
        return None
    records = connection.records
    if lookup is not None:
        lookup = records.current(transaction, target, lookup, exactly=resolved.exactly)
    deleted = records.delete(transaction, target, lookup)
    if not resolved.exactly:
        holds = partial(records.keys_held, transaction, target, lookup=lookup)
        refuse_similar_names(transaction, target, deleted.held, history.suppressed, holds)
    touched = _touched(transaction, deleted.sums)
    outcome = _decide(transaction, touched, resolved)
    covers = connection.erasure_covers(outcome.kind)
    facts = outcome.facts if lookup is None else {**outcome.facts, "sources": list(lookup.sources)}
    outcome = outcome._replace(facts=facts)
    state, draft, opening = transaction.state, *_store(transaction, target, deleted, history, outcome, covers)
    decisions = _described(state, touched, outcome.served) if state.configuration.by else None
    request = None if touched is None else touched.request
    some_not_held = len(deleted.held) < len(target.users)
    unknown = some_not_held and records.some_without_user(transaction.session)
    return _Deletion(deleted, request, outcome, unknown, decisions, draft, opening)


class _Touched(NamedTuple):
    """The decisions that a request takes records from, and these records."""

    decisions: list[VaultDecision]
    stream: Stream
    """Their records; in a vault with key columns the decisions are on its first axis."""
    request: DeletionRequest
    visible: DeletionRequest
    """Its records of offered arms: all that an unlearner sees of it."""


def _touched(transaction: Transaction, sums: DecisionSums) -> _Touched | None:
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
        return _Touched(decisions, stream, request, visible)
    assert state.decision is not None  # it has the records
    stream = state.decision.statistics.stream(state.configuration)
    alone = DeletionRequest.from_sums(stream.statistics, sums[FIRST])
    if alone is None:
        return None
    if stream.offered is None:
        return _Touched([state.decision], stream, alone, alone)
    found = DeletionRequest.from_sums(
        stream.statistics, [own for own in sums[FIRST] if stream.offered[own[0]]]
    )
    nothing = ArmStatistics.empty(state.actions, state.configuration.reward_range)
    return _Touched([state.decision], stream, alone, found or DeletionRequest(nothing, binary=True))


def _described(
    state: State, touched: _Touched | None, served: Sequence[Hashable] | None = None
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


class _Outcome(NamedTuple):
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


def _decide(transaction: Transaction, touched: _Touched | None, resolved: ResolvedRequest) -> _Outcome:
    """Release an arm in each decision and roll the statistics back, if there were records."""
    before = transaction.state
    if touched is None:
        again = 0 if before.configuration.by else None
        return _Outcome("nothing_held", {}, before, None, decided_again=again)
    used, release, stream = _release(before.configuration, touched, resolved)
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
    return _Outcome("forget", facts, state, release, served, used.fallback_because, again)


def _with_released(
    transaction: Transaction,
    touched: _Touched,
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
    others = read_decisions(transaction, _released_elsewhere(transaction, touched))
    changed = [*unstacked(decisions, stream, arms, by), *decided(others, state.configuration)]
    return put_decisions(transaction, state, changed), len(others)


def _released_elsewhere(transaction: Transaction, touched: _Touched) -> set[int]:
    """The numbers of the other decisions that serve what an earlier request released."""
    if not transaction.state.configuration.may_serve_releases:
        return set()
    numbers = tables.numbers_served_by(transaction.session, RELEASE)
    return set(numbers) - {each.number for each in touched.decisions}


def _keep_their_arm(touched: _Touched, guarantee: Guarantee) -> list[bool]:
    """Which touched decisions keep the served arm: those that lose records of no arm that they offer.

    Such records have no influence. Where the level conceals which decisions were touched, all decide again.
    """
    if touched.visible is touched.request or not guarantee.level.sees_shape:
        return [False] * len(touched.decisions)
    return list(np.atleast_1d(touched.visible.is_empty).tolist())


def _joint_facts(
    state: State,
    touched: _Touched,
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


def _store(
    transaction: Transaction,
    target: ErasureTarget,
    deleted: DeletedRecords,
    history: RequestHistory,
    outcome: _Outcome,
    covers: str,
) -> tuple[CertificateDraft, Mapping[str, Any] | None]:
    """Store the outcome, its ledger entry and the draft of its certificate; return the latter's opening."""
    before, keyring = transaction.state, transaction.keyring
    commitment = commit_to(target, keyring, before.head.sequence + 1, before.digest_key, deleted.held)
    facts = {"commitment": commitment.root, "salt_key": before.digest_key, **outcome.facts}
    if deleted.given:
        facts["lookup"] = "given"
    claims = claims_of(outcome.kind, facts)
    words = certificate_words(tuple(claims.items()), covers)
    entry = transaction.append(outcome.kind, **facts, terms=words.terms)
    draft = CertificateDraft.of(entry, covers, claims)
    text = draft.text
    transaction.add(tables.put_certificate(entry.sequence, text, keyring.seal(text)))
    transaction.add(*deleted.to_tallies)
    identities = [row[0] for row in deleted.rows]
    digests = outcome.state.digests.with_records(keyring, identities, deleted.texts)
    if commitment.leaves is not None:
        tree = (entry.sequence, commitment.leaves)
        digests = digests.update(keyring, "tree", [tree])
        transaction.add(tables.insert_tree(tree))
    after = history.after_forgetting(commitment.openings, entry.sequence)
    digests, to_lists = history.rows.apply_changes(after, keyring, digests)
    transaction.add(*to_lists)
    transaction.store(outcome.state, digests=digests)
    return draft, commitment.revealed


def _release(
    configuration: Configuration, touched: _Touched, resolved: ResolvedRequest
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


def _with_kept_arms(touched: _Touched, release: Release | JointRelease) -> Release | JointRelease:
    """The release, which is the served arm in decisions that keep it."""
    kept = np.flatnonzero(_keep_their_arm(touched, release.guarantee))
    if not kept.size:
        return release
    own = release.release if isinstance(release, JointRelease) else release
    probabilities, codes = np.array(own.probabilities), np.array(own.branch_codes)
    rows, row_codes = np.atleast_2d(probabilities), np.atleast_1d(codes)  # views, of one decision too
    rows[kept] = 0.0
    for place in kept.tolist():
        rows[place, touched.decisions[place].served] = 1.0
    row_codes[kept] = list(Branch).index(Branch.UNCHANGED)
    own = replace(own, probabilities=probabilities, branch_codes=codes)
    return replace(release, release=own) if isinstance(release, JointRelease) else own


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


def _refuse_returned_records(
    connection: VaultConnection, transaction: Transaction, target: ErasureTarget
) -> None:
    """Refuse to answer "done before" while rows of the request are in the vault again."""
    if connection.records.names_held(transaction, target, None):
        raise VaultError(
            "rows of a person or record forgotten by this request are in the vault again, put there by"
            " something other than armnesia: run armnesia verify, and armnesia rebuild to remove them"
        )


def counts_by_action(state: State, deleted: DeletionRequest | None) -> dict[Hashable, int]:
    """The deleted records per action, of all decisions together."""
    if deleted is None:
        return dict.fromkeys(state.actions, 0)
    counts = deleted.records.counts
    totals = counts if counts.ndim == 1 else counts.sum(axis=0)
    return dict(zip(state.actions, totals.tolist(), strict=True))
