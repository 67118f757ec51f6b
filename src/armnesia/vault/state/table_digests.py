"""Tallies: for each table a number that every row is part of, so that a change by anyone else is noticed.

A tally is the exclusive or of a keyed digest of each row: a row that comes or goes costs one digest, however
many there are. It is stored under a mask that is new each time. Otherwise the digest of a row could be read
off two tallies, and rows be exchanged whose digests cancel out. That is the MSet-XOR-Hash of Clarke, Devadas,
van Dijk, Gassend and Suh (Asiacrypt 2003).
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from armnesia.core.progress import Watched
from armnesia.core.randomness import secret_bytes
from armnesia.vault.keys.keyring import DIGEST_BYTES, Keyring
from armnesia.vault.ledger.ledger import Head
from armnesia.vault.storage.database import Row, Session
from armnesia.vault.storage.schema import COLUMNS, RECORD_COLUMNS


class Tallies(NamedTuple):
    """The tally of each table that holds rows of many; the ledger and certificates prove themselves."""

    record: int = 0
    suppressed: int = 0
    request: int = 0
    source: int = 0
    tree: int = 0

    def toggled(self, ring: Keyring, table: str, rows: Iterable[Row]) -> "Tallies":
        """The tallies after these rows have come into a table, or have gone from it.

        >>> ring = Keyring.create("v-1")
        >>> one = Tallies().toggled(ring, "source", [(1, "a.csv")])
        >>> one == Tallies(), one.toggled(ring, "source", [(1, "a.csv")]) == Tallies()
        (False, True)
        """
        total = getattr(self, table)
        digests = ring.hasher(f"tally {table}".encode())
        for row in rows:
            digest = digests.copy()
            digest.update(ascii(row).encode())  # of numbers, text, bytes and None: no two rows read alike
            total ^= int.from_bytes(digest.digest())
        return self._replace(**{table: total})

    def masked(self, ring: Keyring, head: Head) -> str:
        """The tallies as they are stored: a nonce, and each under a mask of its own."""
        nonce = secret_bytes(DIGEST_BYTES)
        return "".join(
            [nonce.hex(), *(f"{value:0{2 * DIGEST_BYTES}x}" for value in self._xor(ring, nonce, head))]
        )

    @classmethod
    def unmasked(cls, text: str, ring: Keyring, head: Head) -> "Tallies":
        """The tallies that `masked` made this text of, at the same head of the ledger.

        >>> ring, head = Keyring.create("v-1"), Head(0, "ab" * 32)
        >>> Tallies.unmasked(Tallies(1, 2, 3, 4, 5).masked(ring, head), ring, head)
        Tallies(record=1, suppressed=2, request=3, source=4, tree=5)
        """
        size = DIGEST_BYTES
        values = bytes.fromhex(text)
        if len(values) != size * (1 + len(cls._fields)):
            raise ValueError(f"tallies must be {size * (1 + len(cls._fields))} bytes; got {len(values)}")
        nonce, *masked = (values[at : at + size] for at in range(0, len(values), size))
        return cls(*cls(*map(int.from_bytes, masked))._xor(ring, nonce, head))

    def _xor(self, ring: Keyring, nonce: bytes, head: Head) -> list[int]:
        mask = ring.hasher(b"tally mask")
        mask.update(nonce + head.hash.encode())
        masked = []
        for table, value in zip(self._fields, self, strict=True):
            own = mask.copy()
            own.update(table.encode())
            masked.append(value ^ int.from_bytes(own.digest()))
        return masked


class Seen(Protocol):
    """Somebody who looks at the records as they go by."""

    def each(self, rows: Iterable[Row]) -> Iterator[Row]:
        """The same rows."""


def tallied(
    session: Session, ring: Keyring, mode: str, watched: Watched | None = None, seen: Seen | None = None
) -> Tallies:
    """The tallies of the tables as they are, row by row; `seen` looks at the records on the way."""
    tallies, watched = Tallies(), watched or Watched()
    for table, columns in {"record": RECORD_COLUMNS[mode], **COLUMNS}.items():
        rows = watched.each(session.stream(f"SELECT {columns} FROM {table}"))
        if seen is not None and table == "record":
            rows = seen.each(rows)
        tallies = tallies.toggled(ring, table, rows)
    return tallies
