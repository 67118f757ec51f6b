"""Previewing a request: what it would do, by one method or by several."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from armnesia.core.errors import ArmnesiaError
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.results.forgotten import Preview
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.refusals import or_refusal, unless_refused
from armnesia.vault.state.released_request import (
    TouchedDecisions,
    counts_by_action,
    describe_touched,
    read_touched_decisions,
    release_within_policy,
    released_elsewhere,
)
from armnesia.vault.state.request_options import RequestOptions, ResolvedRequest
from armnesia.vault.state.similar_names import refuse_similar_names
from armnesia.vault.state.suppression import RequestHistory
from armnesia.vault.state.transaction import Transaction


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

    The people are looked up once, by `options.exactly`.
    """
    lookup = connection.records.look_up(connection.reading, target, exactly=options.exactly)
    with connection.reading() as transaction:
        state = transaction.state
        resolved = [or_refusal(method.resolve, state.configuration) for method in methods]
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
        touched = read_touched_decisions(transaction, sums)
        some_not_held = not history.answered_before and len(held) < len(target.users)
        unknown = some_not_held and records.some_without_user(transaction.session, lookup)
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
            decisions=describe_touched(state, touched) if state.configuration.by else None,
            decided_again=0 if state.configuration.by else None,
            may_be_without_user=unknown,
        )
        if touched is None:
            return [each if isinstance(each, ArmnesiaError) else nothing for each in resolved]
        return [unless_refused(each, _preview_by, transaction, touched, nothing) for each in resolved]


def _preview_by(
    transaction: Transaction, touched: TouchedDecisions, nothing: Preview, resolved: ResolvedRequest
) -> Preview:
    """What one method would do with the records that a request touches."""
    configuration = transaction.state.configuration
    used, release, _ = release_within_policy(configuration, touched, resolved)
    again = nothing.decided_again
    if configuration.by and not release.guarantee.level.sees_shape:
        again = len(released_elsewhere(transaction, touched))
    return replace(
        nothing,
        unlearner=used.unlearner.name,
        release=release,
        fallback_because=used.fallback_because,
        method_lines=used.lines_about(touched.stream, touched.visible, release),
        decided_again=again,
    )
