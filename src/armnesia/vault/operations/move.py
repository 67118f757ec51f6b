"""Moving a source of an external vault: it is counted at another place, by the same number.

Certificates know a source by its number, so that an erasure at the new place counts for everybody who was
forgotten before. The statistics do not change: the new place must have what was counted.
"""

from collections.abc import Sequence
from contextlib import suppress

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.vault.results.upkeep import Rebuilt
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.counted_sources import CountedSource, checked_sources, put_sources, refuse_inner
from armnesia.vault.state.external_records import differing_statistics
from armnesia.vault.state.records import unknown_source
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_commands import rebuild_command
from armnesia.vault.state.source_counting import SourceCounter
from armnesia.vault.state.suppression import read_suppressed


def move_source(connection: VaultConnection, old: str, new: str) -> Rebuilt:
    """Count a source, by its name in `status`, at another place; refuse a place with other rows."""
    with connection.writing() as transaction:
        state, session = transaction.state, transaction.session
        before: list[CountedSource] = []
        if not connection.records.layout.holds_rows:
            before = checked_sources(session, transaction.keyring, state.digests)
        known = next((each for each in before if each.name == old), None)
        if known is None:
            raise unknown_source(old, {each.name: each for each in before})
        _refuse_unmoved(known, state)
        now = known.relocated(new, state.configuration)
        _refuse_counted(known, now, before)
        refuse_inner([each for each in before if each is not known], now)
        counter = SourceCounter(state.configuration, transaction.keyring, read_suppressed(session))
        update = counter.count_all([now if each is known else each for each in before], "it was moved")
        if differing_statistics(transaction, update.sums):
            raise VaultError(
                f"{now.name!r} does not have rows that add up with those of the other sources to the"
                " statistics; nothing was changed: give the place that the source was moved to, as it was"
                " counted, and run armnesia ingest afterwards for what is new; if it has other rows by now,"
                f" run {rebuild_command(known.address)} , and ingest the new place as a new source"
            )
        digests, statements = put_sources(before, update.after, transaction.keyring, state.digests)
        transaction.add(*statements)
        entry = transaction.append(
            "rebuild", changed=False, sources_dropped=0, dropped=[], moved=[known.number]
        )
        transaction.store(state, digests=digests)
    return Rebuilt(False, entry.head, moved=(known.name, now.name))


def _refuse_counted(known: CountedSource, now: CountedSource, sources: Sequence[CountedSource]) -> None:
    """Refuse a place that is a source of its own: its rows count there already."""
    for each in sources:
        if each is not known and not {*each.parts}.isdisjoint(now.parts):
            raise VaultError(
                f"{now.name!r} is counted already, as source {each.name!r}; nothing was changed: to count its"
                f" rows there only, run {rebuild_command(known.address)}"
            )


def _refuse_unmoved(known: CountedSource, state: State) -> None:
    if known.recount:
        raise VaultError(
            f"source {known.name!r} has to be counted again ({known.recount}), so that nothing tells whether"
            f" another place has its rows: put it back and run {known.ingest_command} ; nothing was changed"
        )
    is_there = False
    with suppress(ArmnesiaError):
        source = known.opened(state.configuration)
        is_there = known.version is None or known.is_as_counted(source)
    if is_there:
        raise VaultError(
            f"source {known.name!r} is still there as it was counted, and rows of forgotten people would stay"
            " there unnoticed: remove it first; or, if it is kept and a copy is to be counted in its place,"
            f" run {rebuild_command(known.address)} ; nothing was changed"
        )
