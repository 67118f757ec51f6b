"""The one spelling of a name: integers in any form, text in NFC, and what is refused as doubtful."""

import re
import unicodedata
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.core.identifiers import (
    LARGEST_EXACT,
    PLAIN,
    UserType,
    is_plain_integer,
    looks_like_float,
    normalised_request,
)
from armnesia.logs import label_text

INTEGER, TEXT = UserType.INTEGER, UserType.TEXT
SPACE = st.text(" \t\n\r\f\v\u00a0\u2003\u3000", max_size=3)


@st.composite
def spelled(draw: st.DrawFn, number: int) -> str:
    """A spelling of an integer: sign, zeros, decimal point, white space."""
    sign = "-" if number < 0 else draw(st.sampled_from(["", "+"]))
    point = "" if abs(number) >= LARGEST_EXACT else draw(st.sampled_from(["", ".", ".0", ".000"]))
    zeros = "0" * draw(st.integers(0, 4))
    return f"{draw(SPACE)}{sign}{zeros}{abs(number)}{point}{draw(SPACE)}"


@given(number=st.integers(), data=st.data())
def test_every_spelling_of_an_integer_is_one_name(number: int, data: st.DataObject) -> None:
    assert INTEGER.normalised(data.draw(spelled(number))) == str(number)


@given(one=st.integers(-30, 30), other=st.integers(-30, 30), data=st.data())
def test_different_integers_have_different_names(one: int, other: int, data: st.DataObject) -> None:
    names = [INTEGER.normalised(data.draw(spelled(number))) for number in (one, other)]
    assert (names[0] == names[1]) == (one == other)


@given(st.text(max_size=12) | st.from_regex(r"[ +-]?[0-9.eE]{1,8} ?", fullmatch=True))
@example("1_000")
@example("\uff11")  # a full-width digit, which int() takes
@example("\u0661")
def test_nothing_else_is_an_integer(name: str) -> None:
    found = INTEGER.normalised(name)
    if re.fullmatch(r"[+-]?[0-9]+(\.0*)?", name.strip(), re.ASCII):
        assert found == str(int(Decimal(name.strip())))
    else:
        assert found == (None if name.strip() else "")


@pytest.mark.parametrize(
    "value", [1, np.int64(1), 1.0, np.float32(1), Decimal("1.00"), "1", "1.0", "01", " 1 ", "+1", "1.", b"1"]
)
def test_every_value_that_means_one_is_one(value: Any) -> None:
    text = label_text(value)
    assert text is not None
    assert INTEGER.normalised(text) == "1"


@pytest.mark.parametrize(
    "value", ["1e3", "1,000", "1.5", "0x1", "1 2", "--1", ".0", "-", "ann", True, 1.5, 1e16, float("inf")]
)
def test_what_is_doubtful_is_refused(value: Any) -> None:
    text = label_text(value)
    assert text is not None
    assert INTEGER.normalised(text) is None
    with pytest.raises(InvalidInputError, match=r"named by integers in this vault.*; got '"):
        normalised_request(text, INTEGER)


WHOLE = st.floats(allow_nan=False, allow_infinity=False).map(lambda number: float(np.trunc(number)))


@given(WHOLE | st.integers(50, 70).map(lambda power: 2.0**power))
@example(2.0**53)
@example(2.0**53 - 1)
def test_a_float_names_an_integer_only_where_it_stands_for_one(number: float) -> None:
    text = label_text(number)
    assert text is not None
    exact, found = int(number), INTEGER.normalised(text)
    assert found == (str(exact) if abs(exact) < LARGEST_EXACT else None)
    if found is not None:
        assert float(exact - 1) != number != float(exact + 1)  # no neighbour has the same float
    assert INTEGER.normalised(str(exact)) == str(exact)  # written as an integer it is exact


@given(st.text(max_size=20))
@example(" \u0301a")
@example("\u2000a\u2001")
def test_text_is_in_nfc_without_white_space_around(name: str) -> None:
    found = TEXT.normalised(name)
    assert found is not None
    assert found == unicodedata.normalize("NFC", name).strip()
    assert TEXT.normalised(found) == found == unicodedata.normalize("NFC", found)
    assert TEXT.normalised(f"  {unicodedata.normalize('NFD', name)}\r\n") == found


@given(st.text(st.characters(codec="ascii"), max_size=8), st.text(st.characters(codec="ascii"), max_size=8))
def test_text_keeps_case_zeros_and_everything_within(one: str, other: str) -> None:
    assert (TEXT.normalised(one) == TEXT.normalised(other)) == (one.strip() == other.strip())


@pytest.mark.parametrize("user_type", [INTEGER, TEXT])
@given(name=st.text(max_size=10) | st.from_regex(r"-?[0-9 .]{1,6}", fullmatch=True))
@example(name="a\n")
@example(name="1\n")
@example(name="-0")
def test_a_plain_name_is_its_own_spelling(user_type: UserType, name: str) -> None:
    """Sources are searched for names that are not plain: a plain one must not be another spelling."""
    if name and re.fullmatch(PLAIN[user_type], name):
        assert user_type.normalised(name) == name
    if is_plain_integer(name):
        assert INTEGER.normalised(name) == TEXT.normalised(name) == name


def test_looks_like_a_float() -> None:
    floats = ["7.0", "-7.0", "7.", "1e+16", "1.5e+300", str(2.0**60), "9007199254740992.0"]
    others = ["7", "7.5", "v7.0", "7.0.0", "1e5", "12e45", "", "."]
    assert [looks_like_float(name) for name in floats + others] == [True] * len(floats) + [False] * len(
        others
    )


def test_before_a_type_is_fixed_a_name_must_be_spelled_alike_in_both() -> None:
    for name in ("1", " 1 ", "-7", "ann", "1e3", "9" * 50, "9007199254740992.0"):
        found = normalised_request(name, None)
        assert found == TEXT.normalised(name)
        assert INTEGER.normalised(name) in (None, found)
    for name, integer in (("01", "1"), ("1.0", "1"), ("+7", "7"), ("-0", "0"), ("0.", "0")):
        with pytest.raises(InvalidInputError, match=rf"not know yet.*write the integer {integer} for '"):
            normalised_request(name, None)


def test_types_by_name() -> None:
    assert [UserType.named(name) for name in ("integer", "text")] == list(UserType)
    with pytest.raises(InvalidInputError, match="user_type must be integer or text; got 7"):
        UserType.named(7)
