"""Verifying: recompute everything that can be recomputed, and check the rest against it."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

from armnesia.core.errors import ArmnesiaError, DamagedDatabaseError, VaultError
from armnesia.core.progress import Progress, RowCounter
from armnesia.vault.db import statements
from armnesia.vault.db.database import Session
from armnesia.vault.db.schema import DecisionRow, EntryRow, SuppressedRow
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.envelope import Envelope, keyid_of
from armnesia.vault.ledger.merkle import Tree
from armnesia.vault.operations.ledger import check_ledger
from armnesia.vault.results import Verification
from armnesia.vault.state.connection import VaultConnection, envelope_of, forked_from, older_than
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.replay import Replayed
from armnesia.vault.state.sealed_state import CHANGED_OUTSIDE, State
from armnesia.vault.state.suppression import read_suppressed
from armnesia.vault.state.transaction import entry_row

_TABLES = ("records", "suppression list", "sources", "commitments", "decisions", "tokens", "requests")
"""The tables of `CheckSums`, in its order, in words."""
_UNREADABLE = (ArmnesiaError, ValueError, LookupError, TypeError, AttributeError, MemoryError, RecursionError)


def verify(
    connection: VaultConnection, checkpoint: str | None = None, *, progress: Progress | None = None
) -> Verification:
    """Recompute the statistics and compare bit for bit; check the seal, the ledger and the check-sums.

    The ledger is compared with the journal, and with a `checkpoint` that was kept elsewhere.
    """
    problems: list[str] = []
    try:
        if checkpoint is not None:
            problems += check_ledger(connection, checkpoint).problems
        return _verify(connection, RowCounter(progress), problems)
    except DamagedDatabaseError as error:  # what was found until then stays found
        return Verification.of_damage(error, problems)


def _verify(connection: VaultConnection, counter: RowCounter, problems: list[str]) -> Verification:
    """As `verify`; what is found is added to the list, which stays if the database cannot be read further."""
    # Before the database: others may write meanwhile.
    told, journal = connection.witness.told, _journal(connection)
    with connection.database.reading() as session:
        problems += connection.database.integrity_problems(session)
        foreign = connection.database.schema_problems(session)
        if foreign:
            note = "the rows were not checked: first repair the schema by the database's own tools"
            return Verification((*problems, *foreign), (note,), 0, 0)
        state, found = _state(session, connection)
        problems += found
        replayed, found = _ledger(session, connection.all_keys.vault)
        problems += found
        problems += replayed.key_problems(connection.all_keys)
        # A changed key makes everything look changed: it comes first.
        problems.sort(key=lambda problem: not problem.startswith("keys: "))
        problems += _journal_problems(session, replayed, journal, state)
        if (ahead := connection.witness.ahead_of(len(replayed.leaves), told)) is not None:
            problems.append(f"witness: {ahead}")
        notes: list[str] = []
        if state is not None:
            problems += _contradictions(state, replayed)
            try:
                found, notes = _row_problems(session, connection, state, replayed, counter)
            except _UNREADABLE as error:
                kind = type(error).__name__
                found = [f"tables: they have values that armnesia does not write ({kind})"]
            problems += found
        records = connection.records.count(session)
    if state is not None and not problems:
        with replace(connection, checked=True).reading():
            pass  # the journal catches up: a crash may have kept an earlier command from it
    return Verification(tuple(dict.fromkeys(problems)), tuple(notes), records, len(replayed.leaves))


def _state(session: Session, connection: VaultConnection) -> tuple[State | None, list[str]]:
    """The state to compare with; None if it does not match its seal."""
    try:
        return connection.read_state(session), []
    except VaultError as error:
        is_seal = str(error).startswith(CHANGED_OUTSIDE)
        repair = "; if no problem of a key is told, run armnesia restore --as-it-is"
        return None, [f"state: {CHANGED_OUTSIDE + repair if is_seal else error}"]


def _ledger(session: Session, vault: str) -> tuple[Replayed, list[str]]:
    """Replay the ledger, each entry compared with its columns."""
    replayed, problems = Replayed(), list[str]()
    for row in statements.stream(session, EntryRow):
        try:
            envelope = envelope_of(row.envelope)
            if not _is_stored_as_written(row, Entry.of(envelope), envelope):
                problems.append(f"entry {row.number} is not as armnesia stored it")
            replayed.add(envelope, vault)
        except ArmnesiaError:
            problems.append(f"entry {row.number} cannot be read")
    return replayed, [f"ledger: {problem}" for problem in (*problems, *replayed.problems)]


def _is_stored_as_written(row: EntryRow, entry: Entry, envelope: Envelope) -> bool:
    """Whether a row is the one of its entry; the signatures and the hint whose they are are in no leaf."""
    signed = tuple((keyid_of(entry.signer), sig) for _, sig in envelope.signatures[:1])
    return row == entry_row(entry, replace(envelope, signatures=signed))


def _journal(connection: VaultConnection) -> Replayed | ArmnesiaError:
    """What the lines of the journal come to; or why it cannot be read."""
    try:
        return Replayed.of_journal(connection.journal.lines(), connection.all_keys.vault)
    except ArmnesiaError as error:
        return error


def _journal_problems(
    session: Session, replayed: Replayed, kept: Replayed | ArmnesiaError, state: State | None
) -> Iterator[str]:
    """Where the database is not the one of the journal beside the keys."""
    if isinstance(kept, ArmnesiaError):
        yield f"journal: {kept}"
        return
    yield from (f"journal: {problem}" for problem in kept.problems)
    own = set(statements.stream(session, SuppressedRow))
    if state is not None and state.commits == kept.commit and own != {*kept.suppressed.values()}:
        yield "journal: whoever is suppressed there is not who is suppressed in the vault"
    if state is not None and state.commits < kept.commit:
        yield f"journal: {older_than(kept.commit)}"
    elif replayed.leaves[: len(kept.leaves)] != kept.leaves:
        yield f"journal: {forked_from(len(kept.leaves))}"


def _contradictions(state: State, replayed: Replayed) -> Iterator[str]:
    """Where the stored state differs from what the ledger implies."""
    if replayed.leaves and state.head.root != Tree(replayed.leaves).root:
        yield "state: the ledger is not the one that the state was stored with"
    if state.configuration != replayed.configuration:
        yield "state: the configuration is not the one in the ledger"
    if state.signing_key != len(replayed.keys):
        yield "state: the signing key in use is not the one in the ledger"


def _row_problems(
    session: Session,
    connection: VaultConnection,
    state: State,
    replayed: Replayed,
    counter: RowCounter,
) -> tuple[list[str], list[str]]:
    """Compare the tables with their check-sums, and the records with the statistics: problems, and notes."""
    keyring = state.keyring_in_use(connection.all_keys)
    scan = connection.records.scan(session, keyring, read_suppressed(session), counter=counter)
    decisions, problems = _decisions(session, state)
    problems += [
        f"{table}: rows were added, changed or removed by something other than armnesia"
        for table, stored, computed in zip(_TABLES, state.check_sums, scan.check_sums, strict=True)
        if stored != computed
    ]
    if replayed.with_deleted(decisions) != decisions:
        problems.append("state: the numbers of deleted records are not those in the ledger")
    found, notes = connection.records.problems(session, state, keyring, scan, decisions, counter)
    return problems + found, notes


def _decisions(session: Session, state: State) -> tuple[list[VaultDecision], list[str]]:
    """The decisions that can be read, and whether they are as many as the vault has counted."""
    rows, problems = list(statements.stream(session, DecisionRow)), []
    if state.n_decisions != len(rows):
        problems.append(f"decisions: there are {len(rows)}, and the vault has counted {state.n_decisions}")
    decisions = []
    for row in rows:
        with suppress(ValueError, TypeError, LookupError, AttributeError):  # the check-sum has told of it
            decisions.append(VaultDecision.of_row(row))
    return decisions, problems
