"""Rebuilding: the statistics are computed again from the records, without those of forgotten people."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from armnesia.core.errors import VaultError, refuse_first
from armnesia.core.messages import counted, listed
from armnesia.core.progress import Progress, RowCounter
from armnesia.vault.ledger.ledger import Head, check_chain
from armnesia.vault.results.upkeep import Rebuilt
from armnesia.vault.state.certificates import redraft_certificates
from armnesia.vault.state.connection import VaultConnection, older_than
from armnesia.vault.state.decision_recount import decisions_to_count
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.owner_tallies import rebuild_tallies
from armnesia.vault.state.replay import ReplayedState, replace_state
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.source_erasures import unerased_requests
from armnesia.vault.state.suppression import read_suppressed
from armnesia.vault.state.transaction import Transaction
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session


def rebuild(
    connection: VaultConnection,
    without: Sequence[str] = (),
    progress: Progress | None = None,
    *,
    unerased: bool = False,
) -> Rebuilt:
    """Compute the statistics again; say whether anything changed.

    This also repairs a state that something else has changed: then everything that the ledger determines is
    taken from it, and it must be intact. `without` names sources of an external vault that no longer exist:
    their rows no longer count. One where rows of forgotten people were to be erased and are not is refused,
    unless `unerased` states that they stay.

    Rows that are deleted here, such as those of a forgotten person that something else put back, are in the
    files until they are erased again: until then no certificate says that erasure is complete.
    """
    counter = RowCounter(progress)
    replayed = connection.writing(partial(_load_or_replay, connection))
    with connection.database.sorting_in_files(), replayed as transaction:
        session, before = transaction.session, transaction.state
        dropped = connection.records.drop_sources(session, without)
        if not unerased:
            _refuse_unerased(transaction, without, dropped)
        scan = connection.records.scan(
            session, transaction.keyring, read_suppressed(session), counter=counter
        )
        if not scan.digests.has_lists_of(before.digests):
            raise VaultError(
                "the suppression list, the answered requests, the commitments or their digests were changed"
                " by something other than armnesia: run armnesia restore with the latest export"
            )
        tables.rebuild_decision_indexes(session, connection.records.layout)
        decisions: list[VaultDecision] = []
        if before.configuration.by:
            decisions, known = decisions_to_count(transaction, ReplayedState.of(tables.LedgerRows(session)))
            transaction.intact &= known
        digests = scan.digests._replace(decision=transaction.state.digests.decision)
        transaction.store(transaction.state, digests=digests)
        state = connection.records.recount(transaction, scan, decisions, counter)
        if connection.records.layout.holds_rows:
            rebuild_tallies(session, transaction.keyring, connection.records.layout)
        same_statistics = transaction.intact and before.head == state.head and _same(before, state)
        if same_statistics:  # the served arm stays, and what chose it
            state = replace(before, digests=state.digests)
        unchanged = same_statistics and connection.records.matches(scan, before)
        deleted = not transaction.intact or state.digests.record != scan.digests.record
        if deleted:
            state = replace(state, erased_through=0)
            redraft_certificates(connection, transaction)
        entry = transaction.append(
            "rebuild", changed=not unchanged, sources_dropped=len(without), dropped=dropped
        )
        transaction.store(state)
    if deleted:
        connection.erase(entry.head)
    return Rebuilt(not unchanged, entry.head, tuple(without), rows_deleted=len(scan.forgotten))


def _refuse_unerased(transaction: Transaction, names: Sequence[str], dropped: Sequence[int]) -> None:
    """Refuse to drop sources that requests wait at: their certificates would say so for good."""
    if not transaction.state.configuration.may_erase_at_source:
        return
    waiting = max(unerased_requests(transaction, dropped).values(), default=0)
    if waiting:
        which = f"source {names[0]!r}" if len(names) == 1 else f"one of the sources {listed(names, 5)}"
        raise VaultError(
            f"{counted(waiting, 'answered request')} may have rows at {which} that are not erased and purged"
            " there, which certificates would say for good; nothing was changed: first run armnesia erase"
            " --purge; if the source was moved, run armnesia rebuild --moved OLD NEW instead; to leave the"
            " rows, add --unerased (unerased=True)"
        )


def _load_or_replay(
    connection: VaultConnection, session: Session, head_before: Head | None
) -> tuple[State, bool]:
    """The state, and whether its seal matched; if not, the replayed ledger's, sealed again to work on.

    The indexes are made again before anything is looked up by them. What is damaged still is a table, of
    which rows may be lost to every statement, and stay in the file for ever.
    """
    tables.rebuild_indexes(session, connection.records.layout)
    damage = connection.database.integrity_problems(session)
    refuse_first(damage, "{}; making the indexes again does not repair that: restore a backup")
    version = connection.refuse_foreign_schema(session)
    ledger, state = tables.LedgerRows(session), None
    if head_before is not None and tables.last_sequence(session) < head_before.sequence:
        raise older_than(head_before)
    with suppress(VaultError):
        state = connection.load_state(session, head_before)
    end = None if state is None else state.head
    problems = check_chain(ledger, vault=connection.all_keys.vault, head=head_before, end=end)
    refuse_first(problems, "ledger: {}; restore a backup")
    if state is not None:
        return state, True
    return replace_state(session, connection.all_keys, ReplayedState.of(ledger), version), False


def _same(before: State, after: State) -> bool:
    """Whether the statistics of all decisions are the same."""
    if before.configuration.by:
        return (before.n_decisions, before.digests.decision) == (after.n_decisions, after.digests.decision)
    return before.stream == after.stream
