"""The SQL on the tables of a vault that all databases understand; the rest is in one module for each.

Functions that read take a session. Functions that return a `Statement` are for the one batch of statements
that ends a write transaction.
"""

from collections.abc import Iterable, Iterator, Sequence

from armnesia.core.units import UNIT
from armnesia.vault.storage.database import Row, Session, Statement
from armnesia.vault.storage.digest_arrays import (
    Columns,
    DigestArray,
    DigestSet,
)
from armnesia.vault.storage.schema import (
    ARM_COLUMNS,
    COLUMNS,
    DECISION_COLUMNS,
    DECISION_TABLE,
    DIGESTS_COLUMN,
    NODE_TABLE,
    OLD_VAULT_COLUMNS,
    OWNER_INDEX,
    OWNER_TABLE,
    SERVICE_TABLES,
    SUBJECT_REQUEST_COLUMNS,
    TABLES,
    TOKEN_COLUMNS,
    TREE_TABLE,
    VAULT_COLUMNS,
    VAULT_TABLE,
    VERSION,
    ArmRow,
    DecisionRow,
    OldVaultRow,
    RecordLayout,
    SubjectRequestRow,
    Table,
    TokenRow,
    VaultRow,
)

_AT_ONCE = 500


def create_tables(session: Session, layout: RecordLayout) -> None:
    """Create the tables and the index of a new vault."""
    for table in TABLES[layout, VERSION]:
        session.execute(table.statement(session.dialect.blob))
    if layout.holds_rows:
        session.execute(OWNER_INDEX.statement)


# Parts of a transaction that can be undone alone.


def set_savepoint(session: Session) -> None:
    """Begin a part of the transaction."""
    session.execute("SAVEPOINT attempt")


def return_to_savepoint(session: Session) -> None:
    """Undo this part, and end it."""
    session.execute("ROLLBACK TO SAVEPOINT attempt")
    session.execute("RELEASE SAVEPOINT attempt")


def release_savepoint(session: Session) -> None:
    """Keep this part, and end it."""
    session.execute("RELEASE SAVEPOINT attempt")


# The state: one row of `vault`, and the decisions.


def read_identity(session: Session) -> list[Row]:
    """The vault's id, schema version and configuration."""
    return session.query("SELECT id, schema_version, configuration FROM vault")


def read_vault(session: Session) -> list[VaultRow | OldVaultRow]:
    """The row of the state, of any version that can be read; a damaged vault may have none, or several.

    Which columns there are depends on the version, which is one of them: all are read at once.
    """
    found: list[VaultRow | OldVaultRow] = []
    for _, *values in session.query("SELECT * FROM vault"):
        if len(values) == len(VaultRow._fields):
            found.append(VaultRow(*values))
            continue
        row = OldVaultRow(*values)
        if isinstance(row.seal, str):  # an upgrade from version 1 has added `tallies` at the end
            row = row._replace(tallies=row.seal, seal=row.tallies)
        found.append(row)
    return found


def read_stored_digests(session: Session) -> list[Row]:
    """The table digests as they are stored, of a state that may be broken."""
    return session.query("SELECT tallies FROM vault")


def read_version_and_keys(session: Session) -> Row:
    """The schema version, the versions of the keys, and the seal, of a vault of any version."""
    (found,) = session.query("SELECT schema_version, digest_key, signing_key, seal FROM vault")
    return found


def read_head(session: Session) -> Row:
    """The length and the hash of the ledger, of a vault of any version."""
    (found,) = session.query("SELECT ledger_length, ledger_head FROM vault")
    return found


def read_sealed_columns(session: Session, version: int) -> Row:
    """The columns of the state that a vault of this version seals, in order."""
    (found,) = session.query(f"SELECT {_SEALED_COLUMNS[version]} FROM vault")
    return found


_SEALED_COLUMNS = {
    1: OLD_VAULT_COLUMNS.removesuffix(", tallies, seal"),
    **dict.fromkeys((2, 3, 4), OLD_VAULT_COLUMNS.removesuffix(", seal")),
    **dict.fromkeys((5, 6), VAULT_COLUMNS.removesuffix(", seal")),
}


def insert_vault(row: VaultRow) -> Statement:
    """Store the first state."""
    marks = ", ".join("?" * (len(row) + 1))
    return f"INSERT INTO vault (one, {VAULT_COLUMNS}) VALUES ({marks})", (1, *row)


