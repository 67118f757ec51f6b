"""Near spellings: what people and programs make of a name leads back to it, in a list that stays short."""

import time
import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.vault.state.near_spellings import has_control_characters, near_spellings, same_spellings

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
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_likeness_is_mutual(one: str, other: str) -> None:
    assert other in near_spellings(one)
    assert one in near_spellings(other)


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
    assert [has_control_characters(name) for name in ("ann", "a\u200bn", "a\tn", "cid\0", "\x85")] == [
        *(False, False, True, True, True)
    ]


@pytest.mark.parametrize("length", [60, 100, 200])
def test_names_of_look_alike_characters_have_no_more_spellings(length: int) -> None:
    name = ("éñüØßſıKﬁ0O1lI-_ ." * length)[:length]
    assert len(near_spellings(name)) <= 1_000
    assert near_spellings(name, 400) == near_spellings(name)[:400]
