"""Forgetting: the request, the released arms, the ledger's entry and the suppression, in one transaction.

Several requests may share a transaction. Each has its own entry; one that is refused leaves nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from armnesia.core.errors import ArmnesiaError
from armnesia.privacy import Budget, Guarantee, Level
from armnesia.unlearners import Rollback
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.ledger.people import (
    ACTOR,
    CASE,
    DELETED,
    NOTHING,
    RECORD,
    UNCOUNTED,
    USER,
    Mention,
    People,
    refuse_named,
)
from armnesia.vault.results import Forgotten, ForgottenBefore
from armnesia.vault.state.certificates import Certificates, time_of
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import served_action
from armnesia.vault.state.likely_names import refuse_other_spellings
from armnesia.vault.state.records import DeletedRecords, refuse_returned
from armnesia.vault.state.released_request import (
    RequestOutcome,
    counts_by_action,
    decide_request,
    describe_touched,
    read_touched_decisions,
)
from armnesia.vault.state.request_options import ForgetRequest, ResolvedRequest, or_refusal, unless_refused
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.suppression import History
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage.schema import PeopleRow


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
    asked = [or_refusal(_asked, request) for request in requests]
    if all(isinstance(each, ArmnesiaError) for each in asked):
        return [each for each in asked if isinstance(each, ArmnesiaError)]
    with connection.writing() as transaction:
        answered = [unless_refused(each, _attempt, connection, transaction) for each in asked]
        certificates = Certificates(transaction)  # handed out after the commit
        return [
            each if isinstance(each, ArmnesiaError) else _with_certificate(certificates, each)
            for each in answered
        ]


def _asked(request: ForgetRequest) -> tuple[ForgetRequest, ErasureTarget]:
    return request, ErasureTarget.of(request.users, request.records)


def _attempt(
    connection: VaultConnection, transaction: Transaction, asked: tuple[ForgetRequest, ErasureTarget]
) -> Forgotten:
    """Answer one of several requests: if it is refused, the transaction is as before."""
    with transaction.attempt():
        return _answer(connection, transaction, *asked)


def _answer(
    connection: VaultConnection, transaction: Transaction, request: ForgetRequest, target: ErasureTarget
) -> Forgotten:
    """Delete the records of those who are not forgotten yet, decide, and note it."""
    before, records, served = transaction.state, connection.records, served_action(transaction)
    resolved = request.resolve(before.configuration)  # refused before anything is looked up
    target = target.normalised(before.configuration.user_type)
    history = History.read(transaction, target)
    earlier = history.forgotten
    nothing = _nothing_done(transaction, target, earlier, served)
    if len(earlier) == len(target.names):
        refuse_returned(records.names_held(transaction, target, None))
        return nothing
    target, history = target.without(earlier), history.without(earlier)
    lookup = records.look_up(transaction, target, exactly=resolved.exactly)
    because = None if lookup is None else lookup.because
    gone = records.count(transaction.session) - lookup.n_counted if lookup is not None and because else 0
    deleted = records.delete(transaction, target, lookup)
    if not resolved.exactly:
        holds = partial(records.keys_held, transaction, target, lookup=lookup)
        refuse_other_spellings(transaction, target, deleted.held, holds)
    touched = read_touched_decisions(transaction, deleted.sums)
    outcome = decide_request(transaction, touched, resolved)
    facts = _facts(before, outcome, resolved, served)
    if lookup is not None:
        facts["sources"] = [each.id for each in lookup.before]
    number = _store(transaction, target, request, deleted, history, outcome, facts)
    after = transaction.state
    keys = zip(target.names, target.row_keys(transaction.keyring), strict=True)
    some_not_held = len(deleted.held) < len(target.users)
    return replace(
        nothing,
        repeated=False,
        entry=number,
        held=len(deleted.held),
        not_held=tuple(name for name, key in keys if key not in deleted.held),
        counts=counts_by_action(before, None if touched is None else touched.request),
        served=served_action(transaction),
        release=outcome.release,
        decisions=describe_touched(after, touched, outcome.served) if after.configuration.by else None,
        decided_again=outcome.decided_again,
        head=after.head,
        fallback_because=outcome.fallback_because,
        may_be_without_user=some_not_held and records.some_without_user(transaction.session, lookup),
        recounted_because=because,
        rows_gone=max(0, gone),
        names=target,
    )


def _nothing_done(
    transaction: Transaction, target: ErasureTarget, earlier: Mapping[str, int], served: Any
) -> Forgotten:
    """What a request comes to whose people were all forgotten before."""
    state, by_entry = transaction.state, dict[int, list[str]]()
    for name, number in earlier.items():
        by_entry.setdefault(number, []).append(name)
    numbers = sorted(by_entry)
    return Forgotten(
        repeated=True,
        entry=numbers[-1] if numbers else 0,
        named=len(target.names),
        held=0,
        counts=counts_by_action(state, None),
        served_before=served,
        served=served,
        release=None,
        head=state.head,
        forgotten_before=tuple(
            ForgottenBefore(number, time_of(transaction.session, number), tuple(by_entry[number]))
            for number in numbers
        ),
        decisions=() if state.configuration.by else None,
        decided_again=0 if state.configuration.by else None,
        names=target,
    )


def _facts(before: State, outcome: RequestOutcome, resolved: ResolvedRequest, served: Any) -> dict[str, Any]:
    """What the ledger says of a request; of one that found nothing it is of the same kind."""
    if outcome.facts:
        return dict(outcome.facts)
    configuration = before.configuration
    unlearner, options = resolved.unlearner, resolved.options
    of_penalty = Level.RETAINED if configuration.penalty == "retained" else Level.REQUEST_SHAPE
    level = Level.weakest(unlearner.level, of_penalty)
    budget = resolved.budget if unlearner.needs_budget else Budget(epsilon=0.0, delta=0.0)
    asked = Guarantee(budget.epsilon, budget.delta, level)
    if not configuration.policy.allows(asked):  # as if somebody was held
        if configuration.policy.beyond == "refuse":
            raise configuration.policy.refusal(asked)
        unlearner, options, asked = Rollback(), {}, Guarantee(0.0, 0.0, of_penalty)
    facts: dict[str, Any] = {
        "unlearner": {"name": unlearner.name, **options},
        "learner": configuration.learner_facts,
        "penalty": configuration.penalty,
        "budget": {"epsilon": asked.epsilon, "delta": asked.delta},
        "level": str(asked.level),
    }
    if configuration.by:
        return {
            **facts,
            "by": list(configuration.by),
            **({"decisions": []} if asked.level.sees_shape else {}),
        }
    counts = {"counts": [0] * len(before.actions)} if asked.level.sees_shape else {}
    return {**facts, "released": served, **counts}


def _store(
    transaction: Transaction,
    target: ErasureTarget,
    request: ForgetRequest,
    deleted: DeletedRecords,
    history: History,
    outcome: RequestOutcome,
    facts: Mapping[str, Any],
) -> int:
    """Store the outcome, the entry, its commitments and the suppression; return the entry's number."""
    keyring, number = transaction.keyring, transaction.state.frontier.size + 1
    role = USER if target.users else RECORD
    found = UNCOUNTED if outcome.state.configuration.mode == "external" else DELETED
    named = zip(target.names, target.row_keys(keyring), strict=True)
    mentions = [Mention(role, found if key in deleted.held else NOTHING, name) for name, key in named]
    said = {CASE: request.case, ACTOR: request.by}
    mentions += [Mention(which, "", text) for which, text in said.items() if text is not None]
    if request.case is not None:
        refuse_named(request.case, target.names)
    people = People.of(keyring, number, mentions)
    transaction.append("forget", people=people.root, **facts)
    check_sums = outcome.state.check_sums.update(keyring, "record", deleted.rows)
    row = PeopleRow(
        number,
        b"".join(people.leaves),
        keyring.encrypted(said, f"said of {number}") if any(said.values()) else None,
        None if request.case is None else keyring.digest(b"case", request.case),
    )
    check_sums = transaction.put_people(row, check_sums)
    check_sums = transaction.put_suppressed(
        history.rows.values(), history.after_forgetting(number), check_sums
    )
    transaction.store(outcome.state, check_sums=check_sums)
    return number


def _with_certificate(certificates: Certificates, done: Forgotten) -> Forgotten:
    """The result with the certificate, if the request is for one name."""
    if len(done.names.names) > 1 or done.certificate is not None:
        return done
    return replace(done, certificate=certificates.of(done.names, done.entry))
