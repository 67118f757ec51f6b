"""What all erasers promise: rows of people are deleted, others stay, and every step can be repeated.

That an erasure which was killed is done by the next one: tests/promises/test_lakes.py.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.logs.erase import eraser as eraser_module
from armnesia.logs.erase import parquet, tables
from armnesia.logs.statements import Chosen
from tests.logs.erasing.rows import BOB, PEOPLE, eraser_of, filled, left, names, of_people, stored
from tests.promises.driver import Row
from tests.promises.lakes import Folder, Lake, Sqlite

NEW_ROW = Row("event-9", PEOPLE[2], "A", 4)


def test_rows_of_people_are_deleted_and_no_others(lake: Lake) -> None:
    rows, eraser = filled(lake), eraser_of(lake)
    chosen = Chosen(users=[PEOPLE[1]], ids=["event-1-4", "event-2-1"])  # the latter is Bob's as well
    assert eraser.find(chosen) == eraser.delete(chosen) == 7
    kept = left(rows, PEOPLE[1], events=("event-1-4",))
    assert stored(lake) == kept
    for again in (eraser, eraser_of(lake)):
        assert again.purge(ignore_retention=True)
        assert (again.find(chosen), again.delete(chosen)) == (0, 0)
    assert stored(lake) == kept
    content = lake.bytes()
    assert [name for name in (*PEOPLE, "event-1-4") if name.encode() in content] == [PEOPLE[0], PEOPLE[2]]


def test_every_spelling_of_a_name_is_erased(lake: Lake) -> None:
    lake.append(of_people("7", "07", "7.0", " +7 ", "70", "-7", None))
    if isinstance(lake, Sqlite):  # whose columns may have values of any type
        lake.append(of_people(7, 7.0, 70, "7"))
    eraser = eraser_of(lake, UserType.INTEGER)
    number = eraser.find(Chosen(users=["7"]))
    assert eraser.delete(Chosen(users=["7"])) == number == (7 if isinstance(lake, Sqlite) else 4)
    assert set(map(str, names(lake))) == {"70", "-7", "None"}


def test_names_of_other_people_are_no_spellings(lake: Lake) -> None:
    """As texts, names are told apart by every byte."""
    chosen = ["bob", "bo%", "'; DROP TABLE clicks; --", "\\bob", "bob\n\t"]
    others = ["Bob", "bob ", "b_b", "bób"]
    lake.append(of_people(*others, *chosen))
    assert eraser_of(lake).delete(Chosen(users=chosen)) == 5
    assert names(lake) == sorted(others)


def test_what_is_not_there_or_refused_changes_nothing(lake: Lake) -> None:
    filled(lake)
    eraser, state = eraser_of(lake), lake.state()
    for chosen in (Chosen(), Chosen(users=["nobody", "' OR true --"], ids=["none"])):
        assert (eraser.find(chosen), eraser.delete(chosen)) == (0, 0)
    with pytest.raises(UnsupportedError, match="open the source without them"):
        eraser_of(lake, where="reward > 0").delete(BOB)
    with pytest.raises(InvalidInputError, match="given ids need the id column"):
        eraser_of(lake, id=None).delete(Chosen(ids=["event-1-4"]))
    with pytest.raises(InvalidInputError, match="given users need the user column"):
        eraser_of(lake, user=None).delete(BOB)
    assert lake.state() == state


def during(monkeypatch: pytest.MonkeyPatch, lake: Lake, act: Callable[[], None]) -> None:
    """Do something once when it is known which rows or values will be deleted, before they are."""
    waiting = [act]

    def beside(function: Callable[..., Any]) -> Callable[..., Any]:
        def acting(*arguments: Any) -> Any:
            found = function(*arguments)
            if waiting:
                waiting.pop()()
            return found

        return acting

    for module in (eraser_module, tables):
        monkeypatch.setattr(module, "stored_values", beside(eraser_module.stored_values))
    if isinstance(lake, Folder):
        monkeypatch.setattr(parquet, "_write", beside(parquet._write))


def test_rows_that_another_writer_adds_meanwhile_stay(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = filled(lake)
    during(monkeypatch, lake, lambda: lake.append([NEW_ROW]))
    assert eraser_of(lake).delete(BOB) == 6
    assert stored(lake) == left([*rows, NEW_ROW], PEOPLE[1])


def test_rows_of_the_people_that_come_meanwhile_are_told(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake.append(of_people("7", "8"))
    during(monkeypatch, lake, lambda: lake.append(of_people("07")))
    eraser = eraser_of(lake, UserType.INTEGER)
    with pytest.raises(InvalidLogError, match="they came in meanwhile; erase again"):
        eraser.delete(Chosen(users=["7"]))
    assert eraser.delete(Chosen(users=["7"])) == 1
    assert names(lake) == ["8"]


def test_a_deletion_of_other_rows_is_refused(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: who deletes Bob deletes a row of Ann's as well."""
    rows, eraser = filled(lake), eraser_of(lake)
    values, write = eraser_module.stored_values, parquet._write
    for module in (eraser_module, tables):
        monkeypatch.setattr(module, "stored_values", lambda *given: [*values(*given), PEOPLE[0]])

    def write_less(path: str, target: str, rows: Any) -> None:
        write(path, target, np.union1d(rows, [0]))

    monkeypatch.setattr(parquet, "_write", write_less)
    with pytest.raises(InvalidLogError, match=r"rows of others|other rows") as caught:
        eraser.delete(BOB)
    if isinstance(eraser, eraser_module.LakeEraser):
        assert "restore the version before" in str(caught.value)
    else:
        assert stored(lake) == left(rows)
