"""Whether an SQLite file has digests of forgotten people elsewhere than in its suppression list.

The list has the digests of those who are forgotten, once in its table and once in its index. So every byte
of the file is searched, and what is found must be these entries. The format of pages is that of
https://www.sqlite.org/fileformat2.html, "B-tree Pages".
"""

import struct
from collections.abc import Callable, Collection, Mapping

from armnesia.vault.storage.database import Session
from armnesia.vault.storage.digest_arrays import packed
from armnesia.vault.storage.digest_search import offsets_of
from armnesia.vault.storage.sqlite_unused_space import FILE_HEADER, Layout, SharedFile, start_of_page
from armnesia.vault.storage.tables import read_suppressed_both_ways

_INTERIOR, _LEAVES = (2, 5), (10, 13)
_HEADER = struct.Struct(">B2xH3xI")
"""Of an interior page: its kind, the number of cells, and the last child."""
_ROOTS = "SELECT rootpage FROM sqlite_master WHERE tbl_name = 'suppressed'"


def find_in_file(file: SharedFile, digests: Collection[bytes]) -> list[int]:
    """The offsets of the file at which one of these digests begins; others may use it meanwhile."""
    return list(offsets_of(file.read_at, digests))


def are_only_listed(
    session: Session,
    file: SharedFile,
    digests: Collection[bytes],
    listed: Mapping[bytes, str],
    offsets: Collection[int],
) -> bool:
    """Whether what was found at these offsets are the entries of the suppression list, and nothing else.

    Each of `listed` must be an entry of its kind, both by reading all of the list and by its index, and no
    other digest: another page may have taken the place of one of the list. Nobody else may write to the file
    meanwhile, and its log must be empty.
    """
    size = Layout.of(file.read_at(0, FILE_HEADER)).size

    def page_at(number: int) -> bytes:
        return file.read_at((number - 1) * size, size)

    try:
        pages = {page for (root,) in session.query(_ROOTS) for page in pages_of_tree(page_at, root)}
    except ValueError:
        return False
    return (
        read_suppressed_both_ways(session, packed(list(digests))) == (sorted(listed.items()),) * 2
        and len(offsets) == 2 * len(listed)  # once in the table and once in its index
        and all(offset // size + 1 in pages for offset in offsets)
    )


def pages_of_tree(page_at: Callable[[int], bytes], root: int) -> set[int]:
    """The numbers of all pages of a b-tree, without those of overflowing cells; `page_at` reads a page.

    Raises ValueError if it is not a b-tree: a page is of another kind, or is there twice.

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
        page, start = page_at(number) if number else b"", start_of_page(number)
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
