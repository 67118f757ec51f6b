"""Records: some of them, by the values of `owner` or `identity`; all of them; incoming ones, by columns."""

from collections.abc import Iterator, Sequence

from armnesia.core.units import UNIT
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.digest_arrays import Columns, DigestArray, DigestSet
from armnesia.vault.storage.schema import RecordLayout
from armnesia.vault.storage.tables.queries_by_key import query_by_keys


def delete_records(session: Session, layout: RecordLayout, column: str, keys: Sequence[bytes]) -> list[Row]:
    """Delete the records whose column has one of these values; return the deleted rows."""
    return query_by_keys(session, "DELETE FROM record WHERE ", column, keys, f" RETURNING {layout.columns}")


def sum_records(session: Session, layout: RecordLayout, column: str, keys: Sequence[bytes]) -> list[Row]:
    """Add these records up: (decision, arm, count, sum of units, whether all are 0 or 1).

    There may be several rows per arm. Without keys all records are of decision 1.
    """
    group = "decision, arm" if layout.keyed else "arm"
    sums = f"arm, count(*), sum(units), min(CASE WHEN units IN (0, {UNIT}) THEN 1 ELSE 0 END)"
    sums = f"{'decision' if layout.keyed else '1'}, {sums}"
    return query_by_keys(session, f"SELECT {sums} FROM record WHERE ", column, keys, f" GROUP BY {group}")


def keys_with_records(session: Session, column: str, keys: Sequence[bytes]) -> set[bytes]:
    """Which of these values any record has."""
    found = query_by_keys(session, f"SELECT DISTINCT {column} FROM record WHERE ", column, keys)
    return {bytes(key) for (key,) in found}


def read_records(session: Session, layout: RecordLayout, column: str, keys: Sequence[bytes]) -> list[Row]:
    """The records whose column has one of these values."""
    return query_by_keys(session, f"SELECT {layout.columns} FROM record WHERE ", column, keys)


def read_records_from(session: Session, layout: RecordLayout, identity: bytes, most: int) -> list[Row]:
    """The next records in the order of their identities, from this one on."""
    return session.query(
        f"SELECT {layout.columns} FROM record WHERE identity >= ? ORDER BY identity LIMIT {most}", identity
    )


def read_records_of(session: Session, layout: RecordLayout, identities: DigestArray) -> list[Row]:
    """The records with these identities, which may be many; this takes least time in their order."""
    asked, parameters = session.digest_set(identities)
    # Not by IN, for which a server would first sort out equal ones and lose the order.
    return session.query(
        f"SELECT {layout.columns} FROM {asked} AS asked CROSS JOIN record WHERE identity = asked.digest",
        *parameters,
    )


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


def count_records_by_scan(session: Session, identities: DigestArray) -> int:
    """How many records have one of these identities, by reading the whole table without any index."""
    of_rows, names = session.digest_set(identities)
    with session.without_indexes() as hint:
        ((found,),) = session.query(f"SELECT count(*) FROM record{hint} WHERE identity IN {of_rows}", *names)
    return int(found)


def has_digest_by_scan(session: Session, digests: DigestArray) -> bool:
    """Whether a record or a tally has one of these identities or owners, by reading all without any index."""
    wanted, parameters = session.digest_set(digests)
    of_records = f"SELECT 1 FROM record{{}} WHERE owner IN {wanted} OR identity IN {wanted} LIMIT 1"
    of_tallies = f"SELECT 1 FROM owner{{}} WHERE owner IN {wanted} LIMIT 1"
    with session.without_indexes() as hint:
        return bool(
            session.query(of_records.format(hint), *parameters, *parameters)
            or session.query(of_tallies.format(hint), *parameters)
        )


def stream_records_by_owner(session: Session, layout: RecordLayout) -> Iterator[Row]:
    """All records that have an owner, those of one owner after another."""
    return session.stream(f"SELECT {layout.columns} FROM record WHERE owner IS NOT NULL ORDER BY owner")


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


def has_records_by_scan(session: Session) -> bool:
    """Whether there is any record, by reading the table without any index."""
    with session.without_indexes() as hint:
        return bool(session.query(f"SELECT 1 FROM record{hint} LIMIT 1"))


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


def drop_record_tables(session: Session) -> None:
    """Drop the tables of rows and of people with rows."""
    session.execute("DROP TABLE record")
    session.execute("DROP TABLE owner")
