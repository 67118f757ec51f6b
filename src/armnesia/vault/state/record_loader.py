"""Loading rows into a vault, chunk by chunk, in one transaction."""

from collections import defaultdict
from dataclasses import replace
from typing import Any

import numpy as np

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType
from armnesia.logs import Source
from armnesia.vault.state.corrections import Corrected, delete_corrected
from armnesia.vault.state.decision_table import (
    DecisionNumbers,
    decided,
    empty_decisions,
    put_decisions,
    read_decisions,
)
from armnesia.vault.state.decisions import FIRST
from armnesia.vault.state.first_source import with_actions, with_user_type
from armnesia.vault.state.incoming_rows import Rows
from armnesia.vault.state.incoming_tallies import IncomingTallies
from armnesia.vault.state.managed_records import ManagedRecords
from armnesia.vault.state.owner_tallies import NOTHING_TO_CHECK, IdIndexCheck
from armnesia.vault.state.record_comparison import RecordComparison
from armnesia.vault.state.records import IncomingRows
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.digest_arrays import Columns, is_given, order_of, packed

_AT_ONCE = 500_000
"""Records that are sorted before they are inserted: then each page of one index is written once."""
_IN_A_STATEMENT = 50_000
"""Records that one statement inserts, which has copies of them."""
_MANY = 20_000
"""From so many records on, it is faster to build the indexes of a first load after it."""


class RecordLoader:
    """Takes chunks of rows; each row is added once, and rows of forgotten people are left out."""

    def __init__(
        self,
        transaction: Transaction,
        records: ManagedRecords,
        source: Source,
        actions: tuple[Any, ...],
        user_type: UserType | None,
        id_index: IdIndexCheck = NOTHING_TO_CHECK,
        *,
        replaces: bool = False,
    ) -> None:
        self.comparison = RecordComparison(transaction, records, source, replaces=replaces)
        self._layout = records.layout
        self._transaction, self._session = transaction, transaction.session
        self._keyring, self._before, self._id_index = transaction.keyring, transaction.state, id_index
        self._state = with_user_type(with_actions(self._before, actions), user_type)
        self._source, self._digests = records.register_source(transaction, source)
        self._sums: defaultdict[int, tuple[list[int], list[int]]] = defaultdict(
            lambda: ([0] * len(actions), [0] * len(actions))
        )
        """By decision, the counts and the units of the added rows, per arm."""
        self._pending = _PendingRecords(
            self._session, id_index, is_first_load=not self.comparison.holds_records
        )
        self._tallies = IncomingTallies(table_is_empty=not tables.has_tallies(self._session))

    def check_spelling_of_ids(self, rows: Rows) -> None:
        """As in a comparison; rows of earlier chunks are in the vault by then."""
        if rows.float_ids:
            self._store_pending()
        self.comparison.check_spelling_of_ids(rows)

    def add(self, rows: Rows) -> None:
        """Add the rows of a chunk that are not in the vault yet and do not belong to forgotten people."""
        if self._state.configuration.user_type is None and any(user is not None for user in rows.users):
            raise VaultError("the source has changed while it was read; ingest again")
        new, columns, records, replaced = self.comparison.new_rows(rows, self._source)
        self._delete_corrected(replaced)
        if not len(new):
            return
        self._add_up(new)
        texts = _texts(records)
        self._digests = self._digests.with_records(self._keyring, new.identities.tolist(), texts)
        owned = is_given(new.owners)
        if not owned.all():
            texts = [texts[place] for place in np.flatnonzero(owned).tolist()]
        self._tallies.add(new.owners[owned], packed(self._keyring.tally_digests(texts)))
        self._pending.add(columns)
        if self._pending.is_full:
            self._pending.insert()
            # A check compares tallies with the records of the same people: both are stored.
            if not self._id_index.is_done or self._tallies.are_many():
                self._tallies.store(self._session)

    def _store_pending(self) -> None:
        """Store the records that wait, and the tallies that count them."""
        self._pending.insert()
        self._pending.restore_indexes()
        self._tallies.store(self._session)

    def _add_up(self, new: IncomingRows) -> None:
        """Add the rows to the sums of their decisions."""
        n_arms = len(self._state.actions)
        places, of_rows = np.unique(new.decisions * n_arms + new.arms, return_inverse=True)
        counts = np.bincount(of_rows)
        totals = np.zeros(len(places), np.int64)
        np.add.at(totals, of_rows, new.units)
        for place, count, total in zip(places.tolist(), counts.tolist(), totals.tolist(), strict=True):
            decision, arm = divmod(place, n_arms)
            own_counts, own_units = self._sums[decision]
            own_counts[arm] += count
            own_units[arm] += total

    def _delete_corrected(self, corrected: Corrected) -> None:
        """Delete records that rows of this chunk come in the place of."""
        if not corrected.records:
            return
        self._store_pending()
        delete_corrected(self._session, self._keyring, self._layout, corrected)
        self._digests = self._digests.update(self._keyring, "record", corrected.records)
        for decision, arm, own in corrected.per_decision():
            counts, units = self._sums[decision]
            counts[arm] -= 1
            units[arm] -= own

    def store(self) -> State:
        """Store what is left, the new statistics and tallies, and let the learner decide again."""
        self._store_pending()
        state, transaction = replace(self._state, digests=self._digests), self._transaction
        if self.comparison.numbers is not None:
            state = self._with_decisions(state, self.comparison.numbers)
        elif self.comparison.added or self.comparison.replaced:
            assert state.decision is not None  # its actions are known
            sums = state.decision.statistics.plus(*self._sums[FIRST])
            state = state.with_stream(sums.stream(state.configuration))
        if self._before.configuration.actions is None:
            transaction.append("actions", actions=list(state.actions))
        user_type = state.configuration.user_type
        if user_type != self._before.configuration.user_type:
            transaction.append("user_type", user_type=str(user_type))
        if self.comparison.replaced:
            transaction.append("correct", replaced=self.comparison.replaced)
        if state != self._before:
            transaction.store(state)
        return transaction.state

    def _with_decisions(self, state: State, numbers: DecisionNumbers) -> State:
        """Add the rows to their decisions, which decide again; others stay as they are."""
        configuration = state.configuration
        old = read_decisions(self._transaction, self._sums.keys() - numbers.new.keys())
        new = empty_decisions(state, numbers.new)
        filled = [
            replace(each, statistics=each.statistics.plus(*self._sums[each.number])) for each in (*old, *new)
        ]
        return put_decisions(self._transaction, state, decided(filled, configuration))


