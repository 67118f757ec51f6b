"""Names of people in what files and tables say of themselves, and in the names of folders and files."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import Any
from urllib.parse import unquote

from armnesia.logs.erasing.people import People

_LISTS = re.compile(r"""[,;|\n\r\t"'=\[\]{}()<>]+""")
_WORD = re.compile(r"""[^\s,;:|"'=\[\]{}()<>]+""")
_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PIECE = re.compile(rf"""{_UUID}|[^\s,;:|"'=\[\]{{}}()<>._/#+@&!?*~$%^`\\-]+""", re.IGNORECASE)
"""A UUID is one piece: most names of files have one, of which no part is a name."""
_MOST_IN_A_ROW = 12
_JSON = ("{", "[", '"')
_SHORTEST_NAME, _SHORTEST_NUMBER = 3, 5
"""Shorter ones stand among others by chance."""
_SHORTEST_PART = 7
"""Numbers of fewer digits that are part of a word stand there by chance; files are numbered."""
_NUMBER = re.compile(r"[+-]?(\d+)\.?0*")
_COUNTED = re.compile(rb"([0-9]{1,9});")
_AT_ONCE = 50_000
"""What may be names and is looked up together: a long text has many."""


def named_in(texts: Iterable[str], people: People) -> bool:
    """Whether a text, a part of it, or the same without percent-encoding is a name of these people."""
    names = chain.from_iterable(map(_names_in, _decoded(texts)))
    while some := set(islice(names, _AT_ONCE)):
        if people.among(sorted(some)):
            return True
    return False


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


def from_json(text: str) -> Any:
    """The value of a text of JSON, with numbers as the text has them; None if it is none, or too deep."""
    if text.lstrip().startswith(_JSON):
        with suppress(ValueError, RecursionError):
            return json.loads(text, parse_int=str, parse_float=str)
    return None


def _decoded(texts: Iterable[str]) -> set[str]:
    """Texts with what they encode: names of folders are encoded, and in a Delta log once more."""
    once = {each for text in texts for each in (text, unquote(text))}
    return once | set(map(unquote, once))


def _names_in(text: str) -> Iterator[str]:
    """What may be a name: the text, its items, words and parts of words, single or in a row; of JSON too.

    >>> sorted(set(_names_in("export-ann-7000")))
    ['ann', 'ann-7000', 'export', 'export-ann', 'export-ann-7000']
    >>> {"ann lee", "lee", "bob"} <= set(_names_in("of ann lee, bob."))
    True
    >>> "lee, ann" in set(_names_in('{"most": ["lee, ann", 7]}'))
    True
    """
    inner = from_json(text)
    if inner is None:
        yield from filter(_is_long, (text.strip(), *map(str.strip, _LISTS.split(text))))
        yield from filter(_is_long, _in_a_row(_WORD, text))
        yield from filter(_is_long_part, _in_a_row(_PIECE, text))
        yield from _counted_items(text)
    else:
        yield from filter(_is_long, (text.strip(),))
        for each in set(texts_in(inner)):
            yield from _names_in(each)


def _counted_items(text: str) -> list[str]:
    """The items of a text that says the length of each before it, as polars writes the values of an Enum.

    >>> _counted_items("3;ann7;bob-700"), _counted_items("3;anna")
    (['ann', 'bob-700'], [])
    """
    rest, found = text.encode(errors="surrogatepass"), []
    while match := _COUNTED.match(rest):
        end = match.end() + int(match[1])
        found.append(rest[match.end() : end].decode(errors="replace"))
        rest = rest[end:] if end <= len(rest) else b"?"
    return [] if rest else found


def _in_a_row(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """Up to so many matches in a row, with what is between them; with a plus sign before them also.

    >>> list(_in_a_row(re.compile("[a-z]+"), "a+b"))
    ['a', 'a+b', 'b', '+b']
    """
    spans = [match.span() for match in pattern.finditer(text)]
    for at, (start, _) in enumerate(spans):
        ends = [end for _, end in spans[at : at + _MOST_IN_A_ROW]]
        yield from (text[start:end] for end in ends)
        if start and text[start - 1] == "+":
            yield from (text[start - 1 : end] for end in ends)


def _is_long(name: str) -> bool:
    """Whether a text is long enough to be a name where it stands among others.

    >>> [_is_long(name) for name in ("ann", "al", "12345", "+1234", "7.000")]
    [True, False, True, False, False]
    """
    number = _NUMBER.fullmatch(name)
    return len(name) >= _SHORTEST_NAME if number is None else len(number[1]) >= _SHORTEST_NUMBER


def _is_long_part(name: str) -> bool:
    number = _NUMBER.fullmatch(name)
    return _is_long(name) if number is None else len(number[1].lstrip("0")) >= _SHORTEST_PART