def update_vault(row: VaultRow) -> Statement:
    """Store a new state."""
    return _UPDATE_VAULT, row


_UPDATE_VAULT = f"UPDATE vault SET {', '.join(f'{name} = ?' for name in VaultRow._fields)}"


def set_vault(session: Session, column: str, value: object) -> None:
    """Set one column of the state."""
    session.execute(f"UPDATE vault SET {column} = ?", value)


def read_arms(session: Session) -> list[ArmRow]:
    """The arms in their order."""
    return [ArmRow(*row) for row in session.query(f"SELECT {ARM_COLUMNS} FROM arm ORDER BY position")]


def replace_state_tables(session: Session) -> None:
    """Put the tables of the state, without rows, in the place of those before version 5."""
    session.execute("DROP TABLE arm")
    session.execute("DROP TABLE vault")
    for table in (VAULT_TABLE, DECISION_TABLE):
        session.execute(table.statement(session.dialect.blob))


def count_decisions(session: Session) -> int:
    """How many decisions there are."""
    ((number,),) = session.query("SELECT count(*) FROM decision")
    return int(number)


def read_first_decisions(session: Session, number: int) -> list[DecisionRow]:
    """So many decisions, in any order."""
    return [
        DecisionRow(*row) for row in session.query(f"SELECT {DECISION_COLUMNS} FROM decision LIMIT ?", number)
    ]


def stream_decisions(session: Session) -> Iterator[DecisionRow]:
    """All decisions, one by one, by their numbers."""
    for row in session.stream(f"SELECT {DECISION_COLUMNS} FROM decision ORDER BY number"):
        yield DecisionRow(*row)


def put_decision(row: DecisionRow) -> Statement:
    """Store a decision, or put it in the old one's place."""
    return _PUT_DECISION, row


_PUT_DECISION = (
    f"INSERT INTO decision ({DECISION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET"
    " key = excluded.key, statistics = excluded.statistics, served = excluded.served,"
    " served_by = excluded.served_by, seal = excluded.seal"
)


def read_decisions(session: Session, numbers: Sequence[int]) -> list[DecisionRow]:
    """The decisions with these numbers."""
    found = _with_keys(session, f"SELECT {DECISION_COLUMNS} FROM decision WHERE ", "number", numbers)
    return [DecisionRow(*row) for row in found]


def numbers_served_by(session: Session, chosen_by: str) -> list[int]:
    """The numbers of the decisions whose served arm this has chosen: all rows are read."""
    found = session.query("SELECT number FROM decision WHERE served_by = ? ORDER BY number", chosen_by)
    return [number for (number,) in found]


def numbers_of_keys(session: Session, keys: Sequence[str]) -> dict[str, int]:
    """By key, the numbers of those decisions that there are."""
    return dict(_with_keys(session, "SELECT key, number FROM decision WHERE ", "key", keys))


def delete_decisions(session: Session) -> None:
    """Delete all decisions."""
    session.execute("DELETE FROM decision")


def rebuild_decision_indexes(session: Session, layout: RecordLayout) -> None:
    """Make the indexes of the decisions again."""
    statement = session.dialect.rebuild_decision_indexes
    if statement is not None:
        for table in (DECISION_TABLE, *([NODE_TABLE] if layout.keyed else [])):
            session.execute(statement.format(table.name))


def read_nodes(session: Session, nodes: Sequence[int]) -> dict[int, bytes]:
    """Nodes of the hash tree over the decisions."""
    found = _with_keys(session, "SELECT node, digests FROM decision_node WHERE ", "node", nodes)
    return {node: bytes(digests) for node, digests in found}


def stream_nodes(session: Session) -> Iterator[Row]:
    """All nodes of the hash tree, as (node, digests)."""
    return session.stream("SELECT node, digests FROM decision_node ORDER BY node")


def put_node(node: int, digests: bytes) -> Statement:
    """Store a node, or put it in the old one's place."""
    return (
        "INSERT INTO decision_node (node, digests) VALUES (?, ?)"
        " ON CONFLICT (node) DO UPDATE SET digests = excluded.digests",
        (node, digests),
    )


def delete_nodes(session: Session) -> None:
    """Delete the whole hash tree."""
    session.execute("DELETE FROM decision_node")


# The ledger and the certificates.


def stream_ledger(session: Session) -> Iterator[Row]:
    """All entries as (sequence, text, hash), one by one."""
    return session.stream("SELECT sequence, entry, hash FROM ledger ORDER BY sequence")


