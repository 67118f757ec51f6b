"""Restoring: a backup forgets again, before it opens, everyone who was forgotten since it was made."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from armnesia.core.errors import VaultError
from armnesia.vault.keys.canonical_json import canonical, utc_now
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate import Certificate
from armnesia.vault.ledger.ledger import Head, check_chain
from armnesia.vault.operations.certificates import storing
from armnesia.vault.operations.readmit import LISTED
from armnesia.vault.operations.rebuild import counted_anew, rebuilt_from_sources, told_state
from armnesia.vault.state.comparison import Listed, RowsSeen
from armnesia.vault.state.connection import Opened, Statement, appended
from armnesia.vault.state.replay import Told, exported_rows, ledger_rows
from armnesia.vault.state.sealed_state import State, new_stream
from armnesia.vault.state.table_digests import tallied
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import EXTERNAL


def restore(opened: Opened, later: Mapping[str, Any], *, as_it_is: bool = False) -> int:
    """Replay on an older state what `later`, an export of the same vault, says came after; how many entries.

    The records of everyone forgotten since are deleted, the statistics rolled back exactly, and the ledger,
    certificates and suppression list brought up to date. If that changed the statistics, the learner decides
    anew from what is left, which is rollback: as if the records had never been there.

    A copy whose rows or state were changed by something else is refused, or taken `as_it_is`: then its rows
    are counted anew, and the ledger says so.
    """
    with opened.writing() as session:
        missing, told = _missing_entries(session, opened, later)
        before, whole = _older_state(session, opened, told)
        old_ring = opened.ring(before)
        state = _brought_forward(before, later)
        ring = opened.ring(state)
        seen = None
        if opened.mode != EXTERNAL:
            seen = RowsSeen(ring, _kept_out(later, told.head))
        tallies = tallied(session, old_ring, opened.mode, seen=seen)
        # The lists come from the export; what else was changed in this copy must not pass unnoticed.
        whole = whole and (tallies.record, tallies.source) == (before.tallies.record, before.tallies.source)
        if not whole and not as_it_is:
            raise VaultError(
                "the rows or the state of this copy were changed by something other than armnesia: put"
                " another backup in its place, or take it as it is by --as-it-is, which the ledger tells"
            )
        if seen is not None and (seen.forgotten or not whole):
            state = counted_anew(session, state, old_ring, seen)
        session.execute_together(_statements(session, later, told.head, ring))
        entry, state, to_ledger = appended(state, "restore", replayed=len(missing), as_it_was=whole)
        state = replace(state, tallies=tallied(session, ring, opened.mode))
        opened.store(session, before, state, to_ledger)
        if opened.mode == EXTERNAL and state.stream is not None:  # it has no rows, its sources have
            opened.store(session, state, rebuilt_from_sources(opened, session, state))
    opened.pin.write(entry.head)
    if opened.database.erase():
        opened.erased_through = entry.sequence
    return len(missing)


def _missing_entries(
    session: Session, opened: Opened, later: Mapping[str, Any]
) -> tuple[list[Mapping[str, Any]], Told]:
    """The entries after this copy, and what its own tell; refused if the ledgers are not the same before."""
    rows, own = exported_rows(later), ledger_rows(session)
    end = Head.parse(later["head"])
    problems = check_chain(rows, vault=opened.keyring.vault, head=opened.pin.read(), end=end)
    if problems:
        raise VaultError(f"the export cannot be used: {problems[0]}")
    if not own or rows[: len(own)] != [tuple(row) for row in own]:
        raise VaultError("the ledger of the vault is not the beginning of the export's: they went apart")
    return later["ledger"][len(own) :], Told.by(own)


def _older_state(session: Session, opened: Opened, told: Told) -> tuple[State, bool]:
    """The state of the copy, and whether it is as it was stored; if not, what its ledger tells."""
    try:
        state = opened.load(session)
        if state.head == told.head:
            return state, True
    except VaultError:
        pass
    return told_state(session, opened, told), False


def _kept_out(later: Mapping[str, Any], copied: Head) -> Listed:
    """Whose rows must not be in the copy any more: all but theirs who had been readmitted when it was made.

    Rows of those who were readmitted later are older than that, and stay deleted.
    """
    listed: Listed = {kind: set() for kind in LISTED}
    for digest, kind, since, readmitted in later["suppressed"]:
        if since > copied.sequence or readmitted is None or readmitted > copied.sequence:
            listed[kind].add(bytes.fromhex(digest))
    return listed


def _brought_forward(state: State, later: Mapping[str, Any]) -> State:
    """What the later state was told: its configuration, its keys' versions, its ledger, what is gone."""
    told = Told.by(exported_rows(later))
    stream = state.stream
    if stream is None:
        empty = new_stream(told.configuration, told.deleted_counts)
        state = state if empty is None else state.with_stream(empty)
    elif stream.deleted_counts is not None and (told.deleted_counts != stream.deleted_counts).any():
        # Of rows, too, that came in after the copy was made.
        state = state.with_stream(
            replace(stream, deleted_counts=np.zeros_like(stream.deleted_counts) + told.deleted_counts)
        )
    return replace(
        state,
        configuration=told.configuration,
        head=told.head,
        digest_key=told.digest_key,
        signing_key=len(told.public_keys),
    )


def _statements(session: Session, later: Mapping[str, Any], since: Head, ring: Keyring) -> list[Statement]:
    session.execute("DELETE FROM suppressed")
    session.execute("DELETE FROM request")
    session.execute("DELETE FROM tree")
    statements: list[Statement] = [
        ("INSERT INTO ledger (sequence, entry, hash) VALUES (?, ?, ?)", row)
        for row in exported_rows(later)
        if row[0] > since.sequence
    ]
    for row in later["certificates"]:
        if row["sequence"] > since.sequence:
            certificate = Certificate.from_stored(canonical(row["body"]), bytes.fromhex(row["signature"]))
            # The bytes came back with the copy.
            statements.append(storing(certificate.reissue(ring, erasure="pending", issued=utc_now())))
    statements += [
        (
            "INSERT INTO suppressed (digest, kind, since, readmitted) VALUES (?, ?, ?, ?)",
            (bytes.fromhex(digest), *rest),
        )
        for digest, *rest in later["suppressed"]
    ]
    statements += [
        ("INSERT INTO request (digest, sequence, opening) VALUES (?, ?, ?)", (bytes.fromhex(digest), *rest))
        for digest, *rest in later["requests"]
    ]
    statements += [
        ("INSERT INTO tree (sequence, leaves) VALUES (?, ?)", (sequence, bytes.fromhex(leaves)))
        for sequence, leaves in later.get("trees", [])
    ]
    return statements
