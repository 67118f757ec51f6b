"""Finds an id that stands for two different decisions, in memory that does not grow with the source."""

import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

_BUCKETS = 64
"""Equal ids fall into the same bucket; at the end one bucket at a time is in memory, sorted."""

_IN_MEMORY = 1 << 16
"""So many bytes of a bucket need no file: making 64 files takes longer than reading a small source."""

_NOTE = np.dtype([("id", np.int64), ("id_too", np.int64), ("decision", np.int64), ("position", np.int64)])


class RepeatedIds:
    """Notes the id and the decision of every row, and tells at the end whether any two contradict each other.

    The notes stand in nameless temporary files, if they are many. They are Python's own hashes, which are
    keyed anew in each process: an id is taken for another one with a chance of 2⁻¹²⁸.

    >>> with RepeatedIds() as seen:
    ...     seen.note(["a", "b"], [(0, 5, None), (1, 5, "ann")], range(0, 2))
    ...     seen.note(["a", "b"], [(0, 5, None), (1, 6, "ann")], range(2, 4))
    ...     seen.first_contradiction()
    (1, 3)
    """

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        made = (tempfile.SpooledTemporaryFile(_IN_MEMORY) for _ in range(_BUCKETS))  # noqa: SIM115 (the stack does)
        self._files = [self._stack.enter_context(file) for file in made]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def note(
        self, ids: list[str], decisions: Iterable[tuple[int, int, str | None]], positions: Sequence[int]
    ) -> None:
        """Remember a chunk of rows."""
        notes = np.empty(len(ids), _NOTE)
        notes["id"] = [hash(id_) for id_ in ids]
        notes["id_too"] = [hash(id_ + "\0") for id_ in ids]
        notes["decision"] = [hash(decision) for decision in decisions]
        notes["position"] = positions
        buckets = notes["id"] % _BUCKETS
        notes = notes[np.argsort(buckets, kind="stable")]
        ends = np.cumsum(np.bincount(buckets, minlength=_BUCKETS))
        for file, part in zip(self._files, np.split(notes, ends[:-1]), strict=True):
            file.write(part.tobytes())

    def first_contradiction(self) -> tuple[int, int] | None:
        """Find two rows that share an id and differ in their decision; of all such, the earliest seen."""
        found = []
        for file in self._files:
            file.seek(0)
            notes: NDArray[np.void] = np.frombuffer(file.read(), _NOTE)
            notes = notes[np.lexsort([notes["position"], notes["id_too"], notes["id"]])]
            before, after = notes[:-1], notes[1:]
            same = (before["id"] == after["id"]) & (before["id_too"] == after["id_too"])
            for row in np.flatnonzero(same & (before["decision"] != after["decision"])):
                found.append((int(after["position"][row]), int(before["position"][row])))
        if not found:
            return None
        later, earlier = min(found)
        return earlier, later
