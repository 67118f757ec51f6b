"""Near spellings of a name: what a person or a program may have written instead of it.

A vault holds keyed digests of names, which cannot be compared for likeness. So the spellings that a name may
have are listed, and each is looked up. There are two lists. In the first, likeness is mutual: if a name in
lower, upper or title case leads to a spelling, that leads back, because each difference is undone by one of
the same kind. In the second are simpler spellings, such as a name without any separators, from which many
names could have been made: they do not lead back. Few spellings differ in two ways.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from decimal import Decimal
from itertools import chain
from typing import Literal
from urllib.parse import quote, unquote

from armnesia.core.identifiers import UserType
from armnesia.vault.state.value_spellings import MOST_DIGITS, WITH_EXPONENT, filled, value_spellings

_LONGEST = 200
"""Characters: of a longer name only the simplest spellings are listed."""
MOST_SPELLINGS = 1_000
"""Of one name, the likeliest first. A name of 50 ordinary characters has about 1,000."""
_MOST_PARTS = 50

_DIGITS = "0123456789"
_WHOLE_FLOAT = re.compile(r"([+-]?[0-9]+)\.0*")
_FRACTION = re.compile(r"([+-]?[0-9]*\.[0-9]*[1-9])0*")
_FORMS: tuple[Literal["NFC", "NFD", "NFKC", "NFKD"], ...] = ("NFC", "NFD", "NFKC", "NFKD")
_QUOTES = ("''", '""', "``", "<>", "\u2018\u2019", "\u201c\u201d", "\u00ab\u00bb")
_INVISIBLE = "\u200b\ufeff\u00ad\u200c\u200d\u200e\u200f\u2060\0"
_SPACES = (" {}", "{} ", " {} ", "\t{}", "{}\t", "{}\n", "{}\r", "{}\r\n", "\u00a0{}", "{}\u00a0")
_WRAPPINGS = (
    *(f"{quotes[0]}{{}}{quotes[1]}" for quotes in _QUOTES),
    *("{};", "{},", "{}.", "#{}", "+{}"),
    *(f"{{}}{mark}" for mark in _INVISIBLE),
    *(f"{mark}{{}}" for mark in _INVISIBLE),
    # What contacts, browsers and spreadsheets put around a text to keep its direction; the end of a DOS file.
    *("\u202a{}\u202c", "\u202d{}\u202c", "\u2066{}\u2069", "\u2068{}\u2069"),
    *("\u202a{}", "{}\u202c", "{}\x1a"),
)
_AROUND = [wrapping.split("{}") for wrapping in (*_SPACES, *_WRAPPINGS)]
"""What stands before and after a name."""
_MAIL = "mailto:"
_UNSEEN = ("Cc", "Cf")
"""Categories of Unicode: control characters, and invisible ones."""
_ADDED = (" ", "-", "_", ".")
_SEPARATORS = (*_ADDED, "\u00a0")
_BETWEEN = ("", " ", "  ", "\u00a0", "_", "-", ".")
_SEPARATED = re.compile(r"[\s_.-]+")
_LISTED = re.compile("[,;]")
_ADDRESS = re.compile(r"[^<>]*<([^<>]+)>")
_ESCAPED = re.compile("%[0-9a-fA-F]{2}")


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
_DASHES, _APOSTROPHES = "-\u2010\u2011\u2012\u2013\u2014\u2212_", "'\u2019\u2018`\u00b4\u02bc"
_OF_ONE_KIND = [*_all_to_each(_DASHES), *_all_to_each(_APOSTROPHES)]
_LIKE_IT = {one: other for alike in ("O0o", "Il1") for one in alike for other in [alike.replace(one, "")]}
"""By character, those that look like it."""
_WIDE_SIGNS = {number: number + 0xFEE0 for number in range(0x21, 0x7F)}
_WIDE_DIGITS = {number: wide for number, wide in _WIDE_SIGNS.items() if chr(number) in _DIGITS}
_WIDE = _WIDE_SIGNS | {0x20: 0x3000}
_NARROW_KANA = {ord(unicodedata.normalize("NFKC", chr(each))): each for each in range(0xFF61, 0xFFA0)}
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


def float_spellings(name: str) -> Iterator[str]:
    """The float of an integer, and the integer of a float; nothing of a name that is no number.

    A decimal fraction may have zeros at its end, as many as the type of its column has places.

    >>> list(float_spellings("1")), list(float_spellings("1.0")), list(float_spellings("ann"))
    (['1.0'], ['1'], [])
    >>> list(float_spellings("1.50"))[:3]
    ['1.5', '1.50', '1.500']
    """
    fraction = _FRACTION.fullmatch(name) if len(name) <= MOST_DIGITS else None
    if fraction is not None:
        yield from (fraction[1].ljust(width, "0") for width in range(len(fraction[1]), MOST_DIGITS + 1))
    whole = _WHOLE_FLOAT.fullmatch(name)
    if whole is not None:
        yield whole[1]
    elif WITH_EXPONENT.fullmatch(name):
        exact = Decimal(name)
        if exact == exact.to_integral_value():
            yield from (str(int(exact)), str(int(float(name))))  # a large float has other digits
    elif name.isascii() and name.lstrip("+-").isdecimal():
        yield f"{name}.0"
        if 15 < len(name) <= MOST_DIGITS:  # so large a float is written with an exponent, or has other digits
            yield str(float(name.lstrip("+-")))


def near_spellings(name: str, most: int = MOST_SPELLINGS) -> list[str]:
    """Spellings that a name may have been given instead of this one, the likeliest first, so many at most.

    They differ in case, in Unicode's normal form, in white space, separators or invisible characters, in
    quotes or signs around, in the writing of a number, time or UUID, and in characters that look alike.

    >>> near = near_spellings("u-7")
    >>> [spelling in near for spelling in ("U-7", " u-7", "u-007", "'u-7'", "u–7", "u7", "u--7")]
    [True, True, True, True, True, True, True]

    Where a name is a list, its parts are among them:

    >>> {"ann", "bob"} <= set(near_spellings("ann;bob"))
    True
    """
    found: dict[str, None] = {}
    for spelling in chain(_parts(name), mutual_spellings(name), _simpler_spellings(name)):
        if spelling and spelling != name:
            found[spelling] = None
            if len(found) >= most:
                break
    return list(found)


def mutual_spellings(name: str) -> Iterator[str]:
    """Spellings that lead back, in their order, some of them more than once; made only if they are wanted."""
    yield from same_spellings(name)
    unwrapped = _distinct([name, *_unwrapped(name)])
    bare = _distinct([*unwrapped, *_in_latin(unwrapped)])
    cases = _distinct([each for one in bare for each in _cases(one)])
    yield from cases
    if len(name) > _LONGEST:
        return
    yield from value_spellings(name.strip())
    respelled = _distinct([*_with_other_zeros(name), *_with_other_marks(name)])
    yield from respelled
    yield from _one_separator_changed(name)
    for one in _usual(bare):
        yield from (f"{before}{one}{after}" for before, after in _AROUND)
        yield from _as_address(one)
    yield from _normal_forms(cases)
    yield from _one_like_it(name)
    for one in _usual(unwrapped):
        yield from _other_letters(one)
    yield from _one_more_or_other(name)
    # The same differences in another case as well.
    yield from (each for one in respelled for each in (one.lower(), one.upper(), _titled(one)))
    for one in (name.lower(), name.upper()):
        if one != name and one.lower() == name.lower():  # the capitals of ß are two
            yield from _one_separator_changed(one)
    yield from map(_titled, _one_separator_changed(name))


def _simpler_spellings(name: str) -> Iterator[str]:
    """Spellings that do not lead back, because many names could have been made simpler so."""
    if len(name) > _LONGEST:
        return
    unwrapped = _distinct([name, *_unwrapped(name)])
    bare = _distinct([*unwrapped, *_in_latin(unwrapped)])
    for one in bare[1:]:
        yield from float_spellings(one)
        yield from value_spellings(one)
    respelled = _distinct([each for one in bare for each in _respelled(one)])
    cased = _distinct([*respelled, *map(str.lower, respelled), *map(str.upper, respelled)])
    yield from cased
    yield from _normal_forms(cased)
    for one in bare[1:]:
        yield from _one_separator_changed(one)
        yield from _one_more_or_other(one)
        yield from _other_letters(one)
    if name.upper().lower() != name.lower():
        yield from _one_separator_changed(name.upper())


def has_control_characters(name: str) -> bool:
    """Whether a name was read wrongly: it has control characters, or an invisible one at its begin or end.

    Within a name, scripts such as that of Persian have invisible characters.

    >>> has_control_characters("ann"), has_control_characters("ann" + chr(0))
    (False, True)
    """
    categories = [] if name.isprintable() else list(map(unicodedata.category, name))
    return not {"Cc", "Zl", "Zp"}.isdisjoint(categories) or "Cf" in (*categories[:1], *categories[-1:])


def _unwrapped(name: str) -> Iterator[str]:
    """The name without white space, invisible characters, quotes, signs and the like around it."""
    bare = _visible(name).strip()
    yield bare
    inner = bare.removeprefix("+").removeprefix("#").rstrip(",;.").strip()
    if len(inner) > 2 and inner[0] + inner[-1] in _QUOTES:
        inner = inner[1:-1].strip()
    yield inner
    yield from _from_address(inner)


def _visible(name: str) -> str:
    """The name without control characters and invisible ones, and without white space around it.

    >>> _visible("ann" + chr(0x2063) + chr(0)), _visible(chr(9) + "ann")
    ('ann', 'ann')
    """
    name = name.strip()
    if name.isprintable():
        return name
    return "".join(each for each in name if unicodedata.category(each) not in _UNSEEN)


def _normal_forms(names: Iterable[str]) -> Iterator[str]:
    """The normal forms of names; not those in which single characters become words."""
    others = [name for name in names if not name.isascii()]
    grows = any(len(unicodedata.normalize("NFKD", name)) > 3 * len(name) for name in others[:1])
    for form in _FORMS[:2] if grows else _FORMS:
        yield from (unicodedata.normalize(form, name) for name in others)


def _in_latin(names: Iterable[str]) -> list[str]:
    """The names in plain letters; not if that makes them long: one character may stand for eighteen."""
    plain = [
        form.translate(_TO_LATIN)
        for name in names
        if not name.isascii()
        for form in (name, unicodedata.normalize("NFKC", name))
        if len(form) <= max(len(name), _LONGEST)
    ]
    return _distinct(plain)


def _cases(name: str) -> tuple[str, ...]:
    folded = name.casefold()
    titles = name.title(), _titled(name), name.capitalize(), folded.title()
    local, at, domain = name.rpartition("@")
    parts = (f"{local.lower()}@{domain.upper()}", f"{local.upper()}@{domain.lower()}") if at else ()
    return name, name.lower(), name.upper(), folded, *titles, *parts


def _titled(name: str) -> str:
    """The name in title case; of an address of e-mail only what precedes the last @.

    >>> _titled("ann lee"), _titled("ann.lee@EX.org")
    ('Ann Lee', 'Ann.Lee@ex.org')
    """
    local, at, domain = name.rpartition("@")
    return f"{local.title()}{at}{domain.lower()}" if at else name.title()


def _usual(names: Iterable[str]) -> list[str]:
    return _distinct([each for one in names for each in (one, one.lower(), one.upper(), _titled(one))])


def _one_separator_changed(name: str) -> Iterator[str]:
    """The name with one separator more, less or exchanged, or with another for each of one kind."""
    for place, character in enumerate(name):
        if character in _SEPARATORS:
            before, after = name[:place], name[place + 1 :]
            yield before + after
            yield from (f"{before}{other}{after}" for other in _SEPARATORS)
    for place in range(len(name) + 1):
        before, after = name[:place], name[place:]
        yield from (f"{before}{one}{after}" for one in _ADDED)
    yield from _each_of_a_kind(name, "".join(_SEPARATORS))


def _each_of_a_kind(name: str, alike: str) -> Iterator[str]:
    """The name with another of these characters for each that is of one kind; one that it does not have.

    >>> list(_each_of_a_kind("a-b-c d", "- ."))
    ['a.b.c d', 'a-b-c.d']
    """
    others = [other for other in alike if other not in name]
    for one in alike:
        if one in name:
            yield from (name.replace(one, other) for other in others)


def _with_other_marks(name: str) -> Iterator[str]:
    """The name with other dashes or apostrophes."""
    yield from _each_of_a_kind(name, _DASHES)
    yield from _each_of_a_kind(name, _APOSTROPHES)


def _one_like_it(name: str) -> Iterator[str]:
    """The name with O for 0 or l for 1 in one place, or in all of them."""
    for place, character in enumerate(name):
        for other in _LIKE_IT.get(character, ""):
            yield f"{name[:place]}{other}{name[place + 1 :]}"
            if other not in name:
                yield name.replace(character, other)


def _respelled(name: str) -> Iterator[str]:
    """The name with one kind of space, separator, dash, O or l throughout."""
    yield " ".join(name.split())
    pieces = _SEPARATED.split(name)
    if len(pieces) > 1:
        yield from (between.join(pieces) for between in _BETWEEN)
        yield from (between.join(name.split()) for between in _BETWEEN)
        yield from (name.replace(between, " ") for between in "_-.")
    yield from _with_other_zeros(name)
    yield from map(name.translate, _OF_ONE_KIND)
    yield from (name.replace(one, other) for one, others in _LIKE_IT.items() for other in others)


def _as_address(name: str) -> Iterator[str]:
    """The name as addresses of the web have it."""
    if "@" in name:
        yield f"{_MAIL}{name}"
    encoded = quote(name, safe="", errors="replace")
    yield encoded
    yield _ESCAPED.sub(lambda found: found[0].lower(), encoded)
    if not name.isascii():
        with suppress(UnicodeError):
            local, at, domain = name.rpartition("@")
            yield f"{local}{at}{domain.encode('idna').decode('ascii')}"


def _from_address(name: str) -> Iterator[str]:
    """The name without what addresses of the web make of it."""
    address = _ADDRESS.fullmatch(name)
    if address is not None:
        yield address[1]
    if name[: len(_MAIL)].lower() == _MAIL:
        yield name[len(_MAIL) :]
    if _ESCAPED.search(name):
        with suppress(UnicodeDecodeError):
            yield unquote(name, errors="strict")
    if "xn--" in name.lower():
        with suppress(UnicodeError):
            local, at, domain = name.rpartition("@")
            yield f"{local}{at}{domain.encode('ascii').decode('idna')}"


def _other_letters(name: str) -> Iterator[str]:
    """The whole name in letters of another kind: wide ones, narrow kana, Cyrillic, Greek, ligatures, ß."""
    yield name.translate(_WIDE)
    yield name.translate(_WIDE_SIGNS)
    yield name.translate(_WIDE_DIGITS)
    yield name.replace("@", "\uff20")
    if not name.isascii():
        yield unicodedata.normalize("NFD", name).translate(_NARROW_KANA)
    yield name.translate(_TO_CYRILLIC)
    yield name.translate(_TO_GREEK)
    for letters, ligature in _LIGATURES.items():
        if letters in name:
            yield name.replace(letters, ligature)
    if "ss" in name:
        sharp = name.replace("ss", _SHARP_S)
        yield from (sharp, sharp.title())


def _one_more_or_other(name: str) -> Iterator[str]:
    """The name with one more invisible character or capital in it, or one letter that looks alike."""
    for place in range(1, len(name)):
        before, after = name[:place], name[place:]
        yield f"{before}\u200b{after}"
        if name[place].isalpha():
            yield from (first + after.capitalize() for first in (before.capitalize(), before.lower()))
    for place, letter in enumerate(name):
        for table in (_TO_CYRILLIC, _TO_GREEK):
            if ord(letter) in table:
                yield f"{name[:place]}{table[ord(letter)]}{name[place + 1 :]}"
                yield name.replace(letter, str(table[ord(letter)]))


def _with_other_zeros(name: str) -> Iterator[str]:
    """A name that ends in a number, with other leading zeros in it."""
    before, digits, point = _split_number(name)
    if digits and len(digits) <= MOST_DIGITS and before not in ("", "+", "-"):
        yield from (f"{before}{each}{point}" for each in filled(digits))


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


def _parts(name: str) -> list[str]:
    """The parts of a name that is a list of names."""
    parts = [part.strip() for part in _LISTED.split(name, _MOST_PARTS)]
    return parts if len(parts) > 1 else []


def _others(name: str, spellings: Iterable[str]) -> list[str]:
    return [spelling for spelling in dict.fromkeys(spellings) if spelling and spelling != name]


def _distinct(spellings: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(spelling for spelling in spellings if spelling))