def _texts(records: list[Row]) -> list[bytes]:
    """Each record as `ascii` writes it, in less time."""
    form = b"(%b)" % b", ".join([b"%a"] * len(records[0]))
    return [form % record for record in records]


class _PendingRecords:
    """New records that are inserted many at a time."""

    def __init__(self, session: Session, id_index: IdIndexCheck, *, is_first_load: bool) -> None:
        self._session, self._id_index, self._is_first_load = session, id_index, is_first_load
        self._may_drop_indexes = is_first_load
        self._chunks: list[Columns] = []
        self._number = 0
        self._lacks_indexes = False

    def add(self, columns: Columns) -> None:
        """Take records that the vault does not hold."""
        self._chunks.append(columns)
        self._number += len(columns["identity"])

    @property
    def is_full(self) -> bool:
        """Whether there are as many as are inserted together."""
        return self._number >= _AT_ONCE

    def insert(self) -> None:
        """Insert all of them, if they are new by another way as well.

        Identities and owners are random: in the order of one of them, each page of its index is visited once.
        A first load on SQLite fills the index of identities only. Later the pages of the index of owners may
        be as full as building it leaves them, and are split with their neighbours, which are at hand then.
        """
        if not self._number:
            return
        joined = {name: np.concatenate([each[name] for each in self._chunks]) for name in self._chunks[0]}
        self._chunks, self._number = [], 0
        owned = is_given(joined["owner"])
        self._id_index.confirm_new(self._session, joined["owner"][owned], joined["identity"][owned])
        if self._may_drop_indexes and len(owned) >= _MANY and self._session.dialect.drop_record_indexes:
            tables.drop_record_indexes(self._session)
            self._lacks_indexes = True
        self._may_drop_indexes = False
        order = order_of(joined["identity"])
        if not self._is_first_load:
            order = order[order_of(joined["owner"][order])]
        for start in range(0, len(order), _IN_A_STATEMENT):
            some = order[start : start + _IN_A_STATEMENT]
            columns = {name: values[some] for name, values in joined.items()}
            tables.insert_records(self._session, columns, is_first_load=self._is_first_load)

    def restore_indexes(self) -> None:
        """Build the indexes that a first load left for later."""
        if self._lacks_indexes:
            tables.create_record_indexes(self._session)
            self._lacks_indexes = False
