"""Restoring: the vault is brought in line with its journal.

The entries, the suppression list and the commitments come from the journal, configuration and keys from the
entries, and the statistics are counted again. So an older copy forgets everyone who was forgotten since, and
what something else has changed is repaired, if that is accepted. Nothing is drawn: the learner decides where
statistics have changed.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from armnesia.core.errors import VaultError, refuse_first
from armnesia.core.progress import Progress, RowCounter
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session
from armnesia.vault.db.schema import DecisionRow, EntryRow, PeopleRow, SuppressedRow, TokenRow
from armnesia.vault.keys import private_files
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.journal import Journal, Line
from armnesia.vault.ledger.merkle import EMPTY_ROOT, Frontier, Tree
from armnesia.vault.operations.tokens import revoke_tokens
from armnesia.vault.results import Restored
from armnesia.vault.state.check_sums import compute_check_sums
from armnesia.vault.state.connection import VaultConnection, line_after
from armnesia.vault.state.decisions import DEFAULT, ArmSums, VaultDecision, decided
from armnesia.vault.state.records import RecordScan
from armnesia.vault.state.replay import Replayed
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.sources import move_sources
from armnesia.vault.state.suppression import KINDS, Suppressed
from armnesia.vault.state.transaction import Transaction, entry_row

_TABLES = {"record", "source", "decision", "subject_request", "token"}
"""The tables that the journal does not have."""


def restore(
    connection: VaultConnection,
    journal: str | Path | None = None,
    *,
    as_it_is: bool = False,
    moved: Sequence[tuple[str, str]] = (),
    without: Sequence[str] = (),
    progress: Progress | None = None,
) -> Restored:
    """Bring the vault in line with its journal, or with a longer copy of it, and say what was missing.

    A vault whose rows or state were changed by something else is refused, unless it is accepted `as_it_is`.
    An external vault counts its sources again: `moved` names sources that are elsewhere now, each with its
    new place, and `without` those that no longer exist, whose rows no longer count.
    """
    with suppress(VaultError), replace(connection, checked=True).reading():
        pass  # the journal catches up, if the vault is ahead of it
    source = connection.journal if journal is None else Journal(Path(journal))
    known, counter = _known(connection, source), RowCounter(progress)
    with connection.database.writing() as session:
        if as_it_is:
            statements.rebuild_indexes(session)
        before: State | None = None
        with suppress(VaultError):  # it does not match its seal
            before = connection.read_state(session)
        n_own = _refuse_other_ledger(session, known, before)
        scan = _scan(session, connection, known, n_own, counter)
        differing = _TABLES if before is None else scan.check_sums.differing(before.check_sums)
        changed = differing & _TABLES
        if changed and not as_it_is:
            raise VaultError(
                "the rows or the state of this vault were changed by something other than armnesia: restore"
                " another backup, or accept it with --as-it-is, which the ledger records"
            )
        if "token" in changed:
            statements.replace_all(session, TokenRow)  # nobody knows which of them are good
        entries = _digest_of_entries(session, n_own)
        lost = _bring_forward(session, source, known, n_own)
        as_it_was = not differing and entries == _digest_of_entries(session, n_own)
        facts: dict[str, Any] = {"replayed": len(known.leaves) - n_own, "as_it_was": as_it_was}
        facts |= move_sources(session, known.configuration, moved, without, known.dropped)
        decisions = _decisions(session, before, known, counted=not changed)
        statements.replace_all(session, DecisionRow, [each.row for each in decisions])
        commits = max(known.commit, 0 if before is None else before.commits)
        state = _state(session, connection, known, scan, commits=commits, n_decisions=len(decisions))
        transaction = Transaction(session, connection.all_keys, state)
        transaction.append("restored", **facts)
        connection.records.recount(transaction, scan, decisions, counter)
        transaction.finish()
        if source.path != connection.journal.path:
            _copy(source, connection.journal)
    connection.journal.catch_up(transaction.line.commit, lambda _: transaction.line)
    return Restored(
        replayed=facts["replayed"],
        head=transaction.state.head,
        corrections_lost=lost,
        rows_deleted=len(scan.forgotten),
        as_it_was=as_it_was,
        recounted=not connection.records.holds_rows,
    )


def _known(connection: VaultConnection, source: Journal) -> Replayed:
    """What a journal comes to; refuse one that is damaged, of other keys, or older than the witness."""
    known = Replayed.of_journal(source.lines(), connection.all_keys.vault)
    refuse_first(known.problems, "the journal cannot be used: {}; nothing was changed")
    refuse_first(known.key_problems(connection.all_keys), "{}; nothing was changed")
    if (ahead := connection.witness.ahead_of(len(known.leaves), connection.witness.told)) is not None:
        raise VaultError(f"{ahead}; nothing was changed")
    return known


def _scan(
    session: Session, connection: VaultConnection, known: Replayed, n_own: int, counter: RowCounter
) -> RecordScan:
    """Read all tables of the copy."""
    suppressed = _suppressed_since(known, n_own)
    try:
        return connection.records.scan(session, connection.all_keys, suppressed, counter=counter)
    except TypeError:
        raise VaultError(
            "the rows have values that armnesia does not write: restore another backup"
        ) from None


def _state(
    session: Session,
    connection: VaultConnection,
    known: Replayed,
    scan: RecordScan,
    *,
    commits: int,
    n_decisions: int,
) -> State:
    """The state as the journal has it, with the tables as they are now; the records are still the copy's."""
    lists = compute_check_sums(session, connection.all_keys, records=False)
    return State(
        vault=connection.all_keys.vault,
        configuration=known.configuration,
        frontier=Frontier.of(known.leaves),
        commits=commits,
        signing_key=len(known.keys),
        check_sums=lists._replace(record=scan.check_sums.record),
        n_decisions=n_decisions,
    )


