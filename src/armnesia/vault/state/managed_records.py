"""Managed records: the rows are in the vault, with the action, the reward and a digest of the user."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.progress import RowCounter
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.logs import Rows, Source
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.results import HeldSource
from armnesia.vault.state.owner_tallies import TallyObserver, delete_and_check
from armnesia.vault.state.records import (
    DeletedRecords,
    Records,
    RecordScan,
    SourceRows,
    statistics_problems,
)
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_columns import columns_of
from armnesia.vault.state.suppression import Suppressed
from armnesia.vault.state.table_digests import compute_digests
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.schema import MANAGED_LAYOUT, RecordLayout

_AT_ONCE = 10_000
"""Deleted records that are in memory at the same time."""


class ManagedRecords(Records):
    """The rows themselves are in the table `record`."""

    layout: ClassVar[RecordLayout] = MANAGED_LAYOUT

    def look_up(
        self, reading: Callable[[], AbstractContextManager[Transaction]], target: ErasureTarget
    ) -> None:
        """Nothing takes long: the rows are here."""

    def find(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceRows | None
    ) -> DeletionRequest | None:
        """Add the rows up."""
        keys = target.row_keys(transaction.keyring)
        sums = tables.sum_records(transaction.session, target.row_column, keys)
        if not sums:
            return None
        found = ((arm, n, int(total), bool(binary)) for arm, n, total, binary in sums)
        return DeletionRequest.from_sums(transaction.state.require_stream().statistics, found)

    def delete(
        self, transaction: Transaction, target: ErasureTarget, lookup: SourceRows | None
    ) -> DeletedRecords:
        """Delete the rows, check them against the tallies, and add them up."""
        rows, held, to_tallies = delete_and_check(transaction, self.layout, target)
        sums = ((arm, 1, units, units in (0, UNIT)) for *_, arm, units in rows)
        statistics = transaction.state.require_stream().statistics if rows else None
        request = None if statistics is None else DeletionRequest.from_sums(statistics, sums)
        return DeletedRecords(request, rows, held, to_tallies)

    def check_source(self, session: Session, source: Source) -> None:
        """Rows may come from any source."""

    def source_description(self, source: Source) -> Mapping[str, Any]:
        """The columns alone: records do not name their source."""
        return {"columns": columns_of(source)}

    def incoming_row(
        self, keyring: Keyring, rows: Rows, place: int, identity: bytes, owner: bytes | None, source: int
    ) -> Row:
        """Identity, owner, arm and units."""
        return (identity, owner, rows.arms[place], rows.units[place])

    def contradicts(self, incoming: Row, held: Row) -> bool:
        """Whether owner, arm or units differ."""
        owner = None if held[1] is None else bytes(held[1])
        return (owner, *held[2:]) != tuple(incoming[1:])

    def scan(
        self,
        session: Session,
        keyring: Keyring,
        suppressed: Suppressed,
        *,
        counter: RowCounter | None = None,
        digest_keyring: Keyring | None = None,
    ) -> RecordScan:
        """Add the records up and look for those of forgotten people while the digests are computed."""
        observer, tallies = _RecordObserver(keyring, suppressed), TallyObserver(keyring)
        digests = compute_digests(
            session, digest_keyring or keyring, self.layout, counter=counter, observers=[observer, tallies]
        )
        sums = {arm: (count, total) for arm, (count, total) in observer.sums.items()}
        forgotten = tuple(observer.forgotten)
        return RecordScan(digests, bool(forgotten), sums, forgotten, tallies.number, tallies.digest)

    def problems(
        self, session: Session, state: State, keyring: Keyring, scan: RecordScan, counter: RowCounter
    ) -> tuple[list[str], list[str]]:
        """Compare the sums of the rows with the statistics."""
        problems = statistics_problems(state, scan.sums, "the vault's rows")
        if scan.forgotten:
            problems.append(f"records: {len(scan.forgotten)} rows of forgotten people or records are present")
        return problems, []

    def matches(self, scan: RecordScan, state: State) -> bool:
        """Whether no row was changed."""
        return scan.digests == state.digests

    def recount(self, transaction: Transaction, scan: RecordScan, counter: RowCounter | None = None) -> State:
        """Take the statistics from the scan; delete the records of forgotten people."""
        state = transaction.state
        if state.stream is None:
            return state
        statistics = _statistics(scan, state.stream.statistics)
        digests, sums = state.digests, []
        for start in range(0, len(scan.forgotten), _AT_ONCE):
            some = scan.forgotten[start : start + _AT_ONCE]
            deleted = tables.delete_records(transaction.session, self.layout, "identity", some)
            digests = digests.update(transaction.keyring, "record", deleted)
            sums += _sums(deleted)
        forgotten = DeletionRequest.from_sums(statistics, sums)
        if forgotten is not None:
            statistics = statistics.without(forgotten)
            state = replace(state, digests=digests)
        return state.with_stream(replace(state.require_stream(), statistics=statistics))

    def sources(self, session: Session) -> tuple[HeldSource, ...]:
        """None: the rows are here."""
        return ()


def _sums(rows: Iterable[Row]) -> list[tuple[int, int, int, bool]]:
    """Per arm: how many rows, the sum of their units, and whether all are the lowest or the highest."""
    found: dict[int, tuple[int, int, bool]] = {}
    for *_, arm, units in rows:
        count, total, binary = found.get(arm, (0, 0, True))
        found[arm] = (count + 1, total + units, binary and units in (0, UNIT))
    return [(arm, *numbers) for arm, numbers in found.items()]


class _RecordObserver:
    """Adds up the records that pass by, and notes those that must not be there."""

    def __init__(self, keyring: Keyring, suppressed: Suppressed) -> None:
        self._keyring, self._users, self._records = keyring, suppressed["user"], suppressed["record"]
        self.sums: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0])
        self.forgotten: list[bytes] = []

    def observe(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the same rows."""
        for row in rows:
            identity, owner, arm, units = row
            sums = self.sums[arm]
            sums[0] += 1
            sums[1] += units
            if self._is_forgotten(identity, owner):
                self.forgotten.append(bytes(identity))
            yield row

    def _is_forgotten(self, identity: bytes, owner: bytes | None) -> bool:
        if self._users and owner is not None and self._keyring.digest_of_owner(owner) in self._users:
            return True
        return bool(self._records) and self._keyring.suppressed_record_digest(identity) in self._records


def _statistics(scan: RecordScan, like: ArmStatistics) -> ArmStatistics:
    """The statistics that all records add up to."""
    counts, sums = zip(*(scan.sums.get(arm, (0, 0)) for arm in range(like.n_actions)), strict=True)
    try:
        if set(scan.sums) <= set(range(like.n_actions)):
            return ArmStatistics(like.actions, np.array(counts), np.array(sums), like.reward_range)
    except InvalidInputError:
        pass
    raise VaultError(
        "the vault has rows that no ingest stored, with arms or rewards that do not exist: restore a backup"
    )
