"""The sizes that a source may have, so that no file, however small, needs more memory than there is.

A dictionary in a Parquet file stores a text once for a million rows, and a reader makes a million texts of
it. So the length of texts is limited, and a chunk of rows ends where its texts become too long together.
"""

from collections.abc import Iterable, Iterator
from operator import itemgetter
from types import NoneType
from typing import Any

CHUNK = 50_000
"""How many rows are read at a time."""
CHUNK_TEXT = 1 << 24
"""How many characters are read at a time, in fewer rows."""
LONGEST_TEXT = 1 << 16
"""The most bytes of an action, a user or an id in UTF-8; and of all columns of a row that has no id."""

_SIZED = {str, bytes, list, dict}


def in_chunks(
    pieces: Iterable[list[tuple[Any, ...]]], size: int, most_text: int = CHUNK_TEXT
) -> Iterator[list[tuple[Any, ...]]]:
    """Join pieces of rows into chunks of `size` rows, or of fewer where their texts are long.

    >>> list(in_chunks([[("a",), ("b",)], [("c",), ("d",)], [("e",)]], 3))
    [[('a',), ('b',), ('c',)], [('d',), ('e',)]]
    >>> list(in_chunks([[("a",), ("long",)], [("c",)]], 3, most_text=4))
    [[('a',), ('long',)], [('c',)]]
    """
    chunk: list[tuple[Any, ...]] = []
    text = 0
    for piece in pieces:
        chunk += piece
        text += text_size(piece)
        while len(chunk) >= size:
            yield chunk[:size]
            chunk, text = chunk[size:], text_size(chunk[size:])
        if text >= most_text and chunk:
            yield chunk
            chunk, text = [], 0
    if chunk:
        yield chunk


def is_longer(text: str | None, most: int) -> bool:
    """Tell whether a text has more than so many bytes in UTF-8.

    >>> is_longer("abc", 3), is_longer("abcd", 3), is_longer("äöü", 3), is_longer(None, 3)
    (False, True, True, False)
    """
    if text is None or 4 * len(text) <= most:  # a character has at most four bytes
        return False
    return len(text) > most or len(text.encode("utf-8", "surrogatepass")) > most


def text_size(rows: list[tuple[Any, ...]]) -> int:
    """Count the characters of texts and of lists and mappings, and the bytes of binary values.

    >>> text_size([("ann", 7, None), ("bob", 8, b"xy")])
    8
    """
    return sum(map(_column_size, columns_of(rows)))


def columns_of(rows: list[tuple[Any, ...]]) -> Iterator[list[Any]]:
    """The columns of rows; a zip of as many arguments as there are rows takes several times as long.

    >>> list(columns_of([("ann", 7), ("bob", 8)]))
    [['ann', 'bob'], [7, 8]]
    """
    for place in range(len(rows[0]) if rows else 0):
        yield list(map(itemgetter(place), rows))


def _column_size(column: list[Any]) -> int:
    types = set(map(type, column))
    if types <= {str, NoneType}:
        return sum(map(len, filter(None, column)))
    if not types & _SIZED:
        return 0
    return sum(len(v) if isinstance(v, str | bytes) else len(str(v)) for v in column if type(v) in _SIZED)
