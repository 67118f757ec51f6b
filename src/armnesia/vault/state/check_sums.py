"""Check-sums of tables, so that a row added, changed or removed by anything but armnesia is noticed.

A table's check-sum is the exclusive or of a keyed digest of each row: a row that comes or goes costs one
digest, whatever the size of the table. It is stored under a mask that is new each time; otherwise the digest
of a row could be derived from two stored values, and rows exchanged whose digests cancel out. That is the
MSet-XOR-Hash of Clarke, Devadas, van Dijk, Gassend and Suh (Asiacrypt 2003).
"""

from collections.abc import Callable, Iterable
from functools import reduce
from operator import xor
from typing import Any, NamedTuple

from armnesia.core.progress import RowCounter
from armnesia.core.randomness import secret_bytes
from armnesia.vault.db import statements
from armnesia.vault.db.database import Row, Session
from armnesia.vault.db.schema import TABLES, RecordRow
from armnesia.vault.keys.keyring import DIGEST_BYTES, Keyring

_WIDTHS = {table.name: len(table.columns) for table in TABLES.values()} | {"token": 3}
"""How many columns have a check-sum: not how often a token was used, which changes without a new state."""


def _purpose(table: str) -> bytes:
    """The purpose of the digests of a table's rows, which has at most 16 bytes."""
    return f"row {table}".encode()[:16]


class CheckSums(NamedTuple):
    """The check-sum of each table but the state and the ledger, whose root the state has."""

    record: int = 0
    suppressed: int = 0
    source: int = 0
    people: int = 0
    decision: int = 0
    token: int = 0
    subject_request: int = 0

    def update(self, keyring: Keyring, table: str, rows: Iterable[Row]) -> "CheckSums":
        """The check-sums after these rows were added to a table, or removed from it.

        >>> keyring = Keyring.create("v-1")
        >>> one = CheckSums().update(keyring, "source", [(1, "a.csv")])
        >>> one == CheckSums(), one.update(keyring, "source", [(1, "a.csv")]) == CheckSums()
        (False, True)
        """
        width = _WIDTHS[table]
        form = b"(%b)" % b", ".join([b"%a"] * width)  # as `ascii` writes a row, in less time
        texts = (form % row[:width] for row in rows)
        digests = map(int.from_bytes, keyring.digests(_purpose(table), texts))
        return self._replace(**{table: reduce(xor, digests, getattr(self, table))})

    def has(self, keyring: Keyring, table: str, rows: Iterable[Row]) -> bool:
        """Whether these are all rows that armnesia has stored in a table.

        >>> keyring = Keyring.create("v-1")
        >>> CheckSums().update(keyring, "source", [(1, "a.csv")]).has(keyring, "source", [(1, "b.csv")])
        False
        """
        return bool(getattr(CheckSums().update(keyring, table, rows), table) == getattr(self, table))

    def differing(self, others: "CheckSums") -> set[str]:
        """The tables whose check-sums are not these."""
        return {table for table in self._fields if getattr(self, table) != getattr(others, table)}

    def masked(self, keyring: Keyring, commits: int) -> str:
        """The check-sums as they are stored: a nonce, then each under its own mask."""
        nonce = secret_bytes(DIGEST_BYTES)
        return "".join(
            [nonce.hex(), *(f"{value:0{2 * DIGEST_BYTES}x}" for value in self._xor(keyring, nonce, commits))]
        )

    @classmethod
    def unmasked(cls, text: str, keyring: Keyring, commits: int) -> "CheckSums":
        """Read what `masked` wrote at the same commit.

        >>> keyring, check_sums = Keyring.create("v-1"), CheckSums(*range(7))
        >>> CheckSums.unmasked(check_sums.masked(keyring, 3), keyring, 3) == check_sums
        True
        """
        size = DIGEST_BYTES
        values = bytes.fromhex(text)
        nonce, *masked = (values[at : at + size] for at in range(0, len(values), size))
        if len(values) % size or len(masked) != len(cls._fields):
            raise ValueError(f"check-sums have {size * (1 + len(cls._fields))} bytes; got {len(values)}")
        return cls(*cls(*map(int.from_bytes, masked))._xor(keyring, nonce, commits))

    def _xor(self, keyring: Keyring, nonce: bytes, commits: int) -> list[int]:
        texts = (b"%b%d%b" % (nonce, commits, table.encode()) for table in self._fields)
        masks = keyring.digests(b"row mask", texts)
        return [value ^ int.from_bytes(mask) for value, mask in zip(self, masks, strict=True)]


def compute_check_sums(
    session: Session,
    keyring: Keyring,
    *,
    counter: RowCounter | None = None,
    observe: Callable[[Iterable[RecordRow]], Iterable[RecordRow]] = lambda rows: rows,
    records: bool = True,
) -> CheckSums:
    """Compute the check-sums from the rows that the tables hold now.

    Every record passes by `observe`, so that the table is read once; or not at all, without `records`.
    """
    check_sums, counter = CheckSums(), counter or RowCounter()
    for rows, table in TABLES.items():
        if table.name in CheckSums._fields and (records or rows is not RecordRow):
            found: Iterable[Any] = counter.counted(statements.stream(session, rows))
            found = observe(found) if rows is RecordRow else found
            check_sums = check_sums.update(keyring, table.name, found)
    return check_sums
