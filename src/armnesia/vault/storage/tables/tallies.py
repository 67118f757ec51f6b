"""The tallies of people: how many records each has, and a digest of them."""

from collections.abc import Iterator, Sequence

from armnesia.vault.storage.database import Row, Session, Statement
from armnesia.vault.storage.digest_arrays import Columns, DigestArray
from armnesia.vault.storage.schema import OWNER_TABLE
from armnesia.vault.storage.tables.queries_by_key import KEYS_AT_ONCE, query_by_keys

_TALLY_COLUMNS = ", ".join(column.name for column in OWNER_TABLE.columns)


def create_tally_table(session: Session) -> None:
    """Create the table of tallies without rows, also in the place of an old one."""
    session.execute("DROP TABLE IF EXISTS owner")
    session.execute(OWNER_TABLE.statement(session.dialect.blob))


def read_tallies(session: Session, owners: Sequence[bytes]) -> list[Row]:
    """(owner, number of records, digest) of those owners who have records."""
    return query_by_keys(session, f"SELECT {_TALLY_COLUMNS} FROM owner WHERE ", "owner", owners)


def owners_with_tally(session: Session, owners: Sequence[bytes]) -> set[bytes]:
    """Which of these owners have a tally."""
    found = query_by_keys(session, "SELECT owner FROM owner WHERE ", "owner", owners)
    return {bytes(owner) for (owner,) in found}


def stream_tallies(session: Session) -> Iterator[Row]:
    """All tallies, one by one."""
    return session.stream(f"SELECT {_TALLY_COLUMNS} FROM owner")


def has_tallies(session: Session) -> bool:
    """Whether any owner has a tally."""
    return bool(session.query("SELECT 1 FROM owner LIMIT 1"))


def count_tallied(session: Session) -> int:
    """How many records all owners have together, by their tallies."""
    ((found,),) = session.query("SELECT coalesce(sum(records), 0) FROM owner")
    return int(found)


def read_neighbours(session: Session, owners: Sequence[bytes]) -> Iterator[Row]:
    """The owners before and after each of these: (before, after) by the records, then by the tallies."""
    nearest = ", ".join(
        f"(SELECT owner FROM {table} WHERE owner {beside} one ORDER BY owner {order} LIMIT 1)"
        for table in ("record", "owner")
        for beside, order in (("<", "DESC"), (">", "ASC"))
    )
    for start in range(0, len(owners), KEYS_AT_ONCE):
        some = owners[start : start + KEYS_AT_ONCE]
        asked = f"WITH asked (one) AS (VALUES {', '.join(['(?)'] * len(some))})"
        yield from session.query(f"{asked} SELECT {nearest} FROM asked", *some)


def sum_of_tallies(session: Session, owners: DigestArray) -> int:
    """How many records these owners have together, by their tallies; this takes least time in their order."""
    asked, parameters = session.digest_set(owners)
    ((found,),) = session.query(
        f"SELECT coalesce(sum(records), 0) FROM owner WHERE owner IN {asked}", *parameters
    )
    return int(found)


def count_differing_tallies(session: Session) -> int:
    """How many owners have another number of records, by the index, than their tally says."""
    ((differing,),) = session.query(
        "SELECT count(*) FROM owner o"
        " WHERE o.records <> (SELECT count(*) FROM record r WHERE r.owner = o.owner)"
    )
    return int(differing)


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
