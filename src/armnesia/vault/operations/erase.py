"""Erasing at the sources: rows of forgotten people are deleted where an external vault has counted others.

Erasers can be run again at any point, so nothing is planned or noted before. When they are done, all sources
are counted again: this shows that none of the people is left at the version that the ledger then names, and
what else has changed counts, as after an ingest. Killed in between, the next run finds less to do.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from armnesia.core.errors import (
    ArmnesiaError,
    DatabaseError,
    InvalidInputError,
    PartlyErasedError,
    UnsupportedError,
    VaultBusyError,
    VaultError,
)
from armnesia.core.messages import system_failure, without_unchanged
from armnesia.logs.erase.eraser import Eraser
from armnesia.logs.statements import Chosen
from armnesia.vault.configuration import Configuration
from armnesia.vault.ledger.source_claim import ERASURE, SourceState
from armnesia.vault.results.sources import ErasurePreview, RowsAtSource, SourceErasures
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.counted_sources import (
    CountedSource,
    checked_sources,
    put_sources,
    read_sources,
    refuse_overlaps,
)
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_commands import ingest_command, rebuild_command
from armnesia.vault.state.source_counting import CountedRows, SourceCounter, Update, dependencies
from armnesia.vault.state.source_erasures import (
    check_may_erase,
    dropped_unerased,
    last_erasures,
    read_erasures,
    requests_answered,
    source_statuses,
)
from armnesia.vault.state.source_statistics import with_update
from armnesia.vault.state.suppression import SuppressionList
from armnesia.vault.state.transaction import Transaction

with suppress(ImportError):  # absent on Windows
    import fcntl

_NAMES_NOBODY = (
    "the source has no column by which forgotten {} could be found in it, and none were looked for"
)
_FORGOTTEN = {"user": ("user", "people"), "record": ("id", "records")}
_ERASED = "rows were erased there"


def source_erasures(connection: VaultConnection) -> SourceErasures:
    """How far rows of forgotten people are erased at each source, and what is due."""
    with connection.reading() as transaction:
        configuration = transaction.state.configuration
        sources: list[CountedSource] = []
        if not connection.records.layout.holds_rows:
            sources = checked_sources(transaction.session, transaction.keyring, transaction.state.digests)
        found, dropped = source_statuses(transaction, sources), dropped_unerased(transaction, sources)
        return SourceErasures(configuration.may_erase_at_source, found, transaction.state.head, dropped)


def check_erasable(connection: VaultConnection, *, purge: bool, ignore_retention: bool) -> None:
    """Refuse, before anybody is forgotten, what could not be erased at the sources afterwards."""
    run = ErasureRun.begin(connection, purge=purge, ignore_retention=ignore_retention)
    for each in run.sources:
        _checked_eraser(each, run.counter.configuration)


def erase_at_sources(
    connection: VaultConnection, *, purge: bool = False, ignore_retention: bool = False
) -> SourceErasures:
    """Delete the rows of everybody who is forgotten, at all sources, and purge what still holds them.

    A source where that is not possible does not keep others from it; why it was not is raised at the end.
    """
    run = ErasureRun.begin(connection, purge=purge, ignore_retention=ignore_retention)
    with _alone(connection):
        run = ErasureRun.begin(connection, purge=purge, ignore_retention=ignore_retention)  # as it is now
        for each in run.sources:
            with run.noting_failure(each):
                run.erase(each)
        if len(run.as_before) < len(run.sources):
            run.record()
    found = replace(source_erasures(connection), deleted=tuple(run.deleted))
    if run.failures:
        raise run.combined(found)
    return found


def preview_erasure(connection: VaultConnection) -> ErasurePreview:
    """Count the rows of everybody who is forgotten at each source as it is now."""
    run = ErasureRun.begin(connection)
    found = []
    for each in run.sources:
        eraser = _checked_eraser(each, run.counter.configuration)
        people = run.people_at(eraser)
        number = eraser.find(people) if any(people) else 0
        found.append(RowsAtSource(each.number, each.name, number))
    return ErasurePreview(tuple(found))


@dataclass
class ErasureRun:
    """One run over all sources, by what the vault had at its beginning."""

    connection: VaultConnection
    counter: SourceCounter
    through: int
    """The last ledger entry when it was read who is forgotten."""
    depends_on: tuple[object, ...]
    sources: Sequence[CountedSource]
    last: Mapping[int, Mapping[str, Any]]
    """The last ledger entry about each source."""
    requests: Sequence[int]
    purge: bool
    ignore_retention: bool
    erased: dict[int, tuple[SourceState, datetime | None, tuple[str, ...]]] = field(default_factory=dict)
    """How far each source is now, from when on the rest may go, and what remains."""
    deleted: list[RowsAtSource] = field(default_factory=list)
    as_before: set[int] = field(default_factory=set)
    """The sources where nothing is left to do, and which are as they were counted."""
    failures: dict[int, ArmnesiaError | OSError] = field(default_factory=dict)

    @classmethod
    def begin(
        cls, connection: VaultConnection, *, purge: bool = False, ignore_retention: bool = False
    ) -> "ErasureRun":
        """Read the sources and who is forgotten; refuse a vault that may not erase."""
        if ignore_retention and not purge:
            raise InvalidInputError("ignore_retention is about a purge, which was not asked for; give both")
        with connection.reading() as transaction:
            session, state = transaction.session, transaction.state
            check_may_erase(state.configuration)
            sources = checked_sources(session, transaction.keyring, state.digests)
            suppressed = SuppressionList.read(transaction).digests
            return cls(
                connection,
                SourceCounter(state.configuration, transaction.keyring, suppressed),
                state.head.sequence,
                dependencies(state),
                sources,
                last_erasures(read_erasures(session, state.configuration)),
                requests_answered(session),
                purge,
                ignore_retention,
            )

    def people_at(self, eraser: Eraser) -> Chosen:
        """The forgotten people and records that a source has rows of."""
        source = eraser.now()
        with source.reading() as reading:
            return self.counter.forgotten_in(source, reading)

    def erase(self, each: CountedSource) -> None:
        """Delete rows at one source, and purge what still holds them."""
        eraser, last = _eraser(each, self.counter.configuration), self.last.get(each.number)
        through = 0 if last is None else last["through"]
        is_due = each.left_out or any(request > through for request in self.requests)
        is_done = last is None or last["state"] == SourceState.PURGED or self.waits(last)
        if is_done and not is_due and each.is_as_counted(eraser.source):
            self.as_before.add(each.number)
            return
        people = self.people_at(eraser)
        if any(people):
            _refuse_conditions(each, "--unerased")
        number = eraser.delete(people) if any(people) else 0
        if number:
            self.deleted.append(RowsAtSource(each.number, each.name, number))
        is_due = is_due or number > 0
        if is_done and not is_due:
            return
        due, state = None, SourceState.UNTOUCHED if last is None else SourceState(last["state"])
        if self.purge:
            due = eraser.purge(ignore_retention=self.ignore_retention)
            state = SourceState.PURGED if due is None else SourceState.LOGICALLY_DELETED
        elif is_due:
            state = SourceState.LOGICALLY_DELETED if eraser.keeps_old_rows else SourceState.PURGED
        if due is None and state is SourceState.LOGICALLY_DELETED and last is not None and last["due"]:
            due = datetime.fromisoformat(last["due"])  # what an earlier erasure has left is still there
        self.erased[each.number] = (state, due, eraser.remains)

    def waits(self, last: Mapping[str, Any]) -> bool:
        """Whether a purge would find that the retention of the source is not over."""
        if last["due"] is None or self.ignore_retention:
            return False
        return datetime.fromisoformat(last["due"]) > datetime.now(UTC)

    def record(self) -> None:
        """Count the sources as they are now; note in the ledger how far each is."""
        counted: dict[int, tuple[CountedRows, CountedSource]] = {}
        for each in self.sources:
            with self.noting_failure(each):
                counted[each.number] = self.counter.count_again(each)
        with self.connection.writing() as transaction:
            state = transaction.state
            # If somebody was forgotten meanwhile, the next operation counts again what has changed.
            is_current = dependencies(state) == self.depends_on
            if is_current and len(counted) == len(self.sources):
                rows, after = zip(*counted.values(), strict=True) if counted else ((), ())
                refuse_overlaps(after)
                state = with_update(transaction, state, Update.of(self.sources, after, rows, _ERASED))
            elif is_current:
                state = self._without_marks(transaction, state, counted)
            known = {each.number for each in read_sources(transaction.session)}
            for number in known & counted.keys() & self.erased.keys():
                self._append(transaction, number, *counted[number])
            if transaction.collected or state != transaction.state:
                transaction.store(state)

    def _without_marks(
        self, transaction: Transaction, state: State, counted: Mapping[int, tuple[CountedRows, CountedSource]]
    ) -> State:
        """The state where sources at which nobody is left are not said to have people."""
        empty = {number for number, (rows, _) in counted.items() if not rows.n_left_out}
        after = [
            replace(each, left_out=False)
            for each in self.sources
            if each.number in empty & self.erased.keys()
        ]
        digests, statements = put_sources(self.sources, after, transaction.keyring, state.digests)
        transaction.add(*statements)
        return replace(state, digests=digests)

    def _append(self, transaction: Transaction, number: int, rows: CountedRows, each: CountedSource) -> None:
        """Note how far a source is, unless the ledger says so already."""
        if rows.n_left_out:
            self.failures.setdefault(
                number, VaultError("rows of forgotten people came in meanwhile: run armnesia erase again")
            )
            return
        state, due, remains = self.erased[number]
        lacking = [
            _NAMES_NOBODY.format(words)
            for kind, (role, words) in _FORGOTTEN.items()
            if self.counter.suppressed[kind] and each.columns[role] is None
        ]
        facts: dict[str, Any] = {
            "source": number,
            "state": str(state),
            "version": each.short_version,
            "remains": [*remains, *lacking],
            "due": None if due is None else due.isoformat(),
            "through": self.through,
        }
        last, ignored = self.last.get(number), {"version", "through"}
        is_told = last is not None and all(last[name] == facts[name] for name in facts.keys() - ignored)
        if last is None or not is_told or any(last["through"] < request for request in self.requests):
            transaction.append(ERASURE, **facts)

    @contextmanager
    def noting_failure(self, each: CountedSource) -> Iterator[None]:
        """Go on with other sources where one fails, but not where the vault does."""
        try:
            with each.being_read():
                yield
        except (DatabaseError, VaultBusyError):
            raise
        except (ArmnesiaError, OSError) as error:
            self.failures.setdefault(each.number, error)

    def combined(self, found: SourceErasures) -> ArmnesiaError:
        """Why rows of some sources could not be erased, in one error that names them."""
        (first, *others) = self.failures.values()
        changed = found.head.sequence > self.through or self.deleted
        if not changed and not others and isinstance(first, ArmnesiaError):
            return first  # nothing at all was changed
        name_of = {each.number: each.name for each in self.sources}
        reasons = [_reason(name_of[number], error) for number, error in self.failures.items()]
        return PartlyErasedError("; ".join(reasons), found)


def _eraser(each: CountedSource, configuration: Configuration) -> Eraser:
    with each.being_read():
        return each.opened(configuration).eraser()


def _checked_eraser(each: CountedSource, configuration: Configuration) -> Eraser:
    """What erases rows of a source; refuse one where that cannot be done."""
    _refuse_conditions(each)
    eraser = _eraser(each, configuration)
    with each.being_read():
        eraser.check()
    return eraser


def _refuse_conditions(each: CountedSource, *options: str) -> None:
    """Refuse a source of which not all rows are read; `options` are those that dropping it then needs."""
    if each.address["where"]:
        whole = ingest_command({**each.address, "where": []})
        raise UnsupportedError(
            f"rows cannot be erased at source {each.name!r}, which is read with conditions: rows of the same"
            " people that do not satisfy them would stay; to read it without, run"
            f" {' '.join([rebuild_command(each.address), *options])} , then {whole}"
        )


def _reason(name: str, error: ArmnesiaError | OSError) -> str:
    reason = system_failure(error) if isinstance(error, OSError) else str(error)
    reason = without_unchanged(reason)  # that is true of this source only
    return reason if name in reason else f"source {name!r}: {reason}"


@contextmanager
def _alone(connection: VaultConnection) -> Iterator[None]:
    """Refuse to run beside another erasure of this vault, where the system has locks."""
    path = connection.keys_path.with_name(connection.keys_path.name + ".erasing")
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise VaultError(f"the file {str(path)!r} cannot be made: {error.strerror}") from None
    try:
        if "fcntl" in globals():
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise VaultBusyError(
                    "another process erases rows at the sources of this vault: wait until it is done"
                ) from None
        yield
    finally:
        os.close(descriptor)
