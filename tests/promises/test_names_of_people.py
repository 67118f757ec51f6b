"""Promise 7: what is held is never reported as not held, in any usual spelling of the name."""

from pathlib import Path

import pytest

from tests.promises.driver import Driven, Refused, Row, driven

SPELLINGS = [
    ("ann lee", "ANN LEE"),
    ("Ann.Lee@example.org", "ann.lee@example.org"),
    ("ann@example.org", "Ann@example.org"),
    ("user-7", "user_7"),
    ("user-7", "user-007"),
    ("USER_7", "user_7"),
    ("7", "007"),
    ("7", "7.0"),
    ("007", "7"),
    ("6f9619ff-8b86-d011-b42d-00c04fc964ff", "6F9619FF-8B86-D011-B42D-00C04FC964FF"),
]


@pytest.mark.parametrize(("held", "asked"), SPELLINGS)
def test_another_usual_spelling_is_refused_and_names_what_is_held(
    tmp_path: Path, held: str, asked: str
) -> None:
    vault = driven("sqlite", tmp_path)
    vault.add([Row("1", held, "A", 4), Row("2", "somebody", "B", 4)])
    before = vault.head()
    with pytest.raises(Refused) as refused:
        vault.forget(asked)
    assert held in refused.value.sentence
    assert "--exactly" in refused.value.sentence
    assert vault.head() == before
    assert vault.forget(held).records == 1


def test_on_postgresql_too_and_exactly_means_the_name_as_it_is(vault: Driven) -> None:
    vault.add([Row("1", "Ann", "A", 4)])
    with pytest.raises(Refused, match="Ann"):
        vault.forget("ann")
    assert vault.forget("ann", options=("--exactly",)).held == 0
    assert vault.forget("Ann").records == 1


def test_a_preview_refuses_the_same_names(vault: Driven) -> None:
    vault.add([Row("1", "Ann", "A", 4)])
    with pytest.raises(Refused, match="Ann"):
        vault.preview("ann")


@pytest.mark.parametrize("name", ["ann", "7.5", "0x7", "1e3", ""])
def test_what_is_no_integer_is_no_name_where_people_are_integers(tmp_path: Path, name: str) -> None:
    vault = driven("sqlite", tmp_path, user_type="integer")
    vault.add([Row("1", "7", "A", 4)])
    with pytest.raises(Refused):
        vault.forget(name)


def test_the_first_ingest_fixes_how_people_are_named(tmp_path: Path) -> None:
    from tests.databases import fresh_place

    vault = Driven(fresh_place("sqlite", tmp_path), tmp_path)
    vault.run("init", "--actions", "A,B")
    vault.add([Row("1", "12", "A", 4), Row("2", "13", "B", 4)])
    assert vault.forget("0012.0").records == 1
    with pytest.raises(Refused, match="integer"):
        vault.add([Row("3", "ann", "A", 4)])


def test_who_was_forgotten_before_is_never_reported_as_not_held(vault: Driven) -> None:
    vault.add([Row("1", "ann", "A", 4), Row("2", "bob", "B", 4)])
    vault.forget("ann")
    assert "ann" in str(vault.forgotten_before("ann", "bob"))
