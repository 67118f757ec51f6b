"""Progress of long operations: how many rows have been read so far."""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Progress = Callable[[int], None]
"""Called with the number of rows read so far."""

_INTERVAL = 10_000
T = TypeVar("T")


class RowCounter:
    """Counts rows over all parts of a long operation and reports them at intervals.

    >>> reported = []
    >>> counter = RowCounter(reported.append)
    >>> sum(1 for _ in counter.counted(range(25_000)))
    25000
    >>> counter.add(5)
    >>> reported
    [10000, 20000, 25000, 25005]
    """

    def __init__(self, progress: Progress | None = None) -> None:
        self.rows = 0
        self._progress = progress

    def add(self, rows: int) -> None:
        """Count and report this many more rows."""
        self.rows += rows
        if self._progress is not None:
            self._progress(self.rows)

    def counted(self, rows: Iterable[T]) -> Iterator[T]:
        """Yield the same rows and count them."""
        read = 0
        for row in rows:
            yield row
            read += 1
            if read == _INTERVAL:
                self.add(read)
                read = 0
        self.add(read)
