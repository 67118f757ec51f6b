"""Reading JSON member by member gives what reading it at once gives, however the text is cut into chunks."""

import io
import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.vault.keys import json_members

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=3), VALUES, max_size=4)


def members(text: str, chunk: int) -> list[tuple[str, Any]]:
    with patch.object(json_members, "_CHUNK", chunk):
        return list(json_members.read_members(io.StringIO(text), "the file"))


@settings(max_examples=60)
@given(OBJECTS, st.integers(1, 9), st.sampled_from([None, 1]), st.booleans())
def test_any_object_in_any_chunks(
    value: dict[str, Any], chunk: int, indent: int | None, escaped: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    expected = [
        (name, item) for name, part in value.items() for item in (part if isinstance(part, list) else [part])
    ]
    assert members(text, chunk) == expected


@settings(max_examples=60)
@given(OBJECTS, st.integers(1, 9), st.data())
def test_a_part_of_an_object_or_more_than_one_is_refused(
    value: dict[str, Any], chunk: int, data: st.DataObject
) -> None:
    text = json.dumps(value)
    cut = data.draw(st.integers(0, len(text) - 1))
    for wrong in (text[:cut], text + "{}", text + "]", text.replace("{", "[", 1)):
        with pytest.raises(
            InvalidInputError, match="the file must be valid JSON; it is invalid or truncated"
        ):
            members(wrong, chunk)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1",
        '{"a" 1}',
        '{"a": 1 "b": 2}',
        "{1: 2}",
        '{"a": [1 2]}',
        '{"a": [1,]}',
        '{"a": 1,}',
        '{,"a": 1}',
    ],
)
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        members(text, 3)


def test_a_value_without_an_end_is_not_read_for_ever() -> None:
    class Endless(io.StringIO):
        begin = ""

        def read(self, size: int | None = -1) -> str:
            begin, self.begin = self.begin, ""
            return begin + "x" * 1000

    for begin in ('{"a": "', '{"a": 1'):
        text = Endless()
        text.begin = begin
        with (
            patch.object(json_members, "_LONGEST", 10_000),
            pytest.raises(InvalidInputError, match="the file must be valid JSON"),
        ):
            list(json_members.read_members(text, "the file"))
