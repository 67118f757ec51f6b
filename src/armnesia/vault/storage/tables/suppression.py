"""The suppression list and the answered requests, by digest."""

from collections.abc import Iterator, Sequence

from armnesia.vault.storage.database import Row, Session, Statement
from armnesia.vault.storage.digest_arrays import DigestArray
from armnesia.vault.storage.schema import COLUMNS
from armnesia.vault.storage.tables.queries_by_key import KEYS_AT_ONCE, query_by_keys


def read_suppression(session: Session, digests: Sequence[bytes]) -> Iterator[Row]:
    """The rows of both lists with these digests: (table, digest, kind or opening, number, readmitted)."""
    for start in range(0, len(digests), KEYS_AT_ONCE):
        some = digests[start : start + KEYS_AT_ONCE]
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
    found = query_by_keys(
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


def read_suppressed_both_ways(session: Session, digests: DigestArray) -> tuple[list[Row], list[Row]]:
    """Rows with these digests, each with its kind: by reading all of the list, and by its index, on SQLite.

    What the index leads to is read from the list itself: a damaged one may lead to the row of another digest.
    """
    wanted, parameters = session.digest_set(digests)
    by_scan = f"SELECT digest, kind FROM suppressed NOT INDEXED WHERE digest IN {wanted} ORDER BY digest"
    by_index = (
        "SELECT own.digest, own.kind FROM suppressed AS found"
        " JOIN suppressed AS own NOT INDEXED ON own.rowid = found.rowid"
        f" WHERE found.digest IN {wanted} ORDER BY own.digest"
    )
    return session.query(by_scan, *parameters), session.query(by_index, *parameters)


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
