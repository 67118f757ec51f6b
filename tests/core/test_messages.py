"""Values as error messages show them."""

from armnesia.core.messages import listed


def test_long_lists_of_labels_are_shortened_in_messages() -> None:
    assert listed(["A", 1]) == "'A', 1"
    assert listed(range(8)) == "0, 1, 2, 3, 4, 5, 6, 7"
    assert listed(range(9)) == "0, 1, 2, 3, 4, 5, 6, 7, … (9 in all)"