class LedgerRows:
    """All entries as (sequence, text, hash), read from the database each time that they are asked for."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def __iter__(self) -> Iterator[Row]:
        return stream_ledger(self._session)

    def __len__(self) -> int:
        ((number,),) = self._session.query("SELECT count(*) FROM ledger")
        return int(number)


def last_sequence(session: Session) -> int:
    """The number of the last entry; 0 if there is none."""
    ((number,),) = session.query("SELECT coalesce(max(sequence), 0) FROM ledger")
    return int(number)


def read_ledger_from(session: Session, sequence: int, most: int | None = None) -> list[Row]:
    """The entries from this one on, as (sequence, text, hash); with `most`, only so many."""
    sql = "SELECT sequence, entry, hash FROM ledger WHERE sequence >= ? ORDER BY sequence"
    if most is None:
        return session.query(sql, sequence)
    return session.query(f"{sql} LIMIT ?", sequence, most)


def read_entry(session: Session, sequence: int) -> Row | None:
    """The text and the hash of an entry."""
    found = session.query("SELECT entry, hash FROM ledger WHERE sequence = ?", sequence)
    return found[0] if found else None


def read_rotations(session: Session) -> list[str]:
    """The texts of entries that may put a new signing key in use: this searches the whole ledger."""
    found = session.query(
        "SELECT entry FROM ledger WHERE entry LIKE ? ORDER BY sequence", '%"kind":"rotate_signing"%'
    )
    return [text for (text,) in found]


def read_entries_like(session: Session, kinds: Sequence[str], after: int = 0) -> list[str]:
    """The texts of entries after this one that may be of these kinds: this searches the ledger."""
    wanted = " OR ".join(["entry LIKE ?"] * len(kinds))
    found = session.query(
        f"SELECT entry FROM ledger WHERE sequence > ? AND ({wanted}) ORDER BY sequence",
        after,
        *(f'%"kind":"{kind}"%' for kind in kinds),
    )
    return [text for (text,) in found]


def read_corrections(session: Session, after: int = 0) -> list[Row]:
    """The entries after this one that may be those of corrections, as (sequence, text)."""
    return session.query(
        f"SELECT sequence, entry FROM ledger{_CORRECTIONS_AFTER} ORDER BY sequence", after, _CORRECTION
    )


_CORRECTIONS_AFTER, _CORRECTION = " WHERE sequence > ? AND entry LIKE ?", '%"kind":"correct"%'


def has_restored_since(session: Session, sequence: int) -> bool:
    """Whether entries after this one may be those of a `restore` or a `rebuild`."""
    found = session.query(
        "SELECT 1 FROM ledger WHERE sequence > ? AND (entry LIKE ? OR entry LIKE ?) LIMIT 1",
        sequence,
        '%"kind":"restore"%',
        '%"kind":"rebuild"%',
    )
    return bool(found)


def insert_entry(sequence: int, text: str, hash_: str) -> Statement:
    """Store the next entry."""
    return "INSERT INTO ledger (sequence, entry, hash) VALUES (?, ?, ?)", (sequence, text, hash_)


def read_certificate(session: Session, sequence: int) -> Row | None:
    """The body and the signature of a certificate, and the text of its ledger entry."""
    found = session.query(
        "SELECT body, signature, entry FROM certificate JOIN ledger USING (sequence) WHERE sequence = ?",
        sequence,
    )
    return found[0] if found else None


def stream_certificates_and_entries(session: Session) -> Iterator[Row]:
    """All certificates as (sequence, body, signature, text of the entry or None)."""
    return session.stream(f"{_CERTIFICATES_AND_ENTRIES} ORDER BY certificate.sequence")


def read_certificates_after(session: Session, sequence: int, number: int) -> list[Row]:
    """As `stream_certificates_and_entries`, up to so many after this one."""
    return session.query(
        f"{_CERTIFICATES_AND_ENTRIES} WHERE certificate.sequence > ? ORDER BY certificate.sequence LIMIT ?",
        sequence,
        number,
    )


_CERTIFICATES_AND_ENTRIES = (
    "SELECT certificate.sequence, body, signature, entry FROM certificate"
    " LEFT JOIN ledger ON ledger.sequence = certificate.sequence"
)


def stream_certificate_bodies(session: Session, since: int) -> Iterator[Row]:
    """The certificates of this entry and later ones as (sequence, body)."""
    return session.stream(
        "SELECT sequence, body FROM certificate WHERE sequence >= ? ORDER BY sequence", since
    )


def stream_entries_and_certificates(session: Session) -> Iterator[Row]:
    """All entries as (sequence, text, body and signature of the certificate or None, None)."""
    return session.stream(
        "SELECT ledger.sequence, entry, body, signature FROM ledger"
        " LEFT JOIN certificate ON certificate.sequence = ledger.sequence ORDER BY ledger.sequence"
    )


def stream_certificates_without_entry(session: Session) -> Iterator[Row]:
    """The certificates, as (sequence, body, signature), whose ledger entry does not exist."""
    return session.stream(
        "SELECT sequence, body, signature FROM certificate"
        " WHERE NOT EXISTS (SELECT 1 FROM ledger WHERE ledger.sequence = certificate.sequence)"
    )


def count_certificates_after(session: Session, sequence: int) -> int:
    """How many certificates belong to entries after this one."""
    ((number,),) = session.query("SELECT count(*) FROM certificate WHERE sequence > ?", sequence)
    return int(number)


def count_erasures_after(session: Session, sequence: int) -> int:
    """How many certificates and corrections after this entry are about bytes that may not have left."""
    return count_certificates_after(session, sequence) + count_corrections_after(session, sequence)


def first_erasure_after(session: Session, sequence: int) -> str | None:
    """The text of the first entry after this one with a certificate, or that may be of a correction."""
    found = session.query(
        "SELECT entry FROM ledger LEFT JOIN certificate ON certificate.sequence = ledger.sequence"
        " WHERE ledger.sequence > ? AND (certificate.sequence IS NOT NULL OR entry LIKE ?)"
        " ORDER BY ledger.sequence LIMIT 1",
        sequence,
        _CORRECTION,
    )
    return found[0][0] if found else None


def count_corrections_after(session: Session, sequence: int) -> int:
    """How many entries after this one may be those of corrections."""
    ((number,),) = session.query(f"SELECT count(*) FROM ledger{_CORRECTIONS_AFTER}", sequence, _CORRECTION)
    return int(number)


def drafts_between(session: Session, first: int, last: int, since: int) -> list[int]:
    """The drafts from one entry to another that are at `since` or later, or whose entry fixes no words."""
    found = session.query(
        "SELECT sequence FROM certificate WHERE sequence BETWEEN ? AND ? AND body NOT LIKE ?"
        " AND (sequence >= ? OR body NOT LIKE ?)",
        first,
        last,
        _SIGNED_WITH.format(""),
        since,
        '%"terms":"%',
    )
    return [sequence for (sequence,) in found]


def stream_signed_with(session: Session, public: str) -> Iterator[Row]:
    """The certificates that are signed with a public key, as (sequence, body)."""
    return session.stream(
        "SELECT sequence, body FROM certificate WHERE body LIKE ?", _SIGNED_WITH.format(public)
    )


_SIGNED_WITH = '%"signing_key":{{"public":"{}%'
"""A pattern of the canonical text of signed certificates; text inside it has escaped quotation marks."""


def put_certificate(sequence: int, body: str, signature: bytes) -> Statement:
    """Store a certificate, or put another in its place."""
    return (
        "INSERT INTO certificate (sequence, body, signature) VALUES (?, ?, ?)"
        " ON CONFLICT (sequence) DO UPDATE SET body = excluded.body, signature = excluded.signature",
        (sequence, body, signature),
    )


# The suppression list and the answered requests, by digest.


def read_suppression(session: Session, digests: Sequence[bytes]) -> Iterator[Row]:
    """The rows of both lists with these digests: (table, digest, kind or opening, number, readmitted)."""
    for start in range(0, len(digests), _AT_ONCE):
        some = digests[start : start + _AT_ONCE]
        yield from session.query(
            f"WITH asked (one) AS (VALUES {', '.join(['(?)'] * len(some))})"
            " SELECT 'suppressed', digest, kind, since, readmitted FROM suppressed JOIN asked ON digest = one"
            " UNION ALL"
            " SELECT 'request', digest, opening, sequence, NULL FROM request JOIN asked ON digest = one",
            *some,
        )


def read_request(session: Session, digest: bytes) -> Row | None:
    """The ledger entry that answered a request, and the opening of its commitment."""
    found = session.query("SELECT sequence, opening FROM request WHERE digest = ?", digest)
    return found[0] if found else None


def suppressed_among(session: Session, digests: Sequence[bytes]) -> set[bytes]:
    """Which of these digests are suppressed."""
    found = _with_keys(
        session, "SELECT digest FROM suppressed WHERE readmitted IS NULL AND ", "digest", digests
    )
    return {bytes(digest) for (digest,) in found}


def suppresses_any(session: Session, kind: str) -> bool:
    """Whether any "user", or any "record", is suppressed."""
    return bool(session.query("SELECT 1 FROM suppressed WHERE readmitted IS NULL AND kind = ? LIMIT 1", kind))


def stream_suppressed(session: Session) -> Iterator[Row]:
    """All suppressed digests with their kind."""
    return session.stream("SELECT digest, kind FROM suppressed WHERE readmitted IS NULL")


def count_suppressed(session: Session) -> int:
    """How many people and records are suppressed."""
    ((number,),) = session.query("SELECT count(*) FROM suppressed WHERE readmitted IS NULL")
    return int(number)


def put_row(table: str, row: Row) -> Statement:
    """Store a row of the suppression list or of the answered requests, or put it in the old one's place."""
    return _PUT[table], row


