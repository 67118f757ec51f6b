"""External records: the rows stay at their sources; the vault holds keyed digests of them."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.core.progress import RowCounter
from armnesia.core.units import UNIT
from armnesia.logs import Rows, Source, reopen_source, source_address, source_name
from armnesia.logs.identities import identities
from armnesia.logs.user_names import UserNames
from armnesia.vault.configuration import Configuration
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.results import HeldSource
from armnesia.vault.state.decision_table import (
    DecisionNumbers,
    decided,
    put_all_decisions,
    put_decisions,
    read_all_decisions,
)
from armnesia.vault.state.decisions import FIRST, VaultDecision
from armnesia.vault.state.diagnosis import changed_values
from armnesia.vault.state.owner_tallies import TallyObserver, delete_and_check
from armnesia.vault.state.record_loader import RecordLoader, user_type_for
from armnesia.vault.state.records import (
    DecisionSums,
    DeletedRecords,
    IncomingRows,
    Records,
    RecordScan,
    SourceRows,
    statistics_problems,
    unknown_source,
)
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_columns import known_columns
from armnesia.vault.state.suppression import Suppressed
from armnesia.vault.state.table_digests import TableDigests, compute_digests
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.digest_arrays import Columns, packed
from armnesia.vault.storage.schema import EXTERNAL_LAYOUT, RecordLayout

_SOURCE = 3  # its place in a record


def _sources(transaction: Transaction, target: ErasureTarget) -> list[dict[str, Any]]:
    """The sources that brought the rows of a request: other sources need not be readable."""
    session, keys = transaction.session, target.row_keys(transaction.keyring)
    needed = tables.read_source_numbers(session, target.row_column, keys)
    return [description for number, description in _descriptions(session) if number in needed]


def _descriptions(session: Session) -> list[tuple[int, dict[str, Any]]]:
    """The numbers and the descriptions of all sources."""
    found = []
    for number, text in tables.read_table(session, "source"):
        try:
            description = json.loads(text)
            source_name(description)
        except (ValueError, TypeError, LookupError, AttributeError):
            raise changed_values() from None
        found.append((number, description))
    return found


def _contents(transaction: Transaction, target: ErasureTarget) -> dict[bytes, bytes]:
    """By identity, the content digests of the rows that the vault counted for a request."""
    keys = target.row_keys(transaction.keyring)
    return tables.read_contents(transaction.session, target.row_column, keys)


def _rows_at(
    session: Session,
    sources: list[dict[str, Any]],
    state: State,
    keyring: Keyring,
    target: ErasureTarget,
    every_spelling: bool,
) -> SourceRows:
    """Read the rows of a request at their sources.

    A source may spell a name otherwise than the vault, but looking for every spelling reads all of it.
    """
    found: SourceRows = {}
    for description in sources:
        source = _reopened(description, state.configuration)
        numbers = DecisionNumbers(session, state, only_known=True) if state.configuration.by else None
        if (source.columns.user if target.users else source.columns.id) is None:
            continue  # no row of this source can be named by the request
        for rows in source.rows(
            state.require_actions(),
            state.configuration.reward_range,
            users=target.users or None,
            ids=target.records or None,
            user_names=UserNames.of(state.configuration.user_type),
            every_spelling=every_spelling,
            plain_booleans=state.configuration.plain_booleans,
        ):
            decisions = _decisions_of(numbers, rows)
            for place, identity in enumerate(identities(keyring.record_identities, rows)):
                arm, units, decision = rows.arms[place], rows.units[place], decisions[place]
                content = keyring.record_content(identity, rows.users[place], arm, units, decision)
                found[identity] = (content, arm, units, decision or FIRST)
    return found


def _decisions_of(numbers: DecisionNumbers | None, rows: Rows) -> list[int | None]:
    """The decision of each row; None in a vault without key columns."""
    if numbers is None:
        return [None] * len(rows)
    return [*numbers.of_rows(rows, range(len(rows)))]


class ExternalRecords(Records):
    """The table `record` holds keyed digests of rows that stay at their sources."""

    corrections: ClassVar[str] = "rows that were corrected at their source count after armnesia rebuild"
    erasure_excludes: ClassVar[str] = (
        "; not the source of the records, where they stay until they are deleted there"
    )

    def __init__(self, layout: RecordLayout = EXTERNAL_LAYOUT) -> None:
        self.layout = layout

    def look_up(
        self, reading: Callable[[], AbstractContextManager[Transaction]], target: ErasureTarget
    ) -> SourceRows:
        """Look the rows up at their sources."""
        with reading() as transaction:
            state, keyring = transaction.state, transaction.keyring
            target = target.normalised(state.configuration.user_type)
            sources, held = _sources(transaction, target), _contents(transaction, target).keys()
        find = partial(_rows_at, sources=sources, state=state, keyring=keyring, target=target)
        found = self._found(reading, state, partial(find, every_spelling=False))
        if not held <= found.keys():
            found |= self._found(reading, state, partial(find, every_spelling=True))
        return found

    @staticmethod
    def _found(
        reading: Callable[[], AbstractContextManager[Transaction]],
        state: State,
        find: Callable[..., SourceRows],
    ) -> SourceRows:
        """Read at the sources; only the keys of decisions need the vault meanwhile."""
        if not state.configuration.by:
            return find(None)
        with reading() as transaction:
            return find(transaction.session)

    def find(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceRows | None
    ) -> DecisionSums:
        """Compare what the vault counted with the rows at the sources, and add them up."""
        state, held, at_source = transaction.state, _contents(transaction, target), lookup or {}
        known = {identity: content for identity, (content, *_) in at_source.items() if identity in held}
        if known != held:  # another process may have ingested meanwhile, also a key that was new
            sources = _sources(transaction, target)
            at_source = at_source | _rows_at(
                transaction.session, sources, state, transaction.keyring, target, every_spelling=True
            )
        missing = sum(identity not in at_source for identity in held)
        changed = sum(
            at_source[identity][0] != content for identity, content in held.items() if identity in at_source
        )
        if missing or changed:
            raise VaultError(
                f"of the {len(held)} rows that the vault has counted for this request, {missing} are no"
                f" longer at their source and {changed} have changed there: forget before deleting at the"
                " source; now run armnesia rebuild"
            )
        sums: defaultdict[int, list[tuple[int, int, int, bool]]] = defaultdict(list)
        for _, arm, units, decision in map(at_source.__getitem__, held):
            sums[decision].append((arm, 1, units, units in (0, UNIT)))
        return sums

    def delete(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceRows | None
    ) -> DeletedRecords:
        """Compare with the sources, then delete the digests and check them against the tallies."""
        found = self.find(transaction, target, lookup)
        return DeletedRecords(found, *delete_and_check(transaction, self.layout, target))

    def check_source(self, session: Session, source: Source) -> None:
        """Refuse a dataframe, which cannot be opened again, and conditions that may name people."""
        if not source.can_be_reopened:
            raise VaultError("an external vault looks people up at the source: give a file or a table")
        role_of = {"user": "user"}  # also where this source names no user column, or another
        for role in ("id", "user"):
            names = [*known_columns(session, role), source.columns.named().get(role)]
            role_of |= {name.casefold(): role for name in names if name is not None}
        for condition in source.where:
            role = role_of.get(condition.column.casefold(), "")
            if role:
                raise VaultError(
                    "an external vault stores the conditions of its sources, so they must not be on the"
                    f" {role} column of this source or of an earlier one; got one on {condition.column!r}"
                )

    def check_corrections(self, source: Source) -> None:
        """Refuse: the old rows are at their sources, and not here."""
        raise VaultError(f"an external vault holds no rows that others could replace: {self.corrections}")

    def source_description(self, source: Source) -> Mapping[str, Any]:
        """Where the source is, and all its columns: it is opened again from this."""
        return source_address(source.description)

    def columns(self, keyring: Keyring, incoming: IncomingRows) -> Columns:
        """Identity, owner, content digest and source."""
        decisions = incoming.decisions.tolist() if self.layout.keyed else [None] * len(incoming)
        contents = [
            keyring.record_content(identity, incoming.users[place], arm, units, decision)
            for identity, place, arm, units, decision in zip(
                incoming.identities.tolist(),
                incoming.places.tolist(),
                incoming.arms.tolist(),
                incoming.units.tolist(),
                decisions,
                strict=True,
            )
        ]
        return {
            "identity": incoming.identities,
            "owner": incoming.owners,
            "content": packed(contents),
            "source": np.full(len(incoming), incoming.source, np.int32),
        }

    def contradicts(self, incoming: Row, held: Row) -> bool:
        """Whether the content digests differ."""
        return bool(bytes(held[2]) != incoming[2])

    def scan(
        self,
        session: Session,
        keyring: Keyring,
        suppressed: Suppressed,
        *,
        counter: RowCounter | None = None,
        digest_keyring: Keyring | None = None,
    ) -> RecordScan:
        """Compute the digests only: what the records say is known at the sources.

        Progress does not count these rows: they are counted where they are read at their sources.
        """
        tallies = TallyObserver(keyring)
        digests = compute_digests(session, digest_keyring or keyring, self.layout, observers=[tallies])
        return RecordScan(digests, needs_recount=True, tallied=tallies.number, tally_digest=tallies.digest)

    def problems(
        self,
        session: Session,
        state: State,
        keyring: Keyring,
        scan: RecordScan,
        decisions: Iterable[VaultDecision],
        counter: RowCounter,
    ) -> tuple[list[str], list[str]]:
        """Compare with the sources as they are now, without the rows of forgotten people."""
        problems: list[str] = []
        notes: list[str] = []
        held = tables.count_by_source(session)
        comparison = _SourceComparison(session, state, keyring)
        for number, description in _descriptions(session):
            where = f"source {source_name(description)!r}"
            counts = _RowCounts()
            try:
                comparison.read(number, description, counts, counter)
            except ArmnesiaError as error:
                told = str(error)  # most errors of a source name it themselves
                problems.append(told if told.startswith(where) else f"{where}: {told}")
                continue
            missing = held.get(number, 0) - counts.present
            if missing > 0:
                problems.append(f"{where}: {missing} rows that the vault has counted are no longer there")
            if counts.changed:
                problems.append(f"{where}: {counts.changed} rows have changed since they were ingested")
            if counts.new:
                notes.append(f"{where}: {counts.new} rows are new since the last ingest")
            if counts.forgotten:
                notes.append(
                    f"{where}: {counts.forgotten} rows of forgotten people or records are still present;"
                    " delete them"
                )
        found = {place: (count, total) for place, (count, total) in comparison.sums.items()}
        return problems + statistics_problems(decisions, state, found, "the sources' rows"), notes

    def matches(self, scan: RecordScan, state: State) -> bool:
        """Whether no digest of a row was changed; sources may have been dropped just now."""
        return scan.digests.record == state.digests.record

    def content_digest(self, session: Session, keyring: Keyring) -> int:
        """Of identities, owners and contents: a recount may find a row at another source that has it."""
        rows = (row[:_SOURCE] for row in tables.stream_records(session, self.layout))
        return TableDigests().update(keyring, "record", rows).record

    def recount(
        self,
        transaction: Transaction,
        scan: RecordScan,
        decisions: Sequence[VaultDecision] = (),
        counter: RowCounter | None = None,
    ) -> State:
        """Read every source again, in this transaction."""
        session, state = transaction.session, transaction.state
        actions = state.configuration.actions
        if actions is None:
            return state
        tables.delete_all_records(session)
        state = replace(state, digests=state.digests._replace(record=0))
        if state.configuration.by:
            empty = [_without_records(decision, len(actions)) for decision in decisions]
            empty = decided(empty, state.configuration)
            transaction.store(put_all_decisions(session, state, transaction.keyring, empty))
        else:
            stream = state.require_stream()
            nothing = stream.statistics.without(stream.statistics)
            transaction.store(state.with_stream(replace(stream, statistics=nothing)))
        for _, description in _descriptions(session):
            source = _reopened(description, state.configuration)
            user_type = user_type_for(transaction.state, source)
            loader = RecordLoader(transaction, self, source, actions, user_type, recounts=True)
            names = UserNames.of(user_type)
            for rows in source.rows(
                actions,
                state.configuration.reward_range,
                user_names=names,
                plain_booleans=state.configuration.plain_booleans,
            ):
                loader.add(rows)
                if counter is not None:
                    counter.add(len(rows))
            loader.store()
        if state.configuration.by:
            return self._with_arms_kept(transaction, decisions)
        return transaction.state

    @staticmethod
    def _with_arms_kept(transaction: Transaction, before: Sequence[VaultDecision]) -> State:
        """Let decisions whose statistics are as before serve what they served."""
        state = transaction.state
        now = read_all_decisions(transaction.session, state, transaction.keyring)
        pairs = zip(before, now, strict=False)
        same = [old for old, new in pairs if old != new and old.statistics == new.statistics]
        return put_decisions(transaction, state, same)

    def sources(self, session: Session) -> tuple[HeldSource, ...]:
        """Each source, and how many records it brought."""
        counts = tables.count_by_source(session)
        return tuple(
            HeldSource(source_name(description), int(counts.get(number, 0)))
            for number, description in _descriptions(session)
        )

    def drop_sources(self, session: Session, names: Iterable[str]) -> None:
        """Remove sources that no longer exist: their records no longer count."""
        known: dict[str, list[int]] = {}  # one place may have been read by different columns
        for number, description in _descriptions(session):
            known.setdefault(source_name(description), []).append(number)
        for name in names:
            if name not in known:
                raise unknown_source(name, known)
            for number in known[name]:
                tables.delete_source(session, number)


def _reopened(description: Mapping[str, Any], configuration: Configuration) -> Source:
    """Open a source of the vault again, with its key columns; say what to do if it cannot be opened."""
    try:
        source = reopen_source(description, decimals_as_written=not configuration.plain_decimals)
    except ArmnesiaError as error:
        raise VaultError(
            f"{error}; the vault has rows from this source: restore it or, if it no longer exists, run"
            f" armnesia rebuild --without {source_name(description)}"
        ) from None
    except (LookupError, TypeError):  # a part of the description is missing, or has another type
        raise changed_values() from None
    return source.keyed_by(configuration.key_columns)


def _without_records(decision: VaultDecision, n_arms: int) -> VaultDecision:
    nothing = (0,) * n_arms
    return replace(decision, statistics=replace(decision.statistics, counts=nothing, units=nothing))


@dataclass
class _RowCounts:
    """The rows of a source against what the vault counted of it.

    A row that several sources have is counted with the one that brought it first.
    """

    present: int = 0
    new: int = 0
    changed: int = 0
    forgotten: int = 0


class _SourceComparison:
    """Reads sources and compares their rows with the digests in the vault."""

    def __init__(self, session: Session, state: State, keyring: Keyring) -> None:
        self._session, self._state, self._keyring = session, state, keyring
        self._numbers = DecisionNumbers(session, state, only_known=True) if state.configuration.by else None
        self.sums: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        """Per decision and arm, the count and the units of all rows that the vault counted."""

    def read(
        self, number: int, description: Mapping[str, Any], counts: _RowCounts, counter: RowCounter
    ) -> None:
        """Read a source and compare each of its rows."""
        configuration = self._state.configuration
        for rows in _reopened(description, configuration).rows(
            self._state.require_actions(),
            configuration.reward_range,
            user_names=UserNames.of(configuration.user_type),
            plain_booleans=configuration.plain_booleans,
        ):
            names = identities(self._keyring.record_identities, rows)
            # An id that occurred before names the same row again.
            again = rows.ordinals if rows.ids is not None else [0] * len(names)
            first = {place: name for place, name in enumerate(names) if not again[place]}
            self._compare(number, rows, first, counts)
            counter.add(len(names))

    def _compare(self, number: int, rows: Rows, names: Mapping[int, bytes], counts: _RowCounts) -> None:
        keyring, session = self._keyring, self._session
        held = tables.read_external_records(session, list(names.values()))
        users = {user: keyring.user_digest(user) for user in set(rows.users) if user is not None}
        records = {name: keyring.suppressed_record_digest(name) for name in names.values()}
        suppressed = tables.suppressed_among(session, [*users.values(), *records.values()])
        decisions = _decisions_of(self._numbers, rows)
        for place, name in names.items():
            user, arm, units = rows.users[place], rows.arms[place], rows.units[place]
            if name in held:
                owner, content, source = held[name]
                true_owner = None if user is None else keyring.owner_digest(user)
                true_content = keyring.record_content(name, user, arm, units, decisions[place])
                counts.changed += (owner, content) != (true_owner, true_content)
                if source == number:
                    counts.present += 1
                    sums = self.sums[decisions[place] or FIRST, arm]
                    sums[0] += 1
                    sums[1] += units
            elif (user is not None and users[user] in suppressed) or records[name] in suppressed:
                counts.forgotten += 1
            else:
                counts.new += 1
