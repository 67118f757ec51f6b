"""The vault's tables and their version."""

from armnesia.core.errors import VaultError
from armnesia.vault.storage.database import Database, Session

VERSION = 2
"""The version that this code reads and writes; `upgrading` knows the way from older ones."""

MANAGED, EXTERNAL = "managed", "external"
RECORD_COLUMNS = {MANAGED: "identity, owner, arm, units", EXTERNAL: "identity, owner, content, source"}
"""What is held of a row, by whether the row itself is in the vault."""
COLUMNS = {
    "suppressed": "digest, kind, since, readmitted",
    "request": "digest, sequence, opening",
    "source": "number, description",
    "tree": "sequence, leaves",
}
"""The columns of the vault's other tables with rows of many."""


TREE = "CREATE TABLE tree (sequence BIGINT PRIMARY KEY, leaves {blob} NOT NULL)"


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
            digest_key INTEGER NOT NULL, signing_key INTEGER NOT NULL, tallies TEXT NOT NULL,
            seal {blob} NOT NULL)""",
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
        TREE.format(blob=blob),
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
