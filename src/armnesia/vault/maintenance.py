"""What an operator does now and then: rebuild, compact, change the policy."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from armnesia.arrays import IntArray
from armnesia.errors import InvalidInputError, VaultError
from armnesia.logs.addresses import shown
from armnesia.stream import Stream
from armnesia.vault.configuration import Configuration, Policy
from armnesia.vault.database import Session
from armnesia.vault.identities import Occurrences
from armnesia.vault.ingesting import Loader
from armnesia.vault.opened import Opened, appended
from armnesia.vault.progress import Progress, Watched
from armnesia.vault.schema import EXTERNAL
from armnesia.vault.sources import reopen_source, source_name
from armnesia.vault.state import State
from armnesia.vault.tallies import tallied
from armnesia.vault.verifying import ledger_problems, statistics_of_rows, unsealed_state


def change_policy(opened: Opened, policy: Policy) -> None:
    """Allow more or less from now on; the ledger says so."""
    with opened.database.writing() as session:
        before = opened.load(session)
        changed = replace(before, configuration=replace(before.configuration, policy=policy))
        _, state, to_ledger = appended(changed, "policy", policy=policy.to_dict())
        opened.store(session, before, state, to_ledger)
    opened.pin.write(state.head)


def compact(opened: Opened) -> bool:
    """Make deleted bytes leave the database's files, which may take long; whether they are gone."""
    with opened.database.reading() as session:
        length = opened.load(session).head.sequence
    if not opened.database.compact():
        return False
    opened.erased_through = length
    with opened.database.writing() as session:
        state = opened.load(session)
        opened.store(session, state, state)
    return True


def rebuild(opened: Opened, without: Sequence[str] = (), progress: Progress | None = None) -> bool:
    """Compute the statistics anew from the rows, forgotten people left out; whether anything has changed.

    Also the way out when a statistics row was changed by something else. The ledger must be whole, and the
    configuration and the keys' versions still be those that it tells of. `without` names sources of an
    external vault that are gone for good: their rows no longer count, unless another source has them too.
    """
    pinned, watched = opened.pin.read(), Watched(progress)
    with opened.database.writing() as session:
        before, sealed = _mended(session, opened)
        for problem in ledger_problems(session, before, [] if pinned is None else [pinned]):
            raise VaultError(f"{problem}; restore a backup")
        _check_told(session, before)
        _drop_sources(session, without)
        tallies = tallied(session, opened.ring(before), opened.mode, watched)
        if tallies[1:3] != before.tallies[1:3]:
            raise VaultError(
                "the suppression list or the answered requests were changed by something other than armnesia:"
                " run armnesia restore with the latest export"
            )
        state = replace(before, tallies=tallies)
        if opened.mode == EXTERNAL:
            state = rebuilt_from_sources(opened, session, state, watched)
        else:
            sealed = sealed and tallies == before.tallies
            stream = before.known_stream
            state = state.with_stream(replace(stream, statistics=statistics_of_rows(session, before)))
        differs = not sealed or before.stream != state.stream
        if not differs:  # what is served stays, and by whom
            state = replace(before, tallies=state.tallies)
        _, state, to_ledger = appended(state, "rebuild", changed=differs, sources_dropped=len(without))
        opened.store(session, before, state, to_ledger)
    opened.pin.write(state.head)
    return differs


def _mended(session: Session, opened: Opened) -> tuple[State, bool]:
    """The state, and whether its seal was whole; if not, it is sealed anew, for what follows to work on.

    Nothing is taken from a broken state that can be had elsewhere.
    """
    try:
        return opened.load(session), True
    except VaultError:
        found = unsealed_state(session, opened)
    stream = found.known_stream
    if stream.gone is not None:
        stream = replace(stream, gone=gone_told(_entries(session), stream))
    mended = replace(found, stream=stream, erased_through=0)
    session.execute("DELETE FROM arm")
    opened.store(session, replace(mended, stream=None), mended)
    return mended, False


def gone_told(entries: Iterable[Mapping[str, Any]], stream: Stream) -> IntArray:
    """How many records of each arm were deleted, as the ledger tells."""
    gone = np.zeros_like(stream.statistics.counts)
    for entry in entries:
        gone += np.array(entry.get("counts", 0), dtype=np.int64)
    return gone


def _drop_sources(session: Session, names: Sequence[str]) -> None:
    known: dict[str, list[int]] = {}  # one place may have been read by different columns
    for number, description in session.query("SELECT number, description FROM source ORDER BY number"):
        known.setdefault(source_name(json.loads(description)), []).append(number)
    for name in names:
        if name not in known:
            raise InvalidInputError(
                f"the vault has no source {shown(name)!r}; its sources are: {', '.join(known) or 'none'}"
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
        with Occurrences() as occurrences:
            loader = Loader(opened, session, source, actions, occurrences)
            for rows in source.rows(actions, nothing.reward_range):
                loader.take(rows)
                if watched is not None:
                    watched.add(len(rows.arms))
            loader.finish()
    return opened.load(session)


def _entries(session: Session) -> list[dict[str, Any]]:
    return [json.loads(text) for (text,) in session.query("SELECT entry FROM ledger ORDER BY sequence")]


def _check_told(session: Session, state: State) -> None:
    """The configuration of the ledger's first entry, with the last policy; keys as often as rotated."""
    entries = _entries(session)
    told = dict(entries[0]["configuration"])
    for entry in entries:
        told |= {name: entry[name] for name in ("actions", "policy") if entry["kind"] == name}
    if Configuration.from_facts(told) != state.configuration:
        raise VaultError("the vault's configuration is not the one its ledger tells of; restore a backup")
    if state.known_stream.statistics.actions != state.configuration.actions:
        raise VaultError("the labels of the arms are not the configuration's actions; restore a backup")
    kinds = [entry["kind"] for entry in entries]
    versions = (1 + kinds.count("rotate_digest"), 1 + kinds.count("rotate_signing"))
    if (state.digest_key, state.signing_key) != versions:
        raise VaultError("the keys in use are not those that the ledger tells of; restore a backup")
