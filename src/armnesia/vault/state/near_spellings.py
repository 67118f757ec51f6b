"""Near spellings of a name: what a person or a program may have written instead of it.

A vault holds keyed digests of names, which cannot be compared for likeness. So the spellings that a name may
have are listed, and each is looked up. Likeness is mutual: if one spelling leads to another, the other leads
back. The list is short: it does not find every misspelling, and few of those that differ in two ways.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Literal

from armnesia.core.identifiers import UserType

_LONGEST = 200
"""Characters: of a longer name only the simplest spellings are listed."""
MOST_SPELLINGS = 1_000
"""Of one name, the likeliest first. A name of 60 ordinary characters has about 700."""
_WIDEST = 12
"""Numbers are filled with zeros up to this many digits."""
_MOST_DIGITS = 38
_MOST_PARTS = 50

_WHOLE_FLOAT = re.compile(r"([+-]?[0-9]+)\.0*")
_FRACTION = re.compile(r"([+-]?[0-9]*\.[0-9]*[1-9])0*")
_WITH_EXPONENT = re.compile(r"[+-]?[0-9](?:\.[0-9]{1,38})?[eE]\+?[0-9]{1,2}")
_GROUPED = re.compile(r"([+-]?[0-9]{1,3})((?:[,._' \u00a0\u2019][0-9]{3})+)")
_DIGITS = "0123456789"
_FORMS: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")
_QUOTES = ("''", '""', "``", "\u2018\u2019", "\u201c\u201d", "\u00ab\u00bb")
_INVISIBLE = "\u200b\ufeff\u00ad\u200c\u200d\u200e\u200f\u2060\0"
_SPACES = (" {}", "{} ", " {} ", "\t{}", "{}\t", "{}\n", "{}\r", "{}\r\n", "\u00a0{}", "{}\u00a0")
_WRAPPINGS = (
    *(f"{{}}{mark}" for mark in _INVISIBLE),
    *(f"{mark}{{}}" for mark in _INVISIBLE),
    *(f"{quotes[0]}{{}}{quotes[1]}" for quotes in _QUOTES),
    *("{};", "{},", "{}.", "#{}", "+{}"),
)
_CONTROL = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), *map(ord, _INVISIBLE)])
"""For `str.translate`: invisible and control characters are dropped."""
_BETWEEN = ("", " ", "  ", "\u00a0", "_", "-", ".")
_SEPARATED = re.compile(r"[\s_.-]+")
_LISTED = re.compile("[,;]")


def _all_to_each(characters: str) -> list[dict[int, int]]:
    """Tables for `str.translate`, each of which replaces all of these characters by one of them."""
    return [str.maketrans(characters, one * len(characters)) for one in characters]


_LATIN_OF = dict(
    zip(
        "АВЕКМНОРСТХУІЈЅаеорсухіјѕΑΒΕΖΗΙΚΜΝΟΡΤΥΧον",
        "ABEKMHOPCTXYIJSaeopcyxijsABEZHIKMNOPTYXov",
        strict=True,
    )
)
"""Cyrillic and Greek letters that look like Latin ones."""
_TO_LATIN = str.maketrans(_LATIN_OF)
_TO_CYRILLIC = str.maketrans({latin: other for other, latin in _LATIN_OF.items() if other > "\u03ff"})
_TO_GREEK = str.maketrans({latin: other for other, latin in _LATIN_OF.items() if other <= "\u03ff"})
_LOOK_ALIKE = [
    *_all_to_each("-\u2010\u2011\u2012\u2013\u2014\u2212_"),
    *_all_to_each("'\u2019\u2018`\u00b4\u02bc"),
    *(str.maketrans(one, other) for one in "O0o" for other in "O0o" if one != other),
    *(str.maketrans(one, other) for one in "Il1" for other in "Il1" if one != other),
]
"""Characters that look alike, as tables for `str.translate`."""
_WIDE = {number: number + 0xFEE0 for number in range(0x21, 0x7F)} | {0x20: 0x3000}
_LIGATURES = {
    "ffi": "\ufb03",
    "ffl": "\ufb04",
    "ff": "\ufb00",
    "fi": "\ufb01",
    "fl": "\ufb02",
    "st": "\ufb06",
}
_SHARP_S = "\u00df"


def same_spellings(name: str) -> list[str]:
    """Other spellings of a name that programs make of it: its normal forms, spaces around it, and floats.

    >>> same_spellings("1"), same_spellings("1.0")
    ([' 1', '1 ', '1.0'], [' 1.0', '1.0 ', '1'])
    """
    bare = name.strip()
    forms = [] if bare.isascii() else [unicodedata.normalize(form, bare) for form in _FORMS[:2]]
    return _others(name, [bare, *forms, f" {bare}", f"{bare} ", *float_spellings(bare)])


def spellings_of_held(name: str, *, of_user: bool, user_type: UserType | None) -> Iterable[str]:
    """Other spellings of a name that has rows, which may have rows of the same person or record.

    Text with other white space, or in another normal form, is the same name already; so is an integer in any
    spelling.

    >>> list(spellings_of_held("1", of_user=True, user_type=UserType.TEXT))
    ['1.0']
    """
    if of_user and user_type is UserType.INTEGER:
        return ()
    return float_spellings(name) if of_user and user_type is UserType.TEXT else same_spellings(name)


def near_spellings(name: str, most: int = MOST_SPELLINGS) -> list[str]:
    """Spellings that a name may have been given instead of this one, the likeliest first, so many at most.

    They differ in case, in Unicode's normal form, in white space, separators or invisible characters, in
    quotes or signs around, in the writing of a number, and in characters that look alike.

    >>> near = near_spellings("u-7")
    >>> [spelling in near for spelling in ("U-7", " u-7", "u-007", "'u-7'", "u–7")]
    [True, True, True, True, True]

    Where a name is a list, its parts are among them:

    >>> {"ann", "bob"} <= set(near_spellings("ann;bob"))
    True
    """
    found: dict[str, None] = {}
    for spelling in _near(name):
        if spelling and spelling != name:
            found[spelling] = None
            if len(found) >= most:
                break
    return list(found)


def _near(name: str) -> Iterator[str]:
    """Near spellings in their order, some of them more than once: they are made only if they are wanted."""
    yield from same_spellings(name)
    bare = _distinct([name, *_unwrapped(name)])
    cases = _distinct([each for one in bare for each in _cases(one)])
    if len(name) > _LONGEST:
        yield from cases
        return
    respelled = _distinct([each for one in bare for each in _respelled(one)])
    cased = _distinct([*cases, *respelled, *map(str.lower, respelled), *map(str.upper, respelled)])
    usual = _distinct([*bare, *map(str.lower, bare), *map(str.upper, bare), *map(str.title, bare)])
    yield from cased
    yield from _parts(name)
    yield from (wrapping.format(one) for one in usual for wrapping in (*_SPACES, *_WRAPPINGS))
    others = [one for one in cased if not one.isascii()]
    yield from (unicodedata.normalize(form, one) for form in _FORMS for one in others)
    for one in usual:
        yield from _other_letters(one)
    for one in bare:
        yield from _one_more_or_other(one)


def has_control_characters(name: str) -> bool:
    """Whether a name has characters that are no text: they come from a damaged or wrongly read file.

    >>> has_control_characters("ann"), has_control_characters("ann" + chr(0))
    (False, True)
    """
    return any(unicodedata.category(character) == "Cc" for character in name)


def _unwrapped(name: str) -> Iterator[str]:
    """The name without white space, invisible characters, quotes and signs around it; in plain letters."""
    bare = name.strip().translate(_CONTROL).strip()
    yield bare
    inner = bare.removeprefix("+").removeprefix("#").rstrip(",;.").strip()
    if len(inner) > 2 and inner[0] + inner[-1] in _QUOTES:
        inner = inner[1:-1].strip()
    yield inner
    yield inner.translate(_TO_LATIN)
    if not inner.isascii():
        yield unicodedata.normalize("NFKC", inner).translate(_TO_LATIN)


def _cases(name: str) -> tuple[str, ...]:
    return name, name.lower(), name.upper(), name.title(), name.capitalize(), name.casefold()


def _respelled(name: str) -> Iterator[str]:
    """The name with other spaces, zeros, decimal points or look-alikes."""
    yield " ".join(name.split())
    pieces = _SEPARATED.split(name)
    if len(pieces) > 1:
        yield from (between.join(pieces) for between in _BETWEEN)
        yield from (between.join(name.split()) for between in _BETWEEN)
        yield from (name.replace(between, " ") for between in "_-.")
    yield from _numbers(name)
    for table in _LOOK_ALIKE:
        yield name.translate(table)


def _other_letters(name: str) -> Iterator[str]:
    """The whole name in letters of another kind: wide ones, Cyrillic, Greek, ligatures, ß."""
    yield name.translate(_WIDE)
    yield name.translate(_TO_CYRILLIC)
    yield name.translate(_TO_GREEK)
    for letters, ligature in _LIGATURES.items():
        if letters in name:
            yield name.replace(letters, ligature)
    if "ss" in name:
        sharp = name.replace("ss", _SHARP_S)
        yield from (sharp, sharp.title())


def _one_more_or_other(name: str) -> Iterator[str]:
    """The name with one more space, invisible character or capital in it, or one letter that looks alike."""
    for place in range(1, len(name)):
        before, after = name[:place], name[place:]
        spaced = f"{before} {after}"
        yield from (spaced, spaced.title(), f"{before}-{after}", f"{before}_{after}", f"{before}.{after}")
        yield from (f"{before}\u200b{after}", before.capitalize() + after.capitalize())
    for place, letter in enumerate(name):
        for table in (_TO_CYRILLIC, _TO_GREEK):
            if ord(letter) in table:
                yield f"{name[:place]}{table[ord(letter)]}{name[place + 1 :]}"
                yield name.replace(letter, str(table[ord(letter)]))


def _numbers(name: str) -> Iterator[str]:
    """A number, or a name that ends in one, with other zeros, and as programs and people write numbers."""
    yield from float_spellings(name)
    grouped = _GROUPED.fullmatch(name)
    if grouped is not None:
        yield grouped[1] + re.sub("[^0-9]", "", grouped[2])
    before, digits, point = _split_number(name)
    if not digits or len(digits) > _MOST_DIGITS:
        return
    filled = [digits.lstrip("0").zfill(width) for width in range(1, _WIDEST + 1)]
    if before not in ("", "+", "-"):
        yield from (f"{before}{each}{point}" for each in filled)
        return
    for sign in {before, before.removeprefix("+"), before or "+"}:
        yield from (f"{sign}{each}{after}" for after in ("", ".0") for each in filled)
        number = digits.lstrip("0") or "0"
        yield from (f"{sign}{number}{after}" for after in (".", ".00", ".000"))
        if len(number) > 3:
            commas = f"{int(number):,}"
            yield from (f"{sign}{commas.replace(',', mark)}" for mark in ",._' ")
        yield from (f"{sign}{each}" for each in _with_exponent(number))


def _split_number(name: str) -> tuple[str, str, str]:
    """What precedes the digits at the end of a name, the digits, and zeros after a decimal point.

    >>> _split_number("u-07.0"), _split_number("ann")
    (('u-', '07', '.0'), ('ann', '', ''))
    """
    point = ""
    bare = name.rstrip("0")
    if bare.endswith("."):
        name, point = bare[:-1], name[len(bare) - 1 :]
    before = name.rstrip(_DIGITS)
    return before, name[len(before) :], point


def _with_exponent(number: str) -> Iterator[str]:
    """An integer as floats are written, if that is shorter or usual for its size."""
    significant, exponent = number.rstrip("0"), len(number) - 1
    if len(number) > 15 or len(number) - len(significant) > 2:
        first, others = significant[:1] or "0", significant[1:]
        for mantissa in {f"{first}.{others}" if others else first, f"{first}.{others or '0'}"}:
            yield from (f"{mantissa}{e}{exponent:02}" for e in ("e", "e+", "E", "E+"))
            if exponent < 10:
                yield from (f"{mantissa}{e}{exponent}" for e in ("e", "e+", "E", "E+"))
        yield from (f"{int(number):e}", f"{int(number):E}")


def float_spellings(name: str) -> Iterator[str]:
    """The float of an integer, and the integer of a float; nothing of a name that is no number.

    A decimal fraction may have zeros at its end, as many as the type of its column has places.

    >>> list(float_spellings("1")), list(float_spellings("1.0")), list(float_spellings("ann"))
    (['1.0'], ['1'], [])
    >>> list(float_spellings("1.50"))[:3]
    ['1.5', '1.50', '1.500']
    """
    fraction = _FRACTION.fullmatch(name)
    if fraction is not None and len(name) <= _MOST_DIGITS:
        yield from (fraction[1].ljust(width, "0") for width in range(len(fraction[1]), _MOST_DIGITS + 1))
    whole = _WHOLE_FLOAT.fullmatch(name)
    if whole is not None:
        yield whole[1]
    elif _WITH_EXPONENT.fullmatch(name):
        exact = Decimal(name)
        if exact == exact.to_integral_value():
            yield str(int(exact))
        yield str(int(float(name)))
    elif name.isascii() and name.lstrip("+-").isdecimal():
        yield f"{name}.0"
        if (
            15 < len(name) <= _MOST_DIGITS
        ):  # so large a float is written with an exponent, or has other digits
            yield str(float(name.lstrip("+-")))


def _parts(name: str) -> list[str]:
    """The parts of a name that is a list of names."""
    parts = [part.strip() for part in _LISTED.split(name, _MOST_PARTS)]
    return parts if len(parts) > 1 else []


def _others(name: str, spellings: Iterable[str]) -> list[str]:
    return [spelling for spelling in dict.fromkeys(spellings) if spelling and spelling != name]


def _distinct(spellings: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(spelling for spelling in spellings if spelling))
