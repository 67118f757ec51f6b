"""For whoever waits: how many rows have been read so far."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Progress = Callable[[int], None]
"""Told how many rows have been read so far."""

_OFTEN = 10_000
T = TypeVar("T")


class Watched:
    """Counts rows over all the parts of a long operation, and tells of them now and then.

    >>> told = []
    >>> watched = Watched(told.append)
    >>> sum(1 for _ in watched.each(range(25_000)))
    25000
    >>> watched.add(5)
    >>> told
    [10000, 20000, 25000, 25005]
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self.rows = 0
        self._progress = progress

    def add(self, rows: int) -> None:
        """So many more have been read."""
        self.rows += rows
        if self._progress is not None:
            self._progress(self.rows)

    def each(self, rows: Iterable[T]) -> Iterator[T]:
        """The same rows, counted as they are read."""
        read = 0
        for row in rows:
            yield row
            read += 1
            if read == _OFTEN:
                self.add(read)
                read = 0
        self.add(read)
