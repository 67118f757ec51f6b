"""Spellings of a value that programs write in several ways: an integer, a UUID, a time.

The spellings of a value are a set, and a name that is in the set leads to all of it: so likeness is mutual. A
name may stand for two values: `1.000` is 1 with a decimal point, and 1000 in groups of three digits.
"""

import re
from collections.abc import Iterator

_WIDEST = 12
"""Numbers are filled with zeros up to this many digits, and longer ones with up to two zeros."""
MOST_DIGITS = 38
_LONGEST_TIME = 35
_MARKS = (",", ".", "_", "'", " ", "\u00a0", "\u202f", "\u2019")
"""Between thousands."""
_INTEGER = re.compile(r"([+-]?)([0-9]+)(?:\.0*)?")
WITH_EXPONENT = re.compile(r"([+-]?)([0-9])(?:\.([0-9]{1,38}))?[eE]\+?([0-9]{1,2})")
_GROUPED = re.compile(rf"([+-]?)([1-9][0-9]{{0,2}}(?:[{''.join(_MARKS)}][0-9]{{3}})+)")
_HEX = "[0-9a-fA-F]"
_UUID = re.compile(
    rf"(?i:urn:uuid:)?[{{(]?({_HEX}{{8}})-?({_HEX}{{4}})-?({_HEX}{{4}})-?({_HEX}{{4}})-?({_HEX}{{12}})[)}}]?"
)
_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(?:[Zz]|[+]00(?::?00)?| UTC)?)?"
)


def value_spellings(name: str) -> Iterator[str]:
    """All spellings of the values that a name may be; nothing of a name that is no such value.

    >>> found = set(value_spellings("1000"))
    >>> found >= {"1000", "+1000", "001000", "1000.0", "1,000", "1e3", "1.0E+03", "1.000000e+03"}
    True
    >>> found <= set(value_spellings("1e3"))
    True
    >>> "2020-01-02T00:00:00Z" in value_spellings("2020-01-02")
    True
    """
    for sign, digits in _integers(name):
        yield from _integer_spellings(sign, digits)
    if len(name) <= _LONGEST_TIME:
        yield from _times(name)
    yield from _uuids(name)


def filled(digits: str) -> list[str]:
    """Digits with other leading zeros.

    >>> filled("07")[:3]
    ['7', '07', '007']
    """
    significant = digits.lstrip("0")
    widest = max(_WIDEST, len(significant) + 2)
    return [significant.zfill(width) for width in range(max(1, len(significant)), widest + 1)]


def _integers(name: str) -> set[tuple[str, str]]:
    """The integers that a name may be, as a sign and digits without leading zeros."""
    found = set[tuple[str, str]]()
    if len(name) > 2 * MOST_DIGITS:
        return found
    for pattern in (_INTEGER, _GROUPED):
        match = pattern.fullmatch(name)
        if match is not None:
            found.add((match[1], re.sub("[^0-9]", "", match[2])))
    match = WITH_EXPONENT.fullmatch(name)
    if match is not None:
        fraction, places = (match[3] or "").rstrip("0"), int(match[4])
        if len(fraction) <= places:
            found.add((match[1], match[2] + fraction.ljust(places, "0")))
    return {
        (sign.removeprefix("+") if significant else "", significant or "0")
        for sign, digits in found
        if len(digits) <= MOST_DIGITS
        for significant in (digits.lstrip("0"),)
    }


def _integer_spellings(sign: str, digits: str) -> Iterator[str]:
    fills, exponents = filled(digits), list(_with_exponent(digits))
    commas = f"{int(digits):,}" if len(digits) > 3 else ""
    signs = ("", "+", "-") if digits == "0" else (sign,) if sign else ("", "+")
    for before in signs:
        yield from (f"{before}{each}" for each in fills)
        yield from (f"{before}{each}.0" for each in fills)
        yield from (f"{before}{digits}{after}" for after in (".", ".00", ".000"))
        if commas:
            yield from (f"{before}{commas.replace(',', mark)}" for mark in _MARKS)
        yield from (f"{before}{each}" for each in exponents)


def _with_exponent(digits: str) -> Iterator[str]:
    """An integer as programs write large floats."""
    first, others = digits[0], digits[1:].rstrip("0")
    exponent = len(digits) - 1
    mantissas = {f"{first}.{others}" if others else first: None, f"{first}.{others or '0'}": None}
    if len(others) <= 6:
        mantissas[f"{first}.{others:0<6}"] = None
    for places in dict.fromkeys((str(exponent), f"{exponent:02}")):
        yield from (f"{mantissa}{e}{places}" for mantissa in mantissas for e in ("e", "e+", "E", "E+"))


def _uuids(name: str) -> Iterator[str]:
    """A UUID with and without hyphens, in braces or parentheses, and as a URN, in either case."""
    match = _UUID.fullmatch(name)
    if match is None:
        return
    for parts in ([each.lower() for each in match.groups()], [each.upper() for each in match.groups()]):
        text = "-".join(parts)
        yield from (text, "".join(parts), f"{{{text}}}", f"({text})", f"urn:uuid:{text}")


def _times(name: str) -> Iterator[str]:
    """A day and its midnight; a time with `T` or a space, with or without seconds, fractions and UTC."""
    match = _TIME.fullmatch(name)
    if match is None:
        return
    day, minute, second, fraction = match[1], match[2] or "00:00", match[3] or "00", match[4] or ""
    fraction = fraction.rstrip("0")
    clocks = [
        f"{minute}:{second}.{fraction.ljust(width, '0')}" for width in (3, 6, 9) if fraction or width < 9
    ]
    if fraction:
        clocks.append(f"{minute}:{second}.{fraction}")
    else:
        clocks.insert(0, f"{minute}:{second}")
        if second == "00":
            clocks.append(minute)
        if (minute, second) == ("00:00", "00"):
            yield day
    for zone in ("", "Z", "+00:00", "+0000", "+00", " UTC"):
        yield from (f"{day}{between}{clock}{zone}" for clock in clocks for between in (" ", "T"))