def delete_row(table: str, digest: bytes) -> Statement:
    """Delete the row with this digest."""
    return f"DELETE FROM {table} WHERE digest = ?", (digest,)


def _put(table: str) -> str:
    digest, *others = COLUMNS[table].split(", ")
    setting = ", ".join(f"{name} = excluded.{name}" for name in others)
    marks = ", ".join("?" * (len(others) + 1))
    return (
        f"INSERT INTO {table} ({COLUMNS[table]}) VALUES ({marks})"
        f" ON CONFLICT ({digest}) DO UPDATE SET {setting}"
    )


_PUT = {table: _put(table) for table in ("suppressed", "request")}


# The tallies of people: how many records each has, and a digest of them.

_TALLY_COLUMNS = ", ".join(column.name for column in OWNER_TABLE.columns)


def create_tally_table(session: Session) -> None:
    """Create the table of tallies without rows, also in the place of an old one."""
    session.execute("DROP TABLE IF EXISTS owner")
    session.execute(OWNER_TABLE.statement(session.dialect.blob))


def read_tallies(session: Session, owners: Sequence[bytes]) -> list[Row]:
    """(owner, number of records, digest) of those owners who have records."""
    return _with_keys(session, f"SELECT {_TALLY_COLUMNS} FROM owner WHERE ", "owner", owners)


