"""Previewing a request: what it would do, by one method or by several."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from armnesia.core.errors import ArmnesiaError
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.results import Preview
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import served_action
from armnesia.vault.state.likely_names import refuse_other_spellings
from armnesia.vault.state.released_request import (
    TouchedDecisions,
    counts_by_action,
    describe_touched,
    read_touched_decisions,
    release_within_policy,
    released_elsewhere,
)
from armnesia.vault.state.request_options import (
    RequestOptions,
    ResolvedRequest,
    or_refusal,
    unless_refused,
)
from armnesia.vault.state.suppression import History
from armnesia.vault.state.transaction import Transaction


def preview(
    connection: VaultConnection,
    users: Iterable[Any] | None = None,
    records: Iterable[Any] | None = None,
    *,
    exactly: bool = False,
    **method: Any,
) -> Preview:
    """What `forget` would do, with probabilities; nothing is written. Do not store the result.

    The method is `unlearner`, `unlearner_options`, `epsilon` and `delta` of `forget`, or some of them.
    """
    (found,) = preview_methods(connection, users, records, methods=[method], exactly=exactly)
    if isinstance(found, ArmnesiaError):
        raise found
    return found


def preview_methods(
    connection: VaultConnection,
    users: Iterable[Any] | None = None,
    records: Iterable[Any] | None = None,
    *,
    methods: Iterable[Mapping[str, Any]],
    exactly: bool = False,
) -> list[Preview | ArmnesiaError]:
    """As `preview`, by several methods; whoever is named is looked up once.

    A method that is refused has its error in its place.
    """
    target, asked = ErasureTarget.of(users, records), [RequestOptions(**method) for method in methods]
    with connection.reading() as transaction:
        state = transaction.state
        resolved = [or_refusal(each.resolve, state.configuration) for each in asked]
        if all(isinstance(each, ArmnesiaError) for each in resolved):
            return [each for each in resolved if isinstance(each, ArmnesiaError)]
        target = target.normalised(state.configuration.user_type)
        earlier = History.read(transaction, target).forgotten
        repeated, held_by = len(earlier) == len(target.names), connection.records
        lookup = held_by.look_up(transaction, target, exactly=exactly)
        sums = held_by.find(transaction, target, lookup)
        held = held_by.names_held(transaction, target, lookup)
        if not repeated and not exactly:
            others = target.without(earlier)
            holds = partial(held_by.keys_held, transaction, others, lookup=lookup)
            refuse_other_spellings(transaction, others, held, holds)
        touched = read_touched_decisions(transaction, sums)
        some_not_held = bool(target.users) and len(held) + len(earlier) < len(target.names)
        unknown = some_not_held and held_by.some_without_user(transaction.session, lookup)
        keys = zip(target.names, target.row_keys(transaction.keyring), strict=True)
        not_held = tuple(name for name, key in keys if key not in held and name not in earlier)
        nothing = Preview(
            repeated=repeated,
            named=len(target.names),
            held=len(held),
            unlearner=None,
            counts=counts_by_action(state, None if touched is None else touched.request),
            served_before=served_action(transaction),
            release=None,
            not_held=not_held,
            decisions=describe_touched(state, touched) if state.configuration.by else None,
            decided_again=0 if state.configuration.by else None,
            may_be_without_user=unknown,
            forgotten_before=len(earlier),
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
