"""Values as messages show them."""

import pytest

from armnesia.core.messages import all_of, any_of, counted, listed, printable


def test_long_lists_of_labels_are_shortened_in_messages() -> None:
    assert listed(["A", 1]) == "'A', 1"
    assert listed(range(8)) == "0, 1, 2, 3, 4, 5, 6, 7"
    assert listed(range(9)) == "0, 1, 2, 3, 4, 5, 6, 7, … (9 in all)"


@pytest.mark.parametrize(
    ("names", "either", "every"),
    [(["a"], "a", "a"), (["a", "b"], "a or b", "a and b"), (["a", "b", "c"], "a, b or c", "a, b and c")],
)
def test_names_are_joined_by_or_and_by_and(names: list[str], either: str, every: str) -> None:
    assert (any_of(names), all_of(names)) == (either, every)


def test_one_of_a_thing_is_singular() -> None:
    assert [counted(n, "record") for n in (0, 1, 2)] == ["0 records", "1 record", "2 records"]
    assert [counted(n, "entry", "entries") for n in (0, 1, 2)] == ["0 entries", "1 entry", "2 entries"]


def test_only_the_characters_to_keep_can_move_the_cursor() -> None:
    assert printable("é a\n\tb\x1b[2J") == "é a\\n\\tb\\x1b[2J"
    assert printable("é a\n\tb\x1b[2J", keep="\n") == "é a\n\\tb\\x1b[2J"
