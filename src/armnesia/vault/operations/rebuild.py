"""What an operator does now and then: rebuild, compact, change the policy."""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.progress import Progress, Watched
from armnesia.logs import reopen_source, source_name
from armnesia.logs.urls import redacted
from armnesia.vault.configuration import Policy
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import check_chain
from armnesia.vault.operations.ingest import Loader
from armnesia.vault.state.comparison import RowsSeen, listed_now
from armnesia.vault.state.connection import Opened, appended, older
from armnesia.vault.state.records import request_of_rows
from armnesia.vault.state.replay import Told, ledger_rows
from armnesia.vault.state.sealed_state import State
from armnesia.vault.state.table_digests import Tallies, tallied
from armnesia.vault.storage.database import Session, rows_in
from armnesia.vault.storage.schema import EXTERNAL, MANAGED, RECORD_COLUMNS


def change_policy(opened: Opened, policy: Policy) -> None:
    """Allow more or less from now on; the ledger says so."""
    with opened.writing() as session:
        before = opened.load(session)
        changed = replace(before, configuration=replace(before.configuration, policy=policy))
        _, state, to_ledger = appended(changed, "policy", policy=policy.to_dict())
        opened.store(session, before, state, to_ledger)
    opened.pin.write(state.head)


def compact(opened: Opened) -> bool:
    """Make deleted bytes leave the database's files, which may take long; whether they are gone."""
    with opened.reading() as session:
        length = opened.load(session).head.sequence
    if not opened.database.compact():
        return False
    opened.erased_through = length
    with opened.writing() as session:
        state = opened.load(session)
        opened.store(session, state, state)
    return True


def rebuild(opened: Opened, without: Sequence[str] = (), progress: Progress | None = None) -> bool:
    """Compute the statistics anew from the rows, forgotten people left out; whether anything has changed.

    Also the way out when the state was changed by something else: then nothing is taken from it but what the
    ledger, which must be whole, does not tell. `without` names sources of an external vault that are gone
    for good: their rows no longer count, unless another source has them too.
    """
    watched = Watched(progress)
    with opened.writing() as session:
        before, sealed = _loaded_or_told(session, opened)
        ring = opened.ring(before)
        _drop_sources(session, without)
        seen = None if opened.mode == EXTERNAL else RowsSeen(ring, listed_now(session))
        tallies = tallied(session, ring, opened.mode, watched, seen)
        if tallies[1:3] != before.tallies[1:3]:
            raise VaultError(
                "the suppression list, the answered requests or their tallies were changed by something other"
                " than armnesia: run armnesia restore with the latest export"
            )
        whole = sealed and tallies == before.tallies
        state = replace(before, tallies=tallies)
        if seen is not None:
            state = counted_anew(session, state, ring, seen)
        else:
            whole = sealed  # rows of several sources may be counted with another of them
            state = rebuilt_from_sources(opened, session, state, watched)
        differs = not whole or before.stream != state.stream
        if not differs:  # what is served stays, and by whom
            state = replace(before, tallies=state.tallies)
        _, state, to_ledger = appended(state, "rebuild", changed=differs, sources_dropped=len(without))
        opened.store(session, before, state, to_ledger)
    opened.pin.write(state.head)
    return differs


def _loaded_or_told(session: Session, opened: Opened) -> tuple[State, bool]:
    """The state, and whether its seal was whole; if not, what the ledger tells, sealed anew to work on."""
    rows, state = ledger_rows(session), None
    if opened.pinned is not None and (not rows or rows[-1][0] < opened.pinned.sequence):
        raise older(opened.pinned)
    with suppress(VaultError):
        state = opened.load(session)
    end = None if state is None else state.head
    for problem in check_chain(rows, vault=opened.keyring.vault, head=opened.pin.read(), end=end):
        raise VaultError(f"ledger: {problem}; restore a backup")
    if state is not None:
        return state, True
    return told_state(session, opened, Told.by(rows)), False


def told_state(session: Session, opened: Opened, told: Told) -> State:
    """Put what the ledger tells in the place of a broken state; no rows are counted in it."""
    ring = opened.keyring.at(digest_version=told.digest_key, signing_version=len(told.public_keys))
    found = session.query("SELECT tallies FROM vault")
    try:
        tallies = Tallies.unmasked(found[0][0], ring, told.head)
    except (IndexError, ValueError, TypeError):
        tallies = Tallies(*[-1] * len(Tallies._fields))  # which no rows have
    state = told.state(ring.vault, tallies)
    session.execute("DELETE FROM arm")
    opened.store(session, replace(state, stream=None) if found else None, state)
    return state


def counted_anew(session: Session, state: State, ring: Keyring, seen: RowsSeen) -> State:
    """The state of a managed vault by its rows alone, without those that should not be there."""
    if state.stream is None:
        return state
    statistics = seen.statistics(state.stream.statistics)
    columns = RECORD_COLUMNS[MANAGED]
    gone = list(
        rows_in(session, f"DELETE FROM record WHERE identity IN ({{}}) RETURNING {columns}", seen.forgotten)
    )
    forgotten = request_of_rows(state, ((arm, units) for *_, arm, units in gone))
    if forgotten is not None:
        statistics = statistics.without(forgotten)
        state = replace(state, tallies=state.tallies.toggled(ring, "record", gone))
    return state.with_stream(replace(state.known_stream, statistics=statistics))


def _drop_sources(session: Session, names: Sequence[str]) -> None:
    known: dict[str, list[int]] = {}  # one place may have been read by different columns
    for number, description in session.query("SELECT number, description FROM source ORDER BY number"):
        known.setdefault(source_name(json.loads(description)), []).append(number)
    for name in names:
        if name not in known:
            raise InvalidInputError(
                f"the vault has no source {redacted(name)!r}; its sources are: {', '.join(known) or 'none'}"
            )
        for number in known[name]:
            session.execute("DELETE FROM source WHERE number = ?", number)


def rebuilt_from_sources(
    opened: Opened, session: Session, before: State, watched: Watched | None = None
) -> State:
    """Read every source of an external vault again, in this transaction."""
    session.execute("DELETE FROM record")
    stream = before.known_stream
    nothing = stream.statistics.without(stream.statistics)
    emptied = replace(
        before, stream=replace(stream, statistics=nothing), tallies=before.tallies._replace(record=0)
    )
    opened.store(session, before, emptied)
    actions = nothing.actions
    for (description,) in session.query("SELECT description FROM source ORDER BY number"):
        source = reopen_source(json.loads(description))
        loader = Loader(opened, session, source, actions)
        for rows in source.rows(actions, nothing.reward_range):
            loader.take(rows)
            if watched is not None:
                watched.add(len(rows.arms))
        loader.finish()
    return opened.load(session)