def begin_journal(connection: VaultConnection) -> None:
    """Begin a new journal where the old one is lost; the ledger says so.

    Whether the database is an older copy cannot be known from now on.
    """
    if connection.journal.path.exists():
        raise VaultError(
            f"the journal {connection.journal.path} is there: run armnesia restore; if it cannot be used, or"
            " is another vault's, move it away first"
        )
    with connection.database.writing() as session:
        transaction = Transaction(session, connection.all_keys, connection.read_state(session))
        transaction.append("without_journal")
        transaction.finish()
        nothing = Line(connection.all_keys.vault, 0, 0, EMPTY_ROOT)
        connection.journal.create(line_after(session, transaction.state, nothing))


def _refuse_other_ledger(session: Session, known: Replayed, before: State | None) -> int:
    """Refuse a vault whose ledger is not the beginning of the journal's; how many entries it has.

    The sealed state says which ledger it is; without it, the entries themselves do.
    """
    if before is None:
        leaves = [row.leaf for row in statements.stream(session, EntryRow)]
        size, fits = len(leaves), leaves == known.leaves[: len(leaves)]
    else:
        size, fits = before.head.size, Tree(known.leaves[: before.head.size]).root == before.head.root
    if not fits:
        raise VaultError(
            "the ledger of the vault is not the beginning of the journal's: give the journal of this vault,"
            " the longest copy of it, or another backup"
        )
    return size


def _suppressed_since(known: Replayed, n_own: int) -> Suppressed:
    """Whose rows must not be in the copy: all who are suppressed, unless readmitted before it was made.

    Rows of people who were readmitted later are older than that, and stay deleted.
    """
    suppressed: dict[str, set[bytes]] = {kind: set() for kind in KINDS}
    for digest, kind, since, readmitted in known.suppressed.values():
        if since > n_own or readmitted is None or readmitted > n_own:
            suppressed[kind].add(digest)
    return suppressed


def _digest_of_entries(session: Session, size: int) -> bytes:
    """Of so many entries, by which it is seen whether those of the journal are others."""
    digest = sha256()
    for row in statements.stream(session, EntryRow, most=size):
        digest.update(repr(row).encode())
    return digest.digest()


def _bring_forward(session: Session, source: Journal, known: Replayed, n_own: int) -> int:
    """Put entries and lists of the journal into the tables; how many corrections the copy lacks."""
    lost = 0
    statements.replace_all(session, PeopleRow)
    statements.replace_all(session, EntryRow)
    for line in source.lines():
        session.execute_together(map(statements.insert, line.people))
        for place, envelope in enumerate(line.entries, line.size - len(line.entries) + 1):
            entry = Entry.of(envelope)
            session.execute_together([statements.insert(entry_row(entry, envelope))])
            if place > n_own and entry.kind == "correct":
                lost += entry.facts.get("replaced", 0)
    statements.replace_all(session, SuppressedRow, known.suppressed.values())
    revoke_tokens(session, [token for number, token in known.revoked.items() if number > n_own])
    return lost


def _decisions(
    session: Session, before: State | None, known: Replayed, *, counted: bool
) -> list[VaultDecision]:
    """All decisions as the ledger has them; the learner decides again in those that are not as they were.

    Unless their statistics were `counted` by armnesia, only their numbers and keys are believed, if any.
    """
    by = known.configuration.by
    rows = statements.read(session, DecisionRow) if by or counted else []
    if not counted:
        nothing = ArmSums.empty(0, known.configuration.penalty).text
        rows = [row._replace(statistics=nothing, served=None, served_by=DEFAULT) for row in rows]
    try:
        found = [VaultDecision.of_row(row) for row in rows]
        if any(len(each.key) != len(by) for each in found):
            raise ValueError
    except (ValueError, TypeError, LookupError):
        raise VaultError("the decisions have keys that armnesia does not write: restore a backup") from None
    later, offers = known.with_deleted(found), known.configuration.offers
    if before is None or before.configuration.arms != known.configuration.arms:
        return decided(later, known.configuration)
    kept = {each.number: each for each in found if before.configuration.offers(each.key) == offers(each.key)}
    changed = [each for each in later if each != kept.get(each.number)]
    again = {each.number: each for each in decided(changed, known.configuration)}
    return [again.get(each.number, each) for each in later]


def _copy(source: Journal, journal: Journal) -> None:
    """Put a copy of a journal in the place of the vault's own, which must be its beginning."""
    if journal.path.exists():
        mine = journal.last()
        if not any((line.commit, line.root) == (mine.commit, mine.root) for line in source.lines()):
            raise VaultError(
                f"{source.path} does not go on from the journal {journal.path}: give the longest journal of"
                " this vault; nothing was changed"
            )
    private_files.write(journal.path, source.path.read_text(encoding="utf-8"), replace=True)
