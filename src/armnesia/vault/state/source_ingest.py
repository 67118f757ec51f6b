"""Ingesting into an external vault: what is new at its sources is counted there, and the rows stay there."""

from dataclasses import dataclass
from typing import Any

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType
from armnesia.core.messages import counted
from armnesia.logs import Source
from armnesia.logs.refusals import empty_log
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.counted_sources import (
    CountedSource,
    checked_sources,
    refuse_inner,
    refuse_overlaps,
    version_of,
)
from armnesia.vault.state.first_source import with_actions, with_user_type
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_counting import SourceCounter, Update, dependencies
from armnesia.vault.state.source_erasures import next_number
from armnesia.vault.state.source_statistics import all_decisions, new_keys, refuse_retired_arms, with_update
from armnesia.vault.state.suppression import SuppressionList
from armnesia.vault.state.transaction import Transaction

_ATTEMPTS = 3
"""How often a source is counted again because the vault was changed meanwhile."""


@dataclass(frozen=True)
class SourceIngest:
    """One ingest of a source into an external vault."""

    connection: VaultConnection
    source: Source
    actions: tuple[Any, ...]
    user_type: UserType | None

    def prepare(self) -> tuple[tuple[object, ...], Update]:
        """Count what is new, outside of any transaction; also what of the vault that depends on."""
        with self.connection.reading() as transaction:
            state = transaction.state
            sources = checked_sources(transaction.session, transaction.keyring, state.digests)
            suppressed = SuppressionList.read(transaction).digests
            new_number = next_number(transaction.session, sources)
        configuration = self._fixed(state).configuration
        counter = SourceCounter(configuration, transaction.keyring, suppressed)
        address = self.source.address()
        known = next((each for each in sources if each.address == address), None)
        new = None if known else CountedSource(new_number, address, version_of(self.source))
        # All are looked at: rows that were moved here from another source would count twice.
        others, place = [each for each in sources if each is not known], new.name if new else "NEW"
        opened = {each.number: each.opened(configuration, may_be_at=place) for each in others}
        opened[known.number if known else new_number] = self.source
        if new is not None:
            refuse_overlaps([*sources, new])
            refuse_inner(sources, new)
            if self.source.where and not self.source.tallies(configuration.reward_range):
                raise empty_log(self.source.where)
        return dependencies(state), counter.update(sources, opened, new=new)

    def _fixed(self, state: State) -> State:
        """The state with actions and a user type, which the first source fixes."""
        return with_user_type(with_actions(state, self.actions), self.user_type)

    def check(self, update: Update) -> tuple[int, int]:
        """Refuse what cannot be stored; how many more records and decisions there would be."""
        with self.connection.reading() as transaction:
            state = self._fixed(transaction.state)
            _refuse_arms(transaction, state, update)
            keys = new_keys(transaction, state, update.sums) if state.configuration.by else 0
            return update.n_counted - _replaced(transaction, update), keys

    def store(self, depends_on: tuple[object, ...], update: Update) -> tuple[int, State] | None:
        """Store what was counted: how many more records there are, and the state; None if it is outdated."""
        with self.connection.writing() as transaction:
            before = transaction.state
            if depends_on != dependencies(before):
                return None
            state = self._fixed(before)
            _refuse_arms(transaction, state, update)
            n_before = _replaced(transaction, update)
            state = with_update(transaction, state, update)
            if before.configuration.actions is None:
                transaction.append("actions", actions=list(state.actions))
            user_type = state.configuration.user_type
            if user_type != before.configuration.user_type:
                transaction.append("user_type", user_type=str(user_type))
            if state != before:
                transaction.store(state)
            return update.n_counted - n_before, transaction.state

    def run(self) -> tuple[Update, int, State]:
        """Count and store; count again if the vault was changed meanwhile."""
        for _ in range(_ATTEMPTS):
            depends_on, update = self.prepare()
            stored = self.store(depends_on, update)
            if stored is not None:
                return update, *stored
        raise VaultError(
            f"the vault was changed {counted(_ATTEMPTS, 'time')} while the source was counted; nothing was"
            " ingested: run it again"
        )


def _replaced(transaction: Transaction, update: Update) -> int:
    """How many records were counted before, in whose place others come."""
    return transaction.count_records() if update.because else 0


def _refuse_arms(transaction: Transaction, state: State, update: Update) -> None:
    if not any(rule.new_rows == "refuse" for rule in state.configuration.arms):
        return
    known = all_decisions(transaction, state) if update.because else []
    if update.because and state.decision is not None:
        known = [state.decision]
    refuse_retired_arms(state, update.sums, known)
