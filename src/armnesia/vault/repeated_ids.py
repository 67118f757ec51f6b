"""Finds an id that stands for two different decisions, in memory that does not grow with the source."""

import hashlib
import sqlite3
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from armnesia.randomness import secret_bytes


class RepeatedIds:
    """Notes the id and the decision of every row, and tells at the end whether any two contradict each other.

    The notes are keyed digests in a private database that moves to a nameless temporary file when it grows;
    nobody keeps the key. They are only appended, and sorted once at the end: an index kept in order all the
    time would cost several times as much.

    >>> with RepeatedIds() as seen:
    ...     seen.note(["a", "b"], [(0, 5, None), (1, 5, "ann")], first=0)
    ...     seen.note(["a", "b"], [(0, 5, None), (1, 6, "ann")], first=2)
    ...     seen.first_contradiction()
    (1, 3)
    """

    def __init__(self) -> None:
        self._key = secret_bytes(32)

    def __enter__(self) -> Self:
        self._database = sqlite3.connect("", isolation_level=None)
        for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -16384"):
            self._database.execute(f"PRAGMA {setting}")
        self._database.execute("CREATE TABLE noted (position INTEGER PRIMARY KEY, id BLOB, decision BLOB)")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def note(self, ids: Iterable[str], decisions: Iterable[tuple[int, int, str | None]], first: int) -> None:
        """Remember rows that follow each other from position `first` on."""
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT INTO noted VALUES (?, ?, ?)",
            (
                (position, self._digest(id_), self._digest(repr(decision)))
                for position, (id_, decision) in enumerate(zip(ids, decisions, strict=True), first)
            ),
        )
        self._database.execute("COMMIT")

    def first_contradiction(self) -> tuple[int, int] | None:
        """Find two rows that share an id and differ in their decision, or None."""
        found = self._database.execute(
            "SELECT id, min(position) AS first FROM noted GROUP BY id"
            " HAVING min(decision) <> max(decision) ORDER BY first LIMIT 1"
        ).fetchone()
        if found is None:
            return None
        id_, first = found
        ((other,),) = self._database.execute(
            "SELECT min(position) FROM noted WHERE id = ?1"
            " AND decision <> (SELECT decision FROM noted WHERE position = ?2)",
            (id_, first),
        )
        return first, other

    def _digest(self, text: str) -> bytes:
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16, key=self._key).digest()
