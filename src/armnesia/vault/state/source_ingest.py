"""Ingesting into an external vault: what is new at a source is counted there, and the rows stay there.

A source of which rows were changed or removed is counted again and, because nothing is held of single
sources, all others with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType
from armnesia.core.messages import counted
from armnesia.logs import Source
from armnesia.logs.counting import CountedRows, Sums
from armnesia.logs.manifests import Changes, Manifest
from armnesia.logs.refusals import empty_log
from armnesia.logs.user_names import UserNames
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.counted_sources import (
    CountedPart,
    CountedSource,
    checked_sources,
    put_sources,
    refuse_copies,
    refuse_inner,
    refuse_overlaps,
)
from armnesia.vault.state.decision_table import read_all_decisions
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.first_source import with_actions, with_user_type
from armnesia.vault.state.kept_plans import KeptPlans
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_counting import SourceCounter
from armnesia.vault.state.source_erasures import next_number
from armnesia.vault.state.source_statistics import (
    new_keys,
    refuse_retired_arms,
    with_added,
    with_recounted,
)
from armnesia.vault.state.suppression import SuppressionList
from armnesia.vault.state.transaction import Transaction

_ATTEMPTS = 3
"""How often a source is counted again because the vault was changed meanwhile."""


@dataclass(frozen=True)
class CountedIngest:
    """What an ingest counted, ready to be stored."""

    depends_on: tuple[Any, ...]
    """What the vault must still have for it to be stored."""
    sums: Sums
    rows: int
    left_out: int
    before: Sequence[CountedSource]
    after: Sequence[CountedSource]
    recount: str | None
    """Why the sums are those of all sources, and not of new rows."""

    @property
    def n_counted(self) -> int:
        """How many rows were counted."""
        return sum(count for count, _ in self.sums.values())


@dataclass(frozen=True)
class SourceIngest:
    """One ingest of a source into an external vault."""

    connection: VaultConnection
    source: Source
    actions: tuple[Any, ...]
    user_type: UserType | None
    names: UserNames
    """What is remarkable about the names of the source is noted here."""
    other_rows: bool = False
    """Whether files that look like copies of counted ones are known to have other rows."""

    def prepare(self) -> CountedIngest:
        """Count what is new; nothing is written, and no transaction is open meanwhile."""
        with self.connection.reading() as transaction:
            state = transaction.state
            sources = checked_sources(transaction.session, transaction.keyring, state.digests)
            suppressed = SuppressionList.read(transaction).digests
            new_number = next_number(transaction.session, sources)
            counter = SourceCounter(
                self._fixed(state).configuration, transaction.keyring, suppressed, self.names
            )
        known = next((each for each in sources if each.is_at(self.source)), None)
        source = self._ordered(known)
        manifest = source.manifest()
        known = known or next((each for each in sources if each.is_same_table(source, manifest)), None)
        others = [each for each in sources if each is not known]
        now = CountedSource(0, source.description, CountedPart(manifest, True, False))
        refuse_overlaps([*others, now])
        if known is None:
            refuse_inner(others, now)
            self._refuse_copies(others, now)
        changes = (
            None if known is None or known.counted is None else source.changes_since(known.counted.manifest)
        )
        reason = _reason_to_recount(known, changes, others)
        number = new_number if known is None else known.number
        plans = KeptPlans() if known is None else known.plans
        if reason is not None:
            now = CountedSource(number, source.description, None, plans=plans)
            found = self._recounted(counter, state, sources, others, now, source, manifest, reason)
            if known is None:  # what is counted again has files to compare only now
                *rest, now = found.after
                self._refuse_copies(rest, now)
            return found
        rows = self._new_rows(counter, source, known, manifest, changes)
        part = CountedPart.of(manifest, rows, None if known is None else known.counted)
        now = CountedSource(number, source.description, part, plans=plans)
        return CountedIngest(
            _dependencies(state), rows.sums, rows.n_rows, rows.n_left_out, sources, [*others, now], None
        )

    def _ordered(self, known: CountedSource | None) -> Source:
        column = None if known is None else known.address.get("ordered_by")
        return self.source.ordered_by(column) if column and self.source.needs_order else self.source

    def _refuse_copies(self, others: Sequence[CountedSource], now: CountedSource) -> None:
        if not self.other_rows:
            refuse_copies(others, now)

    def _new_rows(
        self,
        counter: SourceCounter,
        source: Source,
        known: CountedSource | None,
        manifest: Manifest,
        changes: Changes | None,
    ) -> CountedRows:
        """Count the rows that came since, or all of a new source."""
        if known is None or known.counted is None or changes is None:
            whole = source.as_counted(manifest)
            rows = counter.count(whole, refuses_spellings=True)
            if source.where and not rows.n_rows:
                raise empty_log(source.where)
            return rows
        if changes.kind == "nothing":
            return CountedRows({}, 0)
        return counter.count(source.new_part(known.counted.manifest, changes), refuses_spellings=True)

    def _recounted(
        self,
        counter: SourceCounter,
        state: State,
        sources: Sequence[CountedSource],
        others: Sequence[CountedSource],
        now: CountedSource,
        source: Source,
        manifest: Manifest,
        reason: str,
    ) -> CountedIngest:
        whole = source.as_counted(manifest)
        rows = counter.count(whole, refuses_spellings=True)
        now = replace(now, counted=CountedPart.of(manifest, rows))
        rest = counter.count_all(others, anew=False)
        refuse_overlaps([*rest.sources, now])
        both = replace(rest, rows=(*rest.rows, rows))
        return CountedIngest(
            _dependencies(state),
            both.sums,
            both.n_rows,
            both.n_left_out,
            sources,
            [*rest.sources, now],
            reason,
        )

    def _fixed(self, state: State) -> State:
        """The state with actions and a user type, which the first source fixes."""
        return with_user_type(with_actions(state, self.actions), self.user_type)

    def check(self, found: CountedIngest) -> tuple[int, int]:
        """Refuse what cannot be stored; how many more records and decisions there would be."""
        with self.connection.reading() as transaction:
            state = self._fixed(transaction.state)
            self._refuse_arms(transaction, state, found)
            keys = new_keys(transaction, state, found.sums) if state.configuration.by else 0
            return found.n_counted - (transaction.count_records() if found.recount else 0), keys

    def store(self, found: CountedIngest) -> tuple[int, State] | None:
        """Store what was counted: how many more records there are, and the state; None if it is outdated."""
        with self.connection.writing() as transaction:
            before = transaction.state
            if found.depends_on != _dependencies(before):
                return None
            state = self._fixed(before)
            self._refuse_arms(transaction, state, found)
            n_before = transaction.count_records() if found.recount else 0
            state = self._with_rows(transaction, state, found)
            digests, statements = put_sources(found.before, found.after, transaction.keyring, state.digests)
            transaction.add(*statements)
            if before.configuration.actions is None:
                transaction.append("actions", actions=list(state.actions))
            user_type = state.configuration.user_type
            if user_type != before.configuration.user_type:
                transaction.append("user_type", user_type=str(user_type))
            state = replace(state, digests=digests)
            if state != before:
                transaction.store(state)
            return found.n_counted - n_before, transaction.state

    def _with_rows(self, transaction: Transaction, state: State, found: CountedIngest) -> State:
        if found.recount is None:
            return with_added(transaction, state, found.sums)
        return with_recounted(transaction, state, found.sums, _all_decisions(transaction, state))

    @staticmethod
    def _refuse_arms(transaction: Transaction, state: State, found: CountedIngest) -> None:
        if not any(rule.new_rows == "refuse" for rule in state.configuration.arms):
            return
        known = _all_decisions(transaction, state) if found.recount else []
        if found.recount and state.decision is not None:
            known = [state.decision]
        refuse_retired_arms(state, found.sums, known)

    def run(self) -> tuple[CountedIngest, int, State]:
        """Count and store; count again if the vault was changed meanwhile."""
        for _ in range(_ATTEMPTS):
            found = self.prepare()
            stored = self.store(found)
            if stored is not None:
                return found, *stored
        raise VaultError(
            f"the vault was changed {counted(_ATTEMPTS, 'time')} while the source was counted; nothing was"
            " ingested: run it again"
        )


def _dependencies(state: State) -> tuple[Any, ...]:
    """What a count depends on: the sources, who is forgotten, and what actions and names are."""
    configuration = state.configuration
    return (
        state.digests.source,
        state.digests.suppressed,
        state.digest_key,
        configuration.actions,
        configuration.user_type,
    )


def _all_decisions(transaction: Transaction, state: State) -> list[VaultDecision]:
    if not state.configuration.by:
        return []
    return read_all_decisions(transaction.session, transaction.state, transaction.keyring)


def _reason_to_recount(
    known: CountedSource | None, changes: Changes | None, others: Sequence[CountedSource]
) -> str | None:
    """Why all sources have to be counted again; None if only new rows are counted."""
    if known is not None and known.counted is None:
        return f"source {known.name!r}: {known.recount}"
    if known is not None and changes is not None and changes.recount is not None:
        return f"source {known.name!r}: {changes.recount}"
    return next((f"source {each.name!r}: {each.recount}" for each in others if each.counted is None), None)
