"""The table of decisions: read when needed, and stored with its check-sum.

A vault without key columns has one decision, whose key is empty, from when its actions are known.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.messages import counted, listed
from armnesia.vault.configuration import Configuration
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session
from armnesia.vault.db.schema import DecisionRow
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.state.decisions import (
    DEFAULT,
    FIRST,
    RELEASE,
    ArmSums,
    VaultDecision,
    checked_key,
    in_decision,
    key_dict,
)
from armnesia.vault.state.sealed_state import State, changed_values
from armnesia.vault.state.transaction import Transaction

LONGEST_KEY = 1000
"""Bytes in the text of a key: databases index no longer texts."""


def read_decisions(transaction: Transaction, numbers: Iterable[int] | None = None) -> list[VaultDecision]:
    """The decisions with these numbers, or all, by their numbers; refused if one is missing."""
    if numbers is None:
        return _decisions_of(transaction, statements.read(transaction.session, DecisionRow))
    wanted = sorted(numbers)
    rows = sorted(statements.read(transaction.session, DecisionRow, number=wanted))
    if [row.number for row in rows] != wanted:
        raise VaultError(
            "decisions of the vault were removed by something other than armnesia: run armnesia verify, and"
            " restore a backup"
        )
    return _decisions_of(transaction, rows)


def read_released(transaction: Transaction) -> list[VaultDecision]:
    """The decisions that serve what a request has released."""
    rows = statements.read(transaction.session, DecisionRow, served_by=RELEASE)
    return _decisions_of(transaction, rows)


def _decisions_of(transaction: Transaction, rows: Iterable[DecisionRow]) -> list[VaultDecision]:
    """Read rows; refuse values that armnesia does not write."""
    state, arms = transaction.state, (None, *range(len(transaction.state.actions)))
    try:
        found = list(map(VaultDecision.of_row, rows))
        if all(each.served in arms and len(each.key) == len(state.configuration.by) for each in found):
            return found
        raise ValueError
    except (ValueError, TypeError, LookupError, AttributeError):
        raise changed_values() from None


def put_decisions(
    transaction: Transaction, decisions: Sequence[VaultDecision], known: Sequence[VaultDecision] | None = None
) -> None:
    """Store decisions, in the place of those with their numbers; these are read, unless they are `known`."""
    rows = [decision.row for decision in decisions]
    before = [each.row for each in known or ()]
    if known is None:
        before = statements.read(transaction.session, DecisionRow, number=[row.number for row in rows])
    transaction.put(rows, before)
    if len(rows) > len(before):
        number = transaction.state.n_decisions + len(rows) - len(before)
        transaction.state = transaction.state.changed(n_decisions=number)


def empty_decisions(state: State, keys: Mapping[int, tuple[str, ...]]) -> list[VaultDecision]:
    """Decisions without records, by their numbers."""
    empty = ArmSums.empty(len(state.actions), state.configuration.penalty)
    return [VaultDecision(number, key, empty, None, DEFAULT) for number, key in keys.items()]


def changed_decisions(
    transaction: Transaction,
    state: State,
    new: Mapping[int, tuple[str, ...]],
    sums: Mapping[int, tuple[Sequence[int], Sequence[int]]],
    *,
    instead: bool = False,
) -> list[tuple[VaultDecision, VaultDecision]]:
    """The decisions that are new or get more records, or these `instead` of theirs: before and after.

    `sums` are counts and units per arm, by the numbers of decisions, and `new` the keys of those that are
    new. The learner has not decided yet. With `instead`, old decisions are returned if they differ.
    """
    before = read_decisions(transaction, None if instead else sums.keys() - new.keys())
    nothing, pairs = [0] * len(state.actions), []
    for each in [*before, *empty_decisions(state, new)]:
        counts, units = sums.get(each.number, (nothing, nothing))
        statistics = each.statistics.plus(counts, units)
        if instead:
            statistics = replace(each.statistics, counts=tuple(counts), units=tuple(units))
        if not instead or each.number in new or statistics != each.statistics:
            pairs.append((each, replace(each, statistics=statistics)))
    return pairs


def declared_keys(
    configuration: Configuration, decisions: Iterable[Mapping[str, Any]]
) -> list[tuple[str, ...]]:
    """The keys of decisions that are declared; refuse one that is declared twice.

    >>> configuration = Configuration(actions=("A", "B"), by=("country", "age:18,30"))
    >>> declared_keys(configuration, [{"country": "DE", "age": 25}, {"country": "FR", "age": "<18"}])
    [('DE', '18..30'), ('FR', '<18')]
    """
    columns, found = configuration.key_columns, dict[tuple[str, ...], None]()
    if not columns:
        raise InvalidInputError("a vault without key columns (--by) has one decision; got declared decisions")
    for each in decisions:
        key = checked_key(columns, each)
        _check_length(canonical(key))
        if "" in key:
            raise InvalidInputError(f"a key must not be empty; got {key_dict(columns, key)!r}")
        if key in found:
            raise InvalidInputError(f"a decision is declared once; got {key_dict(columns, key)!r} twice")
        found[key] = None
    return list(found)


def find_decision(transaction: Transaction, where: Mapping[str, Any] | None = None) -> VaultDecision:
    """The one decision with a key; refuse a key that no row has brought.

    That of a vault without key columns and without actions is empty.
    """
    state, columns = transaction.state, transaction.state.configuration.key_columns
    key = checked_key(columns, where or {})
    if not columns and not state.n_decisions:
        return empty_decisions(state, {FIRST: key})[0]
    if not columns:
        return read_decisions(transaction, [FIRST])[0]
    rows = statements.read(transaction.session, DecisionRow, key=canonical(key))
    found = _decisions_of(transaction, rows)
    if not found:
        raise InvalidInputError(f"the vault has no decision with the key {key_dict(columns, key)!r}")
    return found[0]


def served_action(transaction: Transaction) -> Any:
    """The arm that a vault without key columns serves; None while it has no actions, and with key columns."""
    state = transaction.state
    served = None if state.configuration.by else find_decision(transaction).served
    return None if served is None else state.actions[served]


class DecisionNumbers:
    """Numbers the decisions that rows belong to; new keys get the next numbers, up to the vault's limit.

    Without key columns the one decision is new until it is stored.
    """

    def __init__(self, session: Session, state: State) -> None:
        self._session, self._size, self._configuration = session, state.n_decisions, state.configuration
        self._numbers: dict[tuple[str, ...], int] = {}
        is_first = not state.configuration.by and not state.n_decisions
        self.new: dict[int, tuple[str, ...]] = {FIRST: ()} if is_first else {}
        """By number, the keys that the vault does not have yet."""

    def of_keys(self, keys: Sequence[tuple[str, ...]]) -> list[int]:
        """The numbers of the decisions with these keys."""
        if not self._configuration.by:
            return [FIRST] * len(keys)
        texts = {key: canonical(key) for key in dict.fromkeys(keys) if key not in self._numbers}
        for text in texts.values():
            _check_length(text)
        found = statements.read(self._session, DecisionRow, key=list(texts.values()))
        known = {row.key: row.number for row in found}
        for key, text in texts.items():
            if text not in known:
                known[text] = self._size + len(self.new) + 1
                self._check_new(key, known[text])
                self.new[known[text]] = key
            self._numbers[key] = known[text]
        return [self._numbers[key] for key in keys]

    def _check_new(self, key: tuple[str, ...], number: int) -> None:
        """Refuse a new key beyond the limit, or where the decisions are declared or no arm is offered."""
        configuration = self._configuration
        if configuration.declared_decisions:
            raise InvalidInputError(
                f"the key {key_dict(configuration.key_columns, key)!r} is not one of the vault's"
                f" {configuration.declared_decisions:,} declared decisions: leave its rows out, or make a new"
                " vault that declares it; nothing was ingested"
            )
        if number > configuration.most_decisions:
            names = listed([column.name for column in configuration.key_columns])
            raise InvalidInputError(
                f"the keys {names} make more than {counted(configuration.most_decisions, 'decision')}, the"
                " vault's limit (--most-decisions of armnesia init): is one of them the wrong column? Nothing"
                " was ingested"
            )
        if configuration.arms and not configuration.offers(key):
            raise VaultError(
                f"no arm is offered{in_decision(configuration, key)}: offer one with armnesia arms add;"
                " nothing was ingested"
            )


def _check_length(text: str) -> None:
    if len(text.encode()) > LONGEST_KEY:
        raise InvalidInputError(
            f"the key of a decision must have at most {LONGEST_KEY:,} bytes; got {text[:40]!r}…"
        )
