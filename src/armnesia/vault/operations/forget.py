"""Forgetting: the request, the released arms, the ledger's entry and the suppression, in one transaction.

Several requests may share a transaction. Each has its own entry; one that is refused leaves nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from armnesia.core.errors import ArmnesiaError
from armnesia.vault.db.schema import PeopleRow
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.ledger.people import (
    ACTOR,
    CASE,
    DELETED,
    NOTHING,
    UNCOUNTED,
    Mention,
    People,
    refuse_named,
)
from armnesia.vault.results import Forgotten
from armnesia.vault.state.certificates import Certificates
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import served_action
from armnesia.vault.state.released_request import (
    RequestOutcome,
    decide_request,
    describe,
    read_touched_decisions,
)
from armnesia.vault.state.requests import ForgetRequest, Found, find, or_refusal
from armnesia.vault.state.transaction import Transaction


def forget(
    connection: VaultConnection,
    users: Iterable[Any] | None = None,
    records: Iterable[Any] | None = None,
    *,
    unlearner: str | None = None,
    unlearner_options: Mapping[str, Any] | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    exactly: bool = False,
    case: str | None = None,
    by: str | None = None,
) -> Forgotten:
    """Forget people, or single records by their id, permanently, with a certificate.

    A name of which the vault holds nothing is refused if it holds rows of a likely spelling, unless `exactly`
    states that the names are meant as they are. `case` is the number of the request in the controller's
    files, and `by` who entered it: only the certificate shows them. An external vault first counts sources
    again that have changed; the rows stay there: see `erase_at_sources`.
    """
    request = ForgetRequest(
        users=users,
        records=records,
        unlearner=unlearner,
        unlearner_options=unlearner_options,
        epsilon=epsilon,
        delta=delta,
        exactly=exactly,
        case=case,
        by=by,
    )
    (done,) = forget_many(connection, [request])
    if isinstance(done, ArmnesiaError):
        raise done
    return done


def forget_many(
    connection: VaultConnection, requests: Iterable[ForgetRequest]
) -> list[Forgotten | ArmnesiaError]:
    """Answer several requests in one transaction: faster than one by one, with the same results.

    Each has its own ledger entry and certificates. One that is refused leaves nothing and does not harm the
    others: its error stands in its place.
    """
    with connection.writing() as transaction:
        answered = [or_refusal(_attempt, connection, transaction, request) for request in requests]
        certificates = Certificates(transaction)  # handed out after the commit
        return [
            each if isinstance(each, ArmnesiaError) else _with_certificate(certificates, each)
            for each in answered
        ]


def _attempt(connection: VaultConnection, transaction: Transaction, request: ForgetRequest) -> Forgotten:
    """Answer one of several requests: if it is refused, the transaction is as before."""
    target = ErasureTarget.of(request.users, request.records)
    with transaction.attempt():
        return _answer(connection, transaction, request, target)


def _answer(
    connection: VaultConnection, transaction: Transaction, request: ForgetRequest, target: ErasureTarget
) -> Forgotten:
    """Delete the records of those who are not forgotten yet, decide, and note it."""
    before, served = transaction.state, served_action(transaction)
    method = request.method(before.configuration)  # refused before anything is looked up
    found = find(connection, transaction, target, exactly=request.exactly, deletes=True)
    if not found.target.names:
        return Forgotten(
            **describe(before, found, None),
            entry=found.forgotten_before[-1].entry,
            served_before=served,
            served=served,
            release=None,
            head=before.head,
            names=found.named,
            forgotten_before=found.forgotten_before,
        )
    touched = read_touched_decisions(transaction, found.rows.sums)
    outcome = decide_request(transaction, touched, method)
    number = _store(transaction, request, found, outcome)
    return Forgotten(
        **describe(before, found, touched, outcome.served, outcome.decided_again),
        entry=number,
        served_before=served,
        served=outcome.facts.get("released"),  # of many decisions, each has its own
        release=outcome.answer.release,
        head=transaction.state.head,
        names=found.target,
        forgotten_before=found.forgotten_before,
        fallback_because=outcome.answer.method.fallback_because,
        recounted_because=found.recounted_because,
        rows_gone=found.rows_gone,
    )


def _store(transaction: Transaction, request: ForgetRequest, found: Found, outcome: RequestOutcome) -> int:
    """Store the outcome, the entry, its commitments and the suppression; return the entry's number."""
    keyring, number, target = transaction.keyring, transaction.state.frontier.size + 1, found.target
    held = UNCOUNTED if transaction.state.configuration.mode == "external" else DELETED
    missing = set(found.not_held)
    mentions = [Mention(target.kind, NOTHING if name in missing else held, name) for name in target.names]
    said = {CASE: request.case, ACTOR: request.by}
    mentions += [Mention(which, "", text) for which, text in said.items() if text is not None]
    if request.case is not None:
        refuse_named(request.case, target.names)
    people = People.of(keyring, number, mentions)
    facts = outcome.facts if found.sources is None else {**outcome.facts, "sources": list(found.sources)}
    transaction.append("forget", people=people.root, **facts)
    commitments = PeopleRow(
        number,
        b"".join(people.leaves),
        keyring.encrypted(said, f"said of {number}") if any(said.values()) else None,
        None if request.case is None else keyring.digest(b"case", request.case),
    )
    transaction.put([commitments])
    transaction.put(found.history.after_forgetting(number), found.history.rows.values())
    transaction.note("record", found.rows.rows)
    return number


def _with_certificate(certificates: Certificates, done: Forgotten) -> Forgotten:
    """The result with the certificate, if the request is for one name."""
    if len(done.names.names) > 1 or done.certificate is not None:
        return done
    return replace(done, certificate=certificates.of(done.entry, done.names))
