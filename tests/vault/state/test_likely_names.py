"""The likely spellings of a name, which are looked up if the vault holds nothing of it."""

import pytest

from armnesia.vault.state.likely_names import likely_spellings


@pytest.mark.parametrize(
    ("asked", "held"),
    [
        ("ann lee", "Ann Lee"),
        ("ANN.LEE@EX.ORG", "Ann.Lee@ex.org"),
        ("ann@ex.org", "Ann@ex.org"),
        ("user_7", "user-7"),
        ("user-7", "user-0007"),
        ("user-0007", "user-7"),
        ("7", "7.0"),
        ("-7.00", "-7"),
        ("0", "00"),
        ("a\n7", "a\n07"),
    ],
)
def test_a_likely_spelling_is_listed(asked: str, held: str) -> None:
    assert held in likely_spellings(asked)


@pytest.mark.parametrize("name", ["ann", "Ann-7_x", "0", "1.5", "", "@", "\u0130", "7" * 60, "x" * 5000])
def test_there_are_few_and_the_name_is_none_of_them(name: str) -> None:
    found = likely_spellings(name)
    assert name not in found
    assert len(found) == len(set(found)) <= 15
