"""The tables of a vault, each declared once, by the rows that it holds. All vaults have the same tables."""

from typing import Annotated, Any, NamedTuple, get_args, get_type_hints

VERSION = 1
"""The one version of the tables that this code reads and writes; a vault of another one is refused."""

KEY, UNIQUE = "PRIMARY KEY", "UNIQUE"
SHORT = "SHORT"
"""Marks integers of 32 bits, where a database has them: records are many."""


class VaultRow(NamedTuple):
    """The sealed state, of which there is one row."""

    id: Annotated[str, KEY]
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


class RecordRow(NamedTuple):
    """A record of a vault that keeps them itself."""

    identity: Annotated[bytes, KEY]
    owner: bytes | None
    """A digest of the user; None if the record has none."""
    arm: Annotated[int, SHORT]
    units: int
    decision: Annotated[int, SHORT]
    """The number of its decision."""


class DecisionRow(NamedTuple):
    """A decision."""

    number: Annotated[int, KEY]
    """From 1 on, in the order in which decisions appeared."""
    key: Annotated[str, UNIQUE]
    """The values of the key columns, as canonical JSON; an empty list in a vault with one decision."""
    statistics: str
    """The statistics as canonical JSON."""
    served: int | None
    """The position of the served arm."""
    served_by: str


class SourceRow(NamedTuple):
    """What was counted at a source of an external vault."""

    number: Annotated[int, KEY]
    description: str


class SuppressedRow(NamedTuple):
    """A person or a record that was forgotten."""

    digest: Annotated[bytes, KEY]
    kind: str
    """"user" or "record"."""
    since: int
    """The entry that has forgotten them last."""
    readmitted: int | None
    """The entry that has readmitted them; None if none has since."""


class EntryRow(NamedTuple):
    """An entry of the ledger."""

    number: Annotated[int, KEY]
    kind: str
    envelope: str
    leaf: bytes


class PeopleRow(NamedTuple):
    """The commitments to the people of a request."""

    number: Annotated[int, KEY]
    """The entry of the request."""
    leaves: bytes
    said: bytes | None
    """What is said of the request, encrypted."""
    case_digest: bytes | None


class TokenRow(NamedTuple):
    """Somebody who may call the service."""

    number: Annotated[int, KEY]
    digest: Annotated[bytes, UNIQUE]
    """The SHA-256 digest of the token, which is stored nowhere."""
    facts: str
    """Role, name and days as canonical JSON."""
    last_used: str | None
    """The day of the last use."""
    uses: int


class SubjectRequestRow(NamedTuple):
    """A request of a controller, by OpenDSR."""

    id: Annotated[str, KEY]
    """The UUID that the controller gave it."""
    status: str
    facts: str
    """Times, callback URLs and the controller as canonical JSON; nothing that names a person."""
    identity: bytes | None
    """The request itself, encrypted with a key of the vault; None once it is answered or cancelled."""
    sequence: int | None
    """The ledger entry that answered it."""


class Column(NamedTuple):
    """A column, with the type of its values in Python, or `SHORT`."""

    name: str
    type: type | str
    constraint: str


class Table(NamedTuple):
    """A table; its first column is the primary key."""

    name: str
    rows: type[Any]
    columns: tuple[Column, ...]

    @classmethod
    def of(cls, name: str, rows: type[Any]) -> "Table":
        """The table of such rows.

        >>> Table.of("source", SourceRow).columns[0]
        Column(name='number', type=<class 'int'>, constraint='NOT NULL PRIMARY KEY')
        """
        hints = get_type_hints(rows, include_extras=True)
        return cls(name, rows, tuple(_column(column, hint) for column, hint in hints.items()))

    @property
    def key(self) -> Column:
        """The primary key."""
        return self.columns[0]

    @property
    def names(self) -> str:
        """The names of the columns, as SQL lists them."""
        return ", ".join(column.name for column in self.columns)


def _column(name: str, hint: Any) -> Column:
    kind, *marks = get_args(hint) or (hint,)
    marks = [mark for mark in marks if mark is not type(None)]
    is_optional = len(marks) < len(get_args(hint)) - 1
    constraints = [] if is_optional else ["NOT NULL", *(mark for mark in marks if mark != SHORT)]
    return Column(name, SHORT if SHORT in marks else kind, " ".join(constraints))


TABLES = {
    rows: Table.of(name, rows)
    for name, rows in {
        "vault": VaultRow,
        "record": RecordRow,
        "decision": DecisionRow,
        "source": SourceRow,
        "suppressed": SuppressedRow,
        "entry": EntryRow,
        "people": PeopleRow,
        "token": TokenRow,
        "subject_request": SubjectRequestRow,
    }.items()
}
"""The tables, by the kind of their rows."""

OWNER_INDEX = "CREATE INDEX record_owner ON record (owner)"
"""The one index beside those of keys."""
