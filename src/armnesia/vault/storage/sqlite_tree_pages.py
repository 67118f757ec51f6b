"""Which pages of an SQLite file the b-tree of a table or an index has.

The format is that of https://www.sqlite.org/fileformat2.html, "B-tree Pages".
"""

import struct
from collections.abc import Callable

_INTERIOR, _LEAVES = (2, 5), (10, 13)
_HEADER = struct.Struct(">B2xH3xI")
"""Of an interior page: its kind, the number of cells, and the last child."""
_FIRST_PAGE = 100
"""Where the header of page 1 stands, after that of the file."""


def pages_of_tree(page_at: Callable[[int], bytes], root: int) -> set[int]:
    """The numbers of all pages of a b-tree, without those of overflowing cells; `page_at` reads a page.

    Refused by a ValueError is a tree that is none: with a page of another kind, or one that is there twice.

    >>> leaf = bytes([13]) + bytes(511)
    >>> pages_of_tree(lambda number: leaf, 7)
    {7}
    >>> pages_of_tree(lambda number: bytes(512), 7)
    Traceback (most recent call last):
    ValueError: page 7 is not part of a b-tree
    """
    found, waiting = set[int](), [root]
    while waiting:
        number = waiting.pop()
        page, start = page_at(number), _FIRST_PAGE if number == 1 else 0
        kind = page[start] if len(page) > start else 0
        if number in found or kind not in (*_INTERIOR, *_LEAVES):
            raise ValueError(f"page {number} is not part of a b-tree")
        found.add(number)
        if kind in _INTERIOR:
            try:
                _, cells, last = _HEADER.unpack_from(page, start)
                places = struct.unpack_from(f">{cells}H", page, start + _HEADER.size)
                waiting += [last, *(int.from_bytes(page[at : at + 4]) for at in places)]
            except struct.error:
                raise ValueError(f"page {number} is not part of a b-tree") from None
    return found
