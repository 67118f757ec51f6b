"""The tables of a vault, and their version."""

from dataclasses import dataclass, replace
from typing import NamedTuple

VERSION = 6
"""The version that this code writes.

In version 3 a certificate may be stored as a draft. In version 4 the seal covers every key, and the table
`owner` has a tally of each person's records. In version 5 the table `decision` has one row per decision, with
its statistics as one value, in the place of the table `arm`. In version 6 an external vault holds nothing of
single rows: it has no tables `record` and `owner`, and the table `source` says what was counted. It also has
the tables of the service: who may call it, and requests that it was sent.
"""

OLDEST_READABLE = 2
"""The oldest version that this code opens; `operations/upgrade.py` brings older ones to the newest."""

WITH_TALLIES = 4
"""The first version with the table `owner`, and with a seal that covers every key."""

WITH_DECISIONS = 5
"""The first version with the table `decision`."""

WITHOUT_ROWS = 6
"""The first version in which an external vault holds nothing of single rows, and the oldest one that this
code opens of such a vault."""

WITH_SERVICE = 6
"""The first version with the tables of the service."""

COLUMNS = {
    "suppressed": "digest, kind, since, readmitted",
    "request": "digest, sequence, opening",
    "source": "number, description",
    "tree": "sequence, leaves",
}
"""The columns of the tables with a digest of their own, except `record`."""


class VaultRow(NamedTuple):
    """The one row of the table `vault`, without the column that makes it the only one."""

    id: str
    schema_version: int
    configuration: str
    ledger_length: int
    ledger_head: str
    erased_through: int
    digest_key: int
    signing_key: int
    decisions: int
    """How many decisions there are."""
    tallies: str
    """The table digests, under their mask."""
    seal: bytes
    """On all columns before it, and on the keys in use."""


class OldVaultRow(NamedTuple):
    """The one row of the table `vault` in versions 2 to 4; the seal is also on the arms."""

    id: str
    schema_version: int
    configuration: str
    served: int | None
    served_by: str
    ledger_length: int
    ledger_head: str
    erased_through: int
    digest_key: int
    signing_key: int
    tallies: str
    seal: bytes


class ArmRow(NamedTuple):
    """A row of the table `arm` before version 5; its last columns are named `count`, `total` and `gone`."""

    position: int
    label: str
    records: int
    units: int
    deleted: int


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
    seal: bytes
    """On the number and the key, which never change; a digest of the whole row is under the vault's seal."""


class TokenRow(NamedTuple):
    """A row of the table `token`: somebody who may call the service."""

    number: int
    digest: bytes
    """The SHA-256 digest of the token, which is stored nowhere."""
    facts: str
    """Role, name and days as canonical JSON."""
    seal: bytes
    """On all columns before it, with the newest digest key."""
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
    seal: bytes
    """On all columns before it, with the newest digest key."""


TOKEN_COLUMNS = ", ".join(TokenRow._fields)
SUBJECT_REQUEST_COLUMNS = ", ".join(SubjectRequestRow._fields)
VAULT_COLUMNS = ", ".join(VaultRow._fields)
OLD_VAULT_COLUMNS = ", ".join(OldVaultRow._fields)
ARM_COLUMNS = "position, label, count, total, gone"
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


@dataclass(frozen=True)
class RecordLayout:
    """What the table `record` holds of a row."""

    columns: str
    own: tuple[Column, ...]
    """The columns after `identity` and `owner`."""
    keyed: bool = False
    """Whether rows belong to decisions by their keys; such vaults exist from version 5 on."""
    holds_rows: bool = True
    """Whether there are tables of rows, and of people with rows, from version 6 on."""


MANAGED_LAYOUT = RecordLayout(
    columns="identity, owner, arm, units",
    own=(Column("arm", "INTEGER"), Column("units", "BIGINT")),
)
EXTERNAL_LAYOUT = RecordLayout(
    columns="identity, owner, content, source",
    own=(Column("content", "{blob}"), Column("source", "INTEGER")),
    holds_rows=False,
)

KEYED_MANAGED_LAYOUT = RecordLayout(
    columns=f"{MANAGED_LAYOUT.columns}, decision",
    own=(*MANAGED_LAYOUT.own, Column("decision", "INTEGER")),
    keyed=True,
)
KEYED_EXTERNAL_LAYOUT = replace(EXTERNAL_LAYOUT, keyed=True)

KEY, UNIQUE = "PRIMARY KEY", "NOT NULL UNIQUE"
TREE_TABLE = Table("tree", (Column("sequence", "BIGINT", KEY), Column("leaves", "{blob}")))
OWNER_TABLE = Table(
    "owner", (Column("owner", "{blob}", KEY), Column("records", "BIGINT"), Column("digest", "{blob}"))
)
DIGESTS_COLUMN = Column("tallies", "TEXT", "NOT NULL DEFAULT ''")
"""The column of table digests, as an upgrade from version 1 adds it to the table `vault`."""
OWNER_INDEX = Index("record_owner", "record", "owner")

