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
from armnesia.vault.configuration import Configuration, make_unlearner, meaningful_budget
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import CertificateDraft, terms_of
from armnesia.vault.ledger.commitments import Opening, commit_to
from armnesia.vault.operations.certificates import certificate_of_target
from armnesia.vault.operations.similar_names import refuse_similar_names
from armnesia.vault.results import Forgotten, Preview
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.records import RecordSet
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.suppression import SuppressionRows
from armnesia.vault.state.transaction import Transaction, append_entry
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session


@dataclass(frozen=True)
class RequestOptions:
    """What a request asks for instead of the vault's defaults; None: the default."""

    unlearner: str | None = None
    options: Mapping[str, Any] | None = None
    epsilon: float | None = None
    delta: float | None = None
    exactly: bool = False
    """Whether the names are meant as they are, though the vault holds rows of similar ones."""

    def resolve(self, configuration: Configuration) -> "ResolvedRequest":
        """The unlearner and the budget, not yet compared with the policy."""
        name = configuration.unlearner if self.unlearner is None else self.unlearner
        default = configuration.options if name == configuration.unlearner else {}
        options = default if self.options is None else self.options
        epsilon = configuration.epsilon if self.epsilon is None else self.epsilon
        delta = configuration.delta if self.delta is None else self.delta
        return ResolvedRequest(make_unlearner(name, options), options, meaningful_budget(epsilon, delta))


@dataclass(frozen=True)
class ResolvedRequest:
    """How a request is answered: by which unlearner, with which options and budget."""

    unlearner: Unlearner
    options: Mapping[str, Any]
    budget: Budget


def forget(connection: VaultConnection, target: ErasureTarget, options: RequestOptions) -> Forgotten:
    """Find the rows, draw the arm, roll back, delete, and note it in the ledger: all or nothing."""
    records = connection.records.select(target, connection.keyring, connection.reading)
    with connection.writing() as transaction:
        before, ring = transaction.state, transaction.ring
        resolved = options.resolve(before.configuration)  # refused before anything is looked up
        target = target.normalised(before.configuration.user_type)
        digests = RequestDigests.of(ring, target)
        listed = digests.read(transaction.session)
        repeated = digests.answered_before(listed)
        if repeated:
            _refuse_returned_records(transaction.session, target, ring)
        else:
            answer = _answer(
                connection, transaction, target, records, resolved, digests, listed, options.exactly
            )
    if repeated:
        connection.pinned_head.write(before.head)  # also where no head was pinned yet
        certificate = certificate_of_target(connection, target)
        served = before.served_action
        return Forgotten(
            *(True, len(target.names), 0, dict.fromkeys(before.actions, 0), served, served, None),
            head=before.head,
            certificate=certificate,
        )
    erased = connection.erase(answer.state.head.sequence)
    return Forgotten(
        repeated=False,
        named=len(target.names),
        held=answer.held,
        counts=counts_by_action(before, answer.found),
        served_before=before.served_action,
        served=answer.state.served_action,
        release=answer.release,
        head=answer.state.head,
        certificate=answer.draft.issue(
            ring,
            head=answer.state.head,
            erasure="complete" if erased else "pending",
            opening=answer.opening,
        ),
    )


def preview(connection: VaultConnection, target: ErasureTarget, options: RequestOptions) -> Preview:
    """What the request would do now; nothing is written."""
    records = connection.records.select(target, connection.keyring, connection.reading)
    with connection.reading() as transaction:
        session, state = transaction.session, transaction.state
        resolved = options.resolve(state.configuration)
        target = target.normalised(state.configuration.user_type)
        digests = RequestDigests.of(transaction.ring, target)
        listed = digests.read(session)
        repeated = digests.answered_before(listed)
        found = records.find(session, state)
        held = tables.keys_with_records(session, target.row_column, target.row_keys(transaction.ring))
        if not repeated and not options.exactly:
            refuse_similar_names(transaction, target, held, digests.suppressed_in(listed))
    unlearner, release = None, None
    if found is not None:
        used, release, _ = _release(state, found, resolved)
        unlearner = used.unlearner.name
    counts = counts_by_action(state, found)
    return Preview(repeated, len(target.names), len(held), unlearner, counts, state.served_action, release)


class _Answer(NamedTuple):
    """A request that was answered in this transaction."""

    found: DeletionRequest | None
    held: int
    release: Release | None
    draft: CertificateDraft
    opening: dict[str, Any] | None
    state: State


def _answer(
    connection: VaultConnection,
    transaction: Transaction,
    target: ErasureTarget,
    records: RecordSet,
    resolved: ResolvedRequest,
    digests: "RequestDigests",
    listed: SuppressionRows,
    exactly: bool,
) -> _Answer:
    before, ring = transaction.state, transaction.ring
    found, rows, to_tallies = records.delete(transaction)
    held = {bytes(owner if target.users else identity) for identity, owner, *_ in rows}
    if not exactly:
        refuse_similar_names(transaction, target, held, digests.suppressed_in(listed))
    commitment = commit_to(target, ring, before.head.sequence + 1, before.digest_key, held)
    facts: dict[str, Any] = {"commitment": commitment.root, "salt_key": before.digest_key}
    kind, release, state = "nothing_held", None, before
    if found is not None:
        used, release, stream = _release(before, found, resolved)
        released = release.draw()
        kind, facts = "forget", facts | _ledger_facts(before, found, release, used, released)
        served = stream.statistics.actions.index(released)
        state = replace(before, stream=stream, served=served, served_by="release")
    covers = connection.database.erasure_covers + (connection.records.erasure_excludes if found else "")
    entry, state, to_ledger = append_entry(state, kind, **facts, terms=terms_of(kind, facts, covers))
    draft = CertificateDraft.of(entry, covers)
    table_digests = before.digests.update(ring, "record", rows)
    to_tree = []
    if commitment.leaves is not None:
        tree = (entry.sequence, commitment.leaves)
        table_digests = table_digests.update(ring, "tree", [tree])
        to_tree = [tables.insert_tree(tree)]
    table_digests, to_lists = listed.apply_changes(
        digests.noted(listed, commitment.openings, entry.sequence), ring, table_digests
    )
    state = replace(state, digests=table_digests)
    to_certificates = tables.put_certificate(entry.sequence, draft.text, draft.seal(ring))
    transaction.store(state, to_ledger, to_certificates, *to_lists, *to_tree, *to_tallies)
    return _Answer(found, len(held), release, draft, commitment.revealed, state)


