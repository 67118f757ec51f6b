"""The ledger and the certificates."""

from collections.abc import Iterator, Sequence

from armnesia.vault.storage.database import Row, Session, Statement


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
    return has_entry_since(session, sequence, "restore", "rebuild")


def has_entry_since(session: Session, sequence: int, *kinds: str) -> bool:
    """Whether entries after this one may be of these kinds."""
    condition = " OR ".join(["entry LIKE ?"] * len(kinds))
    found = session.query(
        f"SELECT 1 FROM ledger WHERE sequence > ? AND ({condition}) LIMIT 1",
        sequence,
        *(f'%"kind":"{kind}"%' for kind in kinds),
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
