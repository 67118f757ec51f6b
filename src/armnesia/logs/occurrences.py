"""Counts how often each id, or each content, has occurred in a source, in memory that does not grow with it.

The counts are held as sorted runs of digests, as in a log-structured merge tree: each chunk of rows adds one
run, runs of similar size are merged, and large runs are in unnamed temporary files, mapped into memory. A
look-up is a binary search in each of O(log n) runs. Mapped pages are given back after each look-up and each
part of a merge; otherwise they would count as memory of the process until the operating system needs them.
"""

import mmap
import tempfile
from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from armnesia.core.arrays import IntArray

_IN_MEMORY = 1 << 18
"""Runs of more digests are in a file."""
_MERGED_RUNS = 4
"""How many runs of similar length are merged into one."""
_PART = 1 << 17
"""How many digests of the longest run are in memory while it is merged."""
_DISCARD = getattr(mmap, "MADV_DONTNEED", None)
"""The advice to give pages back; what was written to them stays in the file. Not every system has it."""

_SECOND_HALF, _COUNT, _DECISION, _POSITION = range(4)
"""The columns of entries; without decisions there are only the first two."""


class _Run(NamedTuple):
    """Digests in ascending order; no digest is in two runs."""

    digests: IntArray
    """The first half of each digest, 64 bits."""
    entries: IntArray
    """The second half, how often the text has occurred, and the decision and position of its first row."""
    mappings: tuple[mmap.mmap, ...] = ()
    """The files of the arrays, if they are in files."""

    def release_pages(self) -> None:
        """Give the pages of the files back to the operating system."""
        if _DISCARD is not None:
            for mapping in self.mappings:
                mapping.madvise(_DISCARD)


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

    def number(self, texts: Sequence[str]) -> list[int]:
        """Give each text its ordinal, from 0, among the equal ones of this and all earlier calls."""
        ordinals, _ = self._add(texts, np.zeros((len(texts), 2), np.int64))
        numbers: list[int] = ordinals.tolist()
        return numbers

    def number_decisions(
        self, ids: Sequence[str], decisions: Iterable[Hashable], positions: Sequence[int]
    ) -> tuple[list[int], tuple[int, int] | None]:
        """Number ids as `number` does, and find the first row that contradicts an earlier one with its id.

        The second result is the position of the first row with the id, and the position of the row that has
        another decision; None if there is none. Not to be mixed with `number`.

        >>> occurrences = Occurrences()
        >>> occurrences.number_decisions(["a", "b"], [(0, 5), (1, 5)], range(0, 2))
        ([0, 0], None)
        >>> occurrences.number_decisions(["a", "b"], [(0, 5), (1, 6)], range(2, 4))
        ([1, 1], (1, 3))
        """
        rows = np.zeros((len(ids), 4), np.int64)
        rows[:, _DECISION] = np.fromiter(map(hash, decisions), np.int64, len(ids))
        rows[:, _POSITION] = positions
        ordinals, firsts = self._add(ids, rows)
        differs = np.flatnonzero(rows[:, _DECISION] != firsts[:, _DECISION])
        contradiction = None
        if differs.size:
            row = differs[rows[differs, _POSITION].argmin()]
            contradiction = int(firsts[row, _POSITION]), int(rows[row, _POSITION])
        return ordinals.tolist(), contradiction

    def _add(self, texts: Sequence[str], rows: IntArray) -> tuple[IntArray, IntArray]:
        """Count the texts; return the ordinal of each, and the entry of its first occurrence."""
        n = len(texts)
        digests = np.fromiter(map(hash, texts), np.int64, n)
        rows[:, _SECOND_HALF] = np.fromiter((hash(text + "\0") for text in texts), np.int64, n)
        order, starts = _grouped(digests, rows[:, _SECOND_HALF])
        first_rows = order[starts]
        sizes = np.diff(starts, append=n)
        known = self._count(digests[first_rows], rows[first_rows], sizes)
        group = np.empty(n, np.int64)
        group[order] = np.repeat(np.arange(len(starts)), sizes)
        place = np.empty(n, np.int64)
        place[order] = np.arange(n) - np.repeat(starts, sizes)
        entries = known[group]
        return entries[:, _COUNT] + place, entries

    def _count(self, digests: IntArray, entries: IntArray, sizes: IntArray) -> IntArray:
        """Add occurrences of distinct texts; return their entries from before, a new one with count 0."""
        known = entries.copy()
        is_new = np.ones(len(digests), bool)
        for run in self._runs:
            asked, places = _look_up(run, digests, entries[:, _SECOND_HALF])
            known[asked] = run.entries[places]
            run.entries[places, _COUNT] += sizes[asked]
            run.release_pages()
            is_new[asked] = False
        added = entries[is_new]
        added[:, _COUNT] = sizes[is_new]
        if added.size:
            self._runs.append(_Run(digests[is_new], added))
        while len(self._runs) >= _MERGED_RUNS and (
            len(self._runs[-_MERGED_RUNS].digests) < _MERGED_RUNS * len(self._runs[-1].digests)
        ):
            self._runs[-_MERGED_RUNS:] = [_merged(self._runs[-_MERGED_RUNS:])]
        return known


