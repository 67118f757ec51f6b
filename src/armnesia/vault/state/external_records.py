"""External records: the rows stay at their sources; the vault holds keyed digests of them."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.core.progress import RowCounter
from armnesia.core.request import DeletionRequest
from armnesia.core.units import UNIT
from armnesia.logs import Rows, Source, reopen_source, source_name
from armnesia.logs.identities import identities
from armnesia.logs.user_names import UserNames
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.results import HeldSource
from armnesia.vault.state.diagnosis import changed_values
from armnesia.vault.state.owner_tallies import TallyObserver, delete_and_check
from armnesia.vault.state.record_loader import RecordLoader, user_names_of, user_type_for
from armnesia.vault.state.records import (
    DeletedRecords,
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
    sources: list[dict[str, Any]], state: State, keyring: Keyring, target: ErasureTarget, every_spelling: bool
) -> SourceRows:
    """Read the rows of a request at their sources.

    A source may spell a name otherwise than the vault, but looking for every spelling reads all of it.
    """
    found: SourceRows = {}
    for description in sources:
        source, statistics = _reopened(description), state.require_stream().statistics
        if (source.columns.user if target.users else source.columns.id) is None:
            continue  # no row of this source can be named by the request
        for rows in source.rows(
            statistics.actions,
            statistics.reward_range,
            users=target.users or None,
            ids=target.records or None,
            user_names=user_names_of(state),
            every_spelling=every_spelling,
            plain_booleans=state.configuration.plain_booleans,
        ):
            for place, identity in enumerate(identities(keyring.record_identity, rows)):
                arm, units = rows.arms[place], rows.units[place]
                content = keyring.record_content(identity, rows.users[place], arm, units)
                found[identity] = (content, arm, units)
    return found


class ExternalRecords(Records):
    """The table `record` holds keyed digests of rows that stay at their sources."""

    layout: ClassVar[RecordLayout] = EXTERNAL_LAYOUT
    erasure_excludes: ClassVar[str] = (
        "; not the source of the records, where they stay until they are deleted there"
    )

    def look_up(
        self, reading: Callable[[], AbstractContextManager[Transaction]], target: ErasureTarget
    ) -> SourceRows:
        """Look the rows up at their sources."""
        with reading() as transaction:
            state, keyring = transaction.state, transaction.keyring
            target = target.normalised(state.configuration.user_type)
            sources, held = _sources(transaction, target), _contents(transaction, target).keys()
        found = _rows_at(sources, state, keyring, target, every_spelling=False)
        if not held <= found.keys():
            found |= _rows_at(sources, state, keyring, target, every_spelling=True)
        return found

    def find(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceRows | None
    ) -> DeletionRequest | None:
        """Compare what the vault counted with the rows at the sources, and add them up."""
        state, held, at_source = transaction.state, _contents(transaction, target), lookup or {}
        if not held.keys() <= at_source.keys():  # another process may have ingested meanwhile
            sources = _sources(transaction, target)
            at_source = at_source | _rows_at(sources, state, transaction.keyring, target, every_spelling=True)
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
        found = (at_source[identity][1:] for identity in held)
        sums = ((arm, 1, units, units in (0, UNIT)) for arm, units in found)
        return DeletionRequest.from_sums(state.require_stream().statistics, sums) if held else None

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

    def source_description(self, source: Source) -> Mapping[str, Any]:
        """Where the source is, and all its columns: it is opened again from this."""
        return source.description

    def incoming_row(
        self, keyring: Keyring, rows: Rows, place: int, identity: bytes, owner: bytes | None, source: int
    ) -> Row:
        """Identity, owner, content digest and source; arm and units are only added up."""
        user, arm, units = rows.users[place], rows.arms[place], rows.units[place]
        return (identity, owner, keyring.record_content(identity, user, arm, units), source, arm, units)

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
        """Compute the digests only: what the records say is known at the sources."""
        tallies = TallyObserver(keyring)
        digests = compute_digests(
            session, digest_keyring or keyring, self.layout, counter=counter, observers=[tallies]
        )
        return RecordScan(digests, needs_recount=True, tallied=tallies.number, tally_digest=tallies.digest)

    def problems(
        self, session: Session, state: State, keyring: Keyring, scan: RecordScan, counter: RowCounter
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
                problems.append(f"{where}: {error}")
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
                    f"{where}: {counts.forgotten} rows of forgotten people are still present; delete them"
                )
        found = {arm: (int(count), int(total)) for arm, (count, total) in enumerate(comparison.sums)}
        return problems + statistics_problems(state, found, "the sources' rows"), notes

    def matches(self, scan: RecordScan, state: State) -> bool:
        """Whether no digest of a row was changed; sources may have been dropped just now."""
        return scan.digests.record == state.digests.record

    def content_digest(self, session: Session, keyring: Keyring) -> int:
        """Of identities, owners and contents: a recount may find a row at another source that has it."""
        rows = (row[:_SOURCE] for row in tables.stream_records(session, self.layout))
        return TableDigests().update(keyring, "record", rows).record

    def recount(self, transaction: Transaction, scan: RecordScan, counter: RowCounter | None = None) -> State:
        """Read every source again, in this transaction."""
        if transaction.state.stream is None:
            return transaction.state
        session, state, stream = transaction.session, transaction.state, transaction.state.stream
        tables.delete_all_records(session)
        nothing = stream.statistics.without(stream.statistics)
        digests = state.digests._replace(record=0)
        transaction.store(replace(state, stream=replace(stream, statistics=nothing), digests=digests))
        for _, description in _descriptions(session):
            source = _reopened(description)
            user_type = user_type_for(transaction.state, source)
            loader = RecordLoader(transaction, self, source, nothing.actions, user_type)
            names = UserNames.of(user_type)
            for rows in source.rows(
                nothing.actions,
                nothing.reward_range,
                user_names=names,
                plain_booleans=state.configuration.plain_booleans,
            ):
                loader.add(rows)
                if counter is not None:
                    counter.add(len(rows))
            loader.store()
        return transaction.state

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


def _reopened(description: Mapping[str, Any]) -> Source:
    """Open a source of the vault again; say what to do if it cannot be opened."""
    try:
        return reopen_source(description)
    except ArmnesiaError as error:
        raise VaultError(
            f"{error}; the vault has rows from this source: restore it or, if it no longer exists, run"
            f" armnesia rebuild --without {source_name(description)}"
        ) from None
    except (LookupError, TypeError):  # a part of the description is missing, or has another type
        raise changed_values() from None


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
        n_arms = 0 if state.stream is None else state.stream.statistics.n_actions
        self.sums = np.zeros((n_arms, 2), dtype=object)
        """Per arm, the count and the units of all rows that the vault counted."""

    def read(
        self, number: int, description: Mapping[str, Any], counts: _RowCounts, counter: RowCounter
    ) -> None:
        """Read a source and compare each of its rows."""
        statistics = self._state.require_stream().statistics
        for rows in _reopened(description).rows(
            statistics.actions,
            statistics.reward_range,
            user_names=user_names_of(self._state),
            plain_booleans=self._state.configuration.plain_booleans,
        ):
            names = identities(self._keyring.record_identity, rows)
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
        for place, name in names.items():
            user, arm, units = rows.users[place], rows.arms[place], rows.units[place]
            if name in held:
                owner, content, source = held[name]
                true_owner = None if user is None else keyring.owner_digest(user)
                true_content = keyring.record_content(name, user, arm, units)
                counts.changed += (owner, content) != (true_owner, true_content)
                if source == number:
                    counts.present += 1
                    self.sums[arm] += (1, units)
            elif (user is not None and users[user] in suppressed) or records[name] in suppressed:
                counts.forgotten += 1
            else:
                counts.new += 1
