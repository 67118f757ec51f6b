"""Upgrading the tables of an older version to this one, on request."""

from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.results.upkeep import Upgraded
from armnesia.vault.state.connection import VaultConnection
from armnesia.vault.state.migrations import migrate, steps_from
from armnesia.vault.state.sealed_state import changed_outside, check_identity, seal_on
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Session
from armnesia.vault.storage.schema import VERSION, WITH_DECISIONS


def upgrade(connection: VaultConnection) -> Upgraded:
    """Bring an older vault to this version, in one transaction.

    Refused if its state was changed by anything but armnesia: the new seal would hide it.
    """
    with connection.database.writing() as session:
        version, keyring = _checked_version(session, connection.all_keys)
        migrate(session, keyring, connection.records.layout, version)
        tables.set_vault(session, "schema_version", VERSION)
        tables.set_vault(session, "seal", _seal_on_tables(session, VERSION, keyring))
    if version == VERSION:
        return Upgraded(VERSION, VERSION)
    return Upgraded(int(version), VERSION, connection.records.confirm_upgrade(connection.writing))


def _checked_version(session: Session, all_keys: Keyring) -> tuple[int, Keyring]:
    """The version of the vault and the keys that it uses; refuse a state that does not match its seal."""
    try:
        version, digest_key, signing_key, seal = tables.read_version_and_keys(session)
        if version > VERSION:
            check_identity(all_keys.vault, version, all_keys)
        steps_from(version)  # refused before anything else is read
        keyring = all_keys.at(digest_version=digest_key, signing_version=signing_key)
        if bytes(seal) == _seal_on_tables(session, version, keyring):
            return version, keyring
    except (ValueError, TypeError):  # no row, or values of other types
        pass
    raise changed_outside()


def _seal_on_tables(session: Session, version: int, keyring: Keyring) -> bytes:
    """The seal that a vault of this version has on its state as it is."""
    columns = tables.read_sealed_columns(session, version)
    arms = tables.read_arms(session) if version < WITH_DECISIONS else None
    return seal_on(columns, arms, keyring)
