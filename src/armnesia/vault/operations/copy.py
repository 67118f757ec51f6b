"""Copying a vault to another place: all rows as they are, under the same keys and the same seal.

Rows are copied, not files or pages: bytes of forgotten people, which may still be in the files, stay behind.
"""

import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from armnesia.core.errors import ArmnesiaError, VaultError, refuse_first
from armnesia.core.progress import Progress, RowCounter
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.certificate_text import CERTIFIED
from armnesia.vault.ledger.ledger import check_chain
from armnesia.vault.ledger.stored_certificate import StoredCertificate
from armnesia.vault.results.upkeep import Copied
from armnesia.vault.state.connection import VaultConnection, keys_path_of, pinned_head_of
from armnesia.vault.state.decision_tree import build_tree
from armnesia.vault.state.new_vault import creating_vault
from armnesia.vault.state.owner_tallies import TallyObserver
from armnesia.vault.state.pending_erasure import complete_erasure, refuse_pending_erasure
from armnesia.vault.state.sealed_state import State, StoredState
from armnesia.vault.state.table_digests import compute_digests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.schema import TABLES, VERSION, RecordLayout

_AT_ONCE = 50_000
"""Rows that are sorted together: in the order of their keys they are inserted faster."""


def copy_vault(
    connection: VaultConnection,
    url: str,
    keys: str | Path | None = None,
    *,
    timeout: float = 30.0,
    progress: Progress | None = None,
) -> Copied:
    """Copy the vault to a place where there is none yet; what is stored there is checked before it counts.

    The copy has its own file of the keys, and its own pinned head, unless `keys` is the file of this vault.
    """
    _store_erasure(connection)
    path, layout = keys_path_of(url, keys).absolute(), connection.records.layout
    shared = path.exists() and path.samefile(connection.keys_path)
    with creating_vault(url, path, connection.all_keys, layout, timeout=timeout, save_keys=not shared) as (
        database,
        target,
    ):
        with connection.reading_snapshot() as source:
            state, stored = source.state, connection.checked
            if state.version < VERSION:
                raise VaultError(
                    f"the vault has schema version {state.version}, and a copy would have {VERSION}: make a"
                    " successor of it instead"
                )
            refuse_pending_erasure(connection, source)
            counter = RowCounter(progress)
            if layout.holds_rows:
                tables.drop_record_indexes(target)
            for table in TABLES[layout, VERSION]:
                rows = tables.stream_rows(source.session, table)
                tables.load_rows(target, table, _sorted_in_parts(counter.counted(rows)))
            if layout.holds_rows:
                tables.create_record_indexes(target)
            records = connection.records.count(target)
        with closing(_problems(target, state, source.keyring, connection.all_keys, layout)) as problems:
            refuse_first(problems, "{}; nothing was copied: run armnesia verify")
        with connection.reading():
            if connection.checked != stored:
                raise VaultError(
                    "the vault was changed while it was copied, and the copy would lack that; nothing was"
                    " copied: stop the processes that use the vault, and copy it again"
                )
    pinned_head_of(path).write(state.head, committed=True)
    database.close()
    return Copied(state.vault, database.location, path, state.head, records)


def _store_erasure(connection: VaultConnection) -> None:
    """Complete pending erasures, and store that they are, so that the copy knows it as well."""
    complete_erasure(connection)
    if connection.erased_at is None:
        return
    with connection.reading() as transaction:
        stored = connection.checked
        assert stored is not None  # it was read just now
        known = not tables.count_erasures_after(transaction.session, stored.row.erased_through)
    if not known:
        with connection.writing() as transaction:
            transaction.store(transaction.state)


def _sorted_in_parts(rows: Iterator[Row]) -> Iterator[Row]:
    """The same rows, some at a time in the order of their keys, which come first."""
    while some := list(islice(rows, _AT_ONCE)):
        yield from sorted(some, key=lambda row: row[0])


def _problems(
    target: Session, state: State, keyring: Keyring, all_keys: Keyring, layout: RecordLayout
) -> Generator[str]:
    """Where the rows of the copy are not those that the state, which is sealed, says there are."""
    try:
        if StoredState.read(target).check_seal(all_keys) != keyring:
            yield "state: other keys are in use"
    except ArmnesiaError as error:
        yield f"state: {error}"
    for problem in check_chain(tables.LedgerRows(target), vault=state.vault, end=state.head):
        yield f"ledger: {problem}"
    yield from _certificate_problems(tables.stream_entries_and_certificates(target), keyring)
    if any(True for _ in tables.stream_certificates_without_entry(target)):
        yield "certificates: there is one without a ledger entry"
    tallies = TallyObserver(keyring)
    digests = compute_digests(target, keyring, layout, observers=[tallies])
    tree, nodes = build_tree(tables.stream_decisions(target), keyring)
    if digests._replace(decision=tree.root) != state.digests or state.n_decisions != tree.size:
        yield "tables: rows were added, changed or removed by something other than armnesia"
    if layout.keyed and nodes != {node: bytes(data) for node, data in tables.stream_nodes(target)}:
        yield "decisions: their hash tree was changed by something other than armnesia"
    if layout.holds_rows:
        yield from tallies.problems(target)


def _certificate_problems(rows: Iterable[Row], keyring: Keyring) -> Iterator[str]:
    """Certificates that are missing or were changed."""
    for sequence, text, body, signature in rows:
        if body is None:
            if json.loads(text)["kind"] in CERTIFIED:
                yield f"certificate {sequence}: missing"
            continue
        try:
            StoredCertificate.read(sequence, body, signature, text, keyring)
        except VaultError as error:
            yield str(error)
