"""Rebuilding: the statistics are computed again from the records, without those of forgotten people."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from armnesia.core.errors import VaultError
from armnesia.core.progress import Progress, RowCounter
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import check_chain
from armnesia.vault.results import Rebuilt
from armnesia.vault.state.connection import VaultConnection, older_than
from armnesia.vault.state.owner_tallies import rebuild_tallies
from armnesia.vault.state.replay import ReplayedState
from armnesia.vault.state.sealed_state import ROTATED_BELOW, State, store_statements
from armnesia.vault.state.suppression import read_suppressed
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.state.transaction import append_entry
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session


def rebuild(
    connection: VaultConnection, without: Sequence[str] = (), progress: Progress | None = None
) -> Rebuilt:
    """Compute the statistics again; say whether anything changed.

    This also repairs a state that something else has changed: then everything that the ledger determines is
    taken from it, and it must be intact. `without` names sources of an external vault that no longer exist:
    their rows no longer count, unless another source has them too.
    """
    counter = RowCounter(progress)
    with connection.writing(partial(_load_or_replay, connection)) as transaction:
        session, before = transaction.session, transaction.state
        connection.records.drop_sources(session, without)
        scan = connection.records.scan(session, transaction.ring, read_suppressed(session), counter=counter)
        if (scan.digests.suppressed, scan.digests.request) != (
            before.digests.suppressed,
            before.digests.request,
        ):
            raise VaultError(
                "the suppression list, the answered requests or their digests were changed by something other"
                " than armnesia: run armnesia restore with the latest export"
            )
        transaction.store(replace(before, digests=scan.digests))
        state = connection.records.recount(transaction, scan, counter)
        rebuild_tallies(session, transaction.ring, connection.records.layout)
        intact = transaction.intact and connection.records.matches(scan, before)
        unchanged = intact and (before.stream, before.head) == (state.stream, state.head)
        if unchanged:  # the served arm stays, and what chose it
            state = replace(before, digests=state.digests)
        _, state, to_ledger = append_entry(
            state, "rebuild", changed=not unchanged, sources_dropped=len(without)
        )
        transaction.store(state, to_ledger)
    return Rebuilt(not unchanged, state.head)


def _load_or_replay(connection: VaultConnection, session: Session) -> tuple[State, bool]:
    """The state, and whether its seal matched; if not, the replayed ledger's, sealed again to work on.

    The indexes are made again before anything is looked up by them.
    """
    tables.rebuild_indexes(session)
    connection.refuse_foreign_schema(session)
    ledger, state = tables.LedgerRows(session), None
    pinned = connection.pinned
    if pinned is not None and tables.last_sequence(session) < pinned.sequence:
        raise older_than(pinned)
    with suppress(VaultError):
        state = connection.load(session)
    end = None if state is None else state.head
    for problem in check_chain(ledger, vault=connection.keyring.vault, head=pinned, end=end):
        raise VaultError(f"ledger: {problem}; restore a backup")
    if state is not None:
        return state, True
    return replace_state(session, connection.keyring, ReplayedState.of(ledger)), False


def replace_state(session: Session, keyring: Keyring, replayed: ReplayedState) -> State:
    """Store the replayed state in the place of a broken one; it counts no records yet.

    The new seal is on the keys, too: they must be those of the ledger.
    """
    for problem in replayed.key_problems(keyring):
        raise VaultError(problem)
    for version in range(1, replayed.digest_key):  # the newest is confirmed by the table digests
        if version not in replayed.digest_key_checks:
            raise VaultError(
                f"the ledger, written by an older armnesia, cannot confirm digest key {version}: restore a"
                " backup"
            )
    ring = keyring.at(digest_version=replayed.digest_key, signing_version=len(replayed.public_keys))
    found = tables.read_stored_digests(session)
    try:
        masked, _, _ = found[0][0].partition(ROTATED_BELOW)
        digests = TableDigests.unmasked(masked, ring, replayed.head)
    except (IndexError, ValueError, TypeError, AttributeError):
        digests = TableDigests(*[-1] * len(TableDigests._fields))  # which no rows have
    state = replayed.state(ring.vault, digests)
    tables.delete_arms(session)
    before = replace(state, stream=None) if found else None
    statements, _ = store_statements(before, state, keyring)
    session.execute_together(statements)
    return state
