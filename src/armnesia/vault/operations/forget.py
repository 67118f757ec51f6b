"""Forgetting: one transaction from the request to the draft of its certificate."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from armnesia.core.errors import ArmnesiaError, UnfinishedError, VaultError
from armnesia.core.messages import without_unchanged
from armnesia.core.request import DeletionRequest
from armnesia.vault.configuration import MANAGED, Configuration
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate, CertificateDraft, certificate_words
from armnesia.vault.ledger.certificate_text import claims_of
from armnesia.vault.ledger.commitments import commit_to
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.ledger.source_claim import source_claim
from armnesia.vault.results.forgotten import Forgotten, TouchedDecision
from armnesia.vault.state.certificates import (
    certificate_of_target,
    refuse_returned_records,
    search_or_withhold,
    searched_certificate,
    store_certificate,
)
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.grouped_requests import GroupedRecords, GroupTransaction
from armnesia.vault.state.inheritance import warn_of_successors
from armnesia.vault.state.records import DeletedRecords
from armnesia.vault.state.refusals import or_refusal, unless_refused
from armnesia.vault.state.released_request import (
    RequestOutcome,
    counts_by_action,
    decide_request,
    describe_touched,
    read_touched_decisions,
)
from armnesia.vault.state.request_options import ForgetRequest, RequestOptions, ResolvedRequest
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.similar_names import records_compared_before, refuse_similar_names
from armnesia.vault.state.suppression import RequestHistory
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables

if TYPE_CHECKING:
    from armnesia.vault.state.source_lookup import SourceLookup

_FORGET_THERE = "forget there as well: it knows its own requests only"


class _Asked(NamedTuple):
    """A request, and what was looked up for it before the lock was taken."""

    target: ErasureTarget
    options: RequestOptions
    lookup: "SourceLookup | None"
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


def forget(
    connection: VaultConnection, target: ErasureTarget, options: RequestOptions, *, search: bool = False
) -> Forgotten:
    """Find the rows, draw the arm, roll back, delete, and note it in the ledger: all or nothing.

    With `search`, all of the vault is then searched for what may be left of the names.
    """
    asked = _look_up(connection, target, options)
    signs_now = not (search and connection.records.layout.holds_rows)
    with connection.writing(schema_last=True) as transaction:
        answered = _answer(connection, transaction, asked)
        deletion, head = answered.deletion, transaction.state.head
        expected = connection.database.erases_at_once
        certificate = None
        if deletion is not None and signs_now:
            # A server still stores the request meanwhile; nothing is handed out before the commit.
            certificate = _signed(answered, deletion, head, expected)
    if answered.before.configuration.successors:
        warn_of_successors(answered.before.configuration, _FORGET_THERE)
    if deletion is None:
        return _repeated(connection, answered, head, search=search)
    erased = connection.erase(head)
    reason, searched = None, None
    if search:
        reason = search_or_withhold(
            connection, answered.target, answered.keyring, head, head.sequence, erased=erased
        )
        searched = connection.database.search_covers if reason is None else None
    if certificate is None or erased != expected:
        certificate = _signed(answered, deletion, head, erased, searched=searched)
    if searched is not None:
        _store_searched(connection, certificate)
    return replace(
        _forgotten(connection, answered, deletion, certificate, head, erased), not_searched_because=reason
    )


def _store_searched(connection: VaultConnection, certificate: Certificate) -> None:
    """Store a certificate, so that everybody in the request gets one that says what was searched."""
    try:
        store_certificate(connection, certificate)
    except VaultError as error:
        raise UnfinishedError(
            f"the request is done, but its certificate could not be stored: {without_unchanged(str(error))};"
            " run the same command again"
        ) from None


def forget_many(
    connection: VaultConnection, requests: Iterable[ForgetRequest]
) -> list[Forgotten | ArmnesiaError]:
    """Answer requests in one transaction, in their order, each with a ledger entry and a certificate.

    One that is refused leaves nothing and does not harm the others: its error stands in its place. If the new
    head cannot be pinned, an UnfinishedError stands in the place of everyone that is done.
    """
    asked = [or_refusal(_look_up_request, connection, request) for request in requests]
    if all(isinstance(each, ArmnesiaError) for each in asked):
        return [each for each in asked if isinstance(each, ArmnesiaError)]
    unpinned: UnfinishedError | None = None
    try:
        with connection.writing(schema_last=True) as transaction:
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


def _look_up_request(connection: VaultConnection, request: ForgetRequest) -> _Asked:
    return _look_up(connection, ErasureTarget.of(request.users, request.records), request)


def _look_up(connection: VaultConnection, target: ErasureTarget, options: RequestOptions) -> _Asked:
    """Look up what takes long, before the lock is taken."""
    lookup = connection.records.look_up(connection.reading, target, exactly=options.exactly)
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
            answered += [unless_refused(each, _attempt, connection, transaction) for each in some]
            continue
        group = GroupTransaction.read_ahead(transaction, layout, targets)
        transaction.begin_schema_check()
        grouped = replace(connection, records=GroupedRecords(layout, group))
        answered += [unless_refused(each, _attempt, grouped, group) for each in some]
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
    target = or_refusal(asked.target.normalised, configuration.user_type)
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
            return _repeated(connection, answered, state.head)
        certificate = _signed(answered, answered.deletion, state.head, erased)
        return _forgotten(connection, answered, answered.deletion, certificate, state.head, erased)
    except ArmnesiaError as error:
        return error.with_traceback(None)


def _signed(
    answered: _Answered, deletion: "_Deletion", head: Head, erased: bool, *, searched: str | None = None
) -> Certificate:
    """Sign the certificate of a request at a head of the ledger."""
    return deletion.draft.issue(
        answered.keyring,
        head=head,
        erasure="complete" if erased else "pending",
        searched=searched,
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
        recounted_because=deletion.recounted_because,
        rows_gone=deletion.rows_gone,
        successors=answered.before.configuration.successors,
    )


def _repeated(
    connection: VaultConnection, answered: _Answered, head: Head, *, search: bool = False
) -> Forgotten:
    """What a request returns that was answered before: its certificate, at this head of the ledger."""
    connection.pinned_head.write(head)  # also where no head was pinned yet
    state, target = answered.after, answered.target
    reason = None
    if search:
        certificate, reason = searched_certificate(connection, target)
    else:
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
        head=head,
        certificate=certificate,
        decisions=() if state.configuration.by else None,
        decided_again=0 if state.configuration.by else None,
        pending_because=connection.database.erasure_obstacle if pending else None,
        erasure_steps=connection.database.erasure_steps if pending else None,
        not_searched_because=reason,
        successors=state.configuration.successors,
    )


class _Deletion(NamedTuple):
    """What answering a request in this transaction came to."""

    deleted: DeletedRecords
    request: DeletionRequest | None
    outcome: RequestOutcome
    may_be_without_user: bool
    decisions: tuple[TouchedDecision, ...] | None
    """Those that were touched; None in a vault without key columns."""
    draft: CertificateDraft
    opening: Mapping[str, Any] | None
    recounted_because: str | None
    rows_gone: int


def _delete_and_store(
    connection: VaultConnection,
    transaction: Transaction,
    target: ErasureTarget,
    lookup: "SourceLookup | None",
    resolved: ResolvedRequest,
) -> _Deletion | None:
    """Delete the records, decide and store; None if the same request was answered before."""
    history = RequestHistory.read(transaction, target)
    if history.answered_before:
        refuse_returned_records(connection, transaction, target)
        return None
    records = connection.records
    if lookup is not None:
        lookup = records.current(transaction, target, lookup, exactly=resolved.exactly)
    update = None if lookup is None else lookup.update
    because = None if update is None else update.because
    gone = records.count(transaction.session) - update.n_counted if update is not None and because else 0
    deleted = records.delete(transaction, target, lookup)
    if not resolved.exactly:
        holds = partial(records.keys_held, transaction, target, lookup=lookup)
        refuse_similar_names(transaction, target, deleted.held, history.suppressed, holds)
    touched = read_touched_decisions(transaction, deleted.sums)
    transaction.begin_schema_check()
    outcome = decide_request(transaction, touched, resolved)
    covers = connection.erasure_covers(outcome.kind)
    facts = outcome.facts if lookup is None else {**outcome.facts, "sources": list(lookup.sources)}
    outcome = outcome._replace(facts=facts)
    state, draft, opening = transaction.state, *_store(transaction, target, deleted, history, outcome, covers)
    decisions = describe_touched(state, touched, outcome.served) if state.configuration.by else None
    request = None if touched is None else touched.request
    some_not_held = len(deleted.held) < len(target.users)
    if some_not_held:
        owners = target.row_keys(transaction.keyring)
        records.confirm_nobody(transaction, [owner for owner in owners if owner not in deleted.held])
    unknown = some_not_held and records.some_without_user(transaction.session, lookup)
    return _Deletion(
        deleted, request, outcome, unknown, decisions, draft, opening, because, rows_gone=max(0, gone)
    )


def _store(
    transaction: Transaction,
    target: ErasureTarget,
    deleted: DeletedRecords,
    history: RequestHistory,
    outcome: RequestOutcome,
    covers: str,
) -> tuple[CertificateDraft, Mapping[str, Any] | None]:
    """Store the outcome, its ledger entry and the draft of its certificate; return the latter's opening."""
    before, keyring = transaction.state, transaction.keyring
    commitment = commit_to(target, keyring, before.head.sequence + 1, before.digest_key, deleted.held)
    facts = {"commitment": commitment.root, "salt_key": before.digest_key, **outcome.facts}
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