def _release(
    state: State, found: DeletionRequest, resolved: ResolvedRequest
) -> tuple[ResolvedRequest, Release, Stream]:
    """The release, within the policy, and the stream without the records.

    A request that the policy does not allow, or that touches several arms where the unlearner handles one, is
    refused; or answered by exact rollback, if the policy says so. Whatever else an unlearner cannot answer is
    refused: that may depend on the rewards, which must not choose the unlearner.
    """
    stream, policy = state.known_stream, state.configuration.requests
    try:
        release, later = stream.forget(resolved.unlearner, found, resolved.budget)
        if policy.allows(release.guarantee):
            return resolved, release, later
        refusal: ArmnesiaError = policy.refusal(release.guarantee)
    except UnsupportedError as error:
        if resolved.unlearner.several_arms or np.count_nonzero(found.counts) < 2:
            raise
        refusal = error
    if policy.beyond == "refuse":
        raise refusal
    exact = ResolvedRequest(Rollback(), {}, meaningful_budget(0.0, 0.0))
    release, later = stream.forget(exact.unlearner, found, exact.budget)
    weakest = Level.weakest(resolved.unlearner.level, stream.level)
    if policy.allows(Guarantee(resolved.budget.epsilon, resolved.budget.delta, weakest)):
        # Other requests are answered as asked, so that an answer by rollback reveals this one's shape.
        release = replace(release, guarantee=replace(release.guarantee, level=weakest))
    return exact, release, later


def _ledger_facts(
    state: State, found: DeletionRequest, release: Release, resolved: ResolvedRequest, released: Hashable
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
    return facts | ({"counts": list(found.counts.tolist())} if guarantee.level.sees_shape else {})


def _count_names_with_records(session: Session, target: ErasureTarget, ring: Keyring) -> int:
    """How many of the names in the request have records."""
    return tables.count_keys_with_records(session, target.row_column, target.row_keys(ring))


def _refuse_returned_records(session: Session, target: ErasureTarget, ring: Keyring) -> None:
    """Refuse to answer "done before" while rows of the request are in the vault again."""
    if _count_names_with_records(session, target, ring):
        raise VaultError(
            "rows of a person or record forgotten by this request are in the vault again, put there by"
            " something other than armnesia: run armnesia verify, and armnesia rebuild to remove them"
        )


class RequestDigests(NamedTuple):
    """The digests of a request in the lists: of the whole, and per name its own, its kind, and that of the
    request for it alone."""

    whole: bytes
    each: list[tuple[bytes, str, bytes]]

    @classmethod
    def of(cls, ring: Keyring, target: ErasureTarget) -> "RequestDigests":
        """Make the digests with the keys in use."""
        whole = ring.request_digest(target.request)
        alone = [whole if one is target else ring.request_digest(one.request) for one in target.each()]
        names = zip(target.suppression_digests(ring), alone, strict=True)
        return cls(whole, [(name, kind, request) for (name, kind), request in names])

    def read(self, session: Session) -> SuppressionRows:
        """The rows with these digests."""
        digests = {self.whole, *(one for name, _, alone in self.each for one in (name, alone))}
        return SuppressionRows.read(session, list(digests))

    def answered_before(self, listed: SuppressionRows) -> bool:
        """Whether the same request was answered, and none of its names was readmitted since."""
        return self.whole in listed.request and all(listed.suppresses(name) for name, *_ in self.each)

    def suppressed_in(self, listed: SuppressionRows) -> list[bool]:
        """Which of the names are suppressed."""
        return [listed.suppresses(name) for name, *_ in self.each]

    def noted(self, listed: SuppressionRows, openings: list[Opening], sequence: int) -> SuppressionRows:
        """The rows after the request: every name suppressed, and the entry that answered it noted.

        It is noted for the request as a whole and for each name; a name that was forgotten before keeps the
        certificate of that time.
        """
        answered, suppressed = dict(listed.request), dict(listed.suppressed)
        opening = str(openings[0]) if len(openings) == 1 else ""
        answered[self.whole] = (self.whole, sequence, opening)
        for (name, kind, alone), own in zip(self.each, openings, strict=True):
            if not listed.suppresses(name):
                answered[alone] = (alone, sequence, str(own))
            suppressed[name] = (name, kind, sequence, None)
        return SuppressionRows(suppressed, answered)


def counts_by_action(state: State, found: DeletionRequest | None) -> dict[Hashable, int]:
    """The deleted records per action."""
    counts = [0] * len(state.actions) if found is None else found.counts.tolist()
    return dict(zip(state.actions, counts, strict=True))