def _grouped(digests: IntArray, second_halves: IntArray) -> tuple[IntArray, IntArray]:
    """Bring equal digests together, in the order of rows: the order, and where each digest begins in it."""
    order = np.argsort(digests, kind="stable")
    first, second = digests[order], second_halves[order]
    same_first = first[1:] == first[:-1]
    same = same_first & (second[1:] == second[:-1])
    if not np.array_equal(same, same_first):  # different digests with the same first half
        order = np.lexsort((second_halves, digests))
        first, second = digests[order], second_halves[order]
        same = (first[1:] == first[:-1]) & (second[1:] == second[:-1])
    begins = np.ones(len(order), bool)
    begins[1:] = ~same
    return order, np.flatnonzero(begins)


def _look_up(run: _Run, digests: IntArray, second_halves: IntArray) -> tuple[IntArray, IntArray]:
    """Find digests in a run: which of them are there, and where."""
    last = len(run.digests) - 1
    places = np.minimum(np.searchsorted(run.digests, digests), last)
    asked = np.flatnonzero(run.digests[places] == digests)
    places = places[asked]
    while True:
        other = run.entries[places, _SECOND_HALF] != second_halves[asked]
        if not other.any():
            return asked, places
        places = places + other  # different digests with the same first half: try the next one
        inside = np.minimum(places, last)
        there = (places <= last) & (run.digests[inside] == digests[asked])
        asked, places = asked[there], places[there]


def _merged(runs: list[_Run]) -> _Run:
    """Merge runs, a part of the digests at a time."""
    merged = _new_run(sum(len(run.digests) for run in runs), runs[0].entries.shape[1])
    longest = max((run.digests for run in runs), key=len)
    bounds = [
        [0, *np.searchsorted(run.digests, longest[_PART::_PART]).tolist(), len(run.digests)] for run in runs
    ]
    end = 0
    for part in range(len(bounds[0]) - 1):
        cuts = [slice(*bound[part : part + 2]) for bound in bounds]
        digests = np.concatenate([run.digests[cut] for run, cut in zip(runs, cuts, strict=True)])
        entries = np.concatenate([run.entries[cut] for run, cut in zip(runs, cuts, strict=True)])
        order = np.argsort(digests, kind="stable")
        start, end = end, end + len(order)
        merged.digests[start:end], merged.entries[start:end] = digests[order], entries[order]
        for run in (*runs, merged):
            run.release_pages()
    return merged


def _new_run(length: int, width: int) -> _Run:
    """Make a run of unset digests, with so many numbers per entry."""
    if length <= _IN_MEMORY:
        return _Run(np.empty(length, np.int64), np.empty((length, width), np.int64))
    mappings = tuple(_mapped_file(length * columns * 8) for columns in (1, width))
    digests, entries = (np.frombuffer(mapping, np.int64) for mapping in mappings)
    return _Run(digests, entries.reshape(length, width), mappings)


def _mapped_file(size: int) -> mmap.mmap:
    with tempfile.TemporaryFile() as file:  # the mapping outlives the name and the descriptor
        file.truncate(size)
        return mmap.mmap(file.fileno(), size)
