"""Verifying: recompute everything that can be recomputed, and check the rest against it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from armnesia.core.errors import ArmnesiaError, DamagedDatabaseError, InvalidInputError, VaultError
from armnesia.core.messages import counted, listed
from armnesia.core.progress import Progress, RowCounter
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate_check import Issue
from armnesia.vault.ledger.certificate_text import CERTIFIED
from armnesia.vault.ledger.commitments import HashTree, Opening
from armnesia.vault.ledger.ledger import Head, check_chain
from armnesia.vault.ledger.public_keys import KEY_KINDS, PublicKeys, rotation_problems
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.results.checks import LedgerCheck, Verification
from armnesia.vault.results.notes import withheld_note
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.decision_tree import DecisionTree, build_tree
from armnesia.vault.state.decisions import VaultDecision
from armnesia.vault.state.replay import ReplayedState
from armnesia.vault.state.sealed_state import CHANGED_OUTSIDE, State, StoredState
from armnesia.vault.state.signing_keys import certificates_to_reissue
from armnesia.vault.state.source_erasures import read_erasures
from armnesia.vault.state.subject_requests import subject_request_problems
from armnesia.vault.state.suppression import read_suppressed
from armnesia.vault.state.tokens import token_problems
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import VERSION, WITH_DECISIONS, WITH_SERVICE, WITH_TALLIES

_DIGESTED = ("records", "suppression list", "answered requests", "sources", "commitments", "decisions")
"""The tables of `TableDigests`, in its order, in words."""
_MOST_LISTED = 20
_NO_ROOT = -1
"""Which no decisions have."""
_OF_KEYS = "keys: "
"""How `ReplayedState.key_problems` begin."""
_SHORTER = "the ledger is shorter than the head that was kept"
"""How a problem of `check_chain` ends that an old copy has."""
_OF_DATABASE = (
    "the database's own check found something: run armnesia rebuild, which makes the indexes again, and"
    " restore a backup if that is refused"
)
_REBUILD = "; if no problem of a key is told, run armnesia rebuild"
_RESTORE = ": it is an old copy, or entries were deleted; run armnesia restore with the latest export"
_UNPINNED = (
    "no head is pinned beside the keys: an old copy of the vault cannot be told; run armnesia verify --head"
    " with a head that you kept (if nothing else is wrong, the head found is pinned)"
)
_UNPINNED_WITH_HEAD = "no head is pinned beside the keys: the ledger was compared with the head given only"


def verify(
    connection: VaultConnection,
    head: Head | None = None,
    progress: Progress | None = None,
    *,
    in_place: bool = False,
) -> Verification:
    """Recompute the statistics and compare bit for bit; check seal, ledger, certificates and table digests.

    `head` is a head that was kept elsewhere; the one pinned beside the keys is always checked. `in_place`
    reads the vault itself, not a private copy of it.
    """
    problems: list[str] = []
    notes: list[str] = []
    try:
        return _verify(connection, head, RowCounter(progress), in_place, problems, notes)
    except DamagedDatabaseError as error:  # what was found until then stays found
        return Verification.of_damage(error, problems, notes)


def _verify(
    connection: VaultConnection,
    head: Head | None,
    counter: RowCounter,
    in_place: bool,
    problems: list[str],
    notes: list[str],
) -> Verification:
    """As `verify`; what is found is added to the lists, which stay if the database cannot be read further."""
    heads = _heads(connection, head)
    if connection.pinned_head.read() is None:
        notes.append(_UNPINNED if head is None else _UNPINNED_WITH_HEAD)
    with connection.database.snapshot(in_place=in_place) as (session, remark):
        if remark is not None:
            notes.append(remark)
        problems += connection.database.integrity_problems(session)
        if problems:
            notes.append(_OF_DATABASE)
        problems += connection.database.header_problems()
        state, found = _state(session, connection)
        problems += found
        foreign = connection.schema_problems(session, VERSION if state is None else state.version)
        if foreign:
            notes.append("the rows were not checked: first repair the schema by the database's own tools")
            return Verification((*problems, *foreign), tuple(notes), 0, 0, 0)
        ledger = tables.LedgerRows(session)
        entries = len(ledger)
        found, keys = _ledger_problems(ledger, connection, state, heads)
        problems += found
        # A changed key makes everything look changed: it comes first.
        problems.sort(key=lambda problem: not problem.startswith(_OF_KEYS))
        certificates, sound = 0, True
        certificates_checked = _certificate_problems(session, _keyring(connection, state), keys, state)
        for certificate_problems in certificates_checked:
            certificates += 1
            sound = sound and not certificate_problems
            problems += certificate_problems
        if keys is not None and sound:
            notes += _reissue_notes(certificates_to_reissue(session, keys))
            bodies = tables.stream_certificate_bodies(session, 1)
            withheld = [entry for entry, body in bodies if StoredCertificate.says_withheld(body)]
            notes += [withheld_note(withheld)] if withheld else []
        if state is not None:
            try:
                found, remarks = _row_problems(session, connection, state, counter)
            except (ArmnesiaError, ValueError, LookupError, TypeError, AttributeError, MemoryError) as error:
                kind = type(error).__name__
                found, remarks = [f"tables: they have values that armnesia does not write ({kind})"], []
            problems += found
            notes += remarks
            if state.rotated_below is not None:
                notes.append("the rotation of the digest key is not finished: run armnesia rotate-key digest")
        records = connection.records.count(session)
    if state is not None and not problems:
        connection.pinned_head.write(state.head)  # a crash may have kept an earlier command from it
    return Verification(tuple(dict.fromkeys(problems)), tuple(notes), records, entries, certificates)


def check_ledger(connection: VaultConnection, head: Head) -> LedgerCheck:
    """Check the ledger against a head that was kept elsewhere, and against the one pinned beside the keys."""
    heads = _heads(connection, head)
    with connection.database.reading() as session:
        state, _ = _state(session, connection)
        problems, _ = _ledger_problems(tables.LedgerRows(session), connection, state, heads)
    return LedgerCheck(tuple(dict.fromkeys(problems)), head)


def _heads(connection: VaultConnection, head: Head | None) -> list[Head]:
    """The heads to check against. Read before the ledger: other processes may append to both."""
    return [known for known in (head, connection.pinned_head.read()) if known is not None]


def _state(session: Session, connection: VaultConnection) -> tuple[State | None, list[str]]:
    """The state to compare with, even if its seal does not match; None if it cannot be read at all."""
    problems: list[str] = []
    try:
        stored = StoredState.read(session)
        try:
            keyring = connection.check_seal(stored)
        except ArmnesiaError as error:
            is_seal = str(error).startswith(CHANGED_OUTSIDE)
            problems.append(f"state: {CHANGED_OUTSIDE + _REBUILD if is_seal else error}")
            keyring = connection.all_keys
        state = stored.state(keyring)
        assert state.decision is None or state.stream is not None  # this refuses impossible statistics
        return state, problems
    except (ArmnesiaError, ValueError, KeyError, TypeError, MemoryError, RecursionError) as error:
        return None, [*problems, f"state: it cannot be read ({type(error).__name__})"]


def _keyring(connection: VaultConnection, state: State | None) -> Keyring:
    """The keys that the state uses; all keys if it cannot be read, or names keys that do not exist."""
    try:
        return connection.all_keys if state is None else state.keyring_in_use(connection.all_keys)
    except (VaultError, TypeError):
        return connection.all_keys


def _ledger_problems(
    ledger: tables.LedgerRows, connection: VaultConnection, state: State | None, heads: list[Head]
) -> tuple[list[str], PublicKeys | None]:
    """Check the ledger by itself, against the state, and against heads kept elsewhere; its signing keys."""
    keys: PublicKeys | None = None
    vault, end = connection.all_keys.vault, None if state is None else state.head
    found = check_chain(ledger, vault=vault, head=heads, end=end)
    problems = [f"ledger: {problem}{_RESTORE if problem.endswith(_SHORTER) else ''}" for problem in found]
    if ledger and not (problems and check_chain(ledger, vault=vault)):
        try:
            problems += [f"ledger: {problem}" for problem in rotation_problems(_key_entries(ledger))]
            replayed = ReplayedState.of(ledger)
        except InvalidInputError as error:
            return [*problems, f"ledger: {error}"], None
        keys = PublicKeys(vault, replayed.head, replayed.signing_keys)
        problems += replayed.key_problems(connection.all_keys)
        if state is not None:
            problems += [f"state: {problem}" for problem in replayed.contradictions(state)]
    return problems, keys


def _key_entries(ledger: tables.LedgerRows) -> Iterator[dict[str, Any]]:
    """The entries that may put a signing key in use."""
    for _, text, _ in ledger:
        if any(f'"kind":"{kind}"' in text for kind in KEY_KINDS):
            yield json.loads(text)


def _reissue_notes(sequences: list[int]) -> list[str]:
    """Which certificates must be issued again; that is no problem of the vault."""
    if not sequences:
        return []
    return [
        f"{counted(len(sequences), 'certificate')} signed with a compromised key, of ledger entries"
        f" {listed(sequences, _MOST_LISTED)}: armnesia certificate show or armnesia finish issues them again"
    ]


def _certificate_problems(
    session: Session, keyring: Keyring, keys: PublicKeys | None, state: State | None
) -> Iterator[list[str]]:
    """The problems of each certificate that is present or should be."""
    erasures = [] if state is None or keys is None else read_erasures(session, state.configuration)
    for sequence, text, body, signature in tables.stream_entries_and_certificates(session):
        if body is not None:
            yield _problems_of(session, sequence, body, signature, text, keyring, keys, erasures)
        elif _kind(text) in CERTIFIED:
            yield [f"certificate {sequence}: missing"]
    for sequence, body, signature in tables.stream_certificates_without_entry(session):
        yield _problems_of(session, sequence, body, signature, "", keyring, keys)


def _problems_of(
    session: Session,
    sequence: int,
    body: object,
    signature: object,
    entry: str,
    keyring: Keyring,
    keys: PublicKeys | None,
    erasures: Sequence[Mapping[str, Any]] = (),
) -> list[str]:
    try:
        stored = StoredCertificate.read(sequence, body, signature, entry, keyring)
    except VaultError as error:
        return [str(error)]
    problems = [] if keys is None else stored.range_problems(keys)
    issued_at = stored.issued_at
    if issued_at is not None:
        _, hash_ = tables.read_entry(session, issued_at.sequence) or ("", "")
        if hash_ != issued_at.hash:
            problems.append("it was issued at a head that the ledger never had")
    if stored.issued is not None and stored.issued.source is not None and keys is not None:
        problems += Issue.of(stored.issued.body).source_problems(erasures)
    return [f"certificate {sequence}: {problem}" for problem in problems]


def _tree_problems(session: Session) -> list[str]:
    """Hash trees that are missing or do not lead to the commitment of their entry: a sentence each."""
    problems, sizes = [], {}
    for sequence, leaves in tables.stream_table(session, "tree"):
        text, _ = tables.read_entry(session, sequence) or ("{}", "")
        tree = HashTree.of_bytes(bytes(leaves))
        sizes[sequence] = tree.size
        if tree.root != json.loads(text).get("commitment"):
            problems.append(f"commitments: those of entry {sequence} do not lead to its root in the ledger")
    for _, sequence, opening in tables.stream_table(session, "request"):
        place = Opening.read(opening).place if opening else None
        if place is not None and place >= sizes.get(sequence, 0):
            problems.append(f"commitments: entry {sequence} has none for a name that it answered")
    return list(dict.fromkeys(problems))


def _kind(text: str) -> str | None:
    """The kind of an entry, if it can be read at all."""
    try:
        kind = json.loads(text)["kind"]
    except (ValueError, KeyError, TypeError):
        return None
    return kind if isinstance(kind, str) else None


def _row_problems(
    session: Session, connection: VaultConnection, state: State, counter: RowCounter
) -> tuple[list[str], list[str]]:
    """Compare the tables with their digests, and the records with the statistics: problems, and notes."""
    try:
        keyring = state.keyring_in_use(connection.all_keys)
    except VaultError as error:  # a state that was changed may name keys that do not exist
        return [f"state: {error}"], []
    scan = connection.records.scan(session, keyring, read_suppressed(session), counter=counter)
    root, decisions, problems = _decisions(session, state, keyring)
    service_notes = []
    if state.version >= WITH_SERVICE:
        problems += [*token_problems(session, keyring), *subject_request_problems(session, keyring)]
        service_notes = _service_notes(session)
    digests = scan.digests._replace(decision=root)
    problems += [
        f"{table}: rows were added, changed or removed by something other than armnesia"
        for table, stored, computed in zip(_DIGESTED, state.digests, digests, strict=True)
        if stored != computed
    ]
    problems += _tree_problems(session)
    if state.version >= WITH_TALLIES and scan.tallies is not None:
        problems += scan.tallies.problems(session)
    if state.configuration.by and ReplayedState.of(tables.stream_ledger(session)).counts_differ(decisions):
        problems.append("state: the numbers of deleted records are not those in the ledger")
    found, notes = connection.records.problems(session, state, keyring, scan, decisions, counter)
    return problems + found, notes + service_notes


def _service_notes(session: Session) -> list[str]:
    """What is not known of the tables of the service, whose rows are sealed one by one."""
    tokens, requests = len(tables.read_tokens(session)), len(tables.read_subject_requests(session))
    if not tokens and not requests:
        return []
    return [
        f"of the service there are {counted(tokens, 'token')} and"
        f" {counted(requests, 'request')} of controllers; whether others were removed, or older"
        " ones put back, cannot be told"
    ]


def _decisions(
    session: Session, state: State, keyring: Keyring
) -> tuple[int, list[VaultDecision], list[str]]:
    """The digest of the decisions as they are, the decisions, and where their hash tree is not theirs."""
    if state.version < WITH_DECISIONS:
        return state.digests.decision, [] if state.decision is None else [state.decision], []
    rows, problems = list(tables.stream_decisions(session)), []
    try:
        tree, nodes = build_tree(rows, keyring)
    except VaultError:  # their numbers are not 1, 2, 3, …
        tree, nodes = DecisionTree(keyring, 0, _NO_ROOT), {}
    if state.configuration.by and nodes != {
        node: bytes(digests) for node, digests in tables.stream_nodes(session)
    }:
        problems.append("decisions: their hash tree was changed by something other than armnesia")
    if state.n_decisions != len(rows):
        problems.append(f"decisions: there are {len(rows)}, and the vault has counted {state.n_decisions}")
    decisions = []
    for row in rows:
        with suppress(ValueError, TypeError, LookupError, AttributeError):  # the digest has told of it
            decisions.append(VaultDecision.of_row(row))
    return tree.root, decisions, problems
