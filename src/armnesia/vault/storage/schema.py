"""The tables of a vault, and their version."""

from dataclasses import dataclass

from armnesia.vault.storage.database import Session

VERSION = 3
"""The version that this code writes. In version 3 a certificate may be stored as a draft."""

OLDEST_READABLE = 2
"""The oldest version that this code opens; `operations/upgrade.py` brings older ones to the newest."""

COLUMNS = {
    "suppressed": "digest, kind, since, readmitted",
    "request": "digest, sequence, opening",
    "source": "number, description",
    "tree": "sequence, leaves",
}
"""The columns of the tables that hold many rows, except `record`, `ledger` and `certificate`."""


@dataclass(frozen=True)
class RecordLayout:
    """What the table `record` holds of a row, and how incoming rows are compared with it."""

    columns: str
    types: str
    """The columns after `identity` and `owner`, with their types; `{blob}` is the type of bytes."""
    incoming: str
    """The columns of incoming rows: those of a record, and what is needed to add them up."""
    differs: str
    """Where an incoming row `i` contradicts the record `r` of the same identity, in SQL."""


MANAGED_LAYOUT = RecordLayout(
    columns="identity, owner, arm, units",
    types="arm INTEGER NOT NULL, units BIGINT NOT NULL",
    incoming="identity, owner, arm, units",
    differs="r.arm <> i.arm OR r.units <> i.units OR coalesce(r.owner, '') <> coalesce(i.owner, '')",
)
EXTERNAL_LAYOUT = RecordLayout(
    columns="identity, owner, content, source",
    types="content {blob} NOT NULL, source INTEGER NOT NULL",
    incoming="identity, owner, content, source, arm, units",
    differs="r.content <> i.content",
)

INCOMING_TYPES = {
    "identity": "{blob} PRIMARY KEY",
    "owner": "{blob}",
    "content": "{blob}",
    "source": "INTEGER",
    "arm": "INTEGER",
    "units": "BIGINT",
}

TREE_TABLE = "CREATE TABLE tree (sequence BIGINT PRIMARY KEY, leaves {blob} NOT NULL)"


def create_tables(session: Session, layout: RecordLayout) -> None:
    """Create the tables of a new vault."""
    blob = session.dialect.blob
    record = layout.types.format(blob=blob)
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
        TREE_TABLE.format(blob=blob),
        f"CREATE TABLE request (digest {blob} PRIMARY KEY, sequence BIGINT NOT NULL, opening TEXT NOT NULL)",
    ):
        session.execute(statement)
