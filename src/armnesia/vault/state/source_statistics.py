"""The statistics of an external vault, from sums of rows at its sources."""

from collections.abc import Iterable
from dataclasses import replace

from armnesia.vault.state.decision_table import (
    DecisionNumbers,
    empty_decisions,
    put_decisions,
    read_decisions,
)
from armnesia.vault.state.decisions import VaultDecision, decided, refused_arm
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_counting import Sums, Update
from armnesia.vault.state.sources import put_sources
from armnesia.vault.state.transaction import Transaction


def with_update(transaction: Transaction, state: State, update: Update) -> State:
    """The state with what was counted at the sources, which the caller stores."""
    state = with_rows(transaction, state, update.sums, instead=update.because is not None)
    return put_sources(transaction, state, update.before, update.after)


def with_rows(transaction: Transaction, state: State, sums: Sums, *, instead: bool) -> State:
    """The state with more rows, or with these `instead` of all; what was deleted before stays.

    The learner decides again where the statistics change.
    """
    configuration, numbers = state.configuration, DecisionNumbers(transaction.session, state)
    rows = _by_number(numbers, state, sums)
    before = read_decisions(transaction, None if instead else rows.keys() - numbers.new.keys())
    changed, nothing = list[VaultDecision](), ([0] * len(state.actions), [0] * len(state.actions))
    for each in [*before, *empty_decisions(state, numbers.new)]:
        counts, units = rows.get(each.number, nothing)
        statistics = each.statistics.plus(counts, units)
        if instead:
            statistics = replace(each.statistics, counts=tuple(counts), units=tuple(units))
        if statistics != each.statistics or each.number in numbers.new:
            changed.append(replace(each, statistics=statistics))
    return put_decisions(transaction, state, decided(changed, configuration))


def refuse_retired_arms(state: State, sums: Sums, before: Iterable[VaultDecision] = ()) -> None:
    """Refuse rows of arms that their decision refuses, where there are more of them than before."""
    configuration = state.configuration
    if not any(rule.new_rows == "refuse" for rule in configuration.arms):
        return
    known = {each.key: each.statistics.counts for each in before}
    for (key, arm), (count, _) in sorted(sums.items()):
        counted = known[key][arm] if key in known else 0
        if count > counted and arm in configuration.arm_rules.refused(key):
            raise refused_arm(configuration, key, state.actions[arm], None)


def n_new_decisions(transaction: Transaction, state: State, sums: Sums) -> int:
    """How many decisions these rows would add; refuse what no decision may be added for."""
    numbers = DecisionNumbers(transaction.session, state)
    _by_number(numbers, state, sums)
    return len(numbers.new)


def _by_number(numbers: DecisionNumbers, state: State, sums: Sums) -> dict[int, tuple[list[int], list[int]]]:
    """By the number of a decision, counts and units per arm."""
    keys, n_arms = list(dict.fromkeys(key for key, _ in sums)), len(state.actions)
    found = numbers.of_keys(keys)
    rows = {number: ([0] * n_arms, [0] * n_arms) for number in found}
    number_of = dict(zip(keys, found, strict=True))
    for (key, arm), (count, units) in sums.items():
        counts, totals = rows[number_of[key]]
        counts[arm] += count
        totals[arm] += units
    return rows
