"""The tables of the service: who may call it, and requests that it was sent."""

from armnesia.vault.storage.database import Row, Session, Statement
from armnesia.vault.storage.schema import (
    SERVICE_TABLES,
    SUBJECT_REQUEST_COLUMNS,
    TOKEN_COLUMNS,
    SubjectRequestRow,
    TokenRow,
)


def create_service_tables(session: Session) -> None:
    """Create the tables of the service in a vault of a version without them."""
    for table in SERVICE_TABLES:
        session.execute(table.statement(session.dialect.blob))


def read_tokens(session: Session) -> list[TokenRow]:
    """All tokens, by their numbers."""
    found = session.query(f"SELECT {TOKEN_COLUMNS} FROM token ORDER BY number")
    return [
        TokenRow(number, _as_bytes(digest), facts, _as_bytes(seal), last_used, uses)
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
    own = None if identity is None else _as_bytes(identity)
    return SubjectRequestRow(id_, status, facts, own, sequence, _as_bytes(seal))


def _as_bytes(value: object) -> bytes:
    """A value of a row; none where a damaged table has another one, which no seal fits."""
    return bytes(value) if isinstance(value, bytes | memoryview) else b""


def put_subject_request(row: SubjectRequestRow) -> Statement:
    """Store a request of a controller, or put it in the old one's place."""
    return _PUT_SUBJECT_REQUEST, row


_PUT_SUBJECT_REQUEST = (
    f"INSERT INTO subject_request ({SUBJECT_REQUEST_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET status = excluded.status, facts = excluded.facts,"
    " identity = excluded.identity, sequence = excluded.sequence, seal = excluded.seal"
)
