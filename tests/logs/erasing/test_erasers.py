"""What all erasers promise: rows of people are deleted, others stay, and every step can be repeated."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import ArmnesiaError, InvalidInputError, InvalidLogError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.logs.erase import lakes, parquet, tables
from armnesia.logs.erase.eraser import Eraser
from armnesia.logs.statements import Chosen
from tests.logs.erasing.stores import ParquetStore, Row, Store

PEOPLE = ("ann-of-the-hill", "bob-the-builder", "cat-from-the-sea")
BOB = Chosen(users=[PEOPLE[1]])


def made_rows(part: int, number: int = 12) -> list[Row]:
    """Rows of three people and of nobody."""
    users = (*PEOPLE, None)
    return [
        (users[at % 4], "AB"[at % 2], (at % 3) / 2, f"event-{part}-{at}", 100 * part + at)
        for at in range(number)
    ]


def key(row: Row) -> tuple[str, ...]:
    return tuple(map(repr, row))


def without(rows: list[Row], *users: Any, events: tuple[str, ...] = ()) -> list[Row]:
    return sorted((row for row in rows if row[0] not in users and row[3] not in events), key=key)


def filled(store: Store) -> list[Row]:
    """Two parts of rows are written; all of them."""
    parts = [made_rows(part) for part in (1, 2)]
    for each in parts:
        store.append(each)
    return [row for each in parts for row in each]


def test_rows_of_people_are_deleted_and_no_others(store: Store) -> None:
    rows, eraser = filled(store), store.eraser()
    chosen = Chosen(users=[PEOPLE[1]], ids=["event-1-4", "event-2-1"])  # the latter is Bob's as well
    assert eraser.find(chosen) == 7
    assert eraser.delete(chosen) == 7
    assert sorted(store.rows(), key=key) == without(rows, PEOPLE[1], events=("event-1-4",))
    assert eraser.purge(ignore_retention=True) is None
    assert sorted(store.rows(), key=key) == without(rows, PEOPLE[1], events=("event-1-4",))
    assert (store.files_with(PEOPLE[1]), store.files_with("event-1-4")) == (0, 0)
    assert store.files_with(PEOPLE[2]) > 0, "names can be found at all"
    for again in (eraser, store.eraser()):
        assert (again.find(chosen), again.delete(chosen)) == (0, 0)
        assert again.purge(ignore_retention=True) is None
    assert sorted(store.rows(), key=key) == without(rows, PEOPLE[1], events=("event-1-4",))
