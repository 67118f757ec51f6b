"""Loading rows into a managed vault, chunk by chunk, in one transaction: each row comes in once.

A chunk is compared with what the vault holds, rows of forgotten people are left out, and what is new is
inserted and added up. A dry run does the same without writing.

With `replaces`, rows that were corrected at their source come in the place of the records with their ids. A
correction is a new fact, not a deletion: it takes no budget, and there is no certificate of it. To whom a
record belongs cannot be corrected: a request of the person before would no longer find it.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import compress
from typing import Any

import numpy as np

from armnesia.core.arrays import BoolArray
from armnesia.core.errors import ChangedRecordError, Fault, VaultError
from armnesia.core.messages import counted
from armnesia.logs import Source
from armnesia.vault.db import statements
from armnesia.vault.db.database import Row, Session
from armnesia.vault.db.digest_arrays import NO_DIGEST, Columns, order_of, packed
from armnesia.vault.db.schema import RecordRow
from armnesia.vault.state.decision_table import (
    DecisionNumbers,
    changed_decisions,
    put_decisions,
)
from armnesia.vault.state.decisions import FIRST, decided, refused_arm
from armnesia.vault.state.incoming_rows import Rows
from armnesia.vault.state.suppression import read_checked_suppressed
from armnesia.vault.state.transaction import Transaction

_AT_ONCE = 500_000
"""Records that are sorted before they are inserted: then each page of one index is written once."""
_IN_A_STATEMENT = 50_000
"""Records that one statement inserts, which has copies of them."""
_MANY = 20_000
"""From so many records on, it is faster to build the indexes of a first load after it."""


class RecordLoader:
    """Takes chunks of rows of one source, counts what becomes of them, and stores those that are new."""

    def __init__(
        self,
        transaction: Transaction,
        source: Source,
        *,
        replaces: bool = False,
        dry_run: bool = False,
    ) -> None:
        self._transaction, self._session = transaction, transaction.session
        self._keyring, self._state = transaction.keyring, transaction.state
        """The state before the first row, which has the whole configuration."""
        self._source, self._replaces, self._dry_run = source, replaces, dry_run
        self._suppressed = read_checked_suppressed(self._session, self._keyring, self._state)
        self._numbers = DecisionNumbers(self._session, self._state)
        rules = self._state.configuration.arms
        self._refuses_arms = any(rule.new_rows == "refuse" for rule in rules)
        self._holds_records = statements.exists(self._session, RecordRow, after=b"")
        """Whether there were records before the first chunk."""
        n_arms = len(self._state.actions)
        self._sums: defaultdict[int, tuple[list[int], list[int]]] = defaultdict(
            lambda: ([0] * n_arms, [0] * n_arms)
        )
        """By decision, the counts and the units of the added rows, per arm."""
        self._pending = _PendingRecords(self._session, is_first_load=not self._holds_records)
        counted = ("rows", "added", "already_there", "suppressed", "replaced", "without_user")
        self.counts: dict[str, Any] = dict.fromkeys(counted, 0)

    def add(self, rows: Rows) -> None:
        """Add the rows of a chunk that are not in the vault yet and do not belong to forgotten people."""
        if self._state.configuration.user_type is None and any(user is not None for user in rows.users):
            raise VaultError("the source has changed while it was read; ingest again")
        names, numbers = rows.identities(self._keyring), np.array(rows.numbers)
        owners, kept = self._owners(rows, names)
        identities = packed(names)
        order = order_of(identities)
        places = order[kept[order]]
        columns: Columns = {
            "identity": identities[places],
            "owner": packed(owners)[places],
            "arm": np.array(rows.arms, np.int32)[places],
            "units": np.array(rows.units, np.int64)[places],
        }
        decisions = np.full(len(kept), FIRST, np.int32)
        if self._state.configuration.by:  # not of rows that are left out: keys are public
            keys = list(compress(zip(*rows.keys, strict=True), kept.tolist()))
            decisions[kept] = self._numbers.of_keys(keys)
        columns["decision"] = decisions[places]
        records = _records(columns)
        old: list[Row] = []
        moved = np.ones(len(places), bool)
        if self._holds_records:
            held = statements.read(self._session, RecordRow, identity=identities[order].tolist())
            new, moved, old = self._compared(rows, places.tolist(), records, held)
            places, moved = places[new], moved[new]
            columns = {name: values[new] for name, values in columns.items()}
            records = list(compress(records, new.tolist()))
        if self._refuses_arms:
            self._refuse_retired_arms(rows, sorted(places[moved].tolist()))
        n_rows, n_kept = int(numbers.sum()), int(numbers[kept].sum())
        self.counts["rows"] += n_rows
        self.counts["suppressed"] += n_rows - n_kept
        self.counts["already_there"] += n_kept - len(places)
        self.counts["added"] += len(places) - len(old)
        self.counts["replaced"] += len(old)
        self.counts["without_user"] += sum(compress(rows.numbers, [user is None for user in rows.users]))
        if not self._dry_run:
            self._store_rows(columns, records, old)

    def _owners(self, rows: Rows, names: list[bytes]) -> tuple[list[bytes], BoolArray]:
        """The digest of each row's user, and which rows do not belong to forgotten people or records."""
        users = dict.fromkeys(rows.users)
        users.pop(None, None)
        digests: dict[str | None, bytes] = dict(
            zip(users, self._keyring.owner_digests([user for user in users if user is not None]), strict=True)
        )
        digests[None] = NO_DIGEST
        owners = [digests[user] for user in rows.users]
        kept = np.ones(len(owners), bool)
        for forgotten, of_rows in (
            (self._suppressed["user"], owners),
            (self._suppressed["record"], names),
        ):
            if forgotten:
                kept &= ~np.fromiter(map(forgotten.__contains__, of_rows), bool, len(of_rows))
        return owners, kept

    def _compared(
        self, rows: Rows, places: list[int], records: list[Row], held: Sequence[Row]
    ) -> tuple[BoolArray, BoolArray, list[Row]]:
        """Which rows are new or corrected, which of them change their arm or decision, and the old records.

        A row that is left out, and whose identity the vault holds, is somebody else's there: otherwise what
        the source has corrected to a forgotten person would stay in the vault, under another name.
        """
        is_new, moved = np.ones(len(records), bool), np.ones(len(records), bool)
        if not held:
            return is_new, moved, []
        known = {bytes(row[0]): (None if row[1] is None else bytes(row[1]), *row[2:]) for row in held}
        corrected: list[Row] = []
        others: list[int] = []
        changed: list[int] = []
        for at, (identity, *content) in enumerate(records):
            old = known.pop(identity, None)
            if old is None:
                continue
            owner, arm, _, *decision = old
            if tuple(content) == old:
                is_new[at] = False
            elif content[0] != owner:
                others.append(places[at])
            elif self._replaces:
                corrected.append((identity, *old))
                moved[at] = (arm, *decision) != (content[1], *content[3:])
            else:
                changed.append(places[at])
        if known:
            names = rows.identities(self._keyring)
            others += [names.index(identity) for identity in known]
        if others or changed:
            self._refuse(rows, others or changed, of_others=bool(others))
        return is_new, moved, corrected

    def _refuse(self, rows: Rows, places: Sequence[int], *, of_others: bool) -> None:
        """Refuse rows that the vault holds otherwise; later chunks, not read yet, may have more of them."""
        field, verbs = "id", ("has", "have")
        if rows.ordinals is not None:
            field, verbs = "user", ("is", "are")
            what = "in the vault already without a user, or with another one"
            remedy = "to whom a row belongs cannot change: leave them out, or make a new vault"
        elif of_others:
            what = "an id that the vault holds for another user, or without one"
            remedy = (
                "an id belongs to one person, and a correction cannot change whose it is: forget the record"
                " by its id, and bring the row in with a new one"
            )
        else:
            what = "an id that the vault holds with another action, reward or key"
            remedy = (
                "rows that were corrected at their source need replace=True (--replace), unless this export"
                " is older than the correction: then leave these rows out"
            )
        first = rows.positions[min(places)]
        number = counted(
            len(places), *(f"row{s} of this source {verb}" for s, verb in zip(("", "s"), verbs, strict=True))
        )
        raise ChangedRecordError(
            f"at least {number} {what}: the first is row {first}; {remedy}; nothing was ingested"
        ).at(Fault(field, first, f"{verbs[0]} {what}"))

    def _refuse_retired_arms(self, rows: Rows, places: Sequence[int]) -> None:
        """Refuse new rows of arms that their decision refuses; a corrected one may stay with its arm."""
        configuration, refused = self._state.configuration, dict[tuple[str, ...], frozenset[int]]()
        keys = list(zip(*rows.keys, strict=True)) or [()] * len(rows.arms)
        for place in places:
            key, arm = keys[place], rows.arms[place]
            if key not in refused:
                refused[key] = configuration.refuses(key)
            if arm in refused[key]:
                raise refused_arm(configuration, key, self._state.actions[arm], rows.positions[place])

    def _store_rows(self, columns: Columns, records: list[Row], old: list[Row]) -> None:
        """Insert new records in the place of old ones, and add them up."""
        if old:
            statements.delete(self._session, RecordRow, identity=[row[0] for row in old])
            self._transaction.note("record", old)
            for _, _, arm, units, decision in old:
                counts, totals = self._sums[decision]
                counts[arm] -= 1
                totals[arm] -= units
        if not records:
            return
        n_arms = len(self._state.actions)
        decisions = columns["decision"].astype(np.int64)
        groups, of_rows = np.unique(decisions * n_arms + columns["arm"], return_inverse=True)
        sums = np.zeros(len(groups), np.int64)
        np.add.at(sums, of_rows, columns["units"])
        for group, count, total in zip(
            groups.tolist(), np.bincount(of_rows).tolist(), sums.tolist(), strict=True
        ):
            counts, totals = self._sums[group // n_arms]
            counts[group % n_arms] += count
            totals[group % n_arms] += total
        self._transaction.note("record", records)
        self._pending.add(columns)

    @property
    def n_decisions(self) -> int:
        """How many decisions there are with the new keys."""
        return self._state.n_decisions + len(self._numbers.new)

    def store(self) -> None:
        """Store what is left and the statistics of decisions with new rows, which decide again."""
        if self._dry_run:
            return
        self._pending.insert()
        self._pending.restore_indexes()
        changed = changed_decisions(self._transaction, self._state, self._numbers.new, self._sums)
        filled = [after for _, after in changed]
        put_decisions(self._transaction, decided(filled, self._state.configuration, warns=True))
        if self.counts["replaced"]:
            self._transaction.append("correct", replaced=self.counts["replaced"])


def _records(columns: Columns) -> list[Row]:
    """Records as Python values, a row without a user with None as its owner."""
    lists = {name: values.tolist() for name, values in columns.items()}
    if NO_DIGEST in lists["owner"]:
        lists["owner"] = [None if owner == NO_DIGEST else owner for owner in lists["owner"]]
    return list(zip(*lists.values(), strict=True))


class _PendingRecords:
    """New records that are inserted many at a time."""

    def __init__(self, session: Session, *, is_first_load: bool) -> None:
        self._session, self._is_first_load = session, is_first_load
        self._may_drop_indexes = is_first_load
        self._chunks: list[Columns] = []
        self._lacks_indexes = False

    def add(self, columns: Columns) -> None:
        """Take records that the vault does not hold, and insert them if there are many."""
        self._chunks.append(columns)
        if sum(len(each["identity"]) for each in self._chunks) >= _AT_ONCE:
            self.insert()

    def insert(self) -> None:
        """Insert all of them.

        Identities and owners are random: in the order of one of them, each page of its index is visited once.
        A first load on SQLite fills the index of identities only. Later the pages of the index of owners may
        be as full as building it leaves them, and are split with their neighbours, which are at hand then.
        """
        if not self._chunks:
            return
        joined = {name: np.concatenate([each[name] for each in self._chunks]) for name in self._chunks[0]}
        self._chunks = []
        order = order_of(joined["identity"])
        if self._may_drop_indexes and len(order) >= _MANY and self._session.drop_record_indexes:
            statements.drop_record_indexes(self._session)
            self._lacks_indexes = True
        self._may_drop_indexes = False
        if not self._is_first_load:
            order = order[order_of(joined["owner"][order])]
        for start in range(0, len(order), _IN_A_STATEMENT):
            some = order[start : start + _IN_A_STATEMENT]
            columns = {name: values[some] for name, values in joined.items()}
            statements.insert_records(self._session, columns, is_first_load=self._is_first_load)

    def restore_indexes(self) -> None:
        """Build the indexes that a first load left for later."""
        if self._lacks_indexes:
            statements.create_record_indexes(self._session)
            self._lacks_indexes = False
