"""Upgrading the tables of an older version to this one.

Forward only, one step per version, all in one transaction. Only this package writes these few tables, so that
a migration tool with branches and downgrades would bring no benefit.
"""

from collections.abc import Callable

from armnesia.core.errors import VaultError
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.results import Upgraded
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.owner_tallies import rebuild_tallies
from armnesia.vault.state.sealed_state import changed_outside, check_identity, seal_on
from armnesia.vault.state.table_digests import compute_digests
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import VERSION, RecordLayout


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


STEPS: dict[int, Callable[[Session, Keyring, RecordLayout], None]] = {
    2: _add_table_digests,
    3: _allow_drafts,
    4: _add_tallies,
}
"""What makes version n from version n − 1."""


def upgrade(connection: VaultConnection) -> Upgraded:
    """Bring an older vault to this version, in one transaction.

    Refused if its state was changed by anything but armnesia: the new seal would hide it.
    """
    with connection.database.writing() as session:
        version, digest_key, signing_key, seal = tables.read_version_and_keys(session)
        if version > VERSION:
            check_identity(connection.all_keys.vault, version, connection.all_keys)
        if any(step not in STEPS for step in range(version + 1, VERSION + 1)):
            raise VaultError(f"there is no way from schema version {version} to {VERSION}")
        keyring = connection.all_keys.at(digest_version=digest_key, signing_version=signing_key)
        if bytes(seal) != _seal_on_tables(session, version, keyring):
            raise changed_outside()
        for step in range(version + 1, VERSION + 1):
            STEPS[step](session, keyring, connection.records.layout)
            tables.set_vault(session, "schema_version", step)
        tables.set_vault(session, "seal", _seal_on_tables(session, VERSION, keyring))
    return Upgraded(int(version), VERSION)


def _seal_on_tables(session: Session, version: int, keyring: Keyring) -> bytes:
    """The seal that a vault of this version has on its state as it is."""
    columns = tables.read_sealed_columns(session, version)
    return seal_on(columns, tables.read_arms(session), keyring)