def owners_with_tally(session: Session, owners: Sequence[bytes]) -> set[bytes]:
    """Which of these owners have a tally."""
    found = _with_keys(session, "SELECT owner FROM owner WHERE ", "owner", owners)
    return {bytes(owner) for (owner,) in found}


def stream_tallies(session: Session) -> Iterator[Row]:
    """All tallies, one by one."""
    return session.stream(f"SELECT {_TALLY_COLUMNS} FROM owner")


def delete_tally(owner: bytes) -> Statement:
    """Delete the tally of an owner."""
    return "DELETE FROM owner WHERE owner = ?", (owner,)


def put_tally(row: Row) -> Statement:
    """Store the tally of an owner, or put it in the old one's place."""
    return _PUT_TALLY, row


_PUT_TALLY = (
    f"INSERT INTO owner ({_TALLY_COLUMNS}) VALUES (?, ?, ?)"
    " ON CONFLICT (owner) DO UPDATE SET records = excluded.records, digest = excluded.digest"
)


def load_tallies(session: Session, rows: list[Row]) -> None:
    """Store the tallies of many owners, which have none yet."""
    session.load("owner", _TALLY_COLUMNS, rows)


def count_differing_tallies(session: Session) -> int:
    """How many owners have another number of records, by the index, than their tally says."""
    ((differing,),) = session.query(
        "SELECT count(*) FROM owner o"
        " WHERE o.records <> (SELECT count(*) FROM record r WHERE r.owner = o.owner)"
    )
    return int(differing)


# The service: who may call it, and requests that it was sent.


def create_service_tables(session: Session) -> None:
    """Create the tables of the service in a vault of a version without them."""
    for table in SERVICE_TABLES:
        session.execute(table.statement(session.dialect.blob))


def read_tokens(session: Session) -> list[TokenRow]:
    """All tokens, by their numbers."""
    found = session.query(f"SELECT {TOKEN_COLUMNS} FROM token ORDER BY number")
    return [
        TokenRow(number, bytes(digest), facts, bytes(seal), last_used, uses)
        for number, digest, facts, seal, last_used, uses in found
    ]


