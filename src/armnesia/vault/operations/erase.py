"""Erasing at the sources: rows of forgotten people are deleted where an external vault has counted others."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from armnesia.core.errors import (
    ArmnesiaError,
    ChangedSourceError,
    DatabaseError,
    InvalidInputError,
    VaultBusyError,
    VaultError,
)
from armnesia.logs.erasing.eraser import SourceEraser
from armnesia.logs.tables.sqlite import roll_back_interrupted_write
from armnesia.vault.configuration import Configuration
from armnesia.vault.erasure_target import ErasureTarget
from armnesia.vault.results.sources import ErasurePreview, SourceErasures
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.counted_sources import CountedSource, checked_sources
from armnesia.vault.state.erasure_run import ErasureRun, open_eraser_of, refuse_uncounted
from armnesia.vault.state.source_erasures import (
    check_may_erase,
    dropped_unerased,
    source_statuses,
)
from armnesia.vault.state.suppression import SuppressionList

with suppress(ImportError):  # absent on Windows
    import fcntl


def source_erasures(connection: VaultConnection) -> SourceErasures:
    """How far rows of forgotten people are erased at each source, and what is due."""
    with connection.reading() as transaction:
        configuration = transaction.state.configuration
        sources: list[CountedSource] = []
        if not connection.records.layout.holds_rows:
            sources = checked_sources(transaction.session, transaction.keyring, transaction.state.digests)
        found, dropped = source_statuses(transaction, sources), dropped_unerased(transaction, sources)
        return SourceErasures(configuration.may_erase_at_source, found, transaction.state.head, dropped)


def check_erasable(
    connection: VaultConnection, target: ErasureTarget, *, purge: bool, ignore_retention: bool
) -> None:
    """Refuse, before anybody is forgotten, what could not be erased at the sources afterwards."""
    configuration, sources = _erasable_sources(connection, purge=purge, ignore_retention=ignore_retention)
    with connection.reading() as transaction:
        suppressed = SuppressionList.read(transaction).digests
    named = {"user": target.users or suppressed["user"], "id": target.records or suppressed["record"]}
    for each in sources:
        eraser = _checked_eraser(each, configuration, purge=purge)
        # Afterwards, what cannot be written again matters only in files with rows to be erased.
        eraser.check_rewritable()
        _check_names(each, eraser, (role for role, names in named.items() if names))


def _check_names(each: CountedSource, eraser: SourceEraser, roles: Iterable[str]) -> None:
    """Refuse a source with a column by which people or records are to be erased, and cannot be."""
    for role in roles:
        if each.address["columns"].get(role) is not None:
            eraser.check_named_by(role)


def _erasable_sources(
    connection: VaultConnection, *, purge: bool, ignore_retention: bool
) -> tuple[Configuration, list[CountedSource]]:
    """The sources of a vault that may erase at them; refuse others, and options that do not agree."""
    if ignore_retention and not purge:
        raise InvalidInputError("ignore_retention is about a purge, which was not asked for; give both")
    with connection.reading() as transaction:
        configuration = transaction.state.configuration
        check_may_erase(configuration)
        sources = checked_sources(transaction.session, transaction.keyring, transaction.state.digests)
    return configuration, sources


def _checked_eraser(
    each: CountedSource, configuration: Configuration, *, purge: bool, finish_writes: bool = True
) -> SourceEraser:
    """Open an eraser; refuse a source where rows could not be erased, or files that hold them not be removed.

    With `finish_writes`, a write that was cut short, as of an erasure that was killed, is rolled back first:
    SQLite does not read the file before.
    """
    if finish_writes:
        roll_back_interrupted_write(str(each.address["location"]))
    eraser = open_eraser_of(each, configuration)
    with suppress(ChangedSourceError):  # which is refused where it matters, or finished
        refuse_uncounted(each, each.reopened_counted(configuration)[1])
    if purge:
        eraser.with_removals(eraser.empty_plan())
    return eraser


def erase_at_sources(
    connection: VaultConnection, *, purge: bool = False, ignore_retention: bool = False
) -> SourceErasures:
    """Delete the rows of everybody who is forgotten, at all sources, and purge what still holds them.

    A source where that is not possible does not keep others from it; why it was not is raised at the end.
    """
    _, sources = _erasable_sources(connection, purge=purge, ignore_retention=ignore_retention)
    failures: dict[int, ArmnesiaError | OSError] = {}
    with _alone(connection):
        for each in sources:
            roll_back_interrupted_write(str(each.address["location"]))
        run = ErasureRun.begin(connection)
        run.count_before()
        for number in run.order():
            try:
                run.erase(number)
                if purge:
                    run.purge(number, ignore_retention=ignore_retention)
            except (DatabaseError, VaultBusyError):
                raise  # of the vault: all sources would fail
            except (ArmnesiaError, OSError) as error:
                failures[number] = error
    found = replace(source_erasures(connection), deleted=tuple(run.deleted))
    if failures:
        raise run.combined(failures, found)
    return found


def preview_erasure(connection: VaultConnection) -> ErasurePreview:
    """Count the rows of everybody who is forgotten at each source as it is now, and the files with them."""
    configuration, sources = _erasable_sources(connection, purge=False, ignore_retention=False)
    run = ErasureRun.begin(connection)
    for each in sources:
        if not each.plans.under_way:
            _refuse_changed(each, configuration)
        eraser = _checked_eraser(each, configuration, purge=False, finish_writes=False)
        _check_names(each, eraser, run.people)
    return ErasurePreview(tuple(map(run.rows_to_delete, run.sources.values())))


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


def _refuse_changed(each: CountedSource, configuration: Configuration) -> None:
    """Refuse a source that is not as it was counted."""
    try:
        each.reopened_counted(configuration)
    except ChangedSourceError as error:
        raise each.outdated(error) from None
