"""The way from an older version of the tables to this one.

Forward only, one step a version, all in one transaction: a vault is a handful of tables that only this
package writes, so a migration tool with branches, downgrades and its own table would be all weight.
"""

from collections.abc import Callable

from armnesia.core.errors import VaultError
from armnesia.vault.keys.keyring import Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.state.connection import Opened
from armnesia.vault.state.sealed_state import changed_outside, seal_on
from armnesia.vault.state.table_digests import tallied
from armnesia.vault.storage.database import Database, Row, Session
from armnesia.vault.storage.schema import TREE, VERSION, check_version

_FIRST = (
    "id, schema_version, configuration, served, served_by, ledger_length, ledger_head, erased_through,"
    " digest_key, signing_key"
)
_SEALED = {1: _FIRST, 2: f"{_FIRST}, tallies"}
"""The columns of the state that a vault of each version seals, in order."""


def _tally_every_table(session: Session, database: Database, ring: Keyring, mode: str) -> None:
    """From 1 to 2: rows of every table are tallied, so that `verify` notices any change of any.

    The hash tree of a request of several is kept once, not in parts with everyone in it.
    """
    session.execute(TREE.format(blob=database.blob))
    session.execute("ALTER TABLE vault ADD COLUMN tallies TEXT NOT NULL DEFAULT ''")
    ((length, head),) = session.query("SELECT ledger_length, ledger_head FROM vault")
    tallies = tallied(session, ring, mode).masked(ring, Head(length, head))
    session.execute("UPDATE vault SET tallies = ?", tallies)


STEPS: dict[int, Callable[[Session, Database, Keyring, str], None]] = {2: _tally_every_table}
"""What makes version n of version n − 1."""


def upgrade(opened: Opened) -> tuple[int, int]:
    """Bring an older vault to this version, in one transaction; from which version, to which.

    Refused if its state was changed by anything but armnesia: the new seal would hide it.
    """
    with opened.writing() as session:
        ((version, digest_key, signing_key),) = session.query(
            "SELECT schema_version, digest_key, signing_key FROM vault"
        )
        if version > VERSION:
            check_version(version)
        if any(step not in STEPS for step in range(version + 1, VERSION + 1)):
            raise VaultError(f"there is no way from schema version {version} to {VERSION}")
        ring = opened.keyring.at(digest_version=digest_key, signing_version=signing_key)
        ((seal,),) = session.query("SELECT seal FROM vault")
        if bytes(seal) != _seal_on_tables(session, version, ring):
            raise changed_outside()
        for step in range(version + 1, VERSION + 1):
            STEPS[step](session, opened.database, ring, opened.mode)
            session.execute("UPDATE vault SET schema_version = ?", step)
        session.execute("UPDATE vault SET seal = ?", _seal_on_tables(session, VERSION, ring))
    return int(version), VERSION


def _seal_on_tables(session: Session, version: int, ring: Keyring) -> bytes:
    """The seal that a vault of this version has on its state as it is."""
    (columns,) = session.query(f"SELECT {_SEALED[version]} FROM vault")
    arms: list[Row] = session.query("SELECT position, label, count, total, gone FROM arm ORDER BY position")
    return seal_on(columns, arms, ring)
