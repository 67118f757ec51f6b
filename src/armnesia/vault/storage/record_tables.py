"""The SQL on the table `record`, and on `incoming`, where rows wait that an ingest compares with it."""

from collections.abc import Iterator, Sequence

from armnesia.core.units import UNIT
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.schema import INCOMING_TYPES, RecordLayout

_AT_ONCE = 500


# Records, chosen by the values of a column: `owner` or `identity`.


def select_records(session: Session, columns: str, column: str, keys: Sequence[bytes]) -> list[Row]:
    """The records whose column has one of these values."""
    return _with_keys(session, f"SELECT {columns} FROM record WHERE ", column, keys)


def delete_records(session: Session, layout: RecordLayout, column: str, keys: Sequence[bytes]) -> list[Row]:
    """Delete the records whose column has one of these values; return the deleted rows."""
    return _with_keys(session, "DELETE FROM record WHERE ", column, keys, f" RETURNING {layout.columns}")


def sum_records(session: Session, column: str, keys: Sequence[bytes]) -> list[Row]:
    """Add these records up: (arm, count, sum of units, whether all are 0 or 1), several rows per arm."""
    sums = f"arm, count(*), sum(units), min(CASE WHEN units IN (0, {UNIT}) THEN 1 ELSE 0 END)"
    return _with_keys(session, f"SELECT {sums} FROM record WHERE ", column, keys, " GROUP BY arm")


def count_keys_with_records(session: Session, column: str, keys: Sequence[bytes]) -> int:
    """How many of these values any record has."""
    found = _with_keys(session, f"SELECT count(DISTINCT {column}) FROM record WHERE ", column, keys)
    return sum(int(number) for (number,) in found)


def stream_records(session: Session, layout: RecordLayout) -> Iterator[Row]:
    """All records, one by one."""
    return session.stream(f"SELECT {layout.columns} FROM record")


def count_records(session: Session) -> int:
    """How many records there are."""
    ((number,),) = session.query("SELECT count(*) FROM record")
    return int(number)


def count_by_source(session: Session) -> dict[int, int]:
    """How many records each source brought."""
    return dict(session.query("SELECT source, count(*) FROM record GROUP BY source"))


def delete_all_records(session: Session) -> None:
    """Delete all records."""
    session.execute("DELETE FROM record")


# Incoming rows, a chunk at a time.


def create_incoming(session: Session, layout: RecordLayout) -> None:
    """Create the temporary table of incoming rows."""
    blob = session.dialect.blob
    columns = [f"{name} {INCOMING_TYPES[name]}".format(blob=blob) for name in layout.incoming.split(", ")]
    session.execute(f"CREATE TEMPORARY TABLE incoming ({', '.join(columns)})")


def load_incoming(session: Session, layout: RecordLayout, rows: list[Row]) -> None:
    """Fill the table of incoming rows."""
    session.load("incoming", layout.incoming, rows)


def contradicted_identities(session: Session, layout: RecordLayout) -> set[bytes]:
    """The identities of incoming rows that contradict a record of the same identity."""
    # SQLite never reorders a CROSS JOIN: it reads what comes in and looks each row up.
    found = session.query(
        "SELECT i.identity FROM incoming i CROSS JOIN record r"
        f" WHERE r.identity = i.identity AND ({layout.differs})"
    )
    return {bytes(identity) for (identity,) in found}


def drop_known_incoming(session: Session) -> int:
    """Delete incoming rows that are records already; return how many."""
    # Not IN: SQLite would walk through all records for one incoming row.
    return session.execute(
        "DELETE FROM incoming WHERE EXISTS (SELECT 1 FROM record r WHERE r.identity = incoming.identity)"
    )


def incoming_identities(session: Session) -> set[bytes]:
    """The identities of the incoming rows."""
    return {bytes(identity) for (identity,) in session.query("SELECT identity FROM incoming")}


def sum_incoming(session: Session) -> list[Row]:
    """Add the incoming rows up: (arm, count, sum of units)."""
    return session.query("SELECT arm, count(*), sum(units) FROM incoming GROUP BY arm")


def insert_incoming(session: Session, layout: RecordLayout) -> int:
    """Make records of the incoming rows and empty their table; return how many were added."""
    added = session.execute(
        f"{session.dialect.insert_all} record ({layout.columns})"
        f" SELECT {layout.columns} FROM incoming ORDER BY identity"
    )
    session.execute(f"{session.dialect.delete_all} incoming")
    return added


def drop_incoming(session: Session) -> None:
    """Drop the temporary table: on a server it is a file, which would outlive the batch."""
    session.execute("DROP TABLE incoming")


def _with_keys(
    session: Session, before: str, column: str, keys: Sequence[bytes], after: str = ""
) -> list[Row]:
    """Run a statement for a few hundred keys at a time."""
    found: list[Row] = []
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        condition = f"{column} = ?" if len(some) == 1 else f"{column} IN ({', '.join('?' * len(some))})"
        found += session.query(before + condition + after, *some)
    return found
