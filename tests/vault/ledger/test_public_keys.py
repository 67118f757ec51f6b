"""The published list of public keys: what it says, and that only a whole list is read back."""

import copy
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError, VaultError
from armnesia.vault import BareKeys, Head, PublicKeys, SigningKey, trusted_keys
from armnesia.vault.ledger.public_keys import key_history

TIMES = [f"2026-11-{day}T10:42:07.123456Z" for day in (15, 16, 17)]
ENTRIES: list[dict[str, Any]] = [
    {"sequence": 1, "kind": "init", "time": TIMES[0], "public_key": "aa" * 32},
    {"sequence": 2, "kind": "forget", "time": TIMES[0]},
    {
        **{"sequence": 5, "kind": "rotate_signing", "time": TIMES[1], "version": 2, "public": "bb" * 32},
        **{"erased_through": 3, "compromised_since": 2},
    },
    {"sequence": 9, "kind": "rotate_signing", "time": TIMES[2], "version": 3, "public": "cc" * 32},
]
KEYS = PublicKeys("v-1", Head(9, "ab" * 32), key_history(ENTRIES))
DOCUMENT: dict[str, Any] = KEYS.to_dict()


def test_the_history_of_the_keys() -> None:
    assert KEYS.keys == (
        SigningKey(1, "aa" * 32, 1, 4, TIMES[0], TIMES[1], erased_through=3, compromised_since=2),
        SigningKey(2, "bb" * 32, 5, 8, TIMES[1], TIMES[2], erased_through=None, compromised_since=None),
        SigningKey(3, "cc" * 32, 9, None, TIMES[2], None, erased_through=None, compromised_since=None),
    )
    assert list(KEYS) == ["aa" * 32, "bb" * 32, "cc" * 32]
    assert (KEYS[-1], KEYS[:2]) == ("cc" * 32, ("aa" * 32, "bb" * 32))
    assert KEYS.named("bb" * 32) == KEYS.keys[1]
    assert KEYS.named("dd" * 32) is None
    assert [key.retired for key in KEYS.keys] == [True, True, False]


@pytest.mark.parametrize(
    "changes",
    [
        {"public": "bb"},
        {"public": None},
        {"version": 3},
        {"version": None},
        {"kind": "init", "public_key": "bb" * 32},
        {"compromised_since": 5},
        {"compromised_since": 0},
        {"compromised_since": True},
        {"erased_through": 5},
        {"erased_through": -1},
        {"erased_through": "3"},
    ],
)
def test_an_entry_that_puts_no_key_in_use_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        key_history([*ENTRIES[:2], {**ENTRIES[2], **changes}, ENTRIES[3]])


def test_a_ledger_begins_with_the_first_key() -> None:
    with pytest.raises(InvalidInputError, match="entry 5 must name signing key 1"):
        key_history(ENTRIES[2:])


def test_the_list_is_read_back_in_any_layout(tmp_path: Path) -> None:
    layout: dict[str, Any]
    for layout in ({}, {"indent": 2}, {"sort_keys": True}):
        text = json.dumps(DOCUMENT, **layout)
        assert PublicKeys.from_json(text) == KEYS
        (tmp_path / "keys.json").write_text(text, encoding="utf-8")
        assert PublicKeys.read(tmp_path / "keys.json") == KEYS


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths to all values of a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, item in inner for place in places(item, (*path, name)))]


OTHER_VALUES = st.one_of(
    st.none(),
    st.integers(-2, 12),
    st.sampled_from([*TIMES, "soon", "aa" * 32, "zz" * 32, "", "9:ab", [], {}]),
)


