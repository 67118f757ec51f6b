"""Verifying: everything that can be recomputed is recomputed, and everything else is checked against it."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from armnesia.core.errors import ArmnesiaError, VaultError
from armnesia.core.progress import Progress, Watched
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.certificate_text import CERTIFIED
from armnesia.vault.ledger.ledger import Entry, Head, check_chain
from armnesia.vault.state.comparison import RowsSeen, at_sources, listed_now
from armnesia.vault.state.connection import Opened
from armnesia.vault.state.replay import Told, ledger_rows
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.table_digests import tallied
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import EXTERNAL

_TALLIED = ("records", "suppression list", "answered requests", "sources", "commitments")


@dataclass(frozen=True)
class Verification:
    """What was found: each problem is one sentence that says where; `notes` are facts, not faults."""

    problems: tuple[str, ...]
    notes: tuple[str, ...]
    records: int
    entries: int
    certificates: int

    @property
    def holds(self) -> bool:
        """Whether there is nothing wrong."""
        return not self.problems


def verify(opened: Opened, head: Head | None = None, progress: Progress | None = None) -> Verification:
    """Recompute the statistics and compare bit for bit; check seal, ledger, certificates and tallies.

    `head` is a head that was kept elsewhere; the one pinned beside the keys is always checked.
    """
    problems: list[str] = []
    notes: list[str] = []
    heads, watched = _heads(opened, head), Watched(progress)
    if opened.pin.read() is None:
        notes.append("no head is pinned beside the keys: an old copy in the vault's place is not noticed")
    with opened.database.reading() as session:
        state, found = _state(session, opened)
        problems += found
        problems += _ledger_problems(session, opened, state, heads)
        certificates = 0
        for problem in _certificate_problems(session, opened.keyring):
            certificates += 1
            problems += problem
        if state is not None:
            found, remarks = _row_problems(session, opened, state, watched)
            problems += found
            notes += remarks
        ((records,),) = session.query("SELECT count(*) FROM record")
        ((entries,),) = session.query("SELECT count(*) FROM ledger")
    return Verification(
        tuple(dict.fromkeys(problems)), tuple(notes), int(records), int(entries), certificates
    )


def check_ledger(opened: Opened, head: Head) -> list[str]:
    """Check the ledger against a head that was kept elsewhere, and against the one pinned beside the keys."""
    heads = _heads(opened, head)
    with opened.database.reading() as session:
        state, _ = _state(session, opened)
        return list(dict.fromkeys(_ledger_problems(session, opened, state, heads)))


def _heads(opened: Opened, head: Head | None) -> list[Head]:
    """The heads to check against. To be read before the ledger: others may lengthen both meanwhile."""
    return [known for known in (head, opened.pin.read()) if known is not None]


def _state(session: Session, opened: Opened) -> tuple[State | None, list[str]]:
    """The state, to measure the rest by even if its seal is broken; None if it cannot be read at all."""
    try:
        return opened.load(session, check_pin=False), []
    except ArmnesiaError as error:
        problems = [f"state: {error}"]
    try:
        return opened.load(session, check_pin=False, check_seal=False), problems
    except (ArmnesiaError, ValueError, KeyError, TypeError) as error:
        unreadable = f"state: it cannot even be read ({type(error).__name__})"
        return None, [*problems, unreadable]


def _ledger_problems(session: Session, opened: Opened, state: State | None, heads: list[Head]) -> list[str]:
    """What is wrong with the ledger, measured by itself, by the state and by heads kept elsewhere."""
    rows = ledger_rows(session)
    vault, end = opened.keyring.vault, None if state is None else state.head
    problems = [
        f"ledger: {problem}"
        for head in (*heads, None)[: max(1, len(heads))]
        for problem in check_chain(rows, vault=vault, head=head, end=end)
    ]
    if rows and not check_chain(rows, vault=vault):
        told = Told.by(rows)
        problems += told.strange_keys(opened.keyring)
        if state is not None:
            problems += [f"state: {problem}" for problem in told.contradictions(state)]
    return problems


def _certificate_problems(session: Session, keyring: Keyring) -> Iterator[list[str]]:
    """The problems of each certificate that is there or should be there."""
    entries: dict[int, str] = dict(session.query("SELECT sequence, entry FROM ledger"))
    public = [keyring.public_key(version + 1) for version in range(keyring.signing_version)]
    seen = set()
    for sequence, body, signature in session.stream("SELECT sequence, body, signature FROM certificate"):
        seen.add(sequence)
        try:
            certificate = Certificate.from_stored(body, bytes(signature))
            found = certificate.verify(public)
            if certificate.body.get("sequence") != sequence:
                found.append("it is filed under another entry than its own")
            if Entry(certificate.body["entry"]).text != entries.get(sequence):
                found.append("its entry is not the one in the ledger")
        except (ArmnesiaError, KeyError, TypeError) as error:
            found = [str(error)]
        yield [f"certificate {sequence}: {problem}" for problem in found]
    for sequence, text in entries.items():
        if sequence not in seen and _kind(text) in CERTIFIED:
            yield [f"certificate {sequence}: missing"]


def _kind(text: str) -> str | None:
    """The kind of an entry, if it can be read at all."""
    try:
        kind = json.loads(text)["kind"]
    except (ValueError, KeyError, TypeError):
        return None
    return kind if isinstance(kind, str) else None


def _row_problems(
    session: Session, opened: Opened, state: State, watched: Watched
) -> tuple[list[str], list[str]]:
    """The tables whose rows are not those that armnesia put there, and what the records say; with notes."""
    try:
        ring = opened.ring(state)
    except VaultError as error:  # a state that was changed may name keys that never were
        return [f"state: {error}"], []
    external = opened.mode == EXTERNAL
    seen = None if external else RowsSeen(ring, listed_now(session))
    tallies = tallied(session, ring, opened.mode, watched, seen)
    problems = [
        f"{table}: rows were added, changed or taken away by something other than armnesia"
        for table, noted, true in zip(_TALLIED, state.tallies, tallies, strict=True)
        if noted != true
    ]
    if seen is not None:
        return problems + seen.problems(state), []
    found, notes = at_sources(session, state, ring, watched)
    return problems + found, notes
