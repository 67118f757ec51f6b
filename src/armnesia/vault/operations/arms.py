"""Arms that come and go: which of them the decisions of a vault offer."""

import warnings
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.messages import listed
from armnesia.vault.arm_rules import ArmRule, NewRows
from armnesia.vault.configuration import Configuration
from armnesia.vault.results.changes import ArmChange, OfferedArm, OfferedArms
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
        rule = ArmRule(arm, offered=True, where=tuple(sorted(values.items())))
        if arm in transaction.state.actions and not _changes_anything(before, rule):
            raise InvalidInputError(f"arm {arm!r} is offered{_in_words(values)} already; nothing was changed")
        decisions = _decisions(transaction)
        found = _check_where(before, decisions, values)
        transaction.append("add_arm", arm=arm, where=values)
        change = _store(transaction, decisions, before.with_added_arm(arm, values), rule)
    _warn_unless(found, values)
    return change


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
        if not _changes_anything(before, rule):
            raise InvalidInputError(f"arm {arm!r} is retired{_in_words(values)} already; nothing was changed")
        decisions = _decisions(transaction)
        found = _check_where(before, decisions, values)
        transaction.append("retire_arm", arm=arm, where=values, new_rows=new_rows)
        change = _store(transaction, decisions, before.with_retired_arm(arm, values, new_rows), rule)
    _warn_unless(found, values)
    return change


def _store(
    transaction: Transaction, decisions: Sequence[VaultDecision], after: Configuration, rule: ArmRule
) -> ArmChange:
    """Store the configuration; decisions that offer other arms than before decide again."""
    state, before = transaction.state, transaction.state.configuration
    n_arms, grows = len(after.actions or ()), after.actions != before.actions
    decisions = [replace(each, statistics=each.statistics.with_arms(n_arms)) for each in decisions]
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


def _check_where(
    configuration: Configuration, decisions: Sequence[VaultDecision], values: Mapping[str, str]
) -> bool:
    """Whether a decision has these values of keys; refuse values that none can ever have."""
    found = not values or any(_matches(configuration, each.key, values) for each in decisions)
    if not found and configuration.declared_decisions:
        raise InvalidInputError(
            f"none of the vault's {configuration.declared_decisions:,} declared decisions has"
            f" {_equations(values)}; nothing was changed"
        )
    return found


def _warn_unless(found: bool, values: Mapping[str, str]) -> None:
    if not found:
        warnings.warn(
            f"no decision has {_equations(values)} yet: the change holds for those that appear later; is it"
            " spelled as rows spell it?",
            stacklevel=4,
        )


def _changes_anything(configuration: Configuration, new: ArmRule) -> bool:
    """Whether a rule would change a decision, present or future.

    It does where an earlier rule that says otherwise holds: one that no later rule replaces there.
    """
    where = dict(new.where)
    rules = [ArmRule(new.arm, offered=True), *(rule for rule in configuration.arms if rule.arm == new.arm)]
    for place, rule in enumerate(rules):
        overlaps = all(where.get(name, value) == value for name, value in rule.where)
        both = {*new.where, *rule.where}
        replaced = any(set(later.where) <= both for later in rules[place + 1 :])
        same = rule.offered == new.offered and (new.offered or rule.new_rows == new.new_rows)
        if overlaps and not replaced and not same:
            return True
    return False


def _in_words(values: Mapping[str, str]) -> str:
    return f" where {_equations(values)}" if values else ""


def _equations(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
