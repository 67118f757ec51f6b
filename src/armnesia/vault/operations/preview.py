"""Previewing a request: what it would do, by one method or by several."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from armnesia.core.errors import ArmnesiaError
from armnesia.unlearners import JointRelease
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.results import Preview
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import served_action
from armnesia.vault.state.released_request import (
    TouchedDecisions,
    answer_within_policy,
    describe,
    read_touched_decisions,
    released_elsewhere,
)
from armnesia.vault.state.requests import ForgetRequest, find, or_refusal
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
    target, asked = ErasureTarget.of(users, records), [ForgetRequest(**method) for method in methods]
    with connection.reading() as transaction:
        found = find(connection, transaction, target, exactly=exactly)
        touched = read_touched_decisions(transaction, found.rows.sums)
        nothing = Preview(
            **describe(transaction.state, found, touched),
            served_before=served_action(transaction),
            release=None,
            unlearner=None,
            forgotten_before=sum(len(each.names) for each in found.forgotten_before),
        )
        return [or_refusal(_preview_by, transaction, touched, nothing, each) for each in asked]


def _preview_by(
    transaction: Transaction, touched: TouchedDecisions | None, nothing: Preview, request: ForgetRequest
) -> Preview:
    """What one method would do with the records that a request touches."""
    method = request.method(transaction.state.configuration)
    if nothing.repeated:
        return nothing
    answer = answer_within_policy(transaction.state.configuration, touched, method)
    others, used = released_elsewhere(transaction, touched, answer), answer.method
    if others is not None:
        nothing = replace(nothing, decided_again=len(others))
    if touched is None or answer.release is None:
        return nothing
    budget = answer.release.each if isinstance(answer.release, JointRelease) else used.budget
    remark = touched.stream.remark(used.unlearner, touched.visible, budget)
    return replace(
        nothing,
        unlearner=used.unlearner.name,
        release=answer.release,
        fallback_because=used.fallback_because,
        method_lines=(f"Unlearner: {used.unlearner.described}", *([remark] if remark else [])),
    )
