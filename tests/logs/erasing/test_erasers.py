"""What all erasers promise: rows of people are deleted, others stay, and every step can be repeated."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.logs.erase import eraser as eraser_module
from armnesia.logs.erase import lakes, parquet, tables
from armnesia.logs.erase.eraser import Eraser
from armnesia.logs.statements import Chosen
from tests.databases import postgres_url
from tests.logs.erasing.stores import (
    PEOPLE,
    STORES,
    ParquetStore,
    SQLiteStore,
    Store,
    filled,
    key,
    without,
)

ANN, BOB, CAT = (Chosen(users=[name]) for name in PEOPLE)
NEW_ROW = (PEOPLE[2], "A", 1.0, "event-9", 9)


def test_rows_of_people_are_deleted_and_no_others(store: Store) -> None:
    rows, eraser = filled(store), store.eraser()
    chosen = Chosen(users=[PEOPLE[1]], ids=["event-1-4", "event-2-1"])  # the latter is Bob's as well
    assert eraser.find(chosen) == 7
    assert eraser.delete(chosen) == 7
    left = without(rows, PEOPLE[1], events=("event-1-4",))
    assert sorted(store.rows(), key=key) == left
    assert eraser.purge(ignore_retention=True) is None
    assert sorted(store.rows(), key=key) == left
    assert (store.files_with(PEOPLE[1]), store.files_with("event-1-4")) == (0, 0)
    assert store.files_with(PEOPLE[2]) > 0, "names can be found at all"
    for again in (eraser, store.eraser()):
        assert (again.find(chosen), again.delete(chosen)) == (0, 0)
        assert again.purge(ignore_retention=True) is None
    assert sorted(store.rows(), key=key) == left


def test_every_spelling_of_a_name_is_erased(store: Store) -> None:
    spellings = ["7", "07", "7.0", " +7 ", "70", "-7", None]
    store.append([(name, "A", 1.0, f"event-{at}", at) for at, name in enumerate(spellings)])
    if isinstance(store, SQLiteStore):  # whose columns may have values of any type
        store.append([(name, "B", 1.0, f"other-{at}", at) for at, name in enumerate([7, 7.0, 70, "7"])])
    eraser = store.eraser(UserType.INTEGER)
    number = eraser.find(Chosen(users=["7"]))
    assert number == (7 if isinstance(store, SQLiteStore) else 4)
    assert eraser.delete(Chosen(users=["7"])) == number
    names = [str(row[0]) for row in store.rows()]
    assert sorted(names) == sorted(["70"] * (len(names) - 2) + ["-7", "None"])


def test_names_of_other_people_are_no_spellings(store: Store) -> None:
    """As texts, names are told apart by every byte."""
    names = ["Bob", "bob", "bob ", "bo%", "b_b", "bób", "'; DROP TABLE clicks; --", "\\bob", "bob\n\t"]
    store.append([(name, "A", 1.0, f"event-{at}", at) for at, name in enumerate(names)])
    chosen = ["bob", "bo%", "'; DROP TABLE clicks; --", "\\bob", "bob\n\t"]
    assert store.eraser().delete(Chosen(users=chosen)) == 5
    assert sorted(row[0] for row in store.rows()) == sorted(set(names) - set(chosen))


def test_nothing_to_delete_changes_nothing(store: Store) -> None:
    filled(store)
    eraser, state = store.eraser(), store.state()
    for chosen in (Chosen(), Chosen(users=["nobody", "' OR true --"], ids=["none"])):
        assert (eraser.find(chosen), eraser.delete(chosen)) == (0, 0)
    assert store.state() == state


def refusal(eraser: Eraser) -> str:
    with pytest.raises((UnsupportedError, InvalidLogError)) as caught:
        eraser.delete(BOB)
    return str(caught.value)


def test_a_source_that_is_read_with_conditions_is_refused(store: Store) -> None:
    filled(store)
    state = store.state()
    assert "open the source without them" in refusal(store.eraser(where="reward > 0"))
    assert store.state() == state


def test_people_are_looked_for_in_columns_that_there_are(store: Store) -> None:
    filled(store)
    with pytest.raises(InvalidInputError, match="given ids need the id column"):
        store.eraser(id=None).delete(Chosen(ids=["event-1-4"]))
    with pytest.raises(InvalidInputError, match="given users need the user column"):
        store.eraser(user=None).delete(BOB)


def during(monkeypatch: pytest.MonkeyPatch, store: Store, act: Callable[[], None]) -> None:
    """Do something once when it is known which rows or values will be deleted, before they are."""
    waiting = [act]

    def beside(function: Callable[..., Any]) -> Callable[..., Any]:
        def acting(*arguments: Any) -> Any:
            found = function(*arguments)
            if waiting:
                waiting.pop()()
            return found

        return acting

    for module in (lakes, tables):
        monkeypatch.setattr(module, "stored_values", beside(eraser_module.stored_values))
    if isinstance(store, ParquetStore):
        monkeypatch.setattr(parquet, "_write", beside(parquet._write))


def test_rows_that_another_writer_adds_meanwhile_stay(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = filled(store)
    during(monkeypatch, store, lambda: store.append([NEW_ROW]))
    assert store.eraser().delete(BOB) == 6
    assert sorted(store.rows(), key=key) == without([*rows, NEW_ROW], PEOPLE[1])


def test_rows_of_the_people_that_come_meanwhile_are_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.append([("7", "A", 1.0, "event-1", 1), ("8", "B", 0.0, "event-2", 2)])
    during(monkeypatch, store, lambda: store.append([("07", "A", 1.0, "event-3", 3)]))
    eraser = store.eraser(UserType.INTEGER)
    with pytest.raises(InvalidLogError, match="they came in meanwhile; erase again"):
        eraser.delete(Chosen(users=["7"]))
    assert eraser.delete(Chosen(users=["7"])) == 1
    assert [row[0] for row in store.rows()] == ["8"]


def test_a_deletion_of_other_rows_is_taken_back(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A planted fault: who deletes Bob deletes a row of Ann's as well."""
    rows, eraser = filled(store), store.eraser()
    values, write = eraser_module.stored_values, parquet._write
    for module in (lakes, tables):
        monkeypatch.setattr(module, "stored_values", lambda *given: [*values(*given), PEOPLE[0]])

    def write_less(path: str, target: str, rows: Any) -> None:
        write(path, target, np.union1d(rows, [0]))

    monkeypatch.setattr(parquet, "_write", write_less)
    with pytest.raises(InvalidLogError, match=r"rows of others|other rows"):
        eraser.delete(BOB)
    monkeypatch.undo()
    assert sorted(store.rows(), key=key) == without(rows)
    assert store.eraser().delete(BOB) == 6


@pytest.mark.slow
@pytest.mark.parametrize("kind", STORES)
def test_an_erasure_that_was_killed_after_any_of_its_changes_is_run_again(kind: str, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    if kind == "PostgreSQL":
        environment["ARMNESIA_TEST_POSTGRES"] = postgres_url()
    command = [sys.executable, "-m", "tests.logs.erasing.interrupted", kind, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    fewest = {"Parquet": 10, "Delta": 3, "Iceberg": 15, "SQLite": 1, "PostgreSQL": 4}
    assert int(done.stdout) >= fewest[kind]
