"""The rows that the erasers delete in tests, in any kind of log, and how an eraser is made."""

from collections.abc import Iterable
from typing import Any

from armnesia.core.identifiers import UserType
from armnesia.logs.erase.eraser import Eraser
from armnesia.logs.source import Source, open_source
from armnesia.logs.statements import Chosen
from tests.promises.driver import Row
from tests.promises.lakes import Lake

PEOPLE = ("ann-of-the-hill", "bob-the-builder", "cat-from-the-sea")
ANN, BOB, CAT = (Chosen(users=[name]) for name in PEOPLE)
NAMED: dict[str, Any] = {"action": "arm", "reward": "reward", "user": "person", "id": "event"}


def opened(lake: Lake, user_type: UserType | None = None, **options: Any) -> Source:
    return open_source(lake.source, **NAMED | {"table": lake.table} | options).named_by(user_type)


def eraser_of(lake: Lake, user_type: UserType | None = None, **options: Any) -> Eraser:
    return opened(lake, user_type, **options).eraser()


def of_people(*people: Any, arm: str = "A") -> list[Row]:
    """A row of each."""
    return [Row(f"event-{at}", person, arm, 4) for at, person in enumerate(people)]


def made_rows(part: int) -> list[Row]:
    """Twelve rows of three people and of nobody."""
    people: tuple[Any, ...] = (*PEOPLE, None)
    return [Row(f"event-{part}-{at}", people[at % 4], "AB"[at % 2], at % 3) for at in range(12)]


def filled(lake: Lake) -> list[Row]:
    """Two parts of rows are written; all of them."""
    parts = [made_rows(part) for part in (1, 2)]
    for each in parts:
        lake.append(each)
    return [row for each in parts for row in each]


def left(rows: Iterable[Row], *people: Any, events: tuple[str, ...] = ()) -> list[tuple[Any, ...]]:
    """The values of the rows of others, sorted."""
    return sorted(
        (row.values for row in rows if row.person not in people and row.event not in events), key=repr
    )


def stored(lake: Lake) -> list[tuple[Any, ...]]:
    return sorted(lake.values(), key=repr)


def names(lake: Lake) -> list[Any]:
    return sorted((row[1] for row in lake.values()), key=repr)
