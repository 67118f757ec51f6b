"""Forgetting: one transaction from the request to the draft of its certificate."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from armnesia.core.errors import ArmnesiaError, UnsupportedError, VaultError
from armnesia.core.request import DeletionRequest
from armnesia.privacy import Budget, Guarantee, Level
from armnesia.unlearners import Release, Rollback, Unlearner
from armnesia.unlearners.stream import Stream
from armnesia.vault.configuration import Configuration, make_unlearner, meaningful_budget, stored_options
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.ledger.certificate import CertificateDraft, terms_of
from armnesia.vault.ledger.commitments import commit_to
from armnesia.vault.results import Forgotten, Preview
from armnesia.vault.state.certificates import certificate_of_target
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.records import DeletedRecords, SourceRows
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.similar_names import records_compared_before, refuse_similar_names
from armnesia.vault.state.suppression import RequestHistory
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables


@dataclass(frozen=True)
class RequestOptions:
    """What a request asks for instead of the vault's defaults; None: the default.

    With the vault's unlearner, `options` replace the vault's parameters of the same names.
    """

    unlearner: str | None = None
    options: Mapping[str, Any] | None = None
    epsilon: float | None = None
    delta: float | None = None
    exactly: bool = False
    """Whether the names are meant as they are, though the vault holds rows of similar ones."""

    def resolve(self, configuration: Configuration) -> "ResolvedRequest":
        """The unlearner and the budget, not yet compared with the policy."""
        name = configuration.unlearner if self.unlearner is None else self.unlearner
        if self.options is None and name == configuration.unlearner:
            options = configuration.unlearner_options
            unlearner = make_unlearner(name, options, stored=True)
        else:  # the vault's parameters stay, except those that are given; another unlearner has its defaults
            kept = configuration.current_options() if name == configuration.unlearner else {}
            given = {**kept, **(self.options or {})}
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

    def lines_about(self, stream: Stream, request: DeletionRequest) -> tuple[str, ...]:
        """The unlearner with its parameters, and what it says about this request."""
        remark = self.unlearner.remark(stream.current_learner, stream.statistics, request, self.budget)
        return (f"Unlearner: {self.unlearner.described}", *([remark] if remark else []))


def forget(connection: VaultConnection, target: ErasureTarget, options: RequestOptions) -> Forgotten:
    """Find the rows, draw the arm, roll back, delete, and note it in the ledger: all or nothing."""
    lookup = connection.records.look_up(connection.reading, target)
    compared = None if options.exactly else records_compared_before(connection, target)
    with connection.writing() as transaction:
        before, keyring = transaction.state, transaction.keyring
        resolved = options.resolve(before.configuration)  # refused before anything is looked up
        target = target.normalised(before.configuration.user_type)
        if compared == before.digests.record:
            resolved = replace(resolved, exactly=True)  # its names were compared with these records
        answer = _answer(connection, transaction, target, lookup, resolved)
    if answer is None:
        return _repeated(connection, before, target)
    state = transaction.state
    erased = connection.erase(state.head)
    return Forgotten(
        repeated=False,
        named=len(target.names),
        held=len(answer.deleted.held),
        counts=counts_by_action(before, answer.deleted.request),
        served_before=before.served_action,
        served=state.served_action,
        release=answer.release,
        head=state.head,
        certificate=answer.draft.issue(
            keyring, head=state.head, erasure="complete" if erased else "pending", opening=answer.opening
        ),
        pending_because=None if erased else connection.database.erasure_obstacle,
        erasure_steps=None if erased else connection.database.erasure_steps,
        fallback_because=answer.fallback_because,
    )


def preview(connection: VaultConnection, target: ErasureTarget, options: RequestOptions) -> Preview:
    """What the request would do now; nothing is written."""
    lookup = connection.records.look_up(connection.reading, target)
    with connection.reading() as transaction:
        state = transaction.state
        resolved = options.resolve(state.configuration)
        target = target.normalised(state.configuration.user_type)
        history = RequestHistory.read(transaction, target)
        deleted = connection.records.find(transaction, target, lookup)
        held = _names_with_records(transaction, target)
        if not history.answered_before and not options.exactly:
            refuse_similar_names(transaction, target, held, history.suppressed)
    unlearner, release, fallback_because, method_lines = None, None, None, ()
    if deleted is not None:
        used, release, _ = _release(state, deleted, resolved)
        unlearner, fallback_because = used.unlearner.name, used.fallback_because
        method_lines = used.lines_about(state.require_stream(), deleted)
    keys = zip(target.names, target.row_keys(transaction.keyring), strict=True)
    not_held = tuple(name for name, key in keys if key not in held)
    return Preview(
        repeated=history.answered_before,
        named=len(target.names),
        held=len(held),
        unlearner=unlearner,
        counts=counts_by_action(state, deleted),
        served=state.served_action,
        release=release,
        not_held=() if history.answered_before else not_held,
        fallback_because=fallback_because,
        method_lines=method_lines,
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
        pending_because=connection.database.erasure_obstacle if pending else None,
        erasure_steps=connection.database.erasure_steps if pending else None,
    )


class _Answer(NamedTuple):
    """A request that was answered in this transaction."""

    deleted: DeletedRecords
    release: Release | None
    fallback_because: str | None
    draft: CertificateDraft
    opening: Mapping[str, Any] | None


def _answer(
    connection: VaultConnection,
    transaction: Transaction,
    target: ErasureTarget,
    lookup: SourceRows | None,
    resolved: ResolvedRequest,
) -> _Answer | None:
    """Delete the records, decide and store; None if the same request was answered before."""
    history = RequestHistory.read(transaction, target)
    if history.answered_before:
        _refuse_returned_records(transaction, target)
        return None
    deleted = connection.records.delete(transaction, target, lookup)
    if not resolved.exactly:
        refuse_similar_names(transaction, target, deleted.held, history.suppressed)
    outcome = _decide(transaction.state, deleted.request, resolved)
    covers = connection.erasure_covers(outcome.kind)
    draft, opening = _store(transaction, target, deleted, history, outcome, covers)
    return _Answer(deleted, outcome.release, outcome.fallback_because, draft, opening)


class Outcome(NamedTuple):
    """What a request comes to: what the ledger says of it, and the state after it."""

    kind: str
    facts: Mapping[str, Any]
    state: State
    release: Release | None
    fallback_because: str | None = None


def _decide(before: State, deleted: DeletionRequest | None, resolved: ResolvedRequest) -> Outcome:
    """Release an arm and roll the statistics back, if there were records."""
    if deleted is None:
        return Outcome("nothing_held", {}, before, None)
    used, release, stream = _release(before, deleted, resolved)
    released = release.draw()
    served = stream.statistics.actions.index(released)
    state = replace(before, stream=stream, served_arm=served, served_by="release")
    facts = _ledger_facts(before, deleted, release, used, released)
    return Outcome("forget", facts, state, release, used.fallback_because)


def _store(
    transaction: Transaction,
    target: ErasureTarget,
    deleted: DeletedRecords,
    history: RequestHistory,
    outcome: Outcome,
    covers: str,
) -> tuple[CertificateDraft, Mapping[str, Any] | None]:
    """Store the outcome, its ledger entry and the draft of its certificate; return the latter's opening."""
    before, keyring = transaction.state, transaction.keyring
    commitment = commit_to(target, keyring, before.head.sequence + 1, before.digest_key, deleted.held)
    facts = {"commitment": commitment.root, "salt_key": before.digest_key, **outcome.facts}
    entry = transaction.append(outcome.kind, **facts, terms=terms_of(outcome.kind, facts, covers))
    draft = CertificateDraft.of(entry, covers)
    transaction.add(tables.put_certificate(entry.sequence, draft.text, draft.seal(keyring)))
    transaction.add(*deleted.to_tallies)
    digests = before.digests.update(keyring, "record", deleted.rows)
    if commitment.leaves is not None:
        tree = (entry.sequence, commitment.leaves)
        digests = digests.update(keyring, "tree", [tree])
        transaction.add(tables.insert_tree(tree))
    after = history.after_forgetting(commitment.openings, entry.sequence)
    digests, to_lists = history.rows.apply_changes(after, keyring, digests)
    transaction.add(*to_lists)
    transaction.store(replace(outcome.state, digests=digests))
    return draft, commitment.revealed


