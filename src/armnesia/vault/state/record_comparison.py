"""Which rows of a source are new to a vault: the one comparison of an ingest and of its dry run."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np

from armnesia.core.arrays import BoolArray
from armnesia.core.errors import ChangedRecordError, Fault
from armnesia.core.identifiers import UserType, is_plain_integer
from armnesia.core.messages import counted
from armnesia.logs import Source
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.corrections import Corrected, find_corrected, held_without_user
from armnesia.vault.state.decision_table import DecisionNumbers, refused_arm
from armnesia.vault.state.decisions import FIRST
from armnesia.vault.state.incoming_rows import Rows
from armnesia.vault.state.managed_records import ManagedRecords
from armnesia.vault.state.records import IncomingRows
from armnesia.vault.state.source_columns import known_columns
from armnesia.vault.state.suppression import SuppressionList
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row
from armnesia.vault.storage.digest_arrays import (
    NO_DIGEST,
    Columns,
    DigestArray,
    is_given,
    order_of,
    packed,
    starts_of_groups,
)

_MOST_INTEGERS = 10_000


class NewRows(NamedTuple):
    """The rows of a chunk that come in, in the order of their identities."""

    rows: IncomingRows
    columns: Columns
    """The same rows, as the table `record` holds them."""
    records: list[Row]
    """The same again, as Python values: a row without a user has None as its owner."""
    replaced: Corrected
    """The records in whose place some of them come."""


class RecordComparison:
    """Takes chunks of rows, counts what becomes of them, and finds those that are new; nothing is written.

    A row whose id occurred before in the same reading is the same row again, whether or not the one before
    has been written: so a dry run counts as the ingest does.
    """

    def __init__(
        self,
        transaction: Transaction,
        records: ManagedRecords,
        source: Source,
        *,
        replaces: bool = False,
    ) -> None:
        """With `replaces`, rows come in the place of records of the same id that they differ from."""
        self._transaction, self._session, self._records = transaction, transaction.session, records
        self._keyring: Keyring = transaction.keyring
        self._suppressed = SuppressionList.read(transaction).digests
        state = transaction.state
        self.numbers = DecisionNumbers(self._session, state) if state.configuration.by else None
        self._user_column = source.columns.user
        self._refuses_arms = any(rule.new_rows == "refuse" for rule in state.configuration.arms)
        self._refused_arms: dict[tuple[str, ...], frozenset[int]] = {}
        """By key, the arms that a decision refuses, as far as they were looked up."""
        self.holds_records = tables.has_records(self._session)
        """Whether there were records before the first chunk."""
        self._replaces = replaces
        self._integers_left = _MOST_INTEGERS
        """How many more integers are looked for among the ids as floats."""
        self.n_rows = self.added = self.already_there = self.suppressed = self.replaced = 0

    def new_rows(self, rows: Rows, source: int = 0) -> NewRows:
        """The rows of a chunk that would be added, from the source of this number; all rows are counted."""
        names = rows.identities(self._keyring)
        incoming = self._incoming(rows, names, source)
        n_incoming = len(incoming)
        new = self._first_occurrences(rows, incoming)
        columns = self._records.columns(self._keyring, new)
        records = _record_rows(columns)
        corrected = Corrected([], set())
        if self.holds_records:
            asked = self._places_to_correct(names, incoming, new) if self._replaces else {}
            held = self._held(packed(list(asked)) if self._replaces else new.identities)
            if self._replaces:
                corrected = find_corrected(held, {record[0]: record for record in records}, rows, asked)
            unknown = self._unknown(rows, new, records, held, corrected.identities)
            if not unknown.all():
                new, records = new.chosen(unknown), list(compress(records, unknown.tolist()))
                columns = {name: values[unknown] for name, values in columns.items()}
        self._refuse_retired_arms(new, rows, corrected.same_arm)
        replaced = len(corrected.records)
        self.n_rows += len(rows)
        self.added += len(new) - replaced
        self.replaced += replaced
        self.already_there += n_incoming - len(new)
        self.suppressed += len(rows) - n_incoming
        return NewRows(new, columns, records, corrected)

    @property
    def new_keys(self) -> set[tuple[str, ...]]:
        """The keys of rows that belong to decisions which the vault does not have yet."""
        return set() if self.numbers is None else set(self.numbers.new.values())

    @staticmethod
    def _places_to_correct(names: list[bytes], incoming: IncomingRows, new: IncomingRows) -> dict[bytes, int]:
        """By identity, where rows first stand that may correct records, also those that are left out."""
        left_out = np.setdiff1d(np.arange(len(names)), incoming.places).tolist()
        return {names[place]: place for place in sorted([*left_out, *new.places.tolist()], reverse=True)}

    def _held(self, asked: DigestArray) -> dict[bytes, Row]:
        """By identity, the records of the vault among these."""
        found = tables.read_records_of(self._session, self._records.layout, asked)
        return {bytes(record[0]): record for record in found}

    def check_spelling_of_ids(self, rows: Rows) -> None:
        """Refuse ids such as 17.0 where the vault holds the record 17 or has forgotten it, or 17 precedes.

        A program that turned integers into floats would otherwise bring forgotten records back, and others
        twice. 17 is refused as well where the record 17.0 was forgotten or, among the first integers of a
        source, is held: that another log has the same ids shows there, and each comparison is a look-up. An
        id that the vault holds, or has forgotten, as it is spelled is no other record: what came in can be
        sent again.
        """
        ids = rows.ids or ()
        respelled = {place: UserType.INTEGER.normalised(id_) for place, id_ in rows.float_ids.items()}
        others = {place: id_ for place, id_ in respelled.items() if id_}
        preceded = _preceded(ids, others) if others else set[int]()
        names = self._keyring.record_identities("id", list(others.values()))
        asked = len(names)
        if self._suppressed["record"] or (self.holds_records and self._integers_left):
            as_floats = {place: f"{id_}.0" for place, id_ in enumerate(ids) if is_plain_integer(id_)}
            others |= as_floats
            names += self._keyring.record_identities("id", list(as_floats.values()))
            asked = min(len(names), asked + self._integers_left)
            self._integers_left -= min(len(as_floats), self._integers_left)
        held = tables.keys_with_records(self._session, "identity", names[:asked])
        forgotten = self._forgotten_records(names).tolist()
        places = [
            place
            for place, name, is_forgotten in zip(others, names, forgotten, strict=True)
            if is_forgotten or name in held or place in preceded
        ]
        places = self._unknown_places(ids, places)
        if places:
            first = min(places)
            other = others[first]
            raise ChangedRecordError(
                f"{counted(len(places), 'row has', 'rows have')} an id that the vault holds or has forgotten,"
                f" or an earlier row has, in another spelling: {ids[first]!r} in row {rows.positions[first]},"
                f" which may be {other!r}; write the ids as before; nothing was ingested"
            ).at(
                Fault(
                    "id",
                    rows.positions[first],
                    "is held by the vault, was forgotten, or is that of an earlier row, in another spelling",
                )
            )

    def _unknown_places(self, ids: Sequence[str], places: list[int]) -> list[int]:
        """The places of ids that the vault neither holds nor has forgotten as they are spelled."""
        names = self._keyring.record_identities("id", [ids[place] for place in places])
        held, forgotten = (
            tables.keys_with_records(self._session, "identity", names),
            self._forgotten_records(names),
        )
        known = [name in held or is_forgotten for name, is_forgotten in zip(names, forgotten, strict=True)]
        return [place for place, is_known in zip(places, known, strict=True) if not is_known]

    def _incoming(self, rows: Rows, names: list[bytes], source: int) -> IncomingRows:
        """The rows to compare with the vault, without those of forgotten people."""
        number_of = {user: number for number, user in enumerate(dict.fromkeys(rows.users))}
        digests = iter(self._keyring.owner_digests([user for user in number_of if user is not None]))
        owners = [NO_DIGEST if user is None else next(digests) for user in number_of]
        numbers = np.fromiter(map(number_of.__getitem__, rows.users), np.int64, len(rows))
        kept = ~self._forgotten(owners)[numbers] & ~self._forgotten_records(names)
        incoming = IncomingRows(
            np.arange(len(rows)),
            packed(names),
            packed(owners)[numbers],
            rows.users,
            np.array(rows.arms, np.int64),
            np.array(rows.units, np.int64),
            np.full(len(rows), FIRST),
            source,
        )
        if not kept.all():
            incoming = incoming.chosen(kept)
        if self.numbers is not None:
            # Not of rows that are left out: the keys are public, and theirs must not appear.
            decisions = self.numbers.of_rows(rows, incoming.places.tolist())
            incoming = replace(incoming, decisions=np.array(decisions, np.int64))
        return incoming

    def _forgotten(self, owners: list[bytes]) -> BoolArray:
        """Which of the owners of a chunk are forgotten people."""
        suppressed = self._suppressed["user"]
        if not suppressed:
            return np.zeros(len(owners), bool)
        digests = self._keyring.digests_of_owners(owners)
        found = np.fromiter(map(suppressed.__contains__, digests), bool, len(owners))
        return found & is_given(packed(owners))

    def _forgotten_records(self, names: list[bytes]) -> BoolArray:
        """Which rows were forgotten themselves."""
        suppressed = self._suppressed["record"]
        if not suppressed:
            return np.zeros(len(names), bool)
        digests = self._keyring.suppressed_record_digests(names)
        return np.fromiter(map(suppressed.__contains__, digests), bool, len(names))

    def _first_occurrences(self, rows: Rows, incoming: IncomingRows) -> IncomingRows:
        """Each row once, in the order of identities, without those that occurred before in this reading."""
        if rows.ids is not None and any(rows.ordinals):
            incoming = incoming.chosen(np.array(rows.ordinals)[incoming.places] == 0)
        incoming = incoming.chosen(order_of(incoming.identities))
        starts = starts_of_groups(incoming.identities)
        return incoming if len(starts) == len(incoming) else incoming.chosen(starts)

    def _unknown(
        self,
        rows: Rows,
        new: IncomingRows,
        records: list[Row],
        held: Mapping[bytes, Row],
        corrected: set[bytes],
    ) -> BoolArray:
        """Which rows the vault does not hold, or are corrected; refuse those that it holds otherwise."""
        unknown = np.ones(len(new), bool)
        if not held:
            return unknown
        contradicting, without_user = [], []
        for at, record in enumerate(records):
            same = held.get(record[0])
            if same is not None and record[0] not in corrected:
                unknown[at] = False
                if same[1] is None and record[1] is not None:  # the owners
                    without_user.append(int(new.places[at]))
                elif self._records.contradicts(record, same):
                    contradicting.append(int(new.places[at]))
        if without_user:
            raise held_without_user(len(without_user), rows.positions[min(without_user)])
        self._refuse_contradictions(contradicting, rows)
        return unknown

    def _refuse_retired_arms(self, new: IncomingRows, rows: Rows, same_arm: set[bytes]) -> None:
        """Refuse new rows of arms that their decision refuses; rows that are in the vault already stay.

        So do corrected ones that stay with their arm, whose identities are given.
        """
        if not self._refuses_arms:
            return
        if same_arm:
            new = new.chosen(np.array([name not in same_arm for name in new.identities.tolist()], bool))
        configuration = self._transaction.state.configuration
        places: dict[tuple[int, int], int] = {}
        for decision, arm, place in zip(
            new.decisions.tolist(), new.arms.tolist(), new.places.tolist(), strict=True
        ):
            places[decision, arm] = min(place, places.get((decision, arm), place))
        for (decision, arm), place in sorted(places.items(), key=lambda item: item[1]):
            key = () if self.numbers is None else self.numbers.keys[decision]
            if key not in self._refused_arms:
                self._refused_arms[key] = configuration.arm_rules.refused(key)
            if arm in self._refused_arms[key]:
                action = self._transaction.state.actions[arm]
                raise refused_arm(configuration, key, action, rows.positions[place])

    def _refuse_contradictions(self, places: Sequence[int], rows: Rows) -> None:
        """Refuse rows that the vault holds otherwise; later chunks, not read yet, may have more of them."""
        if places:
            first, one = min(places), len(places) == 1
            number = f"at least {counted(len(places), 'row')} of this source"
            if rows.ids is None:
                others = [name for name in known_columns(self._session, "user") if name != self._user_column]
                option = f"--user-column {' or '.join(others)}" if others else "the same --user-column"
                raise ChangedRecordError(
                    f"{number} {'is' if one else 'are'} in the vault already with another user column, or"
                    f" without one: the first is row {rows.positions[first]}; give {option}, as before, or"
                    " make a new vault; nothing was ingested"
                ).at(Fault("user", rows.positions[first], "must be there, or not, as in the vault"))
            raise ChangedRecordError(
                f"{number} {'has' if one else 'have'} an id that the vault holds with another action, reward"
                f"{', key' if self._records.layout.keyed else ''} or user: the first is row"
                f" {rows.positions[first]}; an id must always name the same row;"
                f" {self._records.corrections}; nothing was ingested"
            ).at(Fault("id", rows.positions[first], "is held by the vault with another content"))


def _record_rows(columns: Columns) -> list[Row]:
    """Records as Python values, a row without a user with None as its owner."""
    lists = {name: values.tolist() for name, values in columns.items()}
    if not is_given(columns["owner"]).all():
        lists["owner"] = [None if owner == NO_DIGEST else owner for owner in lists["owner"]]
    return list(zip(*lists.values(), strict=True))


def _preceded(ids: Sequence[str], others: Mapping[int, str]) -> set[int]:
    """The places of ids whose other spelling comes first among these ids, as it would in an earlier batch.

    >>> _preceded(["17", "17.0", "8.0", "8", "8.0"], {1: "17", 2: "8", 4: "8"})
    {1}
    """
    first: dict[str, int] = {}
    for place, id_ in enumerate(ids):
        first.setdefault(id_, place)
    return {place for place, other in others.items() if first.get(other, len(ids)) < first[ids[place]]}
