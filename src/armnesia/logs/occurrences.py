"""Counts how often each id, or each content, has occurred in a source, in memory that does not grow with it.

The counts are held as sorted runs of digests, as in a log-structured merge tree: each chunk of rows adds one
run, runs of similar size are merged, and large runs are in unnamed temporary files, mapped into memory, whose
pages the operating system can reclaim. A look-up is a binary search in each of O(log n) runs.
"""

import tempfile
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from armnesia.core.arrays import IntArray

_IN_MEMORY = 1 << 20
"""Runs of more digests are in a file."""
_MERGED_AT_ONCE = 1 << 18
"""How many digests are in memory while two runs are merged."""

_ENTRY = np.dtype(
    [("second_half", np.int64), ("count", np.int64), ("decision", np.int64), ("position", np.int64)]
)


class _Run(NamedTuple):
    """Digests in ascending order; no digest is in two runs."""

    digests: IntArray
    """The first half of each digest, 64 bits."""
    entries: NDArray[Any]
    """The second half, how often the text has occurred, and the decision and position of its first row."""

    @classmethod
    def of_length(cls, length: int) -> "_Run":
        return cls(_array(length, np.dtype(np.int64)), _array(length, _ENTRY))


class Occurrences:
    """The occurrences of texts in one reading of a source, chunk by chunk.

    A digest is two of Python's own hashes, which are keyed anew in each process: two texts have the same
    digest with probability 2⁻¹²⁸, and the temporary files say nothing without the key.

    >>> occurrences = Occurrences()
    >>> occurrences.number(["x", "y", "x"]), occurrences.number(["x", "z"])
    ([0, 0, 1], [2, 0])
    """

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self.contradiction: tuple[int, int] | None = None
        """The positions of two rows with the same text and different decisions; of all such, the earliest."""

    def number(
        self,
        texts: Sequence[str],
        decisions: Iterable[Hashable] | None = None,
        positions: Sequence[int] | None = None,
    ) -> list[int]:
        """Give each text its ordinal, from 0, among the equal ones of this and all earlier calls.

        With decisions, rows with the same text must have the same decision; see `contradiction`.
        """
        n = len(texts)
        digests = np.fromiter(map(hash, texts), np.int64, n)
        rows = np.zeros(n, _ENTRY)
        rows["second_half"] = np.fromiter((hash(text + "\0") for text in texts), np.int64, n)
        if decisions is not None:
            rows["decision"] = np.fromiter(map(hash, decisions), np.int64, n)
        rows["position"] = range(n) if positions is None else positions
        order = np.lexsort((rows["second_half"], digests))  # stable: equal texts stay in the order of rows
        digests, rows = digests[order], rows[order]
        same = (digests[1:] == digests[:-1]) & (rows["second_half"][1:] == rows["second_half"][:-1])
        starts = np.flatnonzero(np.concatenate([[True] * min(n, 1), ~same]))
        sizes = np.diff(starts, append=n)
        known = self._counted(digests[starts], rows[starts], sizes)
        group = np.repeat(np.arange(len(starts)), sizes)
        ordinals = np.empty(n, np.int64)
        ordinals[order] = known["count"][group] + np.arange(n) - starts[group]
        differs = np.flatnonzero(rows["decision"] != known["decision"][group])
        if differs.size and self.contradiction is None:
            first = differs[rows["position"][differs].argmin()]
            self.contradiction = int(known["position"][group[first]]), int(rows["position"][first])
        return ordinals.tolist()

    def _counted(self, digests: IntArray, firsts: NDArray[Any], sizes: IntArray) -> NDArray[Any]:
        """Count distinct texts; return their entries from before, with count 0 for a new text."""
        known = firsts.copy()
        new = np.arange(len(digests))
        for run in self._runs:
            places, found = _look_up(run, digests[new], firsts["second_half"][new])
            known[new[found]] = run.entries[places]
            run.entries["count"][places] += sizes[new[found]]
            new = new[~found]
        if new.size:
            added = firsts[new]
            added["count"] = sizes[new]
            self._runs.append(_Run(digests[new], added))
            while len(self._runs) > 1 and len(self._runs[-2].digests) < 2 * len(self._runs[-1].digests):
                self._runs.append(_merged(self._runs.pop(), self._runs.pop()))
        return known


def _look_up(run: _Run, digests: IntArray, second_halves: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Find digests in a run: the places of those that are there, and which these are."""
    last = len(run.digests) - 1
    places = np.searchsorted(run.digests, digests)
    while True:
        inside = np.minimum(places, last)
        same = (places <= last) & (run.digests[inside] == digests)
        found = same & (run.entries["second_half"][inside] == second_halves)
        if np.array_equal(found, same):
            return places[found], found
        places = places + (same & ~found)  # several digests share their first half: try the next one


def _merged(one: _Run, two: _Run) -> _Run:
    """Merge two runs, a part at a time."""
    large, small = sorted((one, two), key=lambda run: len(run.digests), reverse=True)
    merged = _Run.of_length(len(large.digests) + len(small.digests))
    ends = np.arange(_MERGED_AT_ONCE, len(large.digests), _MERGED_AT_ONCE)
    ends_of_small = np.searchsorted(small.digests, large.digests[ends])
    start = start_of_small = 0
    for end, end_of_small in zip(
        [*ends, len(large.digests)], [*ends_of_small, len(small.digests)], strict=True
    ):
        parts = (slice(start, end), slice(start_of_small, end_of_small))
        digests, entries = (
            np.concatenate([of_large[parts[0]], of_small[parts[1]]])
            for of_large, of_small in zip(large, small, strict=True)
        )
        order = np.argsort(digests, kind="stable")
        place = slice(start + start_of_small, end + end_of_small)
        merged.digests[place], merged.entries[place] = digests[order], entries[order]
        start, start_of_small = end, end_of_small
    return merged


def _array(length: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    if length <= _IN_MEMORY:
        return np.empty(length, dtype)
    with tempfile.TemporaryFile() as file:  # the mapping outlives the name and the descriptor
        return np.memmap(file, dtype, "w+", shape=(length,))
