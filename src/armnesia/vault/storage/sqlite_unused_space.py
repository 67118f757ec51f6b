"""The unused space of b-tree pages in an SQLite file, which `secure_delete` does not overwrite everywhere.

When SQLite distributes the cells of neighbouring pages anew, it may rebuild a page in place: the cells are
packed at the end of the page, and what stood in the middle stays there as it was. So the space between the
cell pointers and the cells can keep copies of cells, also of such as are deleted later from another page.

Here the pages with such copies are found in the write-ahead log, and the copies are overwritten with zeros in
the file itself. SQLite never reads this space, so that a write that is cut short does no harm. The format is
that of https://www.sqlite.org/fileformat2.html.
"""

import os
import re
import struct
import threading
from collections import Counter
from collections.abc import Iterable
from typing import BinaryIO, ClassVar, NamedTuple

_LOG_HEADER, _FRAME_HEADER = 32, 24
FILE_HEADER = 100
_POINTERS_AT = {2: 12, 5: 12, 10: 8, 13: 8}
"""Where the cell pointers of a b-tree page begin, by the first byte of its header."""
_FRAME = struct.Struct(">I4x8s")
"""The beginning of a frame: the number of its page, and the salts of the log that it belongs to."""
_PAGE_HEADER = struct.Struct(">BxxHH")
_POINTER = struct.Struct(">H")
_FIVE_BYTES = re.compile(rb"[^\0]{5}")
_ZEROS = bytes(1 << 16)
_FEW = 32
_MOST_PAGES = 1 << 25
"""Of larger files, an overflow page may begin with the first byte of a b-tree page: a page number."""
_LARGEST_WITH_POINTERS = 4096
"""Bytes of a page on which two random bytes are an offset of the page with probability 1/16 or less."""
_FREE_AT_ONCE = 100
"""Free pages that are enough for a transaction that stores no records."""
_BEGINNING = 64
"""Bytes of a page that is in use, of which some are not zero."""
_AT_ONCE = 8
"""Pages that are in memory at the same time: more are not read faster."""


