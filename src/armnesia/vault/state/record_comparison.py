"""Which rows of a source are new to a vault: the one comparison of an ingest and of its dry run."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armnesia.core.arrays import BoolArray
from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType, is_plain_integer, looks_like_float
from armnesia.core.messages import counted
from armnesia.logs import Rows, Source
from armnesia.logs.identities import identities
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.decision_table import DecisionNumbers, in_decision
from armnesia.vault.state.decisions import FIRST
from armnesia.vault.state.records import IncomingRows, Records
from armnesia.vault.state.source_columns import known_columns
from armnesia.vault.state.suppression import SuppressionList
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row
from armnesia.vault.storage.digest_arrays import (
    NO_DIGEST,
    Columns,
    is_given,
    order_of,
    packed,
    starts_of_groups,
)


class RecordComparison:
    """Takes chunks of rows, counts what becomes of them, and finds those that are new; nothing is written.

    A row whose id occurred before in the same reading is the same row again, whether or not the one before
    has been written: so a dry run counts as the ingest does.
    """

    def __init__(
        self,
        transaction: Transaction,
        records: Records,
        source: Source,
        suppression: SuppressionList | None = None,
        *,
        recounts: bool = False,
    ) -> None:
        """With `recounts`, rows of retired arms are counted again, whatever new ones are."""
        self._transaction, self._session, self._records = transaction, transaction.session, records
        self._keyring: Keyring = transaction.keyring
        self._suppressed = (suppression or SuppressionList.read(transaction)).digests
        state = transaction.state
        self.numbers = DecisionNumbers(self._session, state) if state.configuration.by else None
        self._user_column = source.columns.user
        self._refused_arms: dict[tuple[str, ...], frozenset[int]] | None = None
        if not recounts and any(rule.new_rows == "refuse" for rule in state.configuration.arms):
            self._refused_arms = {}
        self.holds_records = tables.has_records(self._session)
        """Whether there were records before the first chunk."""
        self.n_rows = self.added = self.already_there = self.suppressed = 0

    def new_rows(self, rows: Rows, source: int = 0) -> tuple[IncomingRows, Columns]:
        """The rows of a chunk that would be added, in the order of their identities; all rows are counted.

        The second value is the same rows as the table `record` holds them; `source` is the number of theirs.
        """
        incoming = self._incoming(rows, source)
        n_incoming = len(incoming)
        new = self._settled(rows, incoming)
        columns = self._records.columns(self._keyring, new)
        if self.holds_records:
            unknown = self._unknown(rows, new, columns)
            if not unknown.all():
                new = new.chosen(unknown)
                columns = {name: values[unknown] for name, values in columns.items()}
        self._refuse_retired_arms(new, rows)
        self.n_rows += len(rows)
        self.added += len(new)
        self.already_there += n_incoming - len(new)
        self.suppressed += len(rows) - n_incoming
        return new, columns

    def check_spelling_of_ids(self, rows: Rows) -> None:
        """Refuse ids such as 17.0 where the vault holds the record 17, or has forgotten it.

        A program that turned integers into floats would otherwise bring forgotten records back, and others
        twice. Where the record 17.0 was forgotten, 17 is refused as well.
        """
        ids = rows.ids or ()
        floats = float_ids(rows)
        respelled = {place: UserType.INTEGER.normalised(id_) for place, id_ in floats.items()}
        integers = [
            (place, self._keyring.record_identity("id", id_)) for place, id_ in respelled.items() if id_
        ]
        known = tables.keys_with_records(self._session, "identity", [name for _, name in integers])
        if self._suppressed["record"]:
            integers += [
                (place, self._keyring.record_identity("id", f"{id_}.0"))
                for place, id_ in enumerate(ids)
                if id_ and is_plain_integer(id_)
            ]
            known |= {
                name
                for _, name in integers
                if self._keyring.suppressed_record_digest(name) in self._suppressed["record"]
            }
        places = [place for place, name in integers if name in known]
        if places:
            first = min(places)
            other = respelled.get(first) or f"{ids[first]}.0"
            raise VaultError(
                f"{len(places)} rows have an id that the vault holds, or has forgotten, in another spelling:"
                f" {ids[first]!r} in row {rows.positions[first]}, which may be {other!r}; write the ids as"
                " before; nothing was ingested"
            )

    def _incoming(self, rows: Rows, source: int) -> IncomingRows:
        """The rows to compare with the vault, without those of forgotten people."""
        names = identities(self._keyring.record_identities, rows)
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

    def _settled(self, rows: Rows, incoming: IncomingRows) -> IncomingRows:
        """Each row once, in the order of identities, without those that occurred before in this reading."""
        if rows.ids is not None and any(rows.ordinals):
            incoming = incoming.chosen(np.array(rows.ordinals)[incoming.places] == 0)
        incoming = incoming.chosen(order_of(incoming.identities))
        starts = starts_of_groups(incoming.identities)
        return incoming if len(starts) == len(incoming) else incoming.chosen(starts)

    def _unknown(self, rows: Rows, new: IncomingRows, columns: Columns) -> BoolArray:
        """Which rows the vault does not hold; refuse those that it holds otherwise."""
        held = {
            bytes(row[0]): row
            for row in tables.read_records_of(self._session, self._records.layout, new.identities)
        }
        unknown = np.ones(len(new), bool)
        if not held:
            return unknown
        contradicting = []
        for at, row in enumerate(record_rows(columns)):
            same = held.get(row[0])
            if same is not None:
                unknown[at] = False
                if self._records.contradicts(row, same):
                    contradicting.append(int(new.places[at]))
        self._refuse_contradictions(contradicting, rows)
        return unknown

    def _refuse_retired_arms(self, new: IncomingRows, rows: Rows) -> None:
        """Refuse new rows of arms that their decision refuses; rows that are in the vault already stay."""
        if self._refused_arms is None:
            return
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
                raise VaultError(
                    f"arm {action!r} is not offered{in_decision(configuration, key)}, and new rows of it are"
                    f" refused: the first is row {rows.positions[place]}; leave them out, or run armnesia"
                    f" arms retire {action} --new-rows count; nothing was ingested"
                )

    def _refuse_contradictions(self, places: Sequence[int], rows: Rows) -> None:
        """Refuse rows that the vault holds otherwise; later chunks, not read yet, may have more of them."""
        if places:
            first, number = min(places), f"at least {counted(len(places), 'row')}"
            if rows.ids is None:
                others = [name for name in known_columns(self._session, "user") if name != self._user_column]
                option = f"--user-column {' or '.join(others)}" if others else "the same --user-column"
                raise VaultError(
                    f"{number} of this source are in the vault already with another user column, or without"
                    f" one: the first is row {rows.positions[first]}; give {option}, as before, or make a"
                    " new vault; nothing was ingested"
                )
            raise VaultError(
                f"{number} of this source have an id that the vault holds with another action, reward or"
                f" user: the first is row {rows.positions[first]}; an id must always name the same row;"
                " nothing was ingested"
            )


def float_ids(rows: Rows) -> dict[int, str]:
    """By place, the ids of a chunk that look like integers that became floats."""
    return {place: id_ for place, id_ in enumerate(rows.ids or ()) if "." in id_ and looks_like_float(id_)}


def record_rows(columns: Columns) -> list[Row]:
    """Records as Python values, a row without a user with None as its owner."""
    lists = {name: values.tolist() for name, values in columns.items()}
    if not is_given(columns["owner"]).all():
        lists["owner"] = [None if owner == NO_DIGEST else owner for owner in lists["owner"]]
    return list(zip(*lists.values(), strict=True))