def _release(
    state: State, deleted: DeletionRequest, resolved: ResolvedRequest
) -> tuple[ResolvedRequest, Release, Stream]:
    """The release, within the policy, and the stream without the records.

    A request that the policy does not allow, or that touches several arms where the unlearner handles one, is
    refused; or answered by exact rollback, if the policy says so. Whatever else an unlearner cannot answer is
    refused: that may depend on the rewards, which must not choose the unlearner.
    """
    stream, policy = state.require_stream(), state.configuration.policy
    try:
        release, later = stream.forget(resolved.unlearner, deleted, resolved.budget)
        if policy.allows(release.guarantee):
            return resolved, release, later
        refusal: ArmnesiaError = policy.refusal(release.guarantee)
    except UnsupportedError as error:
        if resolved.unlearner.several_arms or np.count_nonzero(deleted.counts) < 2:
            raise
        refusal = error
    if policy.beyond == "refuse":
        raise refusal
    exact = ResolvedRequest(Rollback(), {}, meaningful_budget(0.0, 0.0), fallback_because=str(refusal))
    release, later = stream.forget(exact.unlearner, deleted, exact.budget)
    weakest = Level.weakest(resolved.unlearner.level, stream.level)
    if policy.allows(Guarantee(resolved.budget.epsilon, resolved.budget.delta, weakest)):
        # Other requests are answered as asked, so that an answer by rollback reveals this one's shape.
        release = replace(release, guarantee=replace(release.guarantee, level=weakest))
    return exact, release, later