def put_token(row: TokenRow) -> Statement:
    """Store a token, or put it in the old one's place."""
    return _PUT_TOKEN, row


_PUT_TOKEN = (
    f"INSERT INTO token ({TOKEN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET"
    " digest = excluded.digest, facts = excluded.facts, seal = excluded.seal,"
    " last_used = excluded.last_used, uses = excluded.uses"
)


def add_token_uses(number: int, day: str, uses: int) -> Statement:
    """Note uses of a token, which others note as well."""
    return "UPDATE token SET last_used = ?, uses = uses + ? WHERE number = ?", (day, uses, number)


def delete_tokens(session: Session) -> None:
    """Delete all tokens."""
    session.execute("DELETE FROM token")


def read_subject_request(session: Session, id_: str) -> SubjectRequestRow | None:
    """The request of a controller with this id."""
    found = session.query(f"SELECT {SUBJECT_REQUEST_COLUMNS} FROM subject_request WHERE id = ?", id_)
    return _subject_request(found[0]) if found else None


def read_subject_requests(session: Session, *, only_open: bool = False) -> list[SubjectRequestRow]:
    """All requests of controllers; or those with something left to do, also to tell, or to erase names."""
    sql = f"SELECT {SUBJECT_REQUEST_COLUMNS} FROM subject_request"
    if only_open:
        condition = " WHERE status IN (?, ?) OR facts LIKE ? OR facts LIKE ?"
        left = ('%"callbacks":[{%', '%"names_in_files":true%')
        found = session.query(sql + condition, "pending", "in_progress", *left)
    else:
        found = session.query(sql)
    return [_subject_request(row) for row in found]


def _subject_request(row: Row) -> SubjectRequestRow:
    id_, status, facts, identity, sequence, seal = row
    return SubjectRequestRow(
        id_, status, facts, None if identity is None else bytes(identity), sequence, bytes(seal)
    )


def put_subject_request(row: SubjectRequestRow) -> Statement:
    """Store a request of a controller, or put it in the old one's place."""
    return _PUT_SUBJECT_REQUEST, row


_PUT_SUBJECT_REQUEST = (
    f"INSERT INTO subject_request ({SUBJECT_REQUEST_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET status = excluded.status, facts = excluded.facts,"
    " identity = excluded.identity, sequence = excluded.sequence, seal = excluded.seal"
)


# Whole tables; by name those in `COLUMNS`.


def stream_rows(session: Session, table: Table) -> Iterator[Row]:
    """All rows of any table with all its columns, one by one, in any order."""
    return session.stream(f"SELECT {_all_columns(table)} FROM {table.name}")


def load_rows(session: Session, table: Table, rows: Iterable[Row]) -> None:
    """Store rows that have all columns of a table."""
    session.load(table.name, _all_columns(table), rows)


def _all_columns(table: Table) -> str:
    return ", ".join(column.name for column in table.columns)


def read_table(session: Session, table: str) -> list[Row]:
    """All rows of a table, ordered by their key."""
    key = COLUMNS[table].partition(",")[0]
    return session.query(f"SELECT {COLUMNS[table]} FROM {table} ORDER BY {key}")


def stream_table(session: Session, table: str, columns: str | None = None) -> Iterator[Row]:
    """All rows of a table, one by one, in any order."""
    return session.stream(f"SELECT {columns or COLUMNS[table]} FROM {table}")


def stream_by_scan(session: Session, table: str) -> Iterator[Row]:
    """All rows of a table, one by one, without any index."""
    with session.without_indexes() as hint:
        yield from session.stream(f"SELECT {COLUMNS[table]} FROM {table}{hint}")


def stream_in_order(session: Session, table: str) -> Iterator[Row]:
    """All rows of a table, one by one, ordered by their key."""
    key = COLUMNS[table].partition(",")[0]
    return session.stream(f"SELECT {COLUMNS[table]} FROM {table} ORDER BY {key}")


def replace_table(session: Session, table: str, rows: Iterable[Row]) -> None:
    """Delete all rows of a table and store these."""
    session.execute(f"DELETE FROM {table}")
    session.load(table, COLUMNS[table], rows)


# Sources, and the hash trees of requests for several people.


