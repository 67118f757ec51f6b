"""Restoring: a backup forgets again, before it opens, everyone who was forgotten since it was made."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from armnesia.errors import VaultError
from armnesia.vault.canonical import canonical
from armnesia.vault.configuration import Configuration
from armnesia.vault.database import Session, rows_in
from armnesia.vault.holdings import request_of_rows
from armnesia.vault.keyring import Keyring
from armnesia.vault.ledger import Head, check_chain
from armnesia.vault.maintenance import gone_told, rebuilt_from_sources
from armnesia.vault.opened import Opened, Statement, appended
from armnesia.vault.schema import EXTERNAL
from armnesia.vault.state import State, new_stream
from armnesia.vault.suppression import LISTED
from armnesia.vault.tallies import tallied


def restore(opened: Opened, later: Mapping[str, Any]) -> int:
    """Replay on an older state what `later`, an export of the same vault, says came after; how many entries.

    The records of everyone forgotten since are deleted, the statistics rolled back exactly, and the ledger,
    certificates and suppression list brought up to date. If that changed the statistics, the learner decides
    anew from what is left, which is rollback: as if the records had never been there.
    """
    pinned = opened.pin.read()
    with opened.database.writing() as session:
        before = opened.load(session)
        missing = _missing_entries(session, before, later, pinned)
        state = _brought_forward(before, later)
        if opened.mode != EXTERNAL:
            state = _without_forgotten(session, state, later, opened.ring(state), since=before.head)
        session.execute_together(_statements(session, later, before.head))
        entry, state, to_ledger = appended(state, "restore", replayed=len(missing))
        state = replace(state, tallies=tallied(session, opened.ring(state), opened.mode))
        opened.store(session, before, state, to_ledger)
        if opened.mode == EXTERNAL and state.stream is not None:  # it has no rows, its sources have
            opened.store(session, state, rebuilt_from_sources(opened, session, state))
    opened.pin.write(entry.head)
    if opened.database.erase():
        opened.erased_through = entry.sequence
    return len(missing)


def _missing_entries(
    session: Session, before: State, later: Mapping[str, Any], pinned: Head | None
) -> list[Mapping[str, Any]]:
    """The entries after the backup; refused if the two ledgers are not the same up to it."""
    rows = [(row["sequence"], row["entry"], row["hash"]) for row in later["ledger"]]
    problems = check_chain(rows, vault=before.vault, head=pinned, end=Head.parse(later["head"]))
    if problems:
        raise VaultError(f"the export cannot be used: {problems[0]}")
    own = session.query("SELECT sequence, entry, hash FROM ledger ORDER BY sequence")
    if rows[: len(own)] != [tuple(row) for row in own]:
        raise VaultError("the ledger of the vault is not the beginning of the export's: they went apart")
    return later["ledger"][len(own) :]  # type: ignore[no-any-return]


def _without_forgotten(
    session: Session, before: State, later: Mapping[str, Any], ring: Keyring, since: Head
) -> State:
    """Delete what was forgotten after the backup, by owner or by record, and roll back."""
    listed = {
        kind: {
            bytes.fromhex(digest)
            for digest, of, when, _ in later["suppressed"]
            if of == kind and when > since.sequence
        }
        for kind in LISTED
    }
    identities = []
    if listed["user"] or listed["record"]:
        for identity, owner in session.stream("SELECT identity, owner FROM record"):
            name = bytes(identity)
            by_owner = owner is not None and ring.digest_of_owner(bytes(owner)) in listed["user"]
            if by_owner or (listed["record"] and ring.suppressed_record_digest(name) in listed["record"]):
                identities.append(name)
    deleting = "DELETE FROM record WHERE identity IN ({}) RETURNING arm, units"
    found = request_of_rows(before, rows_in(session, deleting, identities))
    if found is None:
        return before
    stream = before.known_stream
    return before.with_stream(replace(stream, statistics=stream.statistics.without(found)))


def _brought_forward(state: State, later: Mapping[str, Any]) -> State:
    """What the later state was told: its configuration, its keys' versions, its ledger, what is gone."""
    configuration = Configuration.from_facts(later["configuration"])
    empty = new_stream(configuration) if state.stream is None else None
    if empty is not None:
        state = state.with_stream(empty)
    stream = state.stream
    if stream is not None and stream.gone is not None:  # of rows, too, that came in after the backup
        told = gone_told((json.loads(row["entry"]) for row in later["ledger"]), stream)
        if (told != stream.gone).any():
            state = state.with_stream(replace(stream, gone=told))
    return replace(
        state,
        configuration=configuration,
        head=Head.parse(later["head"]),
        digest_key=later["digest_key"],
        signing_key=len(later["public_keys"]),
    )


def _statements(session: Session, later: Mapping[str, Any], since: Head) -> list[Statement]:
    session.execute("DELETE FROM suppressed")
    session.execute("DELETE FROM request")
    statements: list[Statement] = [
        (
            "INSERT INTO ledger (sequence, entry, hash) VALUES (?, ?, ?)",
            (row["sequence"], row["entry"], row["hash"]),
        )
        for row in later["ledger"]
        if row["sequence"] > since.sequence
    ]
    statements += [
        (
            "INSERT INTO certificate (sequence, body, signature) VALUES (?, ?, ?)",
            (row["sequence"], canonical(row["body"]), bytes.fromhex(row["signature"])),
        )
        for row in later["certificates"]
        if row["sequence"] > since.sequence
    ]
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
    return statements
