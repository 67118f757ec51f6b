"""Canonical JSON: one text for one value, and nothing that JSON cannot hold."""

import json
import math
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys.canonical_json import canonical, read_object, utc_now

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)

ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def written_by_hand(value: Any) -> str:
    """The same rules, written a second time without the json module."""
    if isinstance(value, str):
        inside = (
            ESCAPES.get(letter) or (f"\\u{ord(letter):04x}" if letter < " " else letter) for letter in value
        )
        return '"' + "".join(inside) + '"'
    if isinstance(value, list):
        return "[" + ",".join(map(written_by_hand, value)) + "]"
    if isinstance(value, dict):
        inside = (f"{written_by_hand(key)}:{written_by_hand(value[key])}" for key in sorted(value))
        return "{" + ",".join(inside) + "}"
    words = {"None": "null", "True": "true", "False": "false"}
    return words.get(repr(value), repr(value))


def same(left: Any, right: Any) -> bool:
    """Equal, and of the same types and signs: 1 is not 1.0, 0.0 is not -0.0."""
    return (
        repr(left) == repr(right)
        or (
            type(left) is type(right) is dict
            and left.keys() == right.keys()
            and all(same(left[key], right[key]) for key in left)
        )
        or (type(left) is type(right) is list and len(left) == len(right) and all(map(same, left, right)))
    )


@given(VALUES)
def test_it_reads_back_the_same_and_is_the_text_written_by_hand(value: Any) -> None:
    text = canonical(value)
    assert text == written_by_hand(value)
    assert same(json.loads(text), value)
    assert canonical(json.loads(text)) == text


@given(st.dictionaries(TEXT, st.integers(), max_size=6))
def test_the_order_of_the_keys_does_not_matter(value: dict[str, int]) -> None:
    assert canonical(dict(reversed(value.items()))) == canonical(value)


@given(VALUES, VALUES)
def test_different_values_have_different_texts(left: Any, right: Any) -> None:
    assert (canonical(left) == canonical(right)) == same(left, right)


@pytest.mark.parametrize(
    "value",
    [
        *(math.nan, {"epsilon": math.inf}, [-math.inf], b"bytes", {1, 2}, np.int64(1)),
        *(datetime(2026, 1, 1, tzinfo=UTC), {"a": {1: 2, "b": 3}}, "\ud800", {"\udfff": 1}),
    ],
)
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError, match="a value must be plain JSON"):
        canonical(value)


def test_a_refusal_does_not_repeat_the_value() -> None:
    with pytest.raises(InvalidInputError) as refusal:
        canonical({"users": ["secret-person\ud800"]})
    assert "secret" not in str(refusal.value)


def test_values_within_values_without_end_are_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InvalidInputError, match="must be plain JSON"):
        canonical(endless)
    with pytest.raises(InvalidInputError, match="must be valid JSON"):
        read_object("[" * 100_000, "the file")


def test_the_time_is_now_in_utc() -> None:
    before, written, after = datetime.now(UTC), utc_now(), datetime.now(UTC)
    assert before <= datetime.fromisoformat(written) <= after
    assert written.endswith("Z")
    assert [len(utc_now()) for _ in range(100)] == [27] * 100
