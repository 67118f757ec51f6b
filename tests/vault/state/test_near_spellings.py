"""Near spellings: what people and programs make of a name leads back to it, in a list that stays short."""

import time
import unicodedata
from collections.abc import Callable
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia.vault.state.near_spellings import (
    has_control_characters,
    mutual_spellings,
    near_spellings,
    same_spellings,
)

NAMES = ["ann", "Ann Lee", "u-1047", "jürgen müller", "ann.lee@example.com", "ΜΑΡΙΑ", "7", "12345"]
SAME: dict[str, Callable[[str], str]] = {
    "NFD": lambda name: unicodedata.normalize("NFD", name),
    "NFC": lambda name: unicodedata.normalize("NFC", name),
    "a space before": lambda name: f" {name}",
    "a space after": lambda name: f"{name} ",
}
NEAR: dict[str, Callable[[str], str]] = {
    **SAME,
    "lower case": str.lower,
    "upper case": str.upper,
    "title case": str.title,
    "case folded": str.casefold,
    "NFKD": lambda name: unicodedata.normalize("NFKD", name),
    "upper case and NFD": lambda name: unicodedata.normalize("NFD", name.upper()),
    "spaces around": lambda name: f" {name.lower()} ",
    "the end of a line": lambda name: f"{name}\r\n",
    "a byte order mark": lambda name: f"\ufeff{name}",
    "quotes": lambda name: f"'{name}'",
    "double quotes": lambda name: f'"{name.upper()}"',
    "two spaces within": lambda name: name.replace(" ", "  "),
    "no space within": lambda name: name.replace(" ", ""),
    "underscores": lambda name: name.replace(" ", "_"),
    "another dash": lambda name: name.replace("-", "\u2013"),
    "O for 0": lambda name: name.replace("0", "O"),
    "Cyrillic": lambda name: name.translate(str.maketrans("aeo", "\u0430\u0435\u043e")),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", NEAR)
def test_a_changed_name_leads_back(name: str, change: str) -> None:
    changed = NEAR[change](name)
    if changed != name:
        back = near_spellings(changed)
        folded = {unicodedata.normalize("NFC", each).casefold() for each in back}
        # Case and inner spaces cannot be restored in every mixture; letters can.
        assert unicodedata.normalize("NFC", name).casefold().replace(" ", "") in {
            each.replace(" ", "") for each in folded
        }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", NEAR)
def test_the_held_spelling_is_found_from_the_usual_name(name: str, change: str) -> None:
    held = NEAR[change](name)
    if change != "Cyrillic":  # any of the letters may be Cyrillic
        assert held == name or held in near_spellings(name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("change", SAME)
def test_what_programs_make_of_a_name_is_found_both_ways(name: str, change: str) -> None:
    changed = SAME[change](name)
    if changed != name:
        assert changed in same_spellings(name)
        assert name in same_spellings(changed)


@given(number=st.integers(0, 10**9), zeros=st.integers(0, 3), point=st.sampled_from(["", ".0"]))
def test_numbers_with_zeros_and_points_lead_to_each_other(number: int, zeros: int, point: str) -> None:
    one, other = str(number), f"{'0' * zeros}{number}{point}"
    if one != other:
        assert other in near_spellings(one)
        assert one in near_spellings(other)
    if point:
        assert f"{number}.0" in same_spellings(one)
        assert one in same_spellings(f"{number}.0")
    prefixed = f"u-{'0' * zeros}{number}"
    assert zeros == 0 or prefixed in near_spellings(f"u-{number}")


@pytest.mark.parametrize("number", [10**16, 2**53 + 1, 123456789012345678])
def test_large_integers_are_found_as_the_floats_that_they_become(number: int) -> None:
    assert str(float(number)) in near_spellings(str(number))
    assert str(int(float(number))) in near_spellings(str(float(number)))


@given(st.text(max_size=30))
def test_the_list_is_short_and_has_neither_the_name_nor_nothing(name: str) -> None:
    found = near_spellings(name)
    assert len(found) == len(set(found)) < 2500
    assert name not in found
    assert "" not in found
    assert set(same_spellings(name)) <= set(found)


PAIRS = [
    *(("1", other) for other in ("1.00", "1.", "+1", "#1", "1;", "01", "\uff11")),
    *(("10000000000000000", other) for other in ("1e16", "1e+16", "1E+16", "1.0E16")),
    *(("1000", other) for other in ("1e3", "1,000", "1.000", "1 000", "1e+03", "1.000000e+03")),
    *(("ann", f"ann{mark}") for mark in "\u200b\ufeff\0\u00ad\u200e"),
    *(("ann", f"{mark}ann") for mark in "\u200b\ufeff\0"),
    ("12", "\uff11\uff12"),
    ("fiona", "\ufb01ona"),
    ("STRASSE", "Stra\u00dfe"),
    ("strasse", "Stra\u00dfe"),
    ("a", "\u0430"),
    ("anna", "\u0430nna"),
    ("anna", "\u0430nn\u0430"),
    ("ANNA", "\u0391\u039d\u039d\u0391"),
    ("annlee", "ann lee"),
    ("annlee", "Ann Lee"),
    ("annlee", "ann\u200blee"),
    ("ann-lee", "ann.lee"),
    ("mcdonald", "McDonald"),
    ("u\u2013x", "u\u2014x"),
    ("o'neil", "o\u2019neil"),
    ("ann", "\u201cann\u201d"),
    ("0", "o"),
    *(("1", other) for other in ("1e0", "1E+00", "1.0e0", "-1")),
    ("300", "3.0e2"),
    ("+491701234567", "00491701234567"),
    ("491701234567", "4.91701234567e11"),
    ("1000", "1\u202f000"),
    ("jdoe@gmail.com", "j.doe@gmail.com"),
    ("jdoe@ex.org", "J.Doe@ex.org"),
    ("ann@ex.org", "an.n@ex.org"),
    ("annmarie.keller@ex.org", "ann-marie.keller@ex.org"),
    ("ab-c", "a-b-c"),
    ("user-17", "user-1-7"),
    ("u-17", "U17"),
    ("ann lee", "ANN_LEE"),
    ("u10-0", "u1O-0"),
    ("ann@ex.org", "mailto:ann@ex.org"),
    ("ann@ex.org", "<ann@ex.org>"),
    ("ann@ex.org", "ann%40ex.org"),
    ("j\u00fcrgen", "j%C3%BCrgen"),
    ("j\u00fcrgen", "j%c3%bcrgen"),
    ("ann/x", "ann%2fx"),
    ("0", "-0.0"),
    ("0.0", "-0"),
    ("ann@m\u00fcnchen.de", "ann@xn--mnchen-3ya.de"),
    *(
        ("6f9619ff-8b86-d011-b42d-00c04fc964ff", other)
        for other in (
            "{6F9619FF-8B86-D011-B42D-00C04FC964FF}",
            "6f9619ff8b86d011b42d00c04fc964ff",
            "urn:uuid:6f9619ff-8b86-d011-b42d-00c04fc964ff",
        )
    ),
    *(
        ("2026-01-02", other)
        for other in ("2026-01-02 00:00:00", "2026-01-02T00:00:00Z", "2026-01-02 00:00:00.000000 UTC")
    ),
    ("2026-01-02 03:04:05.5", "2026-01-02T03:04:05.500+00:00"),
    ("2026-01-02 03:04:05", "2026-01-02 03:04:05+00"),
    *(("+491701234567", other) for other in ("\u202a+491701234567\u202c", "\u202d+491701234567\u202c")),
    *(
        ("ann", other)
        for other in ("\u2066ann\u2069", "\u2068ann\u2069", "\u202aann", "ann\u202c", "ann\x1a")
    ),
    ("user-12", "user-\uff11\uff12"),
    ("ann lee", "\uff41\uff4e\uff4e \uff4c\uff45\uff45"),
    ("ann@ex.org", "ann\uff20ex.org"),
    ("\u30a2\u30a4", "\uff71\uff72"),
    ("\u30ac\u30d1", "\uff76\uff9e\uff8a\uff9f"),
    ("ann lee", "ann Lee"),
    ("Ann Lee", "ann Lee"),
    ("iphone-7", "iPhone-7"),
    ("ann.lee@ex.org", "ann.lee@EX.ORG"),
    ("ann.lee@ex.org", "ANN.LEE@ex.org"),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_likeness_is_mutual(one: str, other: str) -> None:
    assert other in near_spellings(one)
    assert one in near_spellings(other)


LETTERS = "abehiklmnopqrstuxyz"
WORDS = st.text(LETTERS, min_size=1, max_size=8)
SEPARATOR = st.sampled_from([" ", "-", "_", ".", "'"])
JOINED = st.tuples(WORDS, SEPARATOR, WORDS, SEPARATOR, WORDS).map("".join)
DIGITS = st.tuples(st.sampled_from(["", "0", "00"]), st.integers(0, 10**14).map(str)).map("".join)
MAILS = st.tuples(st.one_of(WORDS, JOINED.map(lambda name: name.replace(" ", "."))), WORDS).map(
    lambda parts: f"{parts[0]}@{parts[1]}.org"
)
IDS = st.tuples(WORDS, st.sampled_from(["-", "_", "", ":"]), DIGITS).map("".join)
PHONES = st.tuples(st.sampled_from(["+", "00", ""]), DIGITS, st.sampled_from(" -"), DIGITS).map("".join)
EXPONENTS = st.tuples(st.integers(100, 999), st.integers(0, 20)).map(
    lambda pair: f"{pair[0] / 100}e{pair[1]}"
)
TIMES = st.datetimes(min_value=datetime(1000, 1, 1), max_value=datetime(3000, 1, 1)).map(str)
ACCENTED = st.text("aeinors\u00e9\u00fc\u00f1\u00e5 ", min_size=1, max_size=12).map(str.strip).filter(bool)
VALUES = st.one_of(
    *(PHONES, EXPONENTS, TIMES),
    st.uuids().map(str),
    st.integers(-(10**14), 10**14).map(str),
    st.floats(-1e6, 1e6).map(lambda value: f"{value:.3f}"),
    st.dates().map(str),
)
NAMED = st.one_of(WORDS, JOINED, IDS, ACCENTED)
USUAL = st.one_of(
    *(each.map(case) for each in (NAMED, MAILS, VALUES) for case in (str.lower, str.upper)),
    NAMED.map(str.title),
)
"""Names in lower, upper or title case."""
SIMPLE_LENGTH = 28
"""Names of so many characters have all single differences among 400 spellings."""


@given(name=USUAL, place=st.integers(0, 10**6))
@settings(max_examples=300)
def test_a_spelling_leads_back_to_a_name_in_usual_case(name: str, place: int) -> None:
    """Of 179 near spellings of ann@ex.org, 22 did not lead back."""
    found = [spelling for spelling in dict.fromkeys(mutual_spellings(name)) if spelling not in ("", name)]
    for step in range(20):  # a full check takes a quarter of a second per name
        spelling = found[(place + 7919 * step) % len(found)]
        assert name in near_spellings(spelling, 10**6), spelling


def _with_capital(name: str, place: int) -> str:
    return name[:place].lower() + name[place:].capitalize()


MARKS = "\0\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
DIRECTIONS = ("\u202a\u202c", "\u202d\u202c", "\u2066\u2069", "\u2068\u2069")
WIDE = {number: number + 0xFEE0 for number in range(0x21, 0x7F)}
MUTUAL: dict[str, Callable[[str, int], str]] = {
    "lower case": lambda name, _: name.lower(),
    "upper case": lambda name, _: name.upper(),
    "title case": lambda name, _: name.title(),
    "a capital within": _with_capital,
    "a capital within and one before": lambda name, place: (
        name[:place].capitalize() + name[place:].capitalize()
    ),
    "upper-case domain": lambda name, _: "@".join((name.split("@")[0].lower(), *name.upper().split("@")[1:])),
    "upper-case first part": lambda name, _: "@".join(
        (name.split("@")[0].upper(), *name.lower().split("@")[1:])
    ),
    "NFC": lambda name, _: unicodedata.normalize("NFC", name),
    "NFD": lambda name, _: unicodedata.normalize("NFD", name),
    "wide": lambda name, _: name.translate(WIDE | {0x20: 0x3000}),
    "wide without the space": lambda name, _: name.translate(WIDE),
    "wide digits": lambda name, _: name.translate({ord(digit): WIDE[ord(digit)] for digit in "0123456789"}),
    "wide @": lambda name, _: name.replace("@", "\uff20"),
    "a mark before": lambda name, place: f"{MARKS[place % len(MARKS)]}{name}",
    "a mark after": lambda name, place: f"{name}{MARKS[place % len(MARKS)]}",
    "marks of direction": lambda name, place: name.join(DIRECTIONS[place % len(DIRECTIONS)]),
    "the end of a DOS file": lambda name, _: f"{name}\x1a",
    "a zero-width space": lambda name, place: f"{name[:place]}\u200b{name[place:]}",
    "a separator": lambda name, place: f"{name[:place]}{' -_.'[place % 4]}{name[place:]}",
    "quotes": lambda name, _: f"'{name}'",
}
"""Differences in which docs/vault-names.md says that likeness is mutual."""


@pytest.mark.parametrize("difference", MUTUAL)
@given(name=USUAL, place=st.integers(0, 10**6))
def test_documented_differences_are_found_both_ways(difference: str, name: str, place: int) -> None:
    changed = MUTUAL[difference](name, place % len(name))
    if changed != name:
        assert changed in near_spellings(name, 10**6)
        assert name in near_spellings(changed, 10**6)


@given(name=USUAL, mark=st.characters(categories=["Cc", "Cf"]), place=st.integers(0, 3))
def test_any_invisible_or_control_character_around_leads_to_the_name(
    name: str, mark: str, place: int
) -> None:
    marked = [f"{mark}{name}", f"{name}{mark}", f"{mark}{name}{mark}", f"{mark}{mark} {name}{mark}"][place]
    assert name in near_spellings(marked)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        *("1", "1000", "007", "-5", "+5", "491701234567", "12.50", "1.000", "1e0", "3.0e2", "1e+16", "0.001"),
        *("ann", "Ann Lee", "ANN-LEE", "ann@ex.org", "ann-marie.keller@ex.org", "u-17", "user-1-7", "U17"),
        *("6f9619ff-8b86-d011-b42d-00c04fc964ff", "6F9619FF8B86D011B42D00C04FC964FF", "2026-01-02"),
        *("+49 170 1234567", "o'neil", "j\u00fcrgen m\u00fcller", "ann@m\u00fcnchen.de", "STRASSE", "fiona"),
        *("\u0430\u043d\u043d\u0430", "\u039c\u0391\u03a1\u0399\u0391", "#7", "'x'", "x" * 40),
    ],
)
def test_every_spelling_leads_back(name: str) -> None:
    found = [spelling for spelling in dict.fromkeys(mutual_spellings(name)) if spelling not in ("", name)]
    assert len(found) > 90
    assert [spelling for spelling in found if name not in near_spellings(spelling)] == []


@given(name=USUAL, place=st.integers(0, 10**6), separator=st.sampled_from(" -_."))
def test_one_separator_more_or_less_is_found_both_ways_among_400(
    name: str, place: int, separator: str
) -> None:
    name = name[:SIMPLE_LENGTH]
    place %= len(name) + 1
    longer = f"{name[:place]}{separator}{name[place:]}"
    if longer.strip() == longer:
        assert longer in near_spellings(name, 400)
        assert name in near_spellings(longer, 400)


def test_simpler_spellings_do_not_lead_back() -> None:
    """As docs/vault-names.md says."""
    for one, simpler in (
        ("ann marie lee", "annmarielee"),
        ("jDoE", "jdoe"),
        ("cid,dan", "cid"),
        ("a\u00adnn", "ann"),
        ("ann\u2063", "ann"),
        ("x\u00b2", "x2"),
        ("\u2460", "1"),
        ("\uff41nn", "ann"),
        ("Ann <ann@ex.org>", "ann@ex.org"),
        ("12345678901234567", "1.2345678901234568e+16"),
    ):
        assert simpler in near_spellings(one)
        assert one not in near_spellings(simpler)


def test_characters_that_stand_for_many_make_no_long_spellings() -> None:
    assert max(map(len, near_spellings("\ufdfa" * 200))) <= 9 * 200  # percent-encoded


def test_a_list_of_names_leads_to_its_parts() -> None:
    assert {"cid", "dan"} <= set(near_spellings("cid,dan"))
    assert {"cid", "dan", "eve"} <= set(near_spellings("cid; dan ;eve"))


@pytest.mark.parametrize(
    "name", ["1" * 60_000 + "x", "1" * 60_000, "." * 60_000, "0" * 60_000 + "." * 60_000]
)
def test_a_long_name_takes_no_longer_than_it_is(name: str) -> None:
    """32,000 digits took half a minute."""
    start = time.process_time()
    assert near_spellings(name)
    assert time.process_time() - start < 2


def test_control_characters() -> None:
    names = ("ann", "a\u200bn", "\u0645\u06cc\u200c\u0646", "a\tn", "cid\0", "\x85", "ann\u2063", "\u202aann")
    assert [has_control_characters(name) for name in names] == [*[False] * 3, *[True] * 5]


@pytest.mark.parametrize("length", [60, 100, 200])
def test_names_of_look_alike_characters_have_no_more_spellings(length: int) -> None:
    name = ("éñüØßſıKﬁ0O1lI-_ ." * length)[:length]
    assert len(near_spellings(name)) <= 1_000
    assert near_spellings(name, 400) == near_spellings(name)[:400]
