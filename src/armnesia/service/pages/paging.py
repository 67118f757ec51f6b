"""One page of a long list."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

PAGE = 50


@dataclass(frozen=True)
class ListPage:
    """Some rows of a list, and where they are in it.

    >>> page = ListPage.of(range(120), 3)
    >>> list(page.rows)[:2], page.first, page.last, page.total, page.pages
    ([100, 101], 101, 120, 120, 3)
    >>> ListPage.of([], 7).number
    1
    """

    rows: Sequence[Any]
    number: int
    pages: int
    total: int

    @classmethod
    def of(cls, rows: Sequence[Any], number: int, size: int = PAGE) -> "ListPage":
        """The page with this number, or the nearest that there is."""
        pages = _pages(len(rows), size)
        number = min(max(number, 1), pages)
        return cls(rows[(number - 1) * size : number * size], number, pages, len(rows))

    @classmethod
    def read(cls, number: int, read: Callable[[int, int], tuple[Sequence[Any], int]]) -> "ListPage":
        """The same, without the other pages: `read` has so many rows after some, and how many there are.

        >>> ListPage.read(7, lambda after, limit: (range(120)[after : after + limit], 120)).number
        3
        """
        number = max(number, 1)
        rows, total = read((number - 1) * PAGE, PAGE)
        pages = _pages(total, PAGE)
        if number > pages:
            return cls.read(pages, read)
        return cls(rows, number, pages, total)

    @property
    def first(self) -> int:
        """The number of the first row, from 1."""
        return min(self.total, (self.number - 1) * PAGE + 1)

    @property
    def last(self) -> int:
        """The number of the last row."""
        return min(self.total, self.number * PAGE)


def _pages(rows: int, size: int) -> int:
    return max(1, -(-rows // size))


def whole_number(text: str, otherwise: int = 1) -> int:
    """A number from a form; anything else is taken as if it had not been given.

    >>> whole_number("12"), whole_number("x"), whole_number("9" * 40)
    (12, 1, 1)
    """
    return int(text) if text.isdecimal() and text.isascii() and len(text) < 16 else otherwise
