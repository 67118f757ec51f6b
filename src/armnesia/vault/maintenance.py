"""What an operator does now and then: rebuild, compact, upgrade, change the policy."""

import json
from dataclasses import replace

from armnesia.errors import VaultError
from armnesia.vault import schema
from armnesia.vault.configuration import Configuration, Policy
from armnesia.vault.database import Database, Session
from armnesia.vault.identities import Occurrences
from armnesia.vault.ingesting import Loader
from armnesia.vault.keyring import Keyring
from armnesia.vault.opened import Opened, appended
from armnesia.vault.schema import EXTERNAL
from armnesia.vault.sources import reopen_source
from armnesia.vault.state import State, load_state
from armnesia.vault.verifying import statistics_of_rows


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


def rebuild(opened: Opened) -> bool:
    """Compute the statistics anew from the rows, forgotten people left out; whether anything was wrong.

    Also the way out when a statistics row was changed by something else. The configuration must still be the
    one that the ledger tells of.
    """
    with opened.database.writing() as session:
        before = load_state(session, opened.keyring, check_seal=False)
        _check_configuration(session, before)
        if opened.mode == EXTERNAL:
            state = rebuilt_from_sources(opened, session, before)
        else:
            stream = before.known_stream
            state = before.with_stream(replace(stream, statistics=statistics_of_rows(session, before)))
        differs = before.stream != state.stream
        _, state, to_ledger = appended(state if differs else before, "rebuild", changed=differs)
        opened.store(session, before, state, to_ledger)
    opened.pin.write(state.head)
    return differs


def rebuilt_from_sources(opened: Opened, session: Session, before: State) -> State:
    """Read every source of an external vault again, in this transaction."""
    session.execute("DELETE FROM record")
    stream = before.known_stream
    nothing = stream.statistics.without(stream.statistics)
    emptied = replace(before, stream=replace(stream, statistics=nothing))
    opened.store(session, before, emptied)
    actions = nothing.actions
    for (description,) in session.query("SELECT description FROM source ORDER BY number"):
        source = reopen_source(json.loads(description))
        with Occurrences() as occurrences:
            loader = Loader(opened, session, source, actions, occurrences)
            for rows in source.rows(actions, nothing.reward_range):
                loader.take(rows)
            loader.finish()
    return opened.load(session)


def upgrade(database: Database, keyring: Keyring) -> tuple[int, int]:
    """Bring an older vault to this version, in one transaction; from which version, to which."""
    with database.writing() as session:
        ((version,),) = session.query("SELECT schema_version FROM vault")
        if version > schema.VERSION:
            schema.check_version(version)
        for step in range(version + 1, schema.VERSION + 1):
            schema.MIGRATIONS[step](session, database)
            session.execute("UPDATE vault SET schema_version = ?", step)
        if version < schema.VERSION:
            state = load_state(session, keyring, check_seal=False)
            ring = keyring.at(digest_version=state.digest_key, signing_version=state.signing_key)
            session.execute("UPDATE vault SET seal = ?", ring.seal(state.sealed_text()))
    return int(version), schema.VERSION


def _check_configuration(session: Session, state: State) -> None:
    """The configuration as the ledger tells of it: that of the first entry, with the last policy."""
    entries = [json.loads(text) for (text,) in session.query("SELECT entry FROM ledger ORDER BY sequence")]
    told = dict(entries[0]["configuration"])
    for entry in entries:
        told |= {"policy": entry["policy"]} if entry["kind"] == "policy" else {}
    if told["actions"] is None:
        told["actions"] = state.configuration.to_facts()["actions"]
    if Configuration.from_facts(told) != state.configuration:
        raise VaultError("the vault's configuration is not the one its ledger tells of; restore a backup")
