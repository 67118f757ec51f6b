"""Near spellings of a name: what a person or a program may have written instead of it.

A vault holds keyed digests of names, which cannot be compared for likeness. So the spellings that a name may
have are listed, and each is looked up. The list is short: it does not find every misspelling.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any, Literal

_WIDEST = 12
"""Numbers are filled with zeros up to this many digits."""

_NUMBER = re.compile(r"(.*?)([0-9]+)(\.0*)?", re.DOTALL)
_WHOLE_FLOAT = re.compile(r"([+-]?[0-9]+)\.0*")
_WITH_EXPONENT = re.compile(r"[+-]?[0-9](?:\.[0-9]+)?[eE]\+?[0-9]{1,2}")
_FORMS: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")
_QUOTES = ("''", '""', "``", "\u2018\u2019", "\u201c\u201d", "\u00ab\u00bb")
_WRAPPINGS = (
    *(" {}", "{} ", " {} ", "\t{}", "{}\t", "{}\n", "{}\r", "{}\r\n", "\u00a0{}", "{}\u00a0", "\ufeff{}"),
    *("'{}'", '"{}"', "\u201c{}\u201d"),
)
_INVISIBLE = dict.fromkeys([0xAD, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF])
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212_"
_CYRILLIC = "АВЕКМНОРСТХаеорсухіј"
_LATIN = "ABEKMHOPCTXaeopcyxij"
_LOOK_ALIKE: list[Any] = [
    _INVISIBLE,
    str.maketrans(_DASHES, "-" * len(_DASHES)),
    *({ord("-"): dash} for dash in _DASHES),
    {0x2019: "'", 0x2018: "'", 0x60: "'", 0xB4: "'"},
    {ord("'"): "\u2019"},
    *(str.maketrans(one, other) for one, other in ("O0", "0O", "o0", "l1", "1l", "I1", "1I", "Il", "lI")),
    str.maketrans(_CYRILLIC, _LATIN),
]
"""Characters that look alike, as tables for `str.translate`."""


def same_spellings(name: str) -> list[str]:
    """Other spellings of a name that programs make of it: its normal forms, spaces around it, and floats.

    >>> same_spellings("1"), same_spellings("1.0")
    ([' 1', '1 ', '1.0'], [' 1.0', '1.0 ', '1'])
    """
    bare = name.strip()
    forms = [] if bare.isascii() else [unicodedata.normalize(form, bare) for form in _FORMS[:2]]
    return _others(name, [bare, *forms, f" {bare}", f"{bare} ", *_floats(bare)])


def near_spellings(name: str) -> list[str]:
    """Spellings that a name may have been given instead of this one, the likeliest first.

    They differ in case, in Unicode's normal form, in white space around or within, in quotes around, in
    leading zeros, in `1.0` for `1`, and in characters that look alike.

    >>> near = near_spellings("u-7")
    >>> [spelling in near for spelling in ("U-7", " u-7", "u-007", "'u-7'", "u–7")]
    [True, True, True, True, True]
    """
    bare = _distinct([name, *_unwrapped(name)])
    cases = _distinct([each for one in bare for each in _cases(one)])
    respelled = _distinct([each for one in bare for each in _respelled(one)])
    cased = _distinct([*cases, *respelled, *map(str.lower, respelled), *map(str.upper, respelled)])
    wrapped = [wrapping.format(one) for one in cases for wrapping in _WRAPPINGS]
    others = [one for one in cased if not one.isascii()]
    forms = [unicodedata.normalize(form, one) for form in _FORMS for one in others]
    return _others(name, [*same_spellings(name), *cased, *wrapped, *forms])


def _unwrapped(name: str) -> Iterator[str]:
    """The name without white space and quotes around it."""
    bare = name.strip().translate(_INVISIBLE).strip()
    yield bare
    yield bare.removeprefix("+")
    if len(bare) > 2 and bare[0] + bare[-1] in _QUOTES:
        yield bare[1:-1].strip()


def _cases(name: str) -> tuple[str, ...]:
    return name, name.lower(), name.upper(), name.title(), name.capitalize(), name.casefold()


def _respelled(name: str) -> Iterator[str]:
    """The name with other spaces, zeros, decimal points or look-alikes."""
    words = name.split()
    yield " ".join(words)
    if len(words) > 1:
        yield from (between.join(words) for between in ("", "  ", "\u00a0", "_", "-", "."))
    yield from (name.replace(between, " ") for between in "_-.")
    yield from _floats(name)
    number = _NUMBER.fullmatch(name)
    if number is not None:
        before, digits, point = number.groups()
        points = ("", ".0") if before in ("", "+", "-") else (point or "",)
        filled = [digits.lstrip("0").zfill(width) for width in range(1, _WIDEST + 1)]
        yield from (f"{before}{each}{after}" for after in points for each in filled)
    for table in _LOOK_ALIKE:
        yield name.translate(table)


def _floats(name: str) -> Iterator[str]:
    """The float of an integer, and the integer of a float."""
    whole = _WHOLE_FLOAT.fullmatch(name)
    if whole is not None:
        yield whole[1]
    elif _WITH_EXPONENT.fullmatch(name):
        yield str(int(float(name)))
    elif name.isascii() and name.lstrip("+-").isdecimal():
        yield f"{name}.0"
        if len(name) > 15:  # so large a float is written with an exponent, or has other digits
            yield str(float(name.lstrip("+-")))


def _others(name: str, spellings: Iterable[str]) -> list[str]:
    return [spelling for spelling in dict.fromkeys(spellings) if spelling and spelling != name]


def _distinct(spellings: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(spelling for spelling in spellings if spelling))
