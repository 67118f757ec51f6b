"""Bringing the tables of an older version to this one.

Forward only, one step per version, all in one transaction: by `upgrade`, or by the first change of a vault
that can be read as it is. Only this package writes these few tables, so that a migration tool with branches
and downgrades would bring no benefit.
"""

from collections.abc import Callable

from armnesia.core.errors import VaultError
from armnesia.logs.manifests import OLDER_VERSION
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.state.counted_sources import put_sources, read_sources
from armnesia.vault.state.owner_tallies import rebuild_tallies
from armnesia.vault.state.sealed_state import ROTATED_BELOW, replace_old_rows
from armnesia.vault.state.table_digests import TableDigests, compute_digests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import VERSION, WITHOUT_ROWS, RecordLayout


def _add_table_digests(session: Session, keyring: Keyring, layout: RecordLayout) -> None:
    """From 1 to 2: every table has a digest, so that `verify` notices any changed row.

    The hash tree of a request for several people is stored once, not in parts with each of them.
    """
    tables.create_tree_table(session)
    tables.add_digests_column(session)
    length, head = tables.read_head(session)
    digests = compute_digests(session, keyring, layout).masked(keyring, Head(length, head))
    tables.set_vault(session, "tallies", digests)


def _allow_drafts(session: Session, keyring: Keyring, layout: RecordLayout) -> None:
    """From 2 to 3: certificates may be stored as drafts; the tables stay as they are."""


def _add_tallies(session: Session, keyring: Keyring, layout: RecordLayout) -> None:
    """From 3 to 4: every person has a tally of records; the seal, made at the end, covers every key."""
    rebuild_tallies(session, keyring, layout)


def _one_row_per_decision(session: Session, keyring: Keyring, layout: RecordLayout) -> None:
    """From 4 to 5: the statistics of a decision are one value; records stay as they are."""
    replace_old_rows(session, keyring)


def _hold_no_rows(session: Session, keyring: Keyring, layout: RecordLayout) -> None:
    """From 5 to 6: an external vault holds nothing of single rows; its sources have to be counted again.

    Every vault gets the tables of the service.
    """
    tables.create_service_tables(session)
    if layout.holds_rows:
        return
    tables.drop_record_tables(session)
    (vault,) = tables.read_vault(session)
    masked, _, _ = vault.tallies.partition(ROTATED_BELOW)  # a rotation is finished: there are no records
    head = Head(vault.ledger_length, vault.ledger_head)
    digests = TableDigests.unmasked(masked, keyring, head)
    before = read_sources(session)
    after = [each.to_recount(OLDER_VERSION) for each in before]
    digests, statements = put_sources(before, after, keyring, digests._replace(record=0))
    session.execute_together(statements)
    tables.set_vault(session, "tallies", digests.masked(keyring, head))


STEPS: dict[int, Callable[[Session, Keyring, RecordLayout], None]] = {
    2: _add_table_digests,
    3: _allow_drafts,
    4: _add_tallies,
    5: _one_row_per_decision,
    6: _hold_no_rows,
}
"""What makes version n from version n − 1."""


def migrate(session: Session, keyring: Keyring, layout: RecordLayout, version: int) -> None:
    """Bring tables of this version to the newest; the caller stores the new version, under a new seal."""
    for step in steps_from(version):
        STEPS[step](session, keyring, layout.with_rows if step < WITHOUT_ROWS else layout)


def steps_from(version: int) -> range:
    """The versions that follow, up to the newest; refuse a version from which there is no way."""
    steps = range(version + 1, VERSION + 1)
    if any(step not in STEPS for step in steps):
        raise VaultError(f"there is no way from schema version {version} to {VERSION}")
    return steps
