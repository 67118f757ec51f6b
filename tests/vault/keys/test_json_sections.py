"""A JSON object read value by value is what Python's own reader makes of it, in constant memory."""

import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault.keys import json_sections
from armnesia.vault.keys.json_sections import JsonSections

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
LAYOUTS: list[dict[str, Any]] = [
    {},
    {"separators": (",", ":")},
    {"indent": 2},
    {"ensure_ascii": False, "indent": "\t"},
]


def sections(text: str) -> JsonSections:
    return JsonSections(io.BytesIO(text.encode("utf-8")), "the file")


def read(text: str) -> dict[str, Any]:
    """The whole object, by its sections, in another order than that of the file."""
    found = sections(text)
    return {
        name: list(found.items(name)) if found.is_list(name) else found.value(name)
        for name in reversed(list(found))
    }


@pytest.fixture(params=[1, 2, 7, 1 << 20])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many bytes are read at once: values and letters are cut at every place."""
    monkeypatch.setattr(json_sections, "_CHUNK", request.param)
    return int(request.param)


@settings(max_examples=60)
@given(document=st.dictionaries(st.text(), VALUES, max_size=4), layout=st.sampled_from(LAYOUTS))
def test_every_object_is_read_as_python_reads_it(document: dict[str, Any], layout: dict[str, Any]) -> None:
    assert read(json.dumps(document, **layout)) == document


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_that_are_cut_are_read_whole(layout: dict[str, Any]) -> None:
    document = {
        "numbers": [1, -2.5e-7, 123456789012345678901234567890, 0],
        "lone": 12345.678,
        'é " \\ \n \U0001f600': [{"ł": ["\u2028", "\\u0041"]}, [[]], {}],
        "none": [],
        "": {"": None},
        "last": 17,
    }
    text = json.dumps(document, **layout)
    assert read(f" {text}\n\n") == document
    assert list(sections(text)) == list(document)


BROKEN = [
    '{"a": [1, 2}',
    '{"a": [1, 2,]}',
    '{"a": [1 2]}',
    '{"a": [,1]}',
    '{"a": 1,}',
    '{"a": 1',
    '{"a": [1',
    '{"a": "b}',
    '{"a" 1}',
    '{"a": }',
    "{1: 2}",
    "{a: 1}",
    '{"a": 1} x',
    '{"a": 1}{}',
    '{"a": [1]]}',
    '{"a": tru}',
    '{"a": [' + "[" * 100_000 + "]" * 100_000 + "]}",
    '{"a": ' + "9" * 5000 + "}",
]


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("text", BROKEN[:-2])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        json.loads(text)
    with pytest.raises(InvalidInputError, match="the file must be valid JSON; it is invalid or truncated"):
        read(text)


@pytest.mark.parametrize("text", BROKEN[-2:])
def test_what_is_too_deep_or_too_long_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="it is invalid or truncated"):
        read(text)


def test_an_object_that_is_cut_off_anywhere_is_refused() -> None:
    text = json.dumps({"rows": [[1, "é"], [2, "b"]], "name": "v"}, ensure_ascii=False)
    for end in range(1, len(text)):
        with pytest.raises(InvalidInputError, match="it is invalid or truncated"):
            read(text[:end])


def test_bytes_that_are_no_utf8_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="it is invalid or truncated"):
        JsonSections(io.BytesIO(b'{"a": "\xff"}'), "the file")


@pytest.mark.parametrize("text", ["", " ", "[]", "17", '"text"', "null", "\ufeff{}"])
def test_anything_but_an_object_has_no_keys(text: str) -> None:
    assert list(sections(text)) == []


def test_a_key_that_is_there_twice_is_refused() -> None:
    """Python's own reader would take the second; another reader of the same file may take the first."""
    with pytest.raises(InvalidInputError, match="must name every key once; 'a' is there twice"):
        sections('{"a": [1], "b": 2, "a": []}')


def test_a_list_that_is_changed_between_two_readings_is_refused() -> None:
    file = io.BytesIO(b'{"rows": [1, 2, 3]}')
    found = JsonSections(file, "the file")
    assert list(found.items("rows")) == [1, 2, 3]
    assert list(found.items("rows")) == [1, 2, 3]
    file.getbuffer()[10:11] = b"7"
    with pytest.raises(VaultError, match="the file was changed while it was read"):
        list(found.items("rows"))


def test_two_lists_are_read_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_sections, "_CHUNK", 3)
    found = sections(json.dumps({"a": list(range(50)), "b": list(range(50, 100))}))
    assert [b - a for a, b in zip(found.items("a"), found.items("b"), strict=True)] == [50] * 50


def test_a_long_list_is_read_in_constant_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_sections, "_CHUNK", 1 << 13)
    rows = 10_000
    data = json.dumps({"rows": [["ab" * 32, number] for number in range(rows)]}).encode()
    tracemalloc.start()
    try:
        total = sum(number for _, number in JsonSections(io.BytesIO(data), "the file").items("rows"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert total == rows * (rows - 1) // 2
    assert len(data) > 700_000
    assert peak < len(data) / 4  # a few buffers; json.loads takes several times the file