DECISION_TABLE = Table(
    "decision",
    (
        Column("number", "INTEGER", KEY),
        Column("key", "TEXT", UNIQUE),
        Column("statistics", "TEXT"),
        Column("served", "INTEGER", ""),
        Column("served_by", "TEXT"),
        Column("seal", "{blob}"),
    ),
)
NODE_TABLE = Table("decision_node", (Column("node", "INTEGER", KEY), Column("digests", "{blob}")))
"""The hash tree over the decisions of a vault with key columns."""
VAULT_TABLE = Table(
    "vault",
    (
        Column("one", "INTEGER", f"{KEY} CHECK (one = 1)"),
        Column("id", "TEXT"),
        Column("schema_version", "INTEGER"),
        Column("configuration", "TEXT"),
        Column("ledger_length", "BIGINT"),
        Column("ledger_head", "TEXT"),
        Column("erased_through", "BIGINT"),
        Column("digest_key", "INTEGER"),
        Column("signing_key", "INTEGER"),
        Column("decisions", "BIGINT"),
        Column("tallies", "TEXT"),
        Column("seal", "{blob}"),
    ),
)
TOKEN_TABLE = Table(
    "token",
    (
        Column("number", "INTEGER", KEY),
        Column("digest", "{blob}", UNIQUE),
        Column("facts", "TEXT"),
        Column("seal", "{blob}"),
        Column("last_used", "TEXT", ""),
        Column("uses", "BIGINT"),
    ),
)
SUBJECT_REQUEST_TABLE = Table(
    "subject_request",
    (
        Column("id", "TEXT", KEY),
        Column("status", "TEXT"),
        Column("facts", "TEXT"),
        Column("identity", "{blob}", ""),
        Column("sequence", "BIGINT", ""),
        Column("seal", "{blob}"),
    ),
)
SERVICE_TABLES = (TOKEN_TABLE, SUBJECT_REQUEST_TABLE)
_OLD_VAULT_TABLE = Table(
    "vault",
    (
        Column("one", "INTEGER", f"{KEY} CHECK (one = 1)"),
        Column("id", "TEXT"),
        Column("schema_version", "INTEGER"),
        Column("configuration", "TEXT"),
        Column("served", "INTEGER", ""),
        Column("served_by", "TEXT"),
        Column("ledger_length", "BIGINT"),
        Column("ledger_head", "TEXT"),
        Column("erased_through", "BIGINT"),
        Column("digest_key", "INTEGER"),
        Column("signing_key", "INTEGER"),
        Column("tallies", "TEXT"),
        Column("seal", "{blob}"),
    ),
)
_ARM_TABLE = Table(
    "arm",
    (
        Column("position", "INTEGER", KEY),
        Column("label", "TEXT"),
        Column("count", "BIGINT"),
        Column("total", "BIGINT"),
        Column("gone", "BIGINT"),
    ),
)
_OTHER_TABLES = (
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
    Table("ledger", (Column("sequence", "BIGINT", KEY), Column("entry", "TEXT"), Column("hash", "TEXT"))),
    Table(
        "certificate",
        (Column("sequence", "BIGINT", KEY), Column("body", "TEXT"), Column("signature", "{blob}")),
    ),
    Table(
        "request", (Column("digest", "{blob}", KEY), Column("sequence", "BIGINT"), Column("opening", "TEXT"))
    ),
    TREE_TABLE,
)


def _tables(layout: RecordLayout, version: int) -> tuple[Table, ...]:
    identity, owner = Column("identity", "{blob}", f"NOT NULL {KEY}"), Column("owner", "{blob}", "")
    record = Table("record", (identity, owner, *layout.own))
    later = (OWNER_TABLE,) if version >= WITH_TALLIES else ()
    records: tuple[Table, ...] = (record,)
    if version >= WITHOUT_ROWS and not layout.holds_rows:
        records = later = ()
    state = (VAULT_TABLE, DECISION_TABLE) if version >= WITH_DECISIONS else (_OLD_VAULT_TABLE, _ARM_TABLE)
    service = SERVICE_TABLES if version >= WITH_SERVICE else ()
    return (*state, *([NODE_TABLE] if layout.keyed else []), *records, *_OTHER_TABLES, *later, *service)


TABLES = {
    (layout, version): _tables(layout, version)
    for layout in (MANAGED_LAYOUT, EXTERNAL_LAYOUT, KEYED_MANAGED_LAYOUT, KEYED_EXTERNAL_LAYOUT)
    for version in range(WITH_DECISIONS if layout.keyed else OLDEST_READABLE, VERSION + 1)
}
"""The tables of a vault, by the layout of its records and its version."""


def upgraded_from_1(table: Table) -> Table:
    """The table as an upgrade from version 1 leaves it: the column of table digests is added at the end."""
    if table is not _OLD_VAULT_TABLE:
        return table
    others = (column for column in table.columns if column.name != DIGESTS_COLUMN.name)
    return Table(table.name, (*others, DIGESTS_COLUMN))
