"""The tables of a vault, and their version."""

from dataclasses import dataclass
from typing import NamedTuple

VERSION = 1
"""The one version of the tables that this code reads and writes; a vault of another one is refused."""

COLUMNS = {
    "suppressed": "digest, kind, since, readmitted",
    "source": "number, description",
    "people": "number, leaves, said, case_digest",
    "decision": "number, key, statistics, served, served_by",
    "token": "number, digest, facts",
    "subject_request": "id, status, facts, identity, sequence",
}
"""The columns of the tables with a check-sum of their own that it is on, except of `record`."""


class VaultRow(NamedTuple):
    """The one row of the table `vault`, without the column that makes it the only one."""

    id: str
    schema_version: int
    configuration: str
    commits: int
    """How many times a state was stored."""
    ledger_size: int
    frontier: str
    """The hashes by which the tree over the ledger grows, in hexadecimal digits."""
    signing_key: int
    decisions: int
    """How many decisions there are."""
    check_sums: str
    """The check-sums, under their mask."""
    seal: bytes
    """On all columns before it, and on the keys in use."""


class DecisionRow(NamedTuple):
    """A row of the table `decision`."""

    number: int
    """From 1 on, in the order in which decisions appeared."""
    key: str
    """The values of the key columns, as canonical JSON; an empty list in a vault with one decision."""
    statistics: str
    """The statistics as canonical JSON."""
    served: int | None
    """The position of the served arm."""
    served_by: str


class TokenRow(NamedTuple):
    """A row of the table `token`: somebody who may call the service."""

    number: int
    digest: bytes
    """The SHA-256 digest of the token, which is stored nowhere."""
    facts: str
    """Role, name and days as canonical JSON."""
    last_used: str | None
    """The day of the last use."""
    uses: int


class SubjectRequestRow(NamedTuple):
    """A row of the table `subject_request`: a request of a controller, by OpenDSR."""

    id: str
    """The UUID that the controller gave it."""
    status: str
    facts: str
    """Times, callback URLs and the controller as canonical JSON; nothing that names a person."""
    identity: bytes | None
    """The request itself, encrypted with a key of the vault; None once it is answered or cancelled."""
    sequence: int | None
    """The ledger entry that answered it."""


TOKEN_COLUMNS = ", ".join(TokenRow._fields)
SUBJECT_REQUEST_COLUMNS = ", ".join(SubjectRequestRow._fields)
VAULT_COLUMNS = ", ".join(VaultRow._fields)
DECISION_COLUMNS = ", ".join(DecisionRow._fields)


class Column(NamedTuple):
    """A column; `{blob}` in its type is the type of bytes."""

    name: str
    type: str
    constraint: str = "NOT NULL"

    def definition(self, blob: str) -> str:
        """The column as CREATE TABLE has it."""
        return f"{self.name} {self.type.format(blob=blob)} {self.constraint}".rstrip()


class Table(NamedTuple):
    """A table; its first column is the primary key."""

    name: str
    columns: tuple[Column, ...]

    def statement(self, blob: str) -> str:
        """The statement that creates it."""
        columns = ", ".join(column.definition(blob) for column in self.columns)
        return f"CREATE TABLE {self.name} ({columns})"


class Index(NamedTuple):
    """An index on one column."""

    name: str
    table: str
    column: str

    @property
    def statement(self) -> str:
        """The statement that creates it."""
        return f"CREATE INDEX {self.name} ON {self.table} ({self.column})"


KEY, UNIQUE = "PRIMARY KEY", "NOT NULL UNIQUE"
OWNER_INDEX = Index("record_owner", "record", "owner")
_RECORD = (
    Column("identity", "{blob}", f"NOT NULL {KEY}"),
    Column("owner", "{blob}", ""),
    Column("arm", "INTEGER"),
    Column("units", "BIGINT"),
)
_TABLES = (
    Table(
        "vault",
        (
            Column("one", "INTEGER", f"{KEY} CHECK (one = 1)"),
            Column("id", "TEXT"),
            Column("schema_version", "INTEGER"),
            Column("configuration", "TEXT"),
            Column("commits", "BIGINT"),
            Column("ledger_size", "BIGINT"),
            Column("frontier", "TEXT"),
            Column("signing_key", "INTEGER"),
            Column("decisions", "BIGINT"),
            Column("check_sums", "TEXT"),
            Column("seal", "{blob}"),
        ),
    ),
    Table(
        "decision",
        (
            Column("number", "INTEGER", KEY),
            Column("key", "TEXT", UNIQUE),
            Column("statistics", "TEXT"),
            Column("served", "INTEGER", ""),
            Column("served_by", "TEXT"),
        ),
    ),
    Table("source", (Column("number", "INTEGER", KEY), Column("description", "TEXT"))),
    Table(
        "suppressed",
        (
            Column("digest", "{blob}", KEY),
            Column("kind", "TEXT"),
            Column("since", "BIGINT"),
            Column("readmitted", "BIGINT", ""),
        ),
    ),
    Table(
        "entry",
        (
            Column("number", "BIGINT", KEY),
            Column("kind", "TEXT"),
            Column("envelope", "TEXT"),
            Column("leaf", "{blob}"),
        ),
    ),
    Table(
        "people",
        (
            Column("number", "BIGINT", KEY),
            Column("leaves", "{blob}"),
            Column("said", "{blob}", ""),
            Column("case_digest", "{blob}", ""),
        ),
    ),
    Table(
        "token",
        (
            Column("number", "INTEGER", KEY),
            Column("digest", "{blob}", UNIQUE),
            Column("facts", "TEXT"),
            Column("last_used", "TEXT", ""),
            Column("uses", "BIGINT"),
        ),
    ),
    Table(
        "subject_request",
        (
            Column("id", "TEXT", KEY),
            Column("status", "TEXT"),
            Column("facts", "TEXT"),
            Column("identity", "{blob}", ""),
            Column("sequence", "BIGINT", ""),
        ),
    ),
)
"""The tables that every vault has."""


@dataclass(frozen=True)
class RecordLayout:
    """Which tables a vault has, and what the table `record` holds of a row."""

    holds_rows: bool
    """Whether there is a table of rows; an external vault has none."""
    keyed: bool
    """Whether rows belong to decisions by their keys."""

    @property
    def columns(self) -> str:
        """The columns of the table `record`."""
        return "identity, owner, arm, units" + (", decision" if self.keyed else "")

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables of the vault."""
        own = (*_RECORD, *([Column("decision", "INTEGER")] if self.keyed else []))
        rows = (Table("record", own),) if self.holds_rows else ()
        return (*_TABLES, *rows)
