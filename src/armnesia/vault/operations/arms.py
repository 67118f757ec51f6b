"""Arms that come and go: which of them the decisions of a vault offer."""

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.messages import listed
from armnesia.vault.arm_rules import ArmRule, NewRows
from armnesia.vault.configuration import Configuration
from armnesia.vault.results import ArmChange, OfferedArm, OfferedArms
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_table import put_decisions, read_decisions, served_action
from armnesia.vault.state.decisions import VaultDecision, checked_values, decided, in_decision
from armnesia.vault.state.transaction import Transaction


def list_arms(connection: VaultConnection, where: Mapping[str, Any] | None = None) -> OfferedArms:
    """Every arm, and in how many decisions it is offered; `where` gives values of keys."""
    with connection.reading() as transaction:
        configuration, head = transaction.state.configuration, transaction.state.head
        values = checked_values(configuration.key_columns, where or {})
        decisions = [
            each for each in read_decisions(transaction) if _matches(configuration, each.key, values)
        ]
    offered = configuration.offered(each.key for each in decisions).sum(axis=0).tolist()
    return OfferedArms(
        by=configuration.by,
        arms=tuple(map(OfferedArm, configuration.actions or (), offered)),
        decisions=len(decisions),
        rules=configuration.arms,
        head=head,
    )


def add_arm(
    connection: VaultConnection, action: Hashable, where: Mapping[str, Any] | None = None
) -> ArmChange:
    """Offer an arm from now on; one that the vault does not have yet starts without records."""
    return _change(connection, action, where, offered=True)


def retire_arm(
    connection: VaultConnection,
    action: Hashable,
    where: Mapping[str, Any] | None = None,
    *,
    new_rows: NewRows = "count",
) -> ArmChange:
    """Serve an arm no longer; its records stay, and new rows of it are counted or refused."""
    return _change(connection, action, where, offered=False, new_rows=new_rows)


def _change(
    connection: VaultConnection,
    action: Hashable,
    where: Mapping[str, Any] | None,
    *,
    offered: bool,
    new_rows: NewRows = "count",
) -> ArmChange:
    """Add a rule; decisions that offer other arms than before decide again."""
    with connection.writing() as transaction:
        before, actions = transaction.state.configuration, transaction.state.require_actions()
        arm, values = _label(actions, action), checked_values(before.key_columns, where or {})
        if arm not in actions and not offered:
            raise InvalidInputError(f"arm {arm!r} is not one of {listed(actions)}")
        named = ", ".join(f"{name}={value}" for name, value in values.items())
        rule = ArmRule(arm, offered, tuple(sorted(values.items())), new_rows)
        after = before.with_arm_rule(rule)
        if _holds(before, rule):
            now, place = "offered" if offered else "retired", f" where {named}" if named else ""
            raise InvalidInputError(f"arm {arm!r} is {now}{place} already; nothing was changed")
        decisions = read_decisions(transaction)
        found = not values or any(_matches(before, each.key, values) for each in decisions)
        if not found and before.declared_decisions:
            raise InvalidInputError(
                f"none of the vault's {before.declared_decisions:,} declared decisions has {named}; nothing"
                " was changed"
            )
        transaction.append("arms", configuration=after, **rule.to_dict())
        n_changed = _decide_again(transaction, decisions, before, arm)
        served = served_action(transaction)
    if not found:
        warnings.warn(
            f"no decision has {named} yet: the change holds for those that appear later; is it spelled as"
            " rows spell it?",
            stacklevel=4,
        )
    return ArmChange(
        action=arm,
        offered=offered,
        where=values,
        new_rows=None if offered else new_rows,
        decisions=n_changed if after.by else None,
        served=served,
        head=transaction.state.head,
    )


def _decide_again(
    transaction: Transaction, decisions: list[VaultDecision], before: Configuration, arm: Hashable
) -> int:
    """Decide again in those decisions that offer other arms than before; how many they are."""
    after, n_arms = transaction.state.configuration, len(transaction.state.actions)
    decisions = [replace(each, statistics=each.statistics.with_arms(n_arms)) for each in decisions]
    changed = [each for each in decisions if before.offers(each.key) != after.offers(each.key)]
    for each in changed:
        if not after.offers(each.key):
            raise VaultError(
                f"{arm!r} is the only arm that is offered{in_decision(after, each.key)}: offer another one"
                " first; nothing was changed"
            )
    again = {each.number: each for each in decided(changed, after)}
    whole = [again.get(each.number, each) for each in decisions]
    if after.actions == before.actions:  # otherwise every decision has a place for the new arm
        whole = list(again.values())
    put_decisions(transaction, whole)
    return len(changed)


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
    known = {str(each): each for each in actions}
    if str(action) in known:
        return known[str(action)]
    is_number = all(isinstance(each, int) for each in actions) and str(action).isdecimal()
    return int(action) if is_number else action


def _holds(configuration: Configuration, rule: ArmRule) -> bool:
    """Whether the rule is there, and no later one of its arm says otherwise."""
    own = [each for each in configuration.arms if each.arm == rule.arm]
    if not own:
        return rule.offered and rule.arm in (configuration.actions or ())
    return rule in own and all(replace(each, where=rule.where) == rule for each in own[own.index(rule) :])
