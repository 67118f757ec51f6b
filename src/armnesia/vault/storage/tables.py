"""The SQL on the tables of a vault that all databases understand; the rest is in the modules of each.

Functions that read take a session. Functions that return a `Statement` are for the one batch of statements
that ends a write transaction.
"""

import json
from collections.abc import Iterable, Iterator, Sequence

from armnesia.core.units import UNIT
from armnesia.vault.ledger.entry import Entry
from armnesia.vault.ledger.envelope import Envelope
from armnesia.vault.storage.database import Row, Session, Statement
from armnesia.vault.storage.digest_arrays import Columns, DigestArray
from armnesia.vault.storage.schema import (
    COLUMNS,
    DECISION_COLUMNS,
    OWNER_INDEX,
    SUBJECT_REQUEST_COLUMNS,
    TOKEN_COLUMNS,
    VAULT_COLUMNS,
    DecisionRow,
    RecordLayout,
    SubjectRequestRow,
    TokenRow,
    VaultRow,
)

_AT_ONCE = 500


def _query_by_keys(
    session: Session, before: str, column: str, keys: Sequence[bytes | str | int], after: str = ""
) -> list[Row]:
    """Run a statement for many keys: for all at once, or for a few hundred at a time."""
    if session.dialect.takes_lists:
        return session.query(f"{before} WHERE {column} = ANY (?){after}", list(keys)) if keys else []
    found: list[Row] = []
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        marks = ", ".join("?" * len(some))
        found += session.query(f"{before} WHERE {column} IN ({marks}){after}", *some)
    return found


def _inserting(table: str, columns: str) -> str:
    return f"INSERT INTO {table} ({columns}) VALUES ({', '.join('?' * len(columns.split(', ')))})"


def _putting(table: str, columns: str) -> str:
    """Store a row, or put it in the place of the one with the same first column."""
    key, *others = columns.split(", ")
    setting = ", ".join(f"{name} = excluded.{name}" for name in others)
    return f"{_inserting(table, columns)} ON CONFLICT ({key}) DO UPDATE SET {setting}"


_PUT_SOURCE = _putting("source", COLUMNS["source"])
_PUT_SUPPRESSED = _putting("suppressed", COLUMNS["suppressed"])
_PUT_DECISION = _putting("decision", DECISION_COLUMNS)
_PUT_TOKEN = _putting("token", TOKEN_COLUMNS)
_PUT_SUBJECT_REQUEST = _putting("subject_request", SUBJECT_REQUEST_COLUMNS)
_INSERT_ENTRY = _inserting("entry", "number, kind, envelope, leaf")
_INSERT_PEOPLE = _inserting("people", COLUMNS["people"])
_UPDATE_VAULT = f"UPDATE vault SET {', '.join(f'{name} = ?' for name in VaultRow._fields)}"


# The sealed state: the one row of `vault`.


def read_identity(session: Session) -> list[Row]:
    """The vault's id, schema version and configuration."""
    return session.query("SELECT id, schema_version, configuration FROM vault")


def read_vault(session: Session) -> list[VaultRow]:
    """The row of the state; a damaged vault may have none, or several."""
    return [VaultRow(*row) for row in session.query(f"SELECT {VAULT_COLUMNS} FROM vault")]


def insert_vault(row: VaultRow) -> Statement:
    """Store the first state."""
    return _inserting("vault", f"one, {VAULT_COLUMNS}"), (1, *row)


def update_vault(row: VaultRow) -> Statement:
    """Store a new state."""
    return _UPDATE_VAULT, row


# Whole tables, of which those in `COLUMNS` are given by name.


def create_tables(session: Session, layout: RecordLayout) -> None:
    """Create the tables and the index of a new vault."""
    session.execute_together((statement, ()) for statement in session.dialect.creating(layout.tables))


def rebuild_indexes(session: Session, layout: RecordLayout) -> None:
    """Make the indexes again from the rows; one that is missing is created."""
    if layout.holds_rows:
        session.execute(f"DROP INDEX IF EXISTS {OWNER_INDEX.name}")
        session.execute(OWNER_INDEX.statement)
    for table in layout.tables:
        session.execute(f"{session.dialect.reindex} {table.name}")


def read_table(session: Session, table: str) -> list[Row]:
    """All rows of a table, ordered by their key."""
    return session.query(f"SELECT {COLUMNS[table]} FROM {table} ORDER BY 1")


def stream_table(session: Session, table: str) -> Iterator[Row]:
    """All rows of a table, one by one, in any order."""
    return session.stream(f"SELECT {COLUMNS[table]} FROM {table}")


def replace_table(session: Session, table: str, rows: Iterable[Row]) -> None:
    """Delete all rows of a table and store these."""
    session.execute(f"DELETE FROM {table}")
    session.load(table, COLUMNS[table], rows)


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


# Records: some of them, by the values of `owner` or `identity`; all of them; incoming ones, by columns.


