"""Names of people in what a lake's table says of itself, and in the names of folders and files."""

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from armnesia.logs.erasing.parquet_metadata import is_long, names_in_text
from armnesia.logs.erasing.people import People

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_PIECE = re.compile(r"[^-_./=:#]+")
_MOST_PIECES = 12
_SHORTEST_PART = 7
"""Numbers of fewer digits that are part of a word stand there by chance; files are numbered."""


def named_in(texts: Iterable[str], people: People) -> bool:
    """Whether a text, a part of it, or the same without percent-encoding is a name of these people."""
    return bool(people.among(sorted({name for text in _decoded(texts) for name in _names_in(text)})))


def texts_in(value: Any) -> Iterator[str]:
    """All texts in a value of JSON, with the keys in it.

    >>> list(texts_in({"tags": [["who", "ann"]], "size": 7}))
    ['tags', 'size', 'who', 'ann']
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from map(str, value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    for each in inner:
        yield from texts_in(each)


def _decoded(texts: Iterable[str]) -> set[str]:
    """Texts with what they encode: names of folders are encoded, and in a Delta log once more."""
    once = {each for text in texts for each in (text, unquote(text))}
    return once | set(map(unquote, once))


def _names_in(text: str) -> set[str]:
    """What may be a name: words, and parts of words.

    >>> sorted(_names_in("export-ann-7000"))
    ['ann', 'ann-7000', 'export', 'export-ann', 'export-ann-7000']
    """
    words = names_in_text(text)
    parts = {uuid for word in words for uuid in _UUID.findall(word)}
    # Names of files have an identifier each, which would make the parts of all of them different.
    for word in {_UUID.sub("#", word) for word in words}:
        pieces = [piece.span() for piece in _PIECE.finditer(word)]
        longest = len(pieces) if len(pieces) <= _MOST_PIECES else 1
        for at, (start, _) in enumerate(pieces):
            parts |= {word[start:end] for _, end in pieces[at : at + longest]}
    return {*filter(is_long, words), *filter(_is_long_part, parts)}


def _is_long_part(name: str) -> bool:
    number = name.lstrip("+-")
    return len(number.lstrip("0")) >= _SHORTEST_PART if number.isdigit() else is_long(name)