def _ledger_facts(
    state: State, deleted: DeletionRequest, release: Release, resolved: ResolvedRequest, released: Hashable
) -> dict[str, Any]:
    """What the ledger says of a deletion: no identifier, no reward, and counts only if they are public."""
    configuration, guarantee = state.configuration, release.guarantee
    facts = {
        "unlearner": {"name": resolved.unlearner.name, **resolved.options},
        "learner": {
            "name": configuration.learner,
            "confidence": configuration.confidence,
            **configuration.learner_options,
        },
        "penalty": configuration.penalty,
        "budget": {"epsilon": guarantee.epsilon, "delta": guarantee.delta},
        "level": str(guarantee.level),
        "released": released,
    }
    return facts | ({"counts": list(deleted.counts.tolist())} if guarantee.level.sees_shape else {})


def _names_with_records(transaction: Transaction, target: ErasureTarget) -> set[bytes]:
    """The row keys of those names in the request that have records."""
    keys = target.row_keys(transaction.keyring)
    return tables.keys_with_records(transaction.session, target.row_column, keys)


def _refuse_returned_records(transaction: Transaction, target: ErasureTarget) -> None:
    """Refuse to answer "done before" while rows of the request are in the vault again."""
    if _names_with_records(transaction, target):
        raise VaultError(
            "rows of a person or record forgotten by this request are in the vault again, put there by"
            " something other than armnesia: run armnesia verify, and armnesia rebuild to remove them"
        )


def counts_by_action(state: State, deleted: DeletionRequest | None) -> dict[Hashable, int]:
    """The deleted records per action."""
    counts = [0] * len(state.actions) if deleted is None else deleted.counts.tolist()
    return dict(zip(state.actions, counts, strict=True))
