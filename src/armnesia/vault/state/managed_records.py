"""Managed records: the rows are in the vault, with the action, the reward and a digest of the user."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.messages import counted
from armnesia.core.progress import RowCounter
from armnesia.core.units import UNIT
from armnesia.logs import Source
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.keys.canonical_json import canonical
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.results.sources import HeldSource
from armnesia.vault.state.decision_table import decided, put_all_decisions, stacked
from armnesia.vault.state.decisions import FIRST, VaultDecision
from armnesia.vault.state.owner_tallies import (
    IDENTITY,
    OWNER,
    TallyObserver,
    confirm_absence,
    confirm_nobody,
    remove_from_tallies,
)
from armnesia.vault.state.records import (
    DecisionSums,
    DeletedRecords,
    IncomingRows,
    Records,
    RecordScan,
    statistics_problems,
)
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_columns import columns_of
from armnesia.vault.state.suppression import Suppressed
from armnesia.vault.state.table_digests import TableDigests, compute_digests, row_texts
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.digest_arrays import Columns
from armnesia.vault.storage.schema import MANAGED_LAYOUT, WITH_TALLIES, RecordLayout

if TYPE_CHECKING:
    from armnesia.vault.state.source_lookup import SourceLookup

_EXTREMES = {0, UNIT}
_AT_ONCE = 10_000
"""Deleted records that are in memory at the same time."""


class ManagedRecords(Records):
    """The rows themselves are in the table `record`."""

    corrections: ClassVar[str] = (
        "rows that were corrected at their source need replace=True (--replace), unless this export is older"
        " than the correction: then leave these rows out"
    )

    def __init__(self, layout: RecordLayout = MANAGED_LAYOUT) -> None:
        self.layout = layout

    def count(self, session: Session) -> int:
        """By the table."""
        return tables.count_records(session)

    def look_up(
        self,
        reading: Callable[[], AbstractContextManager[Transaction]],
        target: ErasureTarget,
        *,
        exactly: bool,
    ) -> None:
        """Nothing takes long: the rows are here."""

    def find(
        self, transaction: Transaction, target: ErasureTarget, lookup: "SourceLookup | None"
    ) -> DecisionSums:
        """Add the rows up."""
        keys = target.row_keys(transaction.keyring)
        found: defaultdict[int, list[tuple[int, int, int, bool]]] = defaultdict(list)
        sums = tables.sum_records(transaction.session, self.layout, target.row_column, keys)
        for decision, arm, n, total, binary in sums:
            found[decision].append((arm, n, int(total), bool(binary)))
        return found

    def delete(
        self, transaction: Transaction, target: ErasureTarget, lookup: "SourceLookup | None"
    ) -> DeletedRecords:
        """Delete the rows, confirm by another way than the index that they are all, and add them up."""
        session, keys = transaction.session, target.row_keys(transaction.keyring)
        rows = tables.delete_records(session, self.layout, target.row_column, keys)
        texts, key = row_texts(rows), OWNER if target.users else IDENTITY
        held = {bytes(row[key]) for row in rows}
        if not target.users:  # also where some were found: the index may hide others
            confirm_absence(session, keys)
        owners = keys if target.users else ()
        to_tallies = remove_from_tallies(session, transaction.keyring, self.layout, owners, rows, texts)
        return DeletedRecords(sums_of_rows(rows), rows, held, to_tallies, texts)

    def confirm_nobody(self, transaction: Transaction, owners: Sequence[bytes]) -> None:
        """By the people beside them."""
        confirm_nobody(transaction, owners)

    def names_held(
        self, transaction: Transaction, target: ErasureTarget, lookup: "SourceLookup | None"
    ) -> set[bytes]:
        """By the index and the tallies."""
        return self.keys_held(transaction, target, target.row_keys(transaction.keyring), lookup)

    def keys_held(
        self,
        transaction: Transaction,
        target: ErasureTarget,
        keys: Sequence[bytes],
        lookup: "SourceLookup | None",
    ) -> set[bytes]:
        """By the index and, because it alone may be damaged, by the tallies."""
        held = tables.keys_with_records(transaction.session, target.row_column, keys)
        if target.users and transaction.state.version >= WITH_TALLIES:
            held |= tables.owners_with_tally(transaction.session, keys)
        return held

    def some_without_user(self, session: Session, lookup: "SourceLookup | None") -> bool:
        """By the index of owners."""
        return tables.has_records_without_owner(session)

    def check_source(self, session: Session, source: Source) -> None:
        """Rows may come from any source."""

    def check_corrections(self, source: Source) -> None:
        """Refuse rows without ids: nothing says which record they correct."""
        if source.columns.id is None:
            raise InvalidInputError(
                "corrections need the id column, which says which record a row replaces: name it with id"
                " (--id-column); records that came in without ids cannot be corrected"
            )

    def register_source(self, transaction: Transaction, source: Source) -> tuple[int, TableDigests]:
        """Store the columns of a source, by which later ones are compared: its number and the digests."""
        description, digests = canonical({"columns": columns_of(source)}), transaction.state.digests
        number, is_new = tables.add_source(transaction.session, description)
        if is_new:
            digests = digests.update(transaction.keyring, "source", [(number, description)])
        return number, digests

    def columns(self, keyring: Keyring, incoming: IncomingRows) -> Columns:
        """Identity, owner, arm and units, and with key columns the decision."""
        columns: Columns = {
            "identity": incoming.identities,
            "owner": incoming.owners,
            "arm": incoming.arms.astype(np.int32),
            "units": incoming.units,
        }
        return {**columns, "decision": incoming.decisions.astype(np.int32)} if self.layout.keyed else columns

    def contradicts(self, incoming: Row, held: Row) -> bool:
        """Whether owner, arm, units or decision differ."""
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
        sums = {place: (count, total) for place, (count, total) in observer.sums.items()}
        forgotten = tuple(observer.forgotten)
        return RecordScan(digests, bool(forgotten), sums, forgotten, tallies)

    def problems(
        self,
        session: Session,
        state: State,
        keyring: Keyring,
        scan: RecordScan,
        decisions: Iterable[VaultDecision],
        counter: RowCounter,
    ) -> tuple[list[str], list[str]]:
        """Compare the sums of the rows with the statistics."""
        problems = statistics_problems(decisions, state, scan.sums, "the vault's rows")
        if scan.forgotten:
            kinds = ("row of forgotten people or records is", "rows of forgotten people or records are")
            problems.append(f"records: {counted(len(scan.forgotten), *kinds)} present")
        return problems, []

    def matches(self, scan: RecordScan, state: State) -> bool:
        """Whether no row was changed."""
        return scan.digests == state.digests._replace(decision=0)

    def recount(
        self,
        transaction: Transaction,
        scan: RecordScan,
        decisions: Sequence[VaultDecision] = (),
        counter: RowCounter | None = None,
    ) -> State:
        """Take the statistics from the scan; delete the records of forgotten people."""
        state = transaction.state
        digests, sums = state.digests, dict(scan.sums)
        for start in range(0, len(scan.forgotten), _AT_ONCE):
            some = scan.forgotten[start : start + _AT_ONCE]
            deleted = tables.delete_records(transaction.session, self.layout, "identity", some)
            digests = digests.update(transaction.keyring, "record", deleted)
            for number, own in sums_of_rows(deleted).items():
                for arm, count, total, _ in own:
                    before = sums.get((number, arm), (0, 0))
                    sums[number, arm] = (before[0] - count, before[1] - total)
        state = replace(state, digests=digests)
        if state.configuration.by:
            counted = [_counted(decision, sums, len(state.actions)) for decision in decisions]
            _refuse_unknown({place for place, own in sums.items() if own != (0, 0)}, counted, state)
            changed = zip(decisions, counted, strict=True)
            again = [new for old, new in changed if new.statistics != old.statistics]
            return put_all_decisions(
                transaction.session, state, transaction.keyring, decided(again, state.configuration)
            )
        if state.decision is None:
            return state
        counted_one = _counted(state.decision, sums, len(state.actions))
        _refuse_unknown({place for place, own in sums.items() if own != (0, 0)}, [counted_one], state)
        return state.with_stream(counted_one.statistics.stream(state.configuration))

    def sources(self, session: Session) -> tuple[HeldSource, ...]:
        """None: the rows are here."""
        return ()


def sums_of_rows(rows: Iterable[Row]) -> dict[int, list[tuple[int, int, int, bool]]]:
    """Per decision and arm: how many rows, the sum of their units, and whether all are 0 or 1."""
    units: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for row in rows:
        units[row[4] if len(row) > 4 else FIRST, row[2]].append(row[3])
    found: defaultdict[int, list[tuple[int, int, int, bool]]] = defaultdict(list)
    for (number, arm), own in units.items():
        found[number].append((arm, len(own), sum(own), _EXTREMES.issuperset(own)))
    return found


class _RecordObserver:
    """Adds up the records that pass by, and notes those that must not be there."""

    def __init__(self, keyring: Keyring, suppressed: Suppressed) -> None:
        self._keyring, self._users, self._records = keyring, suppressed["user"], suppressed["record"]
        self.sums: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        self.forgotten: list[bytes] = []

    def observe(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the same rows."""
        for row in rows:
            identity, owner, arm, units, *decision = row
            sums = self.sums[decision[0] if decision else FIRST, arm]
            sums[0] += 1
            sums[1] += units
            if self._is_forgotten(identity, owner):
                self.forgotten.append(bytes(identity))
            yield row

    def _is_forgotten(self, identity: bytes, owner: bytes | None) -> bool:
        if self._users and owner is not None and self._keyring.digest_of_owner(owner) in self._users:
            return True
        return bool(self._records) and self._keyring.suppressed_record_digest(identity) in self._records


def _counted(
    decision: VaultDecision, sums: Mapping[tuple[int, int], tuple[int, int]], n_arms: int
) -> VaultDecision:
    """The decision with the statistics that its records add up to; what was deleted before stays."""
    own = [sums.get((decision.number, arm), (0, 0)) for arm in range(n_arms)]
    counts, units = zip(*own, strict=True)
    return replace(decision, statistics=replace(decision.statistics, counts=counts, units=units))


def _refuse_unknown(places: set[tuple[int, int]], decisions: Sequence[VaultDecision], state: State) -> None:
    """Refuse sums that no records can have, and records of decisions or arms that there are not."""
    known = {(decision.number, arm) for decision in decisions for arm in range(len(state.actions))}
    with suppress(InvalidInputError):
        if places <= known and (not decisions or stacked(decisions, state.configuration)):
            return
    raise VaultError(
        "the vault has rows that no ingest stored, with arms or rewards that do not exist: restore a backup"
    )
