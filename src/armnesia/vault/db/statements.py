"""The SQL on the tables of a vault that all databases understand; the rest is in the modules of each.

Functions that read take a session. Functions that return a `Statement` are for the one batch of statements
that ends a write transaction. Rows are named by columns and their values: `kind="user"`; of a list any value
may be there, and None stands for NULL. `after` leaves the rows with larger keys.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from armnesia.core.errors import ArmnesiaError
from armnesia.vault.db.database import Row, Session, Statement
from armnesia.vault.db.digest_arrays import Columns
from armnesia.vault.db.schema import (
    OWNER_INDEX,
    TABLES,
    EntryRow,
    RecordRow,
    SubjectRequestRow,
    SuppressedRow,
)

R = TypeVar("R", bound=tuple[Any, ...])
"""A kind of rows, which names a table."""

_AT_ONCE = 500
"""Values of one statement, where a list cannot be one parameter."""


# All tables.


def rebuild_indexes(session: Session) -> None:
    """Make the indexes again from the rows; one that is missing is created."""
    session.execute("DROP INDEX IF EXISTS record_owner")
    session.execute(OWNER_INDEX)
    for table in TABLES.values():
        session.execute(f"{session.reindex} {table.name}")


def insert(row: R) -> Statement:
    """Store a new row."""
    return _inserting(type(row)), row


def put(row: R) -> Statement:
    """Store a row, or put it in the place of the one with the same key."""
    return _putting(type(row)), row


@cache
def _inserting(rows: type[R]) -> str:
    table = TABLES[rows]
    return f"INSERT INTO {table.name} ({table.names}) VALUES ({', '.join('?' * len(table.columns))})"


@cache
def _putting(rows: type[R]) -> str:
    key, *others = TABLES[rows].names.split(", ")
    setting = ", ".join(f"{name} = excluded.{name}" for name in others)
    return f"{_inserting(rows)} ON CONFLICT ({key}) DO UPDATE SET {setting}"


def read(session: Session, rows: type[R], *, after: Any = None, **where: Any) -> list[R]:
    """The rows with these values, by their numbers if they have any; those of a long list in its order."""
    table = TABLES[rows]
    found = _query(session, f"SELECT {table.names} FROM {table.name}", rows, after, where, _order(rows))
    return list(map(table.rows._make, found))


def stream(session: Session, rows: type[R], *, after: Any = None, most: int | None = None) -> Iterator[R]:
    """All rows, or so many of them, one by one, and in the order of their numbers if they have any."""
    table, parameters = TABLES[rows], () if after is None else (after,)
    condition = "" if after is None else f" WHERE {table.key.name} > ?"
    limit = "" if most is None else f" LIMIT {most:d}"
    sql = f"SELECT {table.names} FROM {table.name}{condition}{_order(rows)}{limit}"
    return map(table.rows._make, session.stream(sql, *parameters))


def _order(rows: type[R]) -> str:
    """By numbers, which is the order of the table itself; never by digests, which are random."""
    key = TABLES[rows].key
    return f" ORDER BY {key.name}" if key.type is int else ""


def count(session: Session, rows: type[R], *, after: Any = None, **where: Any) -> int:
    """How many rows have these values."""
    found = _query(session, f"SELECT count(*) FROM {TABLES[rows].name}", rows, after, where)
    return sum(int(number) for (number,) in found)


def exists(session: Session, rows: type[R], *, after: Any = None, **where: Any) -> bool:
    """Whether any row has these values."""
    return bool(_query(session, f"SELECT 1 FROM {TABLES[rows].name}", rows, after, where, " LIMIT 1"))


def delete(session: Session, rows: type[R], **where: Any) -> list[R]:
    """Delete the rows with these values, and return them."""
    table = TABLES[rows]
    returning = f" RETURNING {table.names}"
    found = _query(session, f"DELETE FROM {table.name}", rows, None, where, returning)
    return list(map(table.rows._make, found))


def replace_all(session: Session, rows: type[R], new: Iterable[Row] = ()) -> None:
    """Delete all rows of a table and store these."""
    session.execute(f"DELETE FROM {TABLES[rows].name}")
    session.execute_together((_inserting(rows), row) for row in new)


def _query(
    session: Session, sql: str, rows: type[R], after: Any, where: Mapping[str, Any], end: str = ""
) -> list[Row]:
    """Run a statement on the rows with these values; for a long list several times, if need be."""
    conditions, parameters, long = [], list[Any](), None
    if after is not None:
        conditions, parameters = [f"{TABLES[rows].key.name} > ?"], [after]
    for column, value in where.items():
        if isinstance(value, list | tuple):
            assert long is None, "several lists"
            long = column
        elif value is None:
            conditions.append(f"{column} IS NULL")
        else:
            conditions.append(f"{column} = ?")
            parameters.append(value)
    if long is None:
        condition = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return session.query(f"{sql}{condition}{end}", *parameters)
    values, found = list(where[long]), list[Row]()
    at_once = len(values) if session.takes_lists else _AT_ONCE
    for start in range(0, len(values), at_once or 1):
        some = values[start : start + at_once]
        one_of = "= ANY (?)" if session.takes_lists else f"IN ({', '.join('?' * len(some))})"
        condition = " AND ".join([*conditions, f"{long} {one_of}"])
        given = [some] if session.takes_lists else some
        found += session.query(f"{sql} WHERE {condition}{end}", *parameters, *given)
    return found


@contextmanager
def savepoint(session: Session) -> Iterator[None]:
    """A part of the transaction that is undone alone if an `ArmnesiaError` refuses it."""
    session.execute("SAVEPOINT attempt")
    try:
        yield
    except ArmnesiaError:
        session.execute("ROLLBACK TO SAVEPOINT attempt")
        session.execute("RELEASE SAVEPOINT attempt")
        raise
    session.execute("RELEASE SAVEPOINT attempt")


# Records.


def values_of_records(session: Session, column: str, values: Sequence[bytes]) -> set[bytes]:
    """Which of these values of a column any record has."""
    found = _query(session, f"SELECT DISTINCT {column} FROM record", RecordRow, None, {column: values})
    return {bytes(value) for (value,) in found}


def insert_records(session: Session, columns: Columns, *, is_first_load: bool = False) -> None:
    """Store new records; it takes least time in the order of identities or, in a filled table, of owners."""
    session.load("record", columns, nullable="owner", is_empty=is_first_load)


def drop_record_indexes(session: Session) -> None:
    """Drop the indexes of the records, which are none yet, until `create_record_indexes`."""
    for statement in session.drop_record_indexes:
        session.execute(statement)


def create_record_indexes(session: Session) -> None:
    """Build the indexes that `drop_record_indexes` has dropped."""
    for statement in session.create_record_indexes:
        session.execute(statement)


# Other tables.


def read_identity(session: Session) -> list[Row]:
    """The vault's id, schema version and configuration: columns that every version has."""
    return session.query("SELECT id, schema_version, configuration FROM vault")


