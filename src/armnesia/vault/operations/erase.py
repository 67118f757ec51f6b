"""Erasing at the sources: rows of forgotten people are deleted where an external vault has counted others.

Erasers can be run again at any point, so nothing is planned or noted before. When they are done, all sources
are counted again: this shows that none of the people is left at the version that the ledger then names, and
what else has changed counts, as after an ingest. Killed in between, the next run finds less to do.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

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
from armnesia.vault.results import SourceErasures
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.external_records import put_findings
from armnesia.vault.state.source_counting import KIND_OF, Counted, SourceCounter
from armnesia.vault.state.sources import CountedSource, checked_sources, held_sources, put_sources
from armnesia.vault.state.transaction import Transaction

with suppress(ImportError):  # absent on Windows
    import fcntl

_NOT_PURGED = "earlier versions of the source, or their files, hold the rows until they are purged"


def source_erasures(connection: VaultConnection) -> SourceErasures:
    """What is to be erased at each source."""
    return _erasures(connection, {})


def _erasures(connection: VaultConnection, done: Mapping[str, "Erased"]) -> SourceErasures:
    """What is to be erased at each source, and what was done there, by the ids of sources."""
    with connection.reading() as transaction:
        now = [
            replace(each, rows=own.rows, remains=own.remains) if (own := done.get(each.id)) else each
            for each in held_sources(transaction.session)
        ]
        permitted = transaction.state.configuration.may_erase_at_source
        return SourceErasures(permitted, tuple(now), transaction.state.head)


def check_erasable(
    connection: VaultConnection, *, purge: bool = False, ignore_retention: bool = False
) -> None:
    """Refuse, before anybody is forgotten, what could not be erased at the sources afterwards."""
    run = ErasureRun(connection, purge=purge, ignore_retention=ignore_retention)
    for each in run.sources:
        run.eraser(each).check()


def preview_erasure(connection: VaultConnection) -> SourceErasures:
    """How many rows an erasure would delete at each source; nothing is changed."""
    run = ErasureRun(connection)
    for each in run.sources:
        eraser = run.eraser(each)
        eraser.check()
        people = run.people_at(eraser)
        run.done[each.id] = Erased(eraser.find(people) if any(people) else 0)
    return _erasures(connection, run.done)


def erase_at_sources(
    connection: VaultConnection, *, purge: bool = False, ignore_retention: bool = False
) -> SourceErasures:
    """Delete the rows of everybody who is forgotten, at all sources, and purge what still holds them.

    A source where that is not possible does not keep others from it; why it was not is raised at the end.
    """
    ErasureRun(connection, purge=purge, ignore_retention=ignore_retention)  # it may be refused
    with _alone(connection):
        run = ErasureRun(connection, purge=purge, ignore_retention=ignore_retention)
        for each in run.sources:
            with run.noting_failure(each):
                run.erase(each)
        if run.done:
            run.record()
    found = _erasures(connection, run.done)
    if not run.failures:
        return found
    (first, *others) = run.failures.values()
    if not (run.done or others) and isinstance(first, ArmnesiaError):
        raise first  # nothing at all was changed
    raise PartlyErasedError("; ".join(map(_reason, run.failures, run.failures.values())), found)


class Erased(NamedTuple):
    """What was done at a source."""

    rows: int
    """How many were deleted."""
    remains: tuple[str, ...] = ()
    is_purged: bool = False
    """Whether nothing holds deleted rows any more."""


@dataclass
class ErasureRun:
    """One run over all sources, for everybody who was forgotten when it began."""

    connection: VaultConnection
    purge: bool = False
    ignore_retention: bool = False
    done: dict[str, Erased] = field(default_factory=dict)
    """By the id of a source that was erased."""
    failures: dict[str, ArmnesiaError | OSError] = field(default_factory=dict)
    """By the name of a source, why it could not be erased."""

    def __post_init__(self) -> None:
        """Read the sources and who is forgotten; refuse a vault that may not erase."""
        if self.ignore_retention and not self.purge:
            raise InvalidInputError("ignore_retention is about a purge, which was not asked for; give both")
        with self.connection.reading() as transaction:
            self.state = transaction.state
            if not self.state.configuration.may_erase_at_source:
                raise VaultError(
                    "this vault may not erase rows at their sources: that is permitted when an external vault"
                    " is created (armnesia init --external --may-erase-at-source); nothing was changed"
                )
            self.sources = checked_sources(transaction)
            self.counter = SourceCounter(transaction.session, transaction.keyring, self.state)
            self.suppressed = self.counter.suppressed  # read while the transaction is open

    def eraser(self, each: CountedSource) -> Eraser:
        """What erases rows of a source; refuse one of which not all rows are read."""
        with each.being_read():
            if each.address["where"]:
                raise UnsupportedError(
                    f"rows cannot be erased at source {each.name!r}, which is read with conditions: rows of"
                    " the same people that do not satisfy them would stay; drop it (armnesia restore"
                    " --without), and ingest it without conditions"
                )
            return each.opened(self.state.configuration).eraser()

    def people_at(self, eraser: Eraser) -> Chosen:
        """The forgotten people and records that a source has rows of."""
        source = eraser.now()
        with source.reading() as reading:
            return self.counter.forgotten_at(source, reading)

    def erase(self, each: CountedSource) -> None:
        """Delete rows at one source, and purge what still holds them."""
        eraser = self.eraser(each)
        if not each.to_erase and not (self.purge and each.to_purge) and each.is_as_counted(eraser.source):
            return
        people = self.people_at(eraser)
        rows = eraser.delete(people) if any(people) else 0
        is_purged = not (eraser.keeps_old_rows and (rows or each.to_erase or each.to_purge))
        if self.purge:
            is_purged = eraser.purge(ignore_retention=self.ignore_retention)
        lacking = [
            f"the source has no {role} column, by which a forgotten {kind} could be found there"
            for role, kind in KIND_OF.items()
            if each.columns[role] is None and self.suppressed[kind]
        ]
        not_purged = [] if is_purged else [_NOT_PURGED]
        self.done[each.id] = Erased(rows, (*eraser.remains, *lacking, *not_purged), is_purged)

    def record(self) -> None:
        """Count the sources as they are now, and note in the ledger where nobody is left."""
        with self.connection.writing() as transaction:
            before, because = checked_sources(transaction), "rows were erased there"
            counter = SourceCounter(transaction.session, transaction.keyring, transaction.state)
            found = counter.find(before, because=because, noting=self.noting_failure)
            after = [
                self._noted(transaction, each, found.counted[each.number])
                if each.id in self.done and each.number in found.counted
                else each
                for each in found.after
            ]
            if len(found.counted) == len(before):
                put_findings(transaction, replace(found, after=after))
            else:  # the next ingest counts again whatever has changed
                pairs = zip(before, after, strict=True)
                after = [replace(new, version=old.version) for old, new in pairs]
                put_sources(transaction, before, after)

    def _noted(self, transaction: Transaction, each: CountedSource, counted: Counted) -> CountedSource:
        """What is to be erased at a source from now on; if nobody is left there, the ledger says so."""
        if any(self.counter.forgotten(role, names) for role, names in counted.gone.by_role().items()):
            error = VaultError("rows of forgotten people came in meanwhile: run armnesia erase again")
            self.failures.setdefault(each.name, error)
            return replace(each, to_erase=True)
        done = self.done[each.id]
        to_purge = not done.is_purged
        if each.to_erase or done.rows or to_purge != each.to_purge:
            transaction.append(
                "erased",
                source=each.id,
                through=self.state.head.size,
                version=each.short_version,
                remains=list(done.remains),
                state="logically deleted" if to_purge else "purged",
            )
        # Whoever was forgotten meanwhile waits for the next run.
        is_current = transaction.state.check_sums.suppressed == self.state.check_sums.suppressed
        return replace(each, to_erase=not is_current, to_purge=to_purge)

    @contextmanager
    def noting_failure(self, each: CountedSource) -> Iterator[None]:
        """Go on with other sources where one fails, but not where the vault does."""
        try:
            with each.being_read():
                yield
        except (DatabaseError, VaultBusyError):
            raise
        except (ArmnesiaError, OSError) as error:
            self.failures.setdefault(each.name, error)


def _reason(name: str, error: ArmnesiaError | OSError) -> str:
    reason = system_failure(error) if isinstance(error, OSError) else str(error)
    reason = without_unchanged(reason)  # that is true of this source only
    return reason if name in reason else f"source {name!r}: {reason}"


@contextmanager
def _alone(connection: VaultConnection) -> Iterator[None]:
    """Refuse to run beside another erasure of this vault, where the system has locks."""
    path = connection.keys_path.with_name(connection.keys_path.name + ".erasing")
    with path.open("ab") as file:
        if "fcntl" in globals():
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise VaultBusyError(
                    "another process erases rows at the sources of this vault: wait until it is done"
                ) from None
        yield
