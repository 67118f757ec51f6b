"""What holds for every kind of source: the rows of some people go, all others stay, and nobody is named."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from armnesia.core.errors import InvalidInputError, InvalidLogError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.logs import open_source
from armnesia.logs.conditions import conditions
from armnesia.logs.erasing import Erasure, ErasurePlan, People, SourceState, open_eraser
from tests.databases import postgres_url
from tests.logs.erasing.stores import (
    ParquetStore,
    Row,
    Store,
    arrow_rows,
    found_in,
    in_order,
    made_rows,
    name_of,
    needles,
)

pytestmark = pytest.mark.slow  # tests/promises erase every kind quickly


def of(people: Sequence[str], rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row[0] in people]


def others(people: Sequence[str], rows: Sequence[Row]) -> list[Row]:
    return in_order(row for row in rows if row[0] not in people)


def erase(store: Store, people: People) -> tuple[ErasurePlan, Erasure]:
    """Plan, store the plan as JSON, and apply it with an eraser of its own."""
    plan = store.eraser().plan(people)
    assert plan is not None
    stored = ErasurePlan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert stored == plan
    return plan, store.eraser().apply(stored, people)


@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.slow), 50])
def test_rows_of_people_go_and_all_others_stay(store: Store, number: int) -> None:
    rows = store.with_parts()
    names = [name_of(person) for person in range(number)]
    assert of(names, rows)
    people = People.named(names)
    plan, erasure = erase(store, people)
    # Only files are written again at once; all others still hold the rows somewhere.
    in_place = isinstance(store, ParquetStore)
    assert erasure.state == (SourceState.PURGED if in_place else SourceState.LOGICALLY_DELETED)
    assert in_order(store.rows()) == others(names, rows)
    text = json.dumps([plan.to_dict(), erasure.to_dict()])
    assert found_in([text.encode(), repr(people).encode()], needles(of(names, rows))) == set()
    assert store.eraser().plan(people) is None


@pytest.mark.parametrize("number", [1, pytest.param(50, marks=pytest.mark.slow)])
def test_after_a_purge_no_file_has_a_name_or_a_reward(store: Store, number: int) -> None:
    rows = store.with_parts()
    # The first and last names in order, which are in the statistics of files, are among them.
    names = sorted({str(row[0]) for row in rows if row[0]})
    names = [*names[:number], *names[-number:]]
    gone = needles(of(names, rows))
    assert found_in(store.contents(), gone) >= {name.encode() for name in names}
    people = People.named(names)
    plan, applied = erase(store, people)
    if found_in(store.contents(), gone):
        assert applied.state == SourceState.LOGICALLY_DELETED
        assert applied.remains
    erasure = store.eraser().purge(plan, people, ignore_retention=True)
    assert erasure.state == SourceState.PURGED
    assert found_in(store.contents(), gone) == set()
    assert in_order(store.rows()) == others(names, rows)
    assert store.eraser().purge(plan, people, ignore_retention=True).state == SourceState.PURGED
    assert found_in(store.contents(), needles(others(names, rows)[:50])), "the search finds what is there"


def test_people_recognised_by_a_function(store: Store) -> None:
    rows = store.with_parts()
    wanted = {name_of(person) for person in range(3)}
    asked: list[str] = []

    def recognise(names: Sequence[str]) -> list[bool]:
        asked.extend(names)
        return [name in wanted for name in names]

    erase(store, People.recognised_by(recognise))
    assert in_order(store.rows()) == others(sorted(wanted), rows)
    assert {row[0] for row in rows} - {None} <= set(asked)  # and words of metadata, and names of files


def test_every_spelling_of_a_name_is_erased(store: Store) -> None:
    spellings = ["Zoë", "  Zoë ", "Zoe\u0308", "Zoë\u00a0"]
    similar = ["zoë", "Zoe", "Zoë Zoë", "Zo ë"]
    rows = [(name, "A", 0.125 * place, "page") for place, name in enumerate([*spellings, *similar])]
    store.append(rows)
    erase(store, People.named(["Zoë"], UserType.TEXT))
    assert in_order(store.rows()) == others(spellings, rows)
    exact = People.named(["zoë"])
    erase(store, exact)
    assert in_order(store.rows()) == others([*spellings, "zoë"], rows)


def test_numbers_in_text_are_erased_in_every_spelling(store: Store) -> None:
    names = ["7", "07", "7.0", "+7", " 7", "70", "-7", "1e1"]
    rows = [(name, "A", 0.125 * place, "page") for place, name in enumerate(names)]
    store.append(rows)
    erase(store, People.named(["7"], UserType.INTEGER))
    assert in_order(store.rows()) == others(["7", "07", "7.0", "+7", " 7"], rows)


def test_decimals_as_they_are_written_are_refused(store: Store) -> None:
    store.append(made_rows(0))
    source = store.open().with_decimals_as_written()
    with pytest.raises(UnsupportedError, match="decimals are read as they are written"):
        open_eraser(source)


def test_records_are_erased_by_their_ids(store: Store) -> None:
    rows = [(name_of(place), "A", place / 16, f"id-{place}") for place in range(10)]
    store.append(rows)
    description = store.open().description
    columns: dict[str, Any] = {"action": "action", "reward": "reward", "user": "user", "id": "page"}
    location = postgres_url() if description["location"].startswith("postgres") else description["location"]
    source = open_source(location, table=description["table"], **columns)
    people = People.named(["id-3", "id-4"], role="id")
    plan = open_eraser(source).plan(people)
    assert plan is not None
    open_eraser(source).apply(plan, people)
    assert in_order(store.rows()) == in_order(rows[:3] + rows[5:])


def test_a_plan_is_applied_once(store: Store) -> None:
    rows = store.with_parts()
    people = People.named([name_of(1)])
    plan, first = erase(store, people)
    assert store.eraser().apply(plan, people) == first
    assert in_order(store.rows()) == others([name_of(1)], rows)


def test_nobody_is_erased(store: Store) -> None:
    store.with_parts(1)
    before = store.rows()
    assert store.eraser().plan(People.named(["nobody"])) is None
    assert store.eraser().plan(People.named([])) is None
    assert store.eraser().plan(People.recognised_by(lambda names: [False] * len(names))) is None
    assert store.rows() == before


def test_a_plan_changes_no_rows_and_can_be_undone(store: Store) -> None:
    rows = store.with_parts()
    before = found_in(store.contents(), needles(rows))
    plan = store.eraser().plan(People.named([name_of(1)]))
    assert plan is not None
    assert in_order(store.rows()) == in_order(rows)
    store.eraser().undo(plan)
    assert in_order(store.rows()) == in_order(rows)
    assert found_in(store.contents(), needles(rows)) == before


def test_a_purge_before_the_erasure_is_refused(store: Store) -> None:
    rows = store.with_parts(1)
    people = People.named([name_of(1)])
    plan = store.eraser().plan(people)
    assert plan is not None
    with pytest.raises(InvalidInputError, match="purged after it was applied; apply it first"):
        store.eraser().purge(plan, people, ignore_retention=True)
    assert in_order(store.rows()) == in_order(rows)


def test_rows_that_come_in_after_the_plan_are_noticed(store: Store) -> None:
    """Either they are erased too, or the eraser says that they are there."""
    rows = store.with_parts()
    names = [name_of(1), name_of(2)]
    people = People.named(names)
    plan = store.eraser().plan(people)
    assert plan is not None
    store.append(made_rows(7))
    rows += made_rows(7)
    if isinstance(store, ParquetStore):
        with pytest.raises(InvalidLogError, match="still has rows of the people") as refusal:
            store.eraser().apply(plan, people)
        assert found_in([str(refusal.value).encode()], needles(rows)) == set()
        erase(store, people)
    else:
        store.eraser().apply(plan, people)
    assert in_order(store.rows()) == others(names, rows)


def test_everybody_is_erased(store: Store) -> None:
    rows = store.with_parts()
    names = sorted({row[0] for row in rows if row[0]})
    erase(store, People.named(names))
    assert in_order(store.rows()) == others(names, rows)
    store.append(made_rows(9)[:20])
    assert len(store.rows()) == len(others(names, rows)) + 20


def test_a_plan_of_another_source_is_refused(store: Store) -> None:
    store.with_parts(1)
    plan = ErasurePlan.new("parquet", "/elsewhere.parquet")
    people = People.named([name_of(1)])
    for call in (lambda: store.eraser().apply(plan, people), lambda: store.eraser().undo(plan)):
        with pytest.raises(InvalidInputError, match="the plan must be of"):
            call()


def test_a_source_with_conditions_is_refused(store: Store) -> None:
    store.with_parts(1)
    with pytest.raises(UnsupportedError, match=r"rows of the same people that do not satisfy .*page-1"):
        open_eraser(store.open().filtered(conditions("page = page-1")))


def test_a_source_without_users_is_refused(tmp_path: Path) -> None:
    pq.write_table(arrow_rows(made_rows(0)).drop_columns(["user"]), tmp_path / "log.parquet")
    source = open_source(tmp_path / "log.parquet", action="action", reward="reward")
    with pytest.raises(InvalidInputError, match="need the user column; the source has none"):
        open_eraser(source).plan(People.named(["ann"]))


def test_csv_files_and_frames_are_refused(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("user,action,reward\nann,A,1\n", encoding="utf-8")
    with pytest.raises(UnsupportedError, match="rows of CSV files cannot be erased"):
        open_eraser(open_source(tmp_path / "log.csv", action="action", reward="reward"))


def test_names_must_be_several_texts_of_a_known_role() -> None:
    with pytest.raises(InvalidInputError, match="names must be a set of texts; got one text"):
        People.named("ann")
    with pytest.raises(InvalidInputError, match="role must be user or id; got 'page'"):
        People.named(["ann"], role="page")


def test_what_is_no_plan_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="a plan of an erasure must have kind"):
        ErasurePlan.from_dict({"kind": "parquet", "files": [["a"]]})
