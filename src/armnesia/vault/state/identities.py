"""Which row is which: identities that are the same whenever, and from whichever file, a row comes in.

A row is known by its id, or by its whole content and how many rows of the same content came before it in its
source. So the same file twice, or a file that overlaps an earlier one, brings nothing new, and rows that are
genuinely there several times stay apart.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Self

from armnesia.logs.source import Rows


class Occurrences:
    """Counts how often each digest has been seen in one source, in memory that does not grow with it.

    The counts stand in a private SQLite database that moves to a nameless temporary file when it grows; it
    holds digests and counts only.

    >>> with Occurrences() as occurrences:
    ...     occurrences.number([b"x", b"y", b"x"]), occurrences.number([b"x", b"z"])
    ([0, 0, 1], [2, 0])
    """

    def __enter__(self) -> Self:
        self._database = sqlite3.connect("", isolation_level=None)
        for setting in (
            "journal_mode = OFF",
            "synchronous = OFF",
            "temp_store = MEMORY",
            "cache_size = -65536",
        ):
            self._database.execute(f"PRAGMA {setting}")
        for table in ("seen", "temp.chunk"):
            self._database.execute(
                f"CREATE TABLE {table} (digest BLOB PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID"
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def number(self, digests: list[bytes]) -> list[int]:
        """Give each digest its ordinal, from 0, among the equal ones of this and all earlier calls."""
        # A chunk at a time and in order: so that each page of the index is visited once a chunk.
        ordered = sorted(Counter(digests).items())
        self._database.execute("BEGIN")
        self._database.executemany("INSERT INTO chunk VALUES (?, ?)", ordered)
        seen = dict(self._database.execute("SELECT digest, seen.number FROM chunk JOIN seen USING (digest)"))
        self._database.execute(
            "INSERT INTO seen SELECT digest, number FROM chunk WHERE true ORDER BY digest"
            " ON CONFLICT DO UPDATE SET number = number + excluded.number"
        )
        self._database.execute("DELETE FROM chunk")
        self._database.execute("COMMIT")
        ordinals = []
        for digest in digests:
            ordinal = seen.get(digest, 0)
            seen[digest] = ordinal + 1
            ordinals.append(ordinal)
        return ordinals


def identities(
    record_identity: Callable[..., bytes], rows: Rows, occurrences: Occurrences | None
) -> list[bytes]:
    """Give each row of a chunk its identity, by the keyring's `record_identity`.

    `occurrences` belongs to one reading of one source, chunk after chunk; rows with ids need none.
    The rows of one user alone have the same identities as among all rows: equal rows have the same user.

    >>> joined = lambda *parts: "/".join(parts).encode()
    >>> rows = Rows(range(2), [0, 0], [5, 5], [None, None], None, ["same", "same"])
    >>> with Occurrences() as occurrences:
    ...     identities(joined, rows, occurrences)
    [b'content/same/0', b'content/same/1']
    >>> identities(joined, Rows(range(1), [0], [5], [None], ["a-17"], None), None)
    [b'id/a-17']
    """
    if rows.ids is not None:
        return [record_identity("id", id_) for id_ in rows.ids]
    if rows.contents is None or occurrences is None:
        raise ValueError("rows without ids need their contents and the occurrences of their source")
    digests = [record_identity("content", content) for content in rows.contents]
    ordinals = occurrences.number(digests)
    return [
        record_identity("content", content, str(ordinal))
        for content, ordinal in zip(rows.contents, ordinals, strict=True)
    ]
