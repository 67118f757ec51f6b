"""The statistics of an external vault, from sums of rows at its sources."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from armnesia.vault.state.counted_sources import put_sources
from armnesia.vault.state.decision_statistics import ArmSums
from armnesia.vault.state.decision_table import (
    DecisionNumbers,
    decided,
    empty_decisions,
    put_all_decisions,
    put_decisions,
    read_all_decisions,
    read_decisions,
    refused_arm,
)
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_counting import Sums, Update
from armnesia.vault.state.transaction import Transaction


def with_update(transaction: Transaction, state: State, update: Update) -> State:
    """The state with what was counted at the sources, which the caller stores."""
    if update.because is None:
        state = with_added(transaction, state, update.sums)
    else:
        state = with_recounted(transaction, state, update.sums, all_decisions(transaction, state))
    digests, statements = put_sources(update.before, update.after, transaction.keyring, state.digests)
    transaction.add(*statements)
    return replace(state, digests=digests)


def all_decisions(transaction: Transaction, state: State) -> list[VaultDecision]:
    """All decisions of a vault with key columns."""
    if not state.configuration.by:
        return []
    return read_all_decisions(transaction.session, transaction.state, transaction.keyring)


def with_added(transaction: Transaction, state: State, sums: Sums) -> State:
    """The state with more rows: the learner decides again where some came in."""
    n_arms = len(state.actions)
    if state.configuration.by:
        numbers = DecisionNumbers(transaction.session, state)
        by_number = _by_number(numbers, sums, n_arms)
        old = read_decisions(transaction, by_number.keys() - numbers.new.keys())
        new = empty_decisions(state, numbers.new)
        filled = [
            replace(each, statistics=each.statistics.plus(*by_number[each.number])) for each in (*old, *new)
        ]
        return put_decisions(transaction, state, decided(filled, state.configuration))
    if not sums:
        return state
    assert state.decision is not None  # its actions are known
    added = state.decision.statistics.plus(*_of_arms(sums, n_arms))
    return state.with_stream(added.stream(state.configuration))


def with_recounted(
    transaction: Transaction, state: State, sums: Sums, decisions: Sequence[VaultDecision]
) -> State:
    """The state with these rows and no others; decisions whose statistics stay the same serve what they did.

    `decisions` are all decisions of a vault with key columns.
    """
    n_arms, configuration = len(state.actions), state.configuration
    if configuration.by:
        numbers = DecisionNumbers(transaction.session, state)
        by_number = _by_number(numbers, sums, n_arms)
        known = [*decisions, *empty_decisions(state, numbers.new)]
        pairs = [(each, _counted(each.statistics, by_number.get(each.number), n_arms)) for each in known]
        changed = [
            replace(each, statistics=statistics)
            for each, statistics in pairs
            if statistics != each.statistics or each.number in numbers.new or not transaction.intact
        ]
        return put_all_decisions(
            transaction.session, state, transaction.keyring, decided(changed, configuration)
        )
    if state.decision is None:
        return state
    statistics = _counted(state.decision.statistics, _of_arms(sums, n_arms), n_arms)
    return (
        state
        if statistics == state.decision.statistics
        else state.with_stream(statistics.stream(configuration))
    )


def refuse_retired_arms(state: State, sums: Sums, before: Iterable[VaultDecision] = ()) -> None:
    """Refuse rows of arms that their decision refuses, where there are more of them than before."""
    configuration = state.configuration
    known = {each.key: each.statistics.counts for each in before}
    for (key, arm), (count, _) in sorted(sums.items()):
        counted = known[key][arm] if key in known else 0
        if count > counted and arm in configuration.arm_rules.refused(key):
            raise refused_arm(configuration, key, state.actions[arm], None)


def new_keys(transaction: Transaction, state: State, sums: Sums) -> int:
    """How many decisions these rows would add; refuse what no decision may be added for."""
    numbers = DecisionNumbers(transaction.session, state)
    numbers.of_keys(list(dict.fromkeys(key for key, _ in sums)))
    return len(numbers.new)


def _by_number(numbers: DecisionNumbers, sums: Sums, n_arms: int) -> dict[int, tuple[list[int], list[int]]]:
    """By the number of a decision, counts and units per arm."""
    keys = list(dict.fromkeys(key for key, _ in sums))
    number_of = dict(zip(keys, numbers.of_keys(keys), strict=True))
    found = {number: ([0] * n_arms, [0] * n_arms) for number in number_of.values()}
    for (key, arm), (count, units) in sums.items():
        counts, totals = found[number_of[key]]
        counts[arm] += count
        totals[arm] += units
    return found


def _of_arms(sums: Sums, n_arms: int) -> tuple[list[int], list[int]]:
    counts, units = [0] * n_arms, [0] * n_arms
    for (_, arm), (count, total) in sums.items():
        counts[arm] += count
        units[arm] += total
    return counts, units


def _counted(statistics: ArmSums, own: tuple[list[int], list[int]] | None, n_arms: int) -> ArmSums:
    """The statistics with these rows; what was deleted before stays."""
    counts, units = own or ([0] * n_arms, [0] * n_arms)
    return replace(statistics, counts=tuple(counts), units=tuple(units))
