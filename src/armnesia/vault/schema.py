"""The vault's tables, their version, and the way from an older version to this one.

Forward only, one list of statements a version, in one transaction: a vault is a handful of tables that only
this package writes, so a migration tool with branches, downgrades and its own table would be all weight.
"""

from collections.abc import Callable

from armnesia.errors import VaultError
from armnesia.vault.database import Database, Session

VERSION = 1
"""The version that this code reads and writes."""

Migration = Callable[[Session, Database], None]

MIGRATIONS: dict[int, Migration] = {}
"""What makes version n of version n − 1."""

MANAGED, EXTERNAL = "managed", "external"


def create_tables(session: Session, database: Database, mode: str) -> None:
    """Make the tables of a new vault; `mode` says whether the rows themselves are held."""
    blob = database.blob
    record = "arm INTEGER NOT NULL, units BIGINT NOT NULL"
    if mode == EXTERNAL:
        record = f"content {blob} NOT NULL, source INTEGER NOT NULL"
    for statement in (
        f"""CREATE TABLE vault (
            one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, schema_version INTEGER NOT NULL,
            configuration TEXT NOT NULL, served INTEGER, served_by TEXT NOT NULL,
            ledger_length BIGINT NOT NULL, ledger_head TEXT NOT NULL, erased_through BIGINT NOT NULL,
            digest_key INTEGER NOT NULL, signing_key INTEGER NOT NULL, seal {blob} NOT NULL)""",
        """CREATE TABLE arm (
            position INTEGER PRIMARY KEY, label TEXT NOT NULL,
            count BIGINT NOT NULL, total BIGINT NOT NULL, gone BIGINT NOT NULL)""",
        f"CREATE TABLE record (identity {blob} NOT NULL PRIMARY KEY, owner {blob}, {record})",
        "CREATE INDEX record_owner ON record (owner)",
        "CREATE TABLE source (number INTEGER PRIMARY KEY, description TEXT NOT NULL)",
        f"""CREATE TABLE suppressed (
            digest {blob} PRIMARY KEY, kind TEXT NOT NULL, since BIGINT NOT NULL, readmitted BIGINT)""",
        "CREATE TABLE ledger (sequence BIGINT PRIMARY KEY, entry TEXT NOT NULL, hash TEXT NOT NULL)",
        f"""CREATE TABLE certificate (
            sequence BIGINT PRIMARY KEY, body TEXT NOT NULL, signature {blob} NOT NULL)""",
        f"CREATE TABLE request (digest {blob} PRIMARY KEY, sequence BIGINT NOT NULL, opening TEXT NOT NULL)",
    ):
        session.execute(statement)


def check_version(version: int) -> None:
    """Refuse what this code does not know, and what has to be upgraded first."""
    if version > VERSION:
        raise VaultError(
            f"the vault has schema version {version}, this armnesia knows {VERSION}; use a newer armnesia"
        )
    if version < VERSION:
        raise VaultError(
            f"the vault has schema version {version}, this armnesia needs {VERSION}: back it up and run"
            " armnesia upgrade"
        )