class Layout(NamedTuple):
    """What the header of a file says of its pages."""

    size: int
    """Of a page, in bytes."""
    usable: int
    """Bytes of a page before those that are reserved at its end."""
    pointer_maps: int
    """The distance of pages that map pointers, in pages, from page 2 on; 0 if there are none."""

    @classmethod
    def of(cls, header: bytes) -> "Layout":
        """Read the header of the file."""
        size = int.from_bytes(header[16:18])
        size = 1 << 16 if size == 1 else size
        usable = size - header[20]
        return cls(size, usable, usable // 5 + 1 if any(header[52:56]) else 0)

    def leftover(self, number: int, page: bytes) -> tuple[int, int] | None:
        """From where to where a page has unused space with copies of cells in it; None if it has none."""
        found = self.seeming_leftover(number, page)
        if found is None:
            return None
        begin, cells_from = found
        cells = _PAGE_HEADER.unpack_from(page, start_of_page(number))[1]
        if min(struct.unpack_from(f">{cells}H", page, begin - 2 * cells), default=cells_from) < cells_from:
            return None  # a damaged page: this space is in use
        return found

    def seeming_leftover(self, number: int, block: bytes, page_at: int = 0) -> tuple[int, int] | None:
        """As `leftover`, of the page at this place of a block; on a damaged page, the space may be in use.

        Nearly every deletion leaves pointers of cells, two bytes each from the beginning on, and heads of
        free blocks, four bytes each. They say nothing of anybody and do not count. A digest, of sixteen
        random bytes, has five in a row that are not zero with probability 1 − 1.2·10⁻⁶. On larger pages,
        where digests look like pointers, pointers count as well.
        """
        start = start_of_page(number)
        kind, cells, cells_from = _PAGE_HEADER.unpack_from(block, page_at + start)
        pointers = _POINTERS_AT.get(kind)
        if pointers is None or (self.pointer_maps and (number - 2) % self.pointer_maps == 0):
            return None
        cells_from = cells_from or 1 << 16
        begin = start + pointers + 2 * cells
        if not begin <= cells_from <= self.usable:  # not a b-tree page, or damaged
            return None
        space = block[page_at + begin : page_at + cells_from]
        if _ZEROS.startswith(space):  # as on most pages
            return None
        at, usable = 0, self.usable
        if self.size <= _LARGEST_WITH_POINTERS:
            for (pointer,) in _POINTER.iter_unpack(space[: len(space) & ~1]):
                if not begin <= pointer < usable:
                    break
                at += 2
        # What follows is mostly a few bytes and then zeros, which are compared faster than searched.
        end = at + _FEW if _ZEROS.startswith(space[at + _FEW :]) else len(space)
        return (begin, cells_from) if _FIVE_BYTES.search(space, at, end) else None


def start_of_page(number: int) -> int:
    """Where the header of a b-tree page stands on the page of this number."""
    return FILE_HEADER if number == 1 else 0


def pages_with_leftovers(log_path: str) -> set[int]:
    """The numbers of pages in a write-ahead log whose unused space seems to hold copies of cells."""
    found: set[int] = set()
    with open(log_path, "rb") as log:  # SQLite has no locks on it that closing it would release
        start = log.read(_LOG_HEADER)
        size, salts = int.from_bytes(start[8:12]), start[16:24]
        layout, step = Layout(size, size, 0), _FRAME_HEADER + size
        while len(start) == _LOG_HEADER and (block := log.read(_AT_ONCE * step)):
            for at in range(0, len(block) - step + 1, step):
                number, own_salts = _FRAME.unpack_from(block, at)
                if own_salts != salts:  # of an earlier use of the log
                    return found
                if layout.seeming_leftover(number, block, at + _FRAME_HEADER):
                    found.add(number)
    return found


class SharedFile:
    """A file of SQLite's, as all connections of this process to it share it.

    A process that closes a file loses all locks that it has on it, SQLite's own among them. So the file is
    opened once, and closed when the last connection of this process is.
    """

    _lock: ClassVar = threading.Lock()
    _users: ClassVar[Counter[tuple[int, int]]] = Counter()
    _opened: ClassVar[dict[tuple[int, int], BinaryIO]] = {}

    def __init__(self, path: str, identity: tuple[int, int]) -> None:
        self._path, self._identity, self._is_closed = path, identity, False
        self._seen_lists: dict[int, bytes] | None = None
        """The list of free pages that was looked at last, by its own pages; all on it were free."""
        self._known_free: frozenset[int] = frozenset()
        with self._lock:
            self._users[identity] += 1

    def close(self) -> None:
        """Close the file, if nobody else of this process uses it."""
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._users[self._identity] -= 1
            if not self._users[self._identity]:
                del self._users[self._identity]
                if self._identity in self._opened:
                    self._opened.pop(self._identity).close()

    def overwrite_leftovers(self, pages: Iterable[int] | None) -> None:
        """Overwrite copies of cells in the unused space of these pages, or of all, and put that on the disk.

        Nobody else may write to the file meanwhile, and its log must have nothing that is not in the file.
        """
        with self._lock:
            file = self._open()
            layout = Layout.of(_read(file, 0, FILE_HEADER))
            last = os.fstat(file.fileno()).st_size // layout.size
            if last >= _MOST_PAGES:
                raise OSError("the file has too many pages")
            written = False
            for number in range(1, last + 1) if pages is None else sorted(pages):
                at = (number - 1) * layout.size
                page = _read(file, at, layout.size)
                found = layout.leftover(number, page) if len(page) == layout.size else None
                if found is not None:
                    begin, end = found
                    file.seek(at + begin)
                    file.write(bytes(end - begin))
                    written = True
            if written:
                os.fsync(file.fileno())

    def read_at(self, offset: int, size: int) -> bytes:
        """Bytes of the file, at most so many; other threads can use it meanwhile."""
        with self._lock:
            descriptor = self._open().fileno()
        return os.pread(descriptor, size, offset)

    def names_used_pages_as_free(self) -> bool:
        """Whether pages that SQLite would use next, because a list in the file names them as free, are not.

        Pages that are freed under `secure_delete` are zeros. The list is a chain of pages, of which one that
        names many is enough for a transaction. Nobody else may write to the file meanwhile, and its log must
        be empty.
        """
        with self._lock:
            file = self._open()
            header = _read(file, 0, FILE_HEADER)
            following = int.from_bytes(header[32:36])
            if not following:
                return False
            size = Layout.of(header).size
            lists: dict[int, bytes] = {}
            n_free = 0
            while following and following not in lists and n_free < _FREE_AT_ONCE > len(lists):
                lists[following] = page = _read(file, (following - 1) * size, size).ljust(size, b"\0")
                following = int.from_bytes(page[:4])
                n_free += int.from_bytes(page[4:8])
            if lists == self._seen_lists:
                return False
            free = [number for page in lists.values() for number in _named_in(page)]
            known, self._known_free = self._known_free, frozenset(free)
            are_free = (
                following not in lists
                and len({*free, *lists}) == len(free) + len(lists)
                and all(
                    number and _ZEROS.startswith(_read(file, (number - 1) * size, _BEGINNING))
                    for number in self._known_free - known
                )
            )
            if not are_free:
                self._known_free = frozenset()
            self._seen_lists = lists if are_free else None
            return not are_free

    def _open(self) -> BinaryIO:
        if self._identity not in self._opened:
            # Also a wrong one is kept: closing it could release locks.
            self._opened[self._identity] = open(self._path, "r+b", buffering=0)  # noqa: SIM115
        file = self._opened[self._identity]
        status = os.fstat(file.fileno())
        if (status.st_dev, status.st_ino) != self._identity:
            raise OSError("the file was replaced by another one")
        return file


def _named_in(page: bytes) -> tuple[int, ...]:
    """The pages that a page of the list of free pages names."""
    number = min(int.from_bytes(page[4:8]), len(page) // 4 - 2)
    return struct.unpack_from(f">{number}I", page, 8)


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)
