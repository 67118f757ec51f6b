"""Requests for different people that are answered together: read ahead at once, and stored at once.

On a server each statement is a round trip, after which a thread waits for its turn again. A group has as many
of them as one request, if its people have rows and their names are not spelled as numbers: otherwise other
spellings are looked up for each request.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING

from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.managed_records import ManagedRecords, sums_of_rows
from armnesia.vault.state.owner_tallies import OWNER, confirm_nobody, damaged, tally_rows
from armnesia.vault.state.records import DeletedRecords
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.suppression import history_digests
from armnesia.vault.state.table_digests import TableDigests, row_texts
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row
from armnesia.vault.storage.schema import RecordLayout

if TYPE_CHECKING:
    from armnesia.vault.state.source_lookup import SourceLookup

_DIGEST = 1  # its place in a row of the lists


@dataclass
class GroupTransaction(Transaction):
    """The part of a transaction that answers requests for people, none of whom is in two of them.

    What the requests need is here, and what they change is collected until `send`: a refused one leaves
    nothing. Only the decisions of a vault with key columns are stored one by one, each in a savepoint.
    """

    layout: RecordLayout = field(kw_only=True)
    rows: Mapping[bytes, list[Row]] = field(kw_only=True)
    """The records of the people, by the digest of the person."""
    tallies: Mapping[bytes, list[Row]] = field(kw_only=True)
    taken: frozenset[bytes] = frozenset()
    """The people whose records were deleted."""

    @classmethod
    def read_ahead(
        cls, transaction: Transaction, layout: RecordLayout, targets: Sequence[ErasureTarget]
    ) -> "GroupTransaction":
        """Read what requests for these people need."""
        session, keyring = transaction.session, transaction.keyring
        digests = [digest for target in targets for digest in history_digests(target, keyring)[-1]]
        owners = [owner for target in targets for owner in target.row_keys(keyring)]
        return cls(
            session,
            transaction.all_keys,
            transaction.state,
            needs_savepoints=bool(transaction.state.configuration.by),
            layout=layout,
            lists={digest: [] for digest in digests}
            | _by(tables.read_suppression(session, digests), _DIGEST),
            rows=_by(tables.read_records(session, layout, "owner", owners), OWNER),
            tallies=_by(tables.read_tallies(session, owners), 0),
        )

    def store(
        self, state: State, *, digests: TableDigests | None = None, all_keys: Keyring | None = None
    ) -> None:
        """Go on with a new state; `send` stores the last one."""
        assert all_keys is None, "requests make no new keys"
        self.state = state.changed(head=self._appended or state.head, digests=digests or state.digests)
        self._appended = None

    def send(self, transaction: Transaction) -> None:
        """Delete the records and store everything, in the transaction that this is a part of.

        A deletion skips a row that its page does not find, and the row may be found again afterwards.
        """
        if self.state is transaction.state:
            return
        owners = sorted(self.taken)
        expected = {row for owner in owners for row in self.rows.get(owner, ())}
        deleted = tables.delete_records(self.session, self.layout, "owner", owners)
        if set(deleted) != expected or tables.read_records(self.session, self.layout, "owner", owners):
            raise damaged()
        to_tallies = (tables.delete_tally(owner) for owner in owners if owner in self.tallies)
        transaction.add(*sorted(self.collected, key=itemgetter(0)), *to_tallies)  # the same text at once
        transaction.store(self.state)
        confirm_nobody(transaction, [owner for owner in owners if owner not in self.rows])


class GroupedRecords(ManagedRecords):
    """The records as the requests of a group see them: without those of people who were forgotten in it."""

    def __init__(self, layout: RecordLayout, group: GroupTransaction) -> None:
        super().__init__(layout)
        self._group = group

    def delete(
        self, transaction: Transaction, target: ErasureTarget, lookup: "SourceLookup | None"
    ) -> DeletedRecords:
        """Take the rows, check them against the tallies, and add them up."""
        group, owners = self._group, target.row_keys(transaction.keyring)
        rows = [row for owner in owners for row in group.rows.get(owner, ())]
        tallies = {row for owner in owners for row in group.tallies.get(owner, ())}
        texts = row_texts(rows)
        if set(tally_rows(transaction.keyring, rows, texts)) != tallies:
            raise damaged()
        group.taken |= set(owners)
        return DeletedRecords(sums_of_rows(rows), rows, {row[OWNER] for row in rows}, [], texts)

    def confirm_nobody(self, transaction: Transaction, owners: Sequence[bytes]) -> None:
        """When the group is stored: until then the people of the group still are in the tables."""

    def names_held(
        self, transaction: Transaction, target: ErasureTarget, lookup: "SourceLookup | None"
    ) -> set[bytes]:
        """By the rows and the tallies that were read ahead."""
        known = self._group.rows.keys() | self._group.tallies.keys()
        return (set(target.row_keys(transaction.keyring)) & known) - self._group.taken

    def keys_held(
        self,
        transaction: Transaction,
        target: ErasureTarget,
        keys: Sequence[bytes],
        lookup: "SourceLookup | None",
    ) -> set[bytes]:
        """By the tables, in which the people of the group still are."""
        return super().keys_held(transaction, target, keys, lookup) - self._group.taken


def _by(rows: Iterable[Row], place: int) -> dict[bytes, list[Row]]:
    found: defaultdict[bytes, list[Row]] = defaultdict(list)
    for row in rows:
        found[row[place]].append(row)
    return dict(found)