def add_source(session: Session, description: str) -> tuple[int, bool]:
    """The number of a source, and whether it is new; a source that was ingested before keeps its number."""
    found = session.query("SELECT number FROM source WHERE description = ?", description)
    if found:
        return int(found[0][0]), False
    ((number,),) = session.query("SELECT coalesce(max(number), 0) + 1 FROM source")
    session.execute("INSERT INTO source (number, description) VALUES (?, ?)", number, description)
    return int(number), True


def put_source(number: int, description: str) -> Statement:
    """Store a source, or another description in the place of the old one."""
    return (
        "INSERT INTO source (number, description) VALUES (?, ?)"
        " ON CONFLICT (number) DO UPDATE SET description = excluded.description",
        (number, description),
    )


def delete_source(session: Session, number: int) -> None:
    """Delete a source."""
    session.execute("DELETE FROM source WHERE number = ?", number)


def create_tree_table(session: Session) -> None:
    """Create the table of hash trees, for vaults of schema version 1."""
    session.execute(TREE_TABLE.statement(session.dialect.blob))


def add_digests_column(session: Session) -> None:
    """Add the column of table digests, for vaults of schema version 1."""
    session.execute(f"ALTER TABLE vault ADD COLUMN {DIGESTS_COLUMN.definition(session.dialect.blob)}")


def insert_tree(row: Row) -> Statement:
    """Store the leaves of a request's hash tree."""
    return "INSERT INTO tree (sequence, leaves) VALUES (?, ?)", row


def read_tree(session: Session, sequence: int) -> bytes:
    """The leaves of the hash tree of a ledger entry."""
    ((leaves,),) = session.query("SELECT leaves FROM tree WHERE sequence = ?", sequence)
    return bytes(leaves)


# Records, chosen by the values of a column: `owner` or `identity`.


def delete_records(session: Session, layout: RecordLayout, column: str, keys: Sequence[bytes]) -> list[Row]:
    """Delete the records whose column has one of these values; return the deleted rows."""
    return _with_keys(session, "DELETE FROM record WHERE ", column, keys, f" RETURNING {layout.columns}")


def sum_records(session: Session, layout: RecordLayout, column: str, keys: Sequence[bytes]) -> list[Row]:
    """Add these records up: (decision, arm, count, sum of units, whether all are 0 or 1).

    There may be several rows per arm. Without keys all records are of decision 1.
    """
    group = "decision, arm" if layout.keyed else "arm"
    sums = f"arm, count(*), sum(units), min(CASE WHEN units IN (0, {UNIT}) THEN 1 ELSE 0 END)"
    sums = f"{'decision' if layout.keyed else '1'}, {sums}"
    return _with_keys(session, f"SELECT {sums} FROM record WHERE ", column, keys, f" GROUP BY {group}")


def keys_with_records(session: Session, column: str, keys: Sequence[bytes]) -> set[bytes]:
    """Which of these values any record has."""
    found = _with_keys(session, f"SELECT DISTINCT {column} FROM record WHERE ", column, keys)
    return {bytes(key) for (key,) in found}


def read_records(session: Session, layout: RecordLayout, column: str, keys: Sequence[bytes]) -> list[Row]:
    """The records whose column has one of these values."""
    return _with_keys(session, f"SELECT {layout.columns} FROM record WHERE ", column, keys)


def read_records_from(session: Session, layout: RecordLayout, identity: bytes, most: int) -> list[Row]:
    """The next records in the order of their identities, from this one on."""
    return session.query(
        f"SELECT {layout.columns} FROM record WHERE identity >= ? ORDER BY identity LIMIT {most}", identity
    )


def count_records_by_scan(session: Session, identities: DigestArray) -> int:
    """How many records have one of these identities, by reading the whole table without any index."""
    of_rows, names = session.digest_set(identities)
    with session.without_indexes() as hint:
        ((found,),) = session.query(f"SELECT count(*) FROM record{hint} WHERE identity IN {of_rows}", *names)
    return int(found)


def stream_records_by_owner(session: Session, layout: RecordLayout) -> Iterator[Row]:
    """All records that have an owner, those of one owner after another."""
    return session.stream(f"SELECT {layout.columns} FROM record WHERE owner IS NOT NULL ORDER BY owner")


def rebuild_indexes(session: Session, layout: RecordLayout) -> None:
    """Make the indexes again from the rows; one that is missing is created."""
    if layout.holds_rows:
        session.execute(f"DROP INDEX IF EXISTS {OWNER_INDEX.name}")
        session.execute(OWNER_INDEX.statement)
    # Not of the tallies, which are made again as a whole, nor of tables that older versions do not have.
    left_out = (OWNER_TABLE, DECISION_TABLE, NODE_TABLE, *SERVICE_TABLES)
    others = [table.name for table in TABLES[layout, VERSION] if table not in left_out]
    statement = session.dialect.rebuild_indexes
    for each in dict.fromkeys(map(statement.format, others)):
        session.execute(each)


