"""Where digests stand in a file, byte for byte, whatever that part of the file is used for."""

from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from armnesia.vault.storage.digest_arrays import DIGEST

Read: TypeAlias = Callable[[int, int], bytes]
"""Returns the bytes of a file from an offset on, at most so many; none at its end."""
Search: TypeAlias = Callable[[bytes], Iterator[int]]
"""Yields the offsets in a block."""
_BLOCK = 1 << 23
_ONE_BY_ONE = 4
"""Digests that are faster to look for one after the other than together."""
_BY_TWO_BYTES = 1000
"""Digests of which so few begin with the same two bytes that looking at three takes longer."""


def offsets_of(read: Read, digests: Collection[bytes]) -> Iterator[int]:
    """The offsets at which one of the digests begins, each once.

    >>> file = bytes(100) + b"sixteen bytes ok" + bytes(100)
    >>> list(offsets_of(lambda at, size: file[at : at + size], [b"sixteen bytes ok", b"other bytes here"]))
    [100]
    """
    wanted = set(digests)
    search = partial(_one_by_one, wanted) if len(wanted) <= _ONE_BY_ONE else _together(wanted)
    at, end = 0, b""
    while block := read(at, _BLOCK):
        # A digest that goes from one block into the next is whole in the latter.
        first = at - len(end)
        at += len(block)
        block = end + block
        yield from (first + offset for offset in search(block))
        end = block[1 - DIGEST.itemsize :]


def _one_by_one(wanted: set[bytes], block: bytes) -> Iterator[int]:
    for digest in wanted:
        offset = block.find(digest)
        while offset >= 0:
            yield offset
            offset = block.find(digest, offset + 1)


def _together(wanted: set[bytes]) -> Search:
    """Look at the first bytes of every offset, then at the next where a digest has these, then at all.

    Both times at so many that few offsets are left.
    """
    width = 2 if len(wanted) <= _BY_TWO_BYTES else 3
    begins, goes_on = (_table(digest[at : at + width] for digest in wanted) for at in (0, width))

    def search(block: bytes) -> Iterator[int]:
        values = np.frombuffer(block, np.uint8)
        for offsets in _offsets_in(begins, block, width):
            following = np.zeros(len(offsets), np.uint32)
            for byte in range(width):
                following |= values[offsets + width + byte].astype(np.uint32) << 8 * byte
            for offset in offsets[goes_on[following]].tolist():
                if block[offset : offset + DIGEST.itemsize] in wanted:
                    yield offset

    return search


def _table(parts: Iterator[bytes]) -> NDArray[np.bool_]:
    """Which values some bytes have, read as a number."""
    some = list(parts)
    table = np.zeros(1 << 8 * len(some[0]), bool)
    table[[int.from_bytes(part, "little") for part in some]] = True
    return table


def _offsets_in(table: NDArray[np.bool_], block: bytes, width: int) -> Iterator[NDArray[np.intp]]:
    """The offsets whose first bytes are in a table, as far as a whole digest follows."""
    step = 1 << (width - 1).bit_length()  # numbers of two or four bytes
    mask = (1 << 8 * width) - 1
    for shift in range(step):
        if len(block) - shift >= DIGEST.itemsize:
            numbers = np.frombuffer(block, f"<u{step}", count=(len(block) - shift) // step, offset=shift)
            is_begin = table[numbers if width == step else numbers & mask]
            offsets = step * np.flatnonzero(is_begin) + shift
            yield offsets[offsets <= len(block) - DIGEST.itemsize]
