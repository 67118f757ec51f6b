"""Arms that come and go: which of them the decisions of a vault offer."""

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.messages import listed
from armnesia.vault.arm_rules import ArmRule, NewRows
from armnesia.vault.configuration import Configuration
from armnesia.vault.results import ArmChange, OfferedArm, OfferedArms
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import (
    checked_values,
    decided,
    in_decision,
    put_all_decisions,
    put_decisions,
    read_all_decisions,
)
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.transaction import Transaction


def list_arms(connection: VaultConnection, where: Mapping[str, Any] | None = None) -> OfferedArms:
    """Every arm, and in how many decisions it is offered; `where` gives values of keys."""
    with connection.reading() as transaction:
        configuration, head = transaction.state.configuration, transaction.state.head
        values = _checked_where(configuration, where)
        decisions = [each for each in _decisions(transaction) if _matches(configuration, each.key, values)]
    offers = [configuration.offers(each.key) for each in decisions]
    actions = configuration.actions or ()
    return OfferedArms(
        by=configuration.by,
        arms=tuple(OfferedArm(each, sum(each in offer for offer in offers)) for each in actions),
        decisions=len(decisions),
        rules=configuration.arms,
        head=head,
    )


def add_arm(
    connection: VaultConnection, action: Hashable, where: Mapping[str, Any] | None = None
) -> ArmChange:
    """Offer an arm from now on; one that the vault does not have yet starts without records."""
    with connection.writing() as transaction:
        before = transaction.state.configuration
        arm, values = _label(transaction.state.require_actions(), action), _checked_where(before, where)
        if arm in transaction.state.actions and not _is_withheld(before, arm, values):
            raise InvalidInputError(f"arm {arm!r} is offered{_in_words(values)} already; nothing was changed")
        after = before.with_added_arm(arm, values)
        transaction.append("add_arm", arm=arm, where=values)
        return _store(transaction, after, ArmRule(arm, offered=True, where=tuple(sorted(values.items()))))


def retire_arm(
    connection: VaultConnection,
    action: Hashable,
    where: Mapping[str, Any] | None = None,
    new_rows: NewRows = "count",
) -> ArmChange:
    """Serve an arm no longer; its records stay, and new rows of it are counted or refused."""
    with connection.writing() as transaction:
        before = transaction.state.configuration
        actions = transaction.state.require_actions()
        arm, values = _label(actions, action), _checked_where(before, where)
        if arm not in actions:
            raise InvalidInputError(f"arm {arm!r} is not one of {listed(actions)}")
        rule = ArmRule(arm, offered=False, where=tuple(sorted(values.items())), new_rows=new_rows)
        after = before.with_retired_arm(arm, values, new_rows)
        if _rules_of(before, arm) == _rules_of(after, arm):
            raise InvalidInputError(f"arm {arm!r} is retired{_in_words(values)} already; nothing was changed")
        transaction.append("retire_arm", arm=arm, where=values, new_rows=new_rows)
        return _store(transaction, after, rule)


def _store(transaction: Transaction, after: Configuration, rule: ArmRule) -> ArmChange:
    """Store the configuration; decisions that offer other arms than before decide again."""
    state, before = transaction.state, transaction.state.configuration
    n_arms, grows = len(after.actions or ()), after.actions != before.actions
    decisions = [
        replace(each, statistics=each.statistics.with_arms(n_arms)) for each in _decisions(transaction)
    ]
    changed = [each for each in decisions if before.offers(each.key) != after.offers(each.key)]
    for each in changed:
        if not after.offers(each.key):
            raise VaultError(
                f"{rule.arm!r} is the only arm that is offered{in_decision(after, each.key)}: offer another"
                " one first; nothing was changed"
            )
    again = {each.number: each for each in decided(changed, after)}
    state = replace(state, configuration=after)
    if after.by and grows:  # every decision has a place for the new arm
        whole = [again.get(each.number, each) for each in decisions]
        state = put_all_decisions(transaction.session, state, transaction.keyring, whole)
    elif after.by:
        state = put_decisions(transaction, state, list(again.values()))
    else:
        (only,) = decisions
        state = replace(state, decision=again.get(only.number, only))
    transaction.store(state)
    return ArmChange(
        action=rule.arm,
        offered=rule.offered,
        where=dict(rule.where),
        new_rows=None if rule.offered else rule.new_rows,
        decisions=len(changed) if after.by else None,
        served=transaction.state.served_action,
        head=transaction.state.head,
    )


def _decisions(transaction: Transaction) -> list[VaultDecision]:
    state = transaction.state
    if state.configuration.by:
        return read_all_decisions(transaction.session, state, transaction.keyring)
    return [] if state.decision is None else [state.decision]


def _checked_where(configuration: Configuration, where: Mapping[str, Any] | None) -> dict[str, str]:
    """The values of keys, as decisions have them; none: all decisions."""
    if where and not configuration.by:
        raise InvalidInputError(f"the vault has one decision, without keys; got the key {dict(where)!r}")
    return checked_values(configuration.key_columns, where or {})


def _matches(configuration: Configuration, key: tuple[str, ...], values: Mapping[str, str]) -> bool:
    named = zip(configuration.key_columns, key, strict=True)
    return all(values.get(column.name, value) == value for column, value in named)


def _label(actions: tuple[Hashable, ...], action: Any) -> Hashable:
    """The arm that a text names: labels of a vault differ in their text; a new one is like the others.

    >>> _label((1, 2), "2"), _label((1, 2), "3"), _label(("A", "2"), "3")
    (2, 3, '3')
    """
    if not isinstance(action, str | int) or isinstance(action, bool) or action == "":
        raise InvalidInputError(f"an arm must be named by text or a whole number; got {action!r}")
    for known in actions:
        if str(known) == str(action):
            return known
    if all(isinstance(known, int) for known in actions) and str(action).isdecimal():
        return int(action)
    return action


def _rules_of(configuration: Configuration, arm: Hashable) -> list[ArmRule]:
    return [rule for rule in configuration.arms if rule.arm == arm]


def _is_withheld(configuration: Configuration, arm: Hashable, values: Mapping[str, str]) -> bool:
    """Whether a decision with these values of keys, present or future, may not offer the arm."""
    return any(
        not rule.offered and all(values.get(name, value) == value for name, value in rule.where)
        for rule in _rules_of(configuration, arm)
    )


def _in_words(values: Mapping[str, str]) -> str:
    return f" where {', '.join(f'{name}={value}' for name, value in values.items())}" if values else ""
