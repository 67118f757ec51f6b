"""Digests of whole tables, so that a row added, changed or removed by anything but armnesia is noticed.

A table's digest is the exclusive or of a keyed digest of each row: a row that comes or goes costs one digest,
whatever the size of the table. It is stored under a mask that is new each time; otherwise the digest of a row
could be derived from two stored values, and rows exchanged whose digests cancel out. That is the
MSet-XOR-Hash of Clarke, Devadas, van Dijk, Gassend and Suh (Asiacrypt 2003).
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, Self

from armnesia.core.progress import RowCounter
from armnesia.core.randomness import secret_bytes
from armnesia.vault.keys.keyring import DIGEST_BYTES, Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.storage import tables
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.digest_arrays import xor_of
from armnesia.vault.storage.schema import COLUMNS, RecordLayout


def row_texts(rows: Iterable[Row]) -> list[bytes]:
    """Rows as they are digested: of numbers, text, bytes and None, so that distinct rows differ.

    >>> row_texts([(b"1", None, 0, 5)])
    [b"(b'1', None, 0, 5)"]
    """
    return [ascii(row).encode() for row in rows]


_LISTS = ("suppressed", "request", "tree")


class TableDigests(NamedTuple):
    """The digest of each table with many rows; the ledger and the certificates authenticate themselves."""

    record: int = 0
    suppressed: int = 0
    request: int = 0
    source: int = 0
    tree: int = 0
    decision: int = 0
    """Of the decisions; older versions have none."""

    def has_lists_of(self, other: "TableDigests") -> bool:
        """Whether the tables are the same that cannot be made again from anything else in the vault."""
        return all(getattr(self, table) == getattr(other, table) for table in _LISTS)

    def update(self, keyring: Keyring, table: str, rows: Iterable[Row]) -> "TableDigests":
        """The digests after these rows were added to a table, or removed from it.

        >>> keyring = Keyring.create("v-1")
        >>> one = TableDigests().update(keyring, "source", [(1, "a.csv")])
        >>> one == TableDigests(), one.update(keyring, "source", [(1, "a.csv")]) == TableDigests()
        (False, True)
        """
        total = getattr(self, table)
        purpose = f"tally {table}".encode()
        newest = prepared = keyring.hasher(purpose)
        rotated_below = keyring.rotated_below if table == "record" else None
        older = None if rotated_below is None else keyring.hasher(purpose, before=1)
        for row in rows:
            if older is not None:
                prepared = newest if row[0] < rotated_below else older
            digest = prepared.copy()
            digest.update(ascii(row).encode())  # as `row_texts`, of rows that come one by one
            total ^= int.from_bytes(digest.digest())
        return self._replace(**{table: total})

    def with_records(self, keyring: Keyring, identities: Sequence[bytes], texts: Sequence[bytes]) -> Self:
        """As `update`, of records whose texts are there already.

        >>> keyring = Keyring.create("v-1")
        >>> rows = [(b"1", None, 0, 5), (b"2", b"ann", 1, 7)]
        >>> many = TableDigests().with_records(keyring, [b"1", b"2"], row_texts(rows))
        >>> many == TableDigests().update(keyring, "record", rows)
        True
        """
        purpose, below = b"tally record", keyring.rotated_below
        if below is None:
            return self._replace(record=self.record ^ xor_of(keyring.digests(purpose, texts)))
        pairs = list(zip(identities, texts, strict=True))
        newest = keyring.digests(purpose, [text for identity, text in pairs if identity < below])
        older = keyring.digests(purpose, [text for identity, text in pairs if identity >= below], before=1)
        return self._replace(record=self.record ^ xor_of([*newest, *older]))

    def masked(self, keyring: Keyring, head: Head) -> str:
        """The digests as they are stored: a nonce, then each digest under its own mask."""
        nonce = secret_bytes(DIGEST_BYTES)
        # Digests that are not known while a vault is rebuilt are negative, which bytes could not be.
        return "".join(
            [nonce.hex(), *(f"{value:0{2 * DIGEST_BYTES}x}" for value in self._xor(keyring, nonce, head))]
        )

    @classmethod
    def unmasked(cls, text: str, keyring: Keyring, head: Head) -> "TableDigests":
        """Read what `masked` wrote at the same head of the ledger.

        >>> keyring, head = Keyring.create("v-1"), Head(0, "ab" * 32)
        >>> TableDigests.unmasked(TableDigests(1, 2, 3, 4, 5, 6).masked(keyring, head), keyring, head)
        TableDigests(record=1, suppressed=2, request=3, source=4, tree=5, decision=6)
        """
        size = DIGEST_BYTES
        values = bytes.fromhex(text)
        nonce, *masked = (values[at : at + size] for at in range(0, len(values), size))
        if len(values) % size or len(masked) not in (len(cls._fields), len(cls._fields) - 1):
            raise ValueError(f"table digests have {size * (1 + len(cls._fields))} bytes; got {len(values)}")
        found = cls(*cls(*map(int.from_bytes, masked))._xor(keyring, nonce, head))
        return found if len(masked) == len(cls._fields) else found._replace(decision=0)

    def _xor(self, keyring: Keyring, nonce: bytes, head: Head) -> list[int]:
        mask = keyring.hasher(b"tally mask")
        mask.update(nonce + head.hash.encode())
        masked = []
        for table, value in zip(self._fields, self, strict=True):
            own = mask.copy()
            own.update(table.encode())
            masked.append(value ^ int.from_bytes(own.digest()))
        return masked


class RowObserver(Protocol):
    """Sees every record while the digests are computed, so that the table is read once."""

    def observe(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the same rows."""


def compute_digests(
    session: Session,
    keyring: Keyring,
    layout: RecordLayout,
    *,
    counter: RowCounter | None = None,
    observers: Sequence[RowObserver] = (),
) -> TableDigests:
    """Compute the digests from the rows that the tables hold now; that of the decisions is left out."""
    counter = counter or RowCounter()
    if not layout.holds_rows:
        return compute_list_digests(session, keyring, counter)
    records = counter.counted(tables.stream_records(session, layout))
    for observer in observers:
        records = observer.observe(records)
    digests = TableDigests().update(keyring, "record", records)
    lists = compute_list_digests(session, keyring, counter)
    return lists._replace(record=digests.record)


def compute_list_digests(
    session: Session, keyring: Keyring, counter: RowCounter | None = None
) -> TableDigests:
    """Compute the digests of the lists: of all tables but the records and the decisions."""
    counter, digests = counter or RowCounter(), TableDigests()
    for table in COLUMNS:
        digests = digests.update(keyring, table, counter.counted(tables.stream_table(session, table)))
    return digests