def read_leaves(session: Session, size: int) -> list[bytes]:
    """The hashes of the first entries."""
    found = session.query("SELECT leaf FROM entry WHERE number <= ? ORDER BY number", size)
    return [leaf if isinstance(leaf, bytes) else b"" for (leaf,) in found]


def envelopes_of(session: Session, kinds: Sequence[str]) -> list[str]:
    """The envelopes of the entries of these kinds: this reads the kinds of all."""
    return [row.envelope for row in read(session, EntryRow, kind=kinds)]


def suppressed_since(session: Session, number: int) -> list[SuppressedRow]:
    """The rows that entries after this one have changed: all rows are read."""
    sql = f"SELECT {TABLES[SuppressedRow].names} FROM suppressed WHERE since > ? OR readmitted > ?"
    return list(map(SuppressedRow._make, session.query(sql, number, number)))


def add_token_uses(number: int, day: str, uses: int) -> Statement:
    """Note uses of a token, which others note as well."""
    return "UPDATE token SET last_used = ?, uses = uses + ? WHERE number = ?", (day, uses, number)


def open_subject_requests(session: Session) -> list[SubjectRequestRow]:
    """The requests of controllers with something left to do, also to tell."""
    sql = f"SELECT {TABLES[SubjectRequestRow].names} FROM subject_request"
    sql += " WHERE status IN ('pending', 'in_progress') OR facts LIKE ?"
    return list(map(SubjectRequestRow._make, session.query(sql, '%"callbacks":[{%')))
