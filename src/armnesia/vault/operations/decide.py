"""Deciding: which arm is served now, in one decision or in all of them."""

from collections.abc import Mapping
from typing import Any

from armnesia.core.errors import InvalidInputError
from armnesia.vault.ledger.signed_decisions import SignedDecisions
from armnesia.vault.results import Served, ServedDecisions
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import find_decision, read_decisions
from armnesia.vault.state.decisions import key_dict, stacked
from armnesia.vault.state.transaction import Transaction


def decide(
    connection: VaultConnection, where: Mapping[str, Any] | None = None, *, statistics: bool = False
) -> Served:
    """The served arm, which is known without the statistics; `where` is the key of a decision.

    With `statistics`, for the operator, also how far the best score is ahead of the second best.
    """
    with connection.reading() as transaction:
        return served_in(transaction, where, statistics=statistics)


def served_in(
    transaction: Transaction, where: Mapping[str, Any] | None = None, *, statistics: bool = False
) -> Served:
    """As `decide`, in a transaction."""
    state, configuration = transaction.state, transaction.state.configuration
    decision = find_decision(transaction, where)
    return Served(
        action=None if decision.served is None else state.actions[decision.served],
        by=decision.served_by,
        head=state.head,
        key=key_dict(configuration.key_columns, decision.key) if configuration.by else None,
        stream=stacked([decision], configuration) if statistics and configuration.actions else None,
    )


def decide_signed(connection: VaultConnection) -> SignedDecisions:
    """The served arms of all decisions, signed with the key in use."""
    with connection.reading() as transaction:
        served = _served(transaction)
    each = zip(served.keys, served.actions, strict=True)
    decisions = [{"key": dict(key), "action": action} for key, action in each]
    return SignedDecisions.issue(transaction.keyring, served.head, served.by, decisions)


def decide_all(
    connection: VaultConnection, *, statistics: bool = False, after: int = 0, limit: int | None = None
) -> ServedDecisions:
    """The served arms of all decisions, or of at most `limit` after some; `statistics` are for the operator.

    Of many decisions, only those that are asked for are read.
    """
    if after < 0 or (limit is not None and limit < 0):
        raise InvalidInputError(f"after and limit must be 0 or more; got {after} and {limit}")
    with connection.reading() as transaction:
        return _served(transaction, statistics=statistics, after=after, limit=limit)


def _served(
    transaction: Transaction, *, statistics: bool = False, after: int = 0, limit: int | None = None
) -> ServedDecisions:
    """The served arms of some decisions, by their numbers."""
    state, configuration = transaction.state, transaction.state.configuration
    total = state.n_decisions
    last = total if limit is None else min(total, after + limit)
    numbers = None if after == 0 and last == total else range(after + 1, last + 1)
    decisions = read_decisions(transaction, numbers)
    return ServedDecisions(
        by=configuration.by,
        keys=tuple(key_dict(configuration.key_columns, each.key) for each in decisions),
        actions=tuple(None if each.served is None else state.actions[each.served] for each in decisions),
        chosen_by=tuple(each.served_by for each in decisions),
        head=state.head,
        stream=stacked(decisions, configuration) if statistics and decisions else None,
        total=total,
    )
