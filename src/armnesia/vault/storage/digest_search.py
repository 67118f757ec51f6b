"""Where digests stand in a file, byte for byte, whatever that part of the file is used for."""

from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

import numpy as np

from armnesia.vault.storage.digest_arrays import DIGEST

Read: TypeAlias = Callable[[int, int], bytes]
"""Returns the bytes of a file from a place on, at most so many; none at its end."""
_BLOCK = 1 << 23
_ONE_BY_ONE = 4
"""Digests that are faster to look for one after the other than together."""
_EIGHT = np.arange(8)


def places_of(read: Read, digests: Collection[bytes]) -> Iterator[int]:
    """The places at which one of the digests begins, each once.

    Half a second per gigabyte for one digest, and some seconds for thousands of them.

    >>> file = bytes(100) + b"sixteen bytes ok" + bytes(100)
    >>> list(places_of(lambda at, size: file[at : at + size], [b"sixteen bytes ok", b"other bytes here"]))
    [100]
    """
    wanted = set(digests)
    search = _one_by_one if len(wanted) <= _ONE_BY_ONE else _together
    at, end = 0, b""
    while block := read(at, _BLOCK):
        # A digest that goes from one block into the next is whole in the latter.
        first = at - len(end)
        at += len(block)
        block = end + block
        yield from (first + place for place in search(block, wanted))
        end = block[1 - DIGEST.itemsize :]


def _one_by_one(block: bytes, wanted: set[bytes]) -> Iterator[int]:
    for digest in wanted:
        place = block.find(digest)
        while place >= 0:
            yield place
            place = block.find(digest, place + 1)


def _together(block: bytes, wanted: set[bytes]) -> Iterator[int]:
    """Look at two bytes at every place, then at eight where these are the first of a digest, then at all."""
    is_first_two = np.zeros(1 << 16, bool)
    is_first_two[[int.from_bytes(digest[:2], "little") for digest in wanted]] = True
    first_eight = np.array([int.from_bytes(digest[:8], "little") for digest in wanted], np.uint64)
    values = np.frombuffer(block, np.uint8)
    for shift in (0, 1):
        pairs = np.frombuffer(block, "<u2", count=(len(block) - shift) // 2, offset=min(shift, len(block)))
        places = 2 * np.flatnonzero(is_first_two[pairs]) + shift
        places = places[places <= len(block) - DIGEST.itemsize]
        eights = values[places[:, None] + _EIGHT].view("<u8").ravel()
        for place in places[np.isin(eights, first_eight)].tolist():
            if block[place : place + DIGEST.itemsize] in wanted:
                yield place
