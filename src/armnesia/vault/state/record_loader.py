"""Loading rows into a vault, chunk by chunk, in one transaction."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from armnesia.core.errors import VaultError
from armnesia.core.identifiers import UserType, is_plain_integer, looks_like_float
from armnesia.core.messages import counted
from armnesia.logs import Rows, Source
from armnesia.logs.identities import identities
from armnesia.logs.user_names import UserNames, first_user_type
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.state.corrections import Corrected, delete_corrected, find_corrected
from armnesia.vault.state.decision_statistics import ArmSums
from armnesia.vault.state.decision_table import (
    DecisionNumbers,
    decided,
    in_decision,
    put_decisions,
    read_decisions,
    refused_arm,
)
from armnesia.vault.state.decisions import DEFAULT, FIRST, VaultDecision
from armnesia.vault.state.owner_tallies import IdIndexCheck, add_to_tallies
from armnesia.vault.state.records import Records
from armnesia.vault.state.sealed_state import State, empty_stream
from armnesia.vault.state.source_columns import known_columns
from armnesia.vault.state.suppression import SuppressionList
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row


class RecordComparison:
    """Takes chunks of rows, and counts which of them the vault would add; nothing is written."""

    def __init__(
        self,
        transaction: Transaction,
        records: Records,
        source: Source,
        suppression: SuppressionList | None = None,
        *,
        replaces: bool = False,
    ) -> None:
        """With `replaces`, rows come in the place of records of the same id that they differ from."""
        self._transaction, self._session, self._records = transaction, transaction.session, records
        self._layout = records.layout
        self._keyring: Keyring = transaction.keyring
        self._suppressed = (suppression or SuppressionList.read(transaction)).digests
        state = transaction.state
        self._numbers = DecisionNumbers(self._session, state) if state.configuration.by else None
        self._user_column, self._source = source.columns.user, 0
        self._refused_arms: dict[tuple[str, ...], frozenset[int]] | None = None
        if any(rule.new_rows == "refuse" for rule in state.configuration.arms):
            self._refused_arms = {}
        self._replaces = replaces
        self.n_rows = self.added = self.already_there = self.suppressed = self.replaced = 0

    def add(self, rows: Rows) -> None:
        """Count the rows of a chunk that are new, that are there already, and that are left out."""
        names = identities(self._keyring.record_identity, rows)
        incoming = self._incoming(rows, names)
        new = {row[0]: row for row in incoming}
        corrected = self._corrected(new, rows, names)
        held = tables.read_records(
            self._session, self._layout, "identity", list(new.keys() - corrected.identities)
        )
        known = {bytes(row[0]) for row in held}
        differing = {bytes(row[0]) for row in held if self._records.contradicts(new[bytes(row[0])], row)}
        self._refuse_contradictions(differing, rows, names)
        # An id that occurred before, perhaps in an earlier chunk, names the same row again.
        again = rows.ordinals if rows.ids is not None else [0] * len(names)
        first = {name for name, earlier in zip(names, again, strict=True) if not earlier}
        added_names = (new.keys() & first) - known
        self._refuse_retired_arms({name: new[name] for name in added_names - corrected.same_arm}, rows, names)
        added, replaced = len(added_names), len(added_names & corrected.identities)
        self.n_rows += len(names)
        self.added += added - replaced
        self.replaced += replaced
        self.already_there += len(incoming) - added
        self.suppressed += len(names) - len(incoming)

    @property
    def new_keys(self) -> set[tuple[str, ...]]:
        """The keys of rows that belong to decisions which the vault does not have yet."""
        return set() if self._numbers is None else set(self._numbers.new.values())

    def _corrected(self, new: Mapping[bytes, Row], rows: Rows, names: list[bytes]) -> Corrected:
        """The records that rows come in the place of; none unless that was asked for."""
        if not self._replaces:
            return Corrected([], set())
        return find_corrected(self._session, self._layout, new, rows, names)

    def check_spelling_of_ids(self, rows: Rows) -> None:
        """Refuse ids such as 17.0 where the vault holds the record 17, or has forgotten it.

        A program that turned integers into floats would otherwise bring forgotten records back, and others
        twice. Where the record 17.0 was forgotten, 17 is refused as well.
        """
        ids = rows.ids or ()
        floats = {place: id_ for place, id_ in enumerate(ids) if "." in id_ and looks_like_float(id_)}
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
                f"{counted(len(places), 'row has', 'rows have')} an id that the vault holds, or has forgotten,"
                " in another spelling:"
                f" {ids[first]!r} in row {rows.positions[first]}, which may be {other!r}; write the ids as"
                " before; nothing was ingested"
            )

    def _incoming(self, rows: Rows, names: list[bytes]) -> list[Row]:
        """The rows to compare with the vault, without those of forgotten people."""
        forgotten = self._forgotten(rows, names)
        owners = {
            user: None if user is None else self._keyring.owner_digest(user) for user in set(rows.users)
        }
        places = [place for place in range(len(names)) if place not in forgotten]
        # Not of rows that are left out: the keys are public, and theirs must not appear.
        numbers = [FIRST] * len(places) if self._numbers is None else self._numbers.of_rows(rows, places)
        return [
            self._records.incoming_row(
                self._keyring, rows, place, names[place], owners[rows.users[place]], self._source, number
            )
            for place, number in zip(places, numbers, strict=True)
        ]

    def _forgotten(self, rows: Rows, names: list[bytes]) -> set[int]:
        """The places of rows that are suppressed, by their user or by themselves."""
        places: set[int] = set()
        if self._suppressed["user"]:
            users = {user for user in set(rows.users) if user is not None}
            listed = {user for user in users if self._keyring.user_digest(user) in self._suppressed["user"]}
            places |= {place for place, user in enumerate(rows.users) if user in listed}
        if self._suppressed["record"]:
            of_rows = map(self._keyring.suppressed_record_digest, names)
            places |= {place for place, digest in enumerate(of_rows) if digest in self._suppressed["record"]}
        return places

    def _refuse_retired_arms(self, new: Mapping[bytes, Row], rows: Rows, names: list[bytes]) -> None:
        """Refuse new rows of arms that their decision refuses; rows that are in the vault already stay."""
        if self._refused_arms is None:
            return
        configuration = self._transaction.state.configuration
        for place, name in enumerate(names):
            if name not in new:
                continue
            key = () if self._numbers is None else self._numbers.keys[new[name][-1]]  # its last column
            if key not in self._refused_arms:
                self._refused_arms[key] = configuration.arm_rules.refused(key)
            if rows.arms[place] in self._refused_arms[key]:
                action = self._transaction.state.actions[rows.arms[place]]
                raise refused_arm(configuration, key, action, rows.positions[place])

    def _refuse_contradictions(self, contradicted: set[bytes], rows: Rows, names: list[bytes]) -> None:
        """Refuse rows that the vault holds otherwise; later chunks, not read yet, may have more of them."""
        if contradicted:
            first = next(place for place, name in enumerate(names) if name in contradicted)
            one = len(contradicted) == 1
            number = f"at least {counted(len(contradicted), 'row')} of this source"
            if rows.ids is None:
                others = [name for name in known_columns(self._session, "user") if name != self._user_column]
                option = f"--user-column {' or '.join(others)}" if others else "the same --user-column"
                raise VaultError(
                    f"{number} {'is' if one else 'are'} in the vault already with another user column, or"
                    f" without one: the first is row {rows.positions[first]}; give {option}, as before, or make a"
                    " new vault; nothing was ingested"
                )
            raise VaultError(
                f"{number} {'has' if one else 'have'} an id that the vault holds with another action, reward"
                f"{', key' if self._layout.keyed else ''} or user: the first is row {rows.positions[first]};"
                f" an id must always name the same row; {self._records.corrections}; nothing was ingested"
            )


class RecordLoader(RecordComparison):
    """Takes chunks of rows; each row is added once, and rows of forgotten people are left out."""

    def __init__(
        self,
        transaction: Transaction,
        records: Records,
        source: Source,
        actions: tuple[Any, ...],
        user_type: UserType | None,
        id_index: IdIndexCheck | None = None,
        suppression: SuppressionList | None = None,
        *,
        recounts: bool = False,
        replaces: bool = False,
    ) -> None:
        """With `recounts`, rows of retired arms are counted again, whatever new ones are."""
        super().__init__(transaction, records, source, suppression, replaces=replaces)
        if recounts:
            self._refused_arms = None
        self._before, self._id_index = transaction.state, id_index
        self._state = _with_user_type(_with_actions(self._before, actions), user_type)
        self._source, self._digests = records.register_source(transaction, source)
        self._sums: defaultdict[int, tuple[list[int], list[int]]] = defaultdict(
            lambda: ([0] * len(actions), [0] * len(actions))
        )
        """By decision, the counts and the units of the added rows, per arm."""
        tables.create_incoming(self._session, self._layout)

    def add(self, rows: Rows) -> None:
        """Add the rows of a chunk that are not in the vault yet and do not belong to forgotten people."""
        session, layout = self._session, self._layout
        if self._state.configuration.user_type is None and any(user is not None for user in rows.users):
            raise VaultError("the source has changed while it was read; ingest again")
        names = identities(self._keyring.record_identity, rows)
        incoming = self._incoming(rows, names)
        new = {row[0]: row for row in incoming}
        corrected = self._corrected(new, rows, names)
        self._take_out(corrected)
        tables.load_incoming(session, layout, sorted(new.values(), key=lambda row: row[0]))
        self._refuse_contradictions(tables.contradicted_identities(session, layout), rows, names)
        if tables.drop_known_incoming(session):
            new = {identity: new[identity] for identity in tables.incoming_identities(session)}
        asked = {name: new[name] for name in new.keys() - corrected.same_arm} if corrected.same_arm else new
        self._refuse_retired_arms(asked, rows, names)
        for decision, arm, count, total in tables.sum_incoming(session, layout):
            counts, units = self._sums[decision]
            counts[arm] += count
            units[arm] += int(total)
        width = len(layout.columns.split(","))
        records = [row[:width] for row in new.values()]
        self._digests = self._digests.update(self._keyring, "record", records)
        add_to_tallies(session, self._keyring, records, self._id_index)
        added, replaced = tables.insert_incoming(session, layout), len(corrected.records)
        self.n_rows += len(names)
        self.added += added - replaced
        self.replaced += replaced
        self.already_there += len(incoming) - added
        self.suppressed += len(names) - len(incoming)

    def _take_out(self, corrected: Corrected) -> None:
        """Delete records that rows of this chunk come in the place of."""
        if not corrected.records:
            return
        delete_corrected(self._session, self._keyring, self._layout, corrected)
        self._digests = self._digests.update(self._keyring, "record", corrected.records)
        for decision, arm, own in corrected.per_decision():
            counts, units = self._sums[decision]
            counts[arm] -= 1
            units[arm] -= own

    def store(self) -> State:
        """Store the new statistics and let the learner decide again."""
        state, transaction = replace(self._state, digests=self._digests), self._transaction
        if self._numbers is not None:
            state = self._with_decisions(state, self._numbers)
        elif self.added or self.replaced:
            assert state.decision is not None  # its actions are known
            sums = state.decision.statistics.plus(*self._sums[FIRST])
            state = state.with_stream(sums.stream(state.configuration))
        if self._before.configuration.actions is None:
            transaction.append("actions", actions=list(state.actions))
        user_type = state.configuration.user_type
        if user_type != self._before.configuration.user_type:
            transaction.append("user_type", user_type=str(user_type))
        if self.replaced:
            transaction.append("correct", replaced=self.replaced)
        if state != self._before:
            transaction.store(state)
        tables.drop_incoming(self._session)
        return transaction.state

    def _with_decisions(self, state: State, numbers: DecisionNumbers) -> State:
        """Add the rows to their decisions, which decide again; others stay as they are."""
        configuration = state.configuration
        old = read_decisions(self._transaction, self._sums.keys() - numbers.new.keys())
        empty = ArmSums.empty(len(state.actions), configuration.penalty)
        for key in numbers.new.values():
            if not any(configuration.arm_rules.offered(key)):
                raise VaultError(
                    f"no arm is offered{in_decision(configuration, key)}: offer one with armnesia arms add;"
                    " nothing was ingested"
                )
        new = [VaultDecision(number, key, empty, None, DEFAULT) for number, key in numbers.new.items()]
        filled = [
            replace(each, statistics=each.statistics.plus(*self._sums[each.number])) for each in (*old, *new)
        ]
        return put_decisions(self._transaction, state, decided(filled, configuration))


def _with_actions(state: State, actions: tuple[Any, ...]) -> State:
    """Fix the actions if they are not fixed yet; refuse if another ingest has fixed others meanwhile."""
    configuration = state.configuration
    if configuration.actions is None:
        configuration = configuration.with_actions(actions)
    elif configuration.actions != actions:
        raise VaultError("the vault's actions were changed meanwhile; ingest again")
    fixed = replace(state, configuration=configuration)
    stream = empty_stream(configuration)
    return fixed if state.decision is not None or stream is None else fixed.with_stream(stream)


def _with_user_type(state: State, user_type: UserType | None) -> State:
    """Fix how people are named, if it is not fixed yet; refuse if another ingest has fixed it otherwise."""
    configuration = state.configuration
    if user_type in (None, configuration.user_type):
        return state
    if configuration.user_type is not None:
        raise VaultError("another ingest has fixed how people are named meanwhile; ingest again")
    return replace(state, configuration=configuration.with_user_type(UserType.named(user_type)))


def user_type_for(state: State, source: Source) -> UserType | None:
    """How the vault names people; if that is not fixed yet, as this source does, if it names any."""
    if state.configuration.user_type is not None or source.columns.user is None:
        return state.configuration.user_type
    return first_user_type(source.user_texts())


def user_names_of(state: State) -> UserNames:
    """How the users of a source are spelled in this vault."""
    return UserNames.of(state.configuration.user_type)