def drop_record_tables(session: Session) -> None:
    """Drop the tables of rows and of people with rows."""
    session.execute("DROP TABLE record")
    session.execute("DROP TABLE owner")


def stream_records(session: Session, layout: RecordLayout) -> Iterator[Row]:
    """All records, one by one."""
    return session.stream(f"SELECT {layout.columns} FROM record")


def count_records(session: Session) -> int:
    """How many records there are."""
    ((number,),) = session.query("SELECT count(*) FROM record")
    return int(number)


# Incoming rows, by columns.


def has_records(session: Session) -> bool:
    """Whether there is any record."""
    # With a condition that all satisfy: then the index of identities is searched, from its beginning.
    return bool(session.query("SELECT 1 FROM record WHERE identity >= ? LIMIT 1", b""))


def has_records_without_owner(session: Session) -> bool:
    """Whether there is any record without a user."""
    return bool(session.query("SELECT 1 FROM record WHERE owner IS NULL LIMIT 1"))


def has_tallies(session: Session) -> bool:
    """Whether any owner has a tally."""
    return bool(session.query("SELECT 1 FROM owner LIMIT 1"))


def read_records_of(session: Session, layout: RecordLayout, identities: DigestArray) -> list[Row]:
    """The records with these identities, which may be many; this takes least time in their order."""
    asked, parameters = session.digest_set(identities)
    # Not by IN, for which a server would first sort out equal ones and lose the order.
    return session.query(
        f"SELECT {layout.columns} FROM {asked} AS asked CROSS JOIN record WHERE identity = asked.digest",
        *parameters,
    )


def count_tallied(session: Session) -> int:
    """How many records all owners have together, by their tallies."""
    ((found,),) = session.query("SELECT coalesce(sum(records), 0) FROM owner")
    return int(found)


def sum_of_tallies(session: Session, owners: DigestArray) -> int:
    """How many records these owners have together, by their tallies; this takes least time in their order."""
    asked, parameters = session.digest_set(owners)
    ((found,),) = session.query(
        f"SELECT coalesce(sum(records), 0) FROM owner WHERE owner IN {asked}", *parameters
    )
    return int(found)


def count_of_owners(session: Session, owners: DigestArray, identities: DigestArray) -> tuple[int, int]:
    """How many records these owners have, and how many of these have one of these identities.

    The owners are in order, each once.
    """
    asked = DigestSet(identities)
    found = again = 0
    for some in session.identities_of(owners):
        found += len(some)
        again += asked.count(some)
    return found, again


def insert_records(session: Session, columns: Columns, *, is_first_load: bool = False) -> None:
    """Store new records; it takes least time in the order of identities or, in a filled table, of owners."""
    session.load_columns("record", columns, nullable="owner", is_empty=is_first_load)


def insert_tallies(session: Session, columns: Columns) -> None:
    """Store the tallies of owners who have none yet."""
    session.load_columns("owner", columns)


def merge_tallies(session: Session, columns: Columns) -> None:
    """Add the tallies of many owners to those that the table holds."""
    xor = session.dialect.xor_of_digests.format("owner.digest", "excluded.digest")
    session.merge_columns(
        OWNER_TABLE,
        columns,
        f"(owner) DO UPDATE SET records = owner.records + excluded.records, digest = {xor}",
    )


def drop_record_indexes(session: Session) -> None:
    """Drop the indexes of the records, which are none yet, until `create_record_indexes`."""
    for statement in session.dialect.drop_record_indexes:
        session.execute(statement)


def create_record_indexes(session: Session) -> None:
    """Build the indexes that `drop_record_indexes` has dropped."""
    for statement in session.dialect.create_record_indexes:
        session.execute(statement)


def _with_keys(
    session: Session, before: str, column: str, keys: Sequence[bytes | str | int], after: str = ""
) -> list[Row]:
    """Run a statement for a few hundred keys at a time."""
    found: list[Row] = []
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        condition = f"{column} = ?" if len(some) == 1 else f"{column} IN ({', '.join('?' * len(some))})"
        found += session.query(before + condition + after, *some)
    return found