@given(st.sampled_from(places(DOCUMENT)[1:]), OTHER_VALUES)
def test_a_list_with_another_value_is_refused_or_means_something_else_that_can_be(
    place: tuple[Any, ...], value: Any
) -> None:
    """A single changed number that still fits is another list; anything that does not fit is refused."""
    changed: Any = copy.deepcopy(DOCUMENT)
    *above, last = place
    inner = changed
    for name in above:
        inner = inner[name]
    same = inner[last] == value and type(inner[last]) is type(value)
    inner[last] = value
    text = json.dumps(changed)
    if same:
        assert PublicKeys.from_json(text) == KEYS
    elif last in ("erased_through", "compromised_since", "vault") or place == ("keys", 0, "since"):
        with suppress(VaultError):
            assert PublicKeys.from_json(text) != KEYS
    else:
        with pytest.raises(VaultError, match="it has been changed"):
            PublicKeys.from_json(text)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", "null", "[" * 100_000, json.dumps({**DOCUMENT, "keys": []}), '"keys"']
)
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(VaultError, match="must be as armnesia public-key --json prints it"):
        PublicKeys.from_json(text)


@pytest.mark.parametrize("number", [0, 5, 9, True, 2.5])
def test_a_key_is_compromised_in_its_range_or_not_at_all(number: Any) -> None:
    changed = copy.deepcopy(DOCUMENT)
    changed["keys"][0]["compromised_since"] = number
    with pytest.raises(VaultError):
        PublicKeys.from_json(json.dumps(changed))


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ({"schema": "armnesia.keys/1", "signing_keys": [], "vault": "v-1"}, "armnesia.keys/1"),
        ({"body": {}, "signature": ""}, "no schema"),
    ],
)
def test_another_kind_of_file_is_named_as_such(document: dict[str, Any], named: str) -> None:
    """The file of the private keys was said to be a list that has been changed."""
    with pytest.raises(VaultError, match=rf"this is another kind of file \({named}\)"):
        PublicKeys.from_json(json.dumps(document))


# Keys as they are named: a list, a key, or a file of keys.


def test_keys_are_read_from_whatever_names_them(tmp_path: Path) -> None:
    listed, bare = tmp_path / "list.json", tmp_path / "keys.txt"
    listed.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    bare.write_text(f"{'aa' * 32}\n{'bb' * 32}\n", encoding="utf-8")
    assert trusted_keys(str(listed)) == trusted_keys([str(listed)]) == trusted_keys(KEYS) == KEYS
    assert trusted_keys("cc" * 32) == BareKeys(("cc" * 32,))
    assert trusted_keys([str(bare), "cc" * 32]) == BareKeys(tuple(KEYS))


def test_bare_keys_know_nothing_of_themselves() -> None:
    bare = BareKeys(tuple(KEYS))
    assert (list(bare), bare[-1], bare[:2]) == (list(KEYS), KEYS[-1], KEYS[:2])
    assert (bare.of_vault, bare.as_of, bare.ranges) == (None, None, ())
    assert bare.named("aa" * 32) is None
    assert (KEYS.of_vault, KEYS.as_of, KEYS.ranges) == (KEYS.vault, KEYS.head, KEYS.keys)
    with pytest.raises(InvalidInputError, match="a public key must be 64 hexadecimal digits"):
        BareKeys(("ab",))


def test_what_names_no_keys_is_refused(tmp_path: Path) -> None:
    listed, empty, other = (tmp_path / name for name in ("list.json", "empty.txt", "other.txt"))
    listed.write_text(json.dumps(DOCUMENT), encoding="utf-8")
    empty.write_text("\n", encoding="utf-8")
    other.write_text("not a key\n", encoding="utf-8")
    for names, sentence in (
        ([], "public_key must name at least one key; got none"),
        ([str(empty)], "public_key must name at least one key; got an empty file"),
        (["missing"], "public_key must be a key or a file that exists; a public key must be 64"),
        ([str(other)], f"public_key must be a key or a file of keys; in {other}, a public key must be"),
        ([str(listed), "aa" * 32], f"{listed} is a list of public keys: give no other public_key"),
    ):
        with pytest.raises(InvalidInputError) as refusal:
            trusted_keys(names)
        assert str(refusal.value).startswith(sentence)