def delete_records(session: Session, layout: RecordLayout, column: str, keys: Sequence[bytes]) -> list[Row]:
    """Delete the records whose column has one of these values; return the deleted rows."""
    return _query_by_keys(session, "DELETE FROM record", column, keys, f" RETURNING {layout.columns}")


def sum_records(session: Session, layout: RecordLayout, column: str, keys: Sequence[bytes]) -> list[Row]:
    """Add these records up: (decision, arm, count, sum of units, whether all are 0 or 1).

    There may be several rows per arm. Without keys all records are of decision 1.
    """
    group = "decision, arm" if layout.keyed else "arm"
    sums = f"arm, count(*), sum(units), min(CASE WHEN units IN (0, {UNIT}) THEN 1 ELSE 0 END)"
    sums = f"{'decision' if layout.keyed else '1'}, {sums}"
    return _query_by_keys(session, f"SELECT {sums} FROM record", column, keys, f" GROUP BY {group}")


def keys_with_records(session: Session, column: str, keys: Sequence[bytes]) -> set[bytes]:
    """Which of these values any record has."""
    found = _query_by_keys(session, f"SELECT DISTINCT {column} FROM record", column, keys)
    return {bytes(key) for (key,) in found}


def read_records_of(session: Session, layout: RecordLayout, identities: DigestArray) -> list[Row]:
    """The records with these identities, which may be many; this takes least time in their order."""
    return _query_by_keys(session, f"SELECT {layout.columns} FROM record", "identity", identities.tolist())


def stream_records(session: Session, layout: RecordLayout) -> Iterator[Row]:
    """All records, one by one."""
    return session.stream(f"SELECT {layout.columns} FROM record")


def count_records(session: Session) -> int:
    """How many records there are."""
    ((number,),) = session.query("SELECT count(*) FROM record")
    return int(number)


def has_records(session: Session) -> bool:
    """Whether there is any record."""
    # With a condition that all satisfy: then the index of identities is searched, from its beginning.
    return bool(session.query("SELECT 1 FROM record WHERE identity >= ? LIMIT 1", b""))


def has_records_without_owner(session: Session) -> bool:
    """Whether there is any record without a user."""
    return bool(session.query("SELECT 1 FROM record WHERE owner IS NULL LIMIT 1"))


def insert_records(session: Session, columns: Columns, *, is_first_load: bool = False) -> None:
    """Store new records; it takes least time in the order of identities or, in a filled table, of owners."""
    session.load_columns("record", columns, nullable="owner", is_empty=is_first_load)


def drop_record_indexes(session: Session) -> None:
    """Drop the indexes of the records, which are none yet, until `create_record_indexes`."""
    for statement in session.dialect.drop_record_indexes:
        session.execute(statement)


def create_record_indexes(session: Session) -> None:
    """Build the indexes that `drop_record_indexes` has dropped."""
    for statement in session.dialect.create_record_indexes:
        session.execute(statement)


# Decisions.


def stream_decisions(session: Session) -> Iterator[DecisionRow]:
    """All decisions, one by one, by their numbers."""
    return map(DecisionRow._make, session.stream(f"SELECT {DECISION_COLUMNS} FROM decision ORDER BY number"))


def put_decision(row: DecisionRow) -> Statement:
    """Store a decision, or put it in the old one's place."""
    return _PUT_DECISION, row


def read_decisions(session: Session, numbers: Sequence[int]) -> list[DecisionRow]:
    """The decisions with these numbers."""
    found = _query_by_keys(session, f"SELECT {DECISION_COLUMNS} FROM decision", "number", numbers)
    return [DecisionRow(*row) for row in found]


def numbers_served_by(session: Session, chosen_by: str) -> list[int]:
    """The numbers of the decisions whose served arm this has chosen: all rows are read."""
    found = session.query("SELECT number FROM decision WHERE served_by = ? ORDER BY number", chosen_by)
    return [number for (number,) in found]


def numbers_of_keys(session: Session, keys: Sequence[str]) -> dict[str, int]:
    """By key, the numbers of those decisions that there are."""
    return dict(_query_by_keys(session, "SELECT key, number FROM decision", "key", keys))


def delete_decisions(session: Session) -> None:
    """Delete all decisions."""
    session.execute("DELETE FROM decision")


# The ledger: its entries, and the commitments to the people of each request.


def insert_entry(entry: Entry, envelope: Envelope) -> Statement:
    """Store the next entry."""
    text = json.dumps(envelope.to_dict(), separators=(",", ":"))
    return _INSERT_ENTRY, (entry.number, entry.kind, text, envelope.leaf)


def delete_entries(session: Session) -> None:
    """Empty the table."""
    session.execute("DELETE FROM entry")


def stream_entries(session: Session, after: int = 0, most: int | None = None) -> Iterator[Row]:
    """The entries after this one, or so many of them, as (number, kind, envelope, leaf)."""
    if not after and most is None:  # also rows that armnesia has not numbered
        return session.stream("SELECT number, kind, envelope, leaf FROM entry ORDER BY number")
    sql = "SELECT number, kind, envelope, leaf FROM entry WHERE number > ? ORDER BY number"
    if most is None:
        return session.stream(sql, after)
    return session.stream(f"{sql} LIMIT ?", after, most)


