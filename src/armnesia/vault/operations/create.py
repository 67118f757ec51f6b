"""Creating a vault: its tables, its keys and its first ledger entry, or nothing at all."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.core.messages import without_unchanged
from armnesia.core.randomness import secret_bytes
from armnesia.vault.configuration import Configuration
from armnesia.vault.keys.canonical_json import utc_now
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import GENESIS, Entry
from armnesia.vault.ledger.public_keys import PREDECESSORS, SIGNED_BY_PREDECESSOR
from armnesia.vault.state.connection import VaultConnection, keys_path_of, pinned_head_of
from armnesia.vault.state.decision_table import decided, declared_keys, empty_decisions, with_tree
from armnesia.vault.state.decision_tree import build_tree
from armnesia.vault.state.inheritance import Inheritance, warn_of_retired_arms
from armnesia.vault.state.new_vault import creating_vault, refuse_existing_vault
from armnesia.vault.state.pending_erasure import complete_erasure
from armnesia.vault.state.record_modes import records_of
from armnesia.vault.state.sealed_state import State, store_statements
from armnesia.vault.state.table_digests import TableDigests
from armnesia.vault.state.transaction import CODE
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Statement


def create_vault(
    url: str,
    configuration: Configuration,
    keys: str | Path | None = None,
    *,
    timeout: float = 30.0,
    predecessor: VaultConnection | None = None,
    decisions: Iterable[Mapping[str, Any]] | None = None,
) -> VaultConnection:
    """Create a vault and its keys; a failure before its commit leaves no file behind.

    With `predecessor` it succeeds that vault: whoever is forgotten there stays out of it. The ledger of the
    old vault names the successor first, in a transaction of its own, so that there is none that it does not
    know. Then the successor is made while the old vault is locked, so that nobody is forgotten there
    unnoticed. With `decisions`, it has these and no others.

    >>> create_vault("sqlite:///no-such-folder/vault.db", Configuration(actions=("A", "B")))
    Traceback (most recent call last):
    armnesia.core.errors.VaultError: the file 'no-such-folder/vault.db' cannot be made: No such file
    or directory
    """
    if "" in (configuration.actions or ()):
        raise InvalidInputError("an action must have a name; got an empty one")
    declared: list[tuple[str, ...]] = []
    if decisions is not None:
        declared = declared_keys(configuration, decisions)
        configuration = configuration.with_declared_decisions(len(declared))
    path, vault = keys_path_of(url, keys), str(uuid.UUID(bytes=secret_bytes(16), version=4))
    create = partial(_create, url, path, timeout=timeout, declared=declared)
    if predecessor is None:
        keyring = Keyring.create(vault)
        entry = _first_entry(configuration, keyring, digest_key_check=keyring.digest_check(1))
        return create(configuration, keyring, entry, [])
    refuse_existing_vault(url, path, timeout=timeout)  # before the old vault names one that cannot be made
    complete_erasure(predecessor)
    with predecessor.writing() as transaction:
        before = transaction.state
        Inheritance.of(predecessor, transaction).configuration(configuration)  # or it is refused
        warn_of_retired_arms(before.configuration, configuration)
        transaction.append("succeeded", successor=vault)
        transaction.store(replace(before, configuration=before.configuration.with_successor(vault)))
    with _saying_what_is_left(vault), predecessor.writing() as transaction:
        inherited = Inheritance.of(predecessor, transaction)
        configuration = inherited.configuration(configuration)
        keyring = inherited.keyring.successor(vault)
        entry = _first_entry_of_successor(configuration, keyring, inherited)
        return create(configuration, keyring, entry, list(inherited.rows(keyring)))


@contextmanager
def _saying_what_is_left(vault: str) -> Iterator[None]:
    """Say, where a successor cannot be made, that the ledger of the old vault has its entry."""
    try:
        yield
    except VaultError as error:
        text = without_unchanged(str(error))
        error.args = (
            f"{text}; the ledger of the old vault has an entry for the successor {vault}, which may not have"
            " been made: the entry does no harm; if there is no vault at the new place, run armnesia init"
            " again",
        )
        raise


def _create(
    url: str,
    path: Path,
    configuration: Configuration,
    keyring: Keyring,
    entry: Entry,
    suppressed: list[Row],
    *,
    timeout: float,
    declared: list[tuple[str, ...]],
) -> VaultConnection:
    """Create a vault with this first entry, this suppression list and these decisions."""
    digests = TableDigests().update(keyring, "suppressed", suppressed)
    state = State.initial(
        keyring.vault, configuration, entry.head, digest_key=keyring.digest_version, digests=digests
    )
    decisions, state = _with_decisions(state, keyring, declared)
    statements, _, state = store_statements(None, state, state.digests, entry.head, keyring)
    records = records_of(configuration.mode, keyed=bool(configuration.by))
    with creating_vault(url, path, keyring, records.layout, timeout=timeout) as (database, session):
        tables.replace_table(session, "suppressed", suppressed)
        to_ledger = tables.insert_entry(entry.sequence, entry.text, entry.hash)
        session.execute_together([to_ledger, *decisions, *statements])
    pinned_head = pinned_head_of(path.absolute())
    pinned_head.write(state.head, committed=True)
    return VaultConnection(database, keyring, path.absolute(), pinned_head, records)


def _with_decisions(
    state: State, keyring: Keyring, keys: list[tuple[str, ...]]
) -> tuple[list[Statement], State]:
    """What stores decisions without records and the tree over them, and the state with these decisions."""
    if not keys:
        return [], state
    new = decided(empty_decisions(state, dict(enumerate(keys, 1))), state.configuration)
    rows = [decision.row(keyring) for decision in new]
    tree, nodes = build_tree(rows, keyring)
    stored = [tables.put_decision(row) for row in rows]
    return [*stored, *(tables.put_node(*node) for node in nodes.items())], with_tree(state, tree)


def _first_entry(configuration: Configuration, keyring: Keyring, **facts: Any) -> Entry:
    """The first entry of the ledger."""
    return Entry.next_after(
        0,
        GENESIS,
        vault=keyring.vault,
        kind="init",
        time=utc_now(),
        code=CODE,
        configuration=configuration.to_dict(),
        public_key=keyring.public_key(),
        **facts,
    )


def _first_entry_of_successor(
    configuration: Configuration, keyring: Keyring, inherited: Inheritance
) -> Entry:
    """The first entry of the ledger, which names the old vault and its head, and is signed with its key."""
    checks = [keyring.digest_check(number + 1) for number in range(keyring.digest_version)]
    predecessors = [keys.to_dict() for keys in inherited.predecessors]
    entry = _first_entry(configuration, keyring, digest_key_checks=checks, **{PREDECESSORS: predecessors})
    signature = inherited.keyring.sign(entry.text.encode())
    return Entry({**entry.fields, SIGNED_BY_PREDECESSOR: signature.hex()})
