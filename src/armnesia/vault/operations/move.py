"""Moving a source of an external vault: it is counted at another place, by the same number.

Certificates know a source by its number, so that an erasure at the new place counts for everybody who was
forgotten before. The statistics do not change: the new place must have what was counted.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.vault.configuration import Configuration
from armnesia.vault.results.upkeep import Rebuilt
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.counted_sources import (
    CountedSource,
    checked_sources,
    put_sources,
    refuse_inner,
    refuse_overlaps,
)
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.external_records import by_number
from armnesia.vault.state.records import statistics_problems, unknown_source
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_commands import rebuild_command
from armnesia.vault.state.source_counting import SourceCounter
from armnesia.vault.state.suppression import read_suppressed
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables


def move_source(connection: VaultConnection, old: str, new: str) -> Rebuilt:
    """Count a source, by its name in `status`, at another place; refuse a place with other rows."""
    with connection.writing() as transaction:
        state = transaction.state
        before: list[CountedSource] = []
        if not connection.records.layout.holds_rows:
            before = checked_sources(transaction.session, transaction.keyring, state.digests)
        known = next((each for each in before if each.name == old), None)
        if known is None:
            raise unknown_source(old, {each.name: each for each in before})
        _refuse_unmoved(known, state)
        others = [each for each in before if each is not known]
        now = _at_place(known, new, state.configuration)
        if now.counted is None:
            now = _counted_again(transaction, others, now)
        else:
            refuse_overlaps([*others, now])
        refuse_inner(others, now)
        digests, statements = put_sources(before, [now], transaction.keyring, state.digests)
        transaction.add(*statements)
        entry = transaction.append(
            "rebuild", changed=False, sources_dropped=0, dropped=[], moved=[known.number]
        )
        transaction.store(state, digests=digests)
    return Rebuilt(False, entry.head, moved=(known.name, now.name))


def _refuse_unmoved(known: CountedSource, state: State) -> None:
    if known.plans.under_way:
        raise VaultError(
            f"an erasure at source {known.name!r} is under way, or was interrupted: put the source back and"
            " run armnesia erase, then move it; nothing was changed"
        )
    if known.counted is None:
        raise VaultError(
            f"source {known.name!r} has to be counted again ({known.recount}), so that nothing tells whether"
            f" another place has its rows: put it back and run {known.ingest_command} ; nothing was changed"
        )
    is_there = False
    with suppress(ArmnesiaError):
        known.reopened_counted(state.configuration)
        is_there = True
    if is_there:
        raise VaultError(
            f"source {known.name!r} is still there as it was counted, and rows of forgotten people would stay"
            " there unnoticed: remove it first; or, if it is kept and a copy is to be counted in its place,"
            f" run {rebuild_command(known.address)} ; nothing was changed"
        )


def _at_place(known: CountedSource, new: str, configuration: Configuration) -> CountedSource:
    """The source at another place, and what was counted of it there, unless only counting can tell."""
    now, source = known.relocated(new, configuration)
    assert known.counted is not None  # it was refused
    manifest = known.counted.manifest.moved_to(source.manifest())
    if manifest is None:
        return now
    return replace(now, counted=replace(known.counted, manifest=manifest), recount="")


def _counted_again(
    transaction: Transaction, others: Sequence[CountedSource], now: CountedSource
) -> CountedSource:
    """Count all sources, of which one is at another place; refuse it if they no longer add up."""
    session, state = transaction.session, transaction.state
    counter = SourceCounter.of(state.configuration, transaction.keyring, read_suppressed(session))
    counted = counter.count_all([*others, now], anew=False)
    decisions = [VaultDecision.of_row(row) for row in tables.stream_decisions(session)]
    if statistics_problems(decisions, state, by_number(decisions, counted.sums), ""):
        raise VaultError(
            f"{now.name!r} does not have the files that were counted, nor rows that add up with those of the"
            " other sources to the statistics; nothing was changed: give the place that the source was moved"
            " to, as it was counted, and run armnesia ingest afterwards for what is new"
        )
    return counted.sources[-1]