def read_entry(session: Session, number: int) -> str | None:
    """The envelope of an entry."""
    found = session.query("SELECT envelope FROM entry WHERE number = ?", number)
    return found[0][0] if found else None


def read_entries_of(session: Session, kinds: Sequence[str], after: int = 0) -> list[str]:
    """The envelopes of the entries of these kinds after this one: this reads the kinds of all."""
    marks = ", ".join("?" * len(kinds))
    found = session.query(
        f"SELECT envelope FROM entry WHERE number > ? AND kind IN ({marks}) ORDER BY number", after, *kinds
    )
    return [envelope for (envelope,) in found]


def count_entries_of(session: Session, kinds: Sequence[str], after: int) -> int:
    """How many entries of these kinds come after this one."""
    marks = ", ".join("?" * len(kinds))
    sql = f"SELECT count(*) FROM entry WHERE number > ? AND kind IN ({marks})"
    ((number,),) = session.query(sql, after, *kinds)
    return int(number)


def read_leaves(session: Session, size: int) -> list[bytes]:
    """The hashes of the first entries."""
    found = session.query("SELECT leaf FROM entry WHERE number <= ? ORDER BY number", size)
    return [bytes(leaf) for (leaf,) in found]


def insert_people(row: Row) -> Statement:
    """Store the commitments of a request: its entry, the leaves, what is said of it, and its case."""
    return _INSERT_PEOPLE, row


def read_people(session: Session, number: int) -> Row | None:
    """The leaves of a request, and what is said of it."""
    found = session.query("SELECT leaves, said FROM people WHERE number = ?", number)
    return found[0] if found else None


def people_after(session: Session, number: int) -> list[Row]:
    """The commitments of the requests after this entry."""
    return session.query(f"SELECT {COLUMNS['people']} FROM people WHERE number > ? ORDER BY number", number)


def entries_of_case(session: Session, digest: bytes) -> list[int]:
    """The entries of the requests with this case."""
    found = session.query("SELECT number FROM people WHERE case_digest = ? ORDER BY number", digest)
    return [number for (number,) in found]


# The suppression list, by digest.


def read_suppressed(session: Session, digests: Sequence[bytes]) -> list[Row]:
    """The rows with these digests, also of those who were readmitted."""
    return _query_by_keys(session, f"SELECT {COLUMNS['suppressed']} FROM suppressed", "digest", digests)


def suppressed_since(session: Session, number: int) -> list[Row]:
    """The rows that entries after this one have changed: all rows are read."""
    sql = f"SELECT {COLUMNS['suppressed']} FROM suppressed WHERE since > ? OR readmitted > ?"
    return session.query(sql, number, number)


def suppressed_among(session: Session, digests: Sequence[bytes]) -> set[bytes]:
    """Which of these digests are suppressed."""
    found = _query_by_keys(
        session, "SELECT digest FROM suppressed", "digest", digests, " AND readmitted IS NULL"
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


def put_suppressed(row: Row) -> Statement:
    """Store a row of the suppression list, or put it in the old one's place."""
    return _PUT_SUPPRESSED, row


# Sources.


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
    return _PUT_SOURCE, (number, description)


def delete_source(session: Session, number: int) -> None:
    """Delete a source."""
    session.execute("DELETE FROM source WHERE number = ?", number)


# The service: who may call it, and requests that it was sent.


def read_tokens(session: Session) -> list[TokenRow]:
    """All tokens, by their numbers."""
    return [TokenRow(*row) for row in session.query(f"SELECT {TOKEN_COLUMNS} FROM token ORDER BY number")]


def put_token(row: TokenRow) -> Statement:
    """Store a token, or put it in the old one's place."""
    return _PUT_TOKEN, row


def add_token_uses(number: int, day: str, uses: int) -> Statement:
    """Note uses of a token, which others note as well."""
    return "UPDATE token SET last_used = ?, uses = uses + ? WHERE number = ?", (day, uses, number)


def read_subject_request(session: Session, id_: str) -> SubjectRequestRow | None:
    """The request of a controller with this id."""
    found = session.query(f"SELECT {SUBJECT_REQUEST_COLUMNS} FROM subject_request WHERE id = ?", id_)
    return SubjectRequestRow(*found[0]) if found else None


def read_subject_requests(session: Session, *, only_open: bool = False) -> list[SubjectRequestRow]:
    """All requests of controllers; or those with something left to do, also to tell."""
    sql = f"SELECT {SUBJECT_REQUEST_COLUMNS} FROM subject_request"
    left: Row = ()
    if only_open:
        sql += " WHERE status IN (?, ?) OR facts LIKE ?"
        left = ("pending", "in_progress", '%"callbacks":[{%')
    return [SubjectRequestRow(*row) for row in session.query(sql, *left)]


def put_subject_request(row: SubjectRequestRow) -> Statement:
    """Store a request of a controller, or put it in the old one's place."""
    return _PUT_SUBJECT_REQUEST, row
