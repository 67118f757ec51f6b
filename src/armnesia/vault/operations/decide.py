"""Deciding: which arm is served now, in one decision or in all of them."""

from collections.abc import Mapping
from typing import Any

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.messages import listed
from armnesia.vault.configuration import Configuration
from armnesia.vault.ledger.signed_decisions import SignedDecisions
from armnesia.vault.results.served import Served, ServedDecisions
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import (
    find_decision,
    key_dict,
    read_all_decisions,
    read_decisions,
    stacked,
)
from armnesia.vault.state.decisions import DEFAULT


def decide(connection: VaultConnection, where: Mapping[str, Any] | None = None) -> Served:
    """The served arm, which is known without the statistics; `where` is the key of a decision."""
    if where is not None:
        return _decide_where(connection, where)
    head_before = connection.expected_head()
    with connection.database.reading() as session:
        stored = connection.read_checked(session, head_before)
    decision, configuration = stored.decision, Configuration.from_text(stored.row.configuration)
    if configuration.by:
        names = [column.name for column in configuration.key_columns]
        raise InvalidInputError(
            f"the vault has decisions by {listed(names)}: name one of them, as in"
            f" where={dict.fromkeys(names, '…')!r}, or take all of them"
        )
    if decision is None or decision.served is None or configuration.actions is None:
        return Served(None, DEFAULT, stored.head)
    return Served(configuration.actions[decision.served], decision.served_by, stored.head)


def _decide_where(connection: VaultConnection, where: Mapping[str, Any]) -> Served:
    with connection.reading() as transaction:
        state, decision = transaction.state, find_decision(transaction, where)
    action = None if decision.served is None else state.actions[decision.served]
    key = key_dict(state.configuration.key_columns, decision.key)
    return Served(action, decision.served_by, state.head, key)


def decide_signed(connection: VaultConnection) -> SignedDecisions:
    """The served arms of all decisions, signed with the key in use."""
    served = decide_all(connection)
    with connection.reading() as transaction:
        if transaction.state.head != served.head:
            raise VaultError("the vault was changed meanwhile; run the same command again")
        keyring = transaction.keyring
    each = zip(served.keys, served.actions, strict=True)
    decisions = [{"key": dict(key), "action": action} for key, action in each]
    return SignedDecisions.issue(keyring, served.head, served.by, decisions)


def decide_all(
    connection: VaultConnection, *, statistics: bool = False, after: int = 0, limit: int | None = None
) -> ServedDecisions:
    """The served arms of all decisions, or of at most `limit` after some; `statistics` are for the operator.

    Of many decisions, only those that are asked for are read.
    """
    if after < 0 or (limit is not None and limit < 0):
        raise InvalidInputError(f"after and limit must be 0 or more; got {after} and {limit}")
    with connection.reading() as transaction:
        state, configuration = transaction.state, transaction.state.configuration
        total = state.n_decisions if configuration.by else int(state.decision is not None)
        last = total if limit is None else min(total, after + limit)
        if not configuration.by:
            decisions = [] if state.decision is None else [state.decision][after:last]
        elif after or last < total:
            decisions = read_decisions(transaction, range(after + 1, last + 1))
        else:
            decisions = read_all_decisions(transaction.session, state, transaction.keyring)
    columns = configuration.key_columns
    return ServedDecisions(
        by=configuration.by,
        keys=tuple(key_dict(columns, each.key) for each in decisions),
        actions=tuple(None if each.served is None else state.actions[each.served] for each in decisions),
        chosen_by=tuple(each.served_by for each in decisions),
        head=state.head,
        stream=stacked(decisions, configuration) if statistics and decisions else None,
        total=total,
    )
