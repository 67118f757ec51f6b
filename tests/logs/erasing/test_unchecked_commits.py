"""A process ends after a commit and before its check: what goes on with the plan checks it."""

from typing import Any

import deltalake
import pyarrow as pa
import pytest

from armnesia.core.errors import InvalidLogError
from armnesia.logs.erasing import ErasurePlan, People, delta_deletion, delta_ranges, iceberg, lake_eraser
from tests.logs.erasing.conftest import make_store
from tests.logs.erasing.stores import (
    DeltaStore,
    IcebergStore,
    Row,
    Store,
    arrow_rows,
    in_order,
    made_rows,
    name_of,
)

ERASED = [name_of(1), name_of(2)]
PEOPLE = People.named(ERASED)
RESTORED = "would not stay the same; (version 2 was restored|the table was rolled back)"


class Killed(BaseException):
    """Stands for the end of a process."""


@pytest.fixture(params=["delta", "iceberg"])
def lake_store(request: pytest.FixtureRequest, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Store:
    return make_store(request.param, tmp_path / "log", monkeypatch)


def planned(store: Store) -> ErasurePlan:
    plan = store.eraser().plan(PEOPLE)
    assert isinstance(plan, ErasurePlan)
    return plan


def end_before_check(store: Store, plan: ErasurePlan, *more: str) -> None:
    """Apply a plan by a process that deletes the rows of more people, and ends before its first check."""
    values = lake_eraser.values_of

    def end(*_: Any) -> bool:
        raise Killed

    with pytest.MonkeyPatch.context() as patched:
        for module in (delta_deletion, iceberg):
            patched.setattr(module, "values_of", lambda *given: [*values(*given), *more])
        patched.setattr(lake_eraser, "other_rows_stayed", end)
        with pytest.raises(Killed):
            store.eraser().apply(plan, PEOPLE)


def others(rows: list[Row]) -> list[Row]:
    return in_order(row for row in rows if row[0] not in ERASED)


def test_a_commit_that_was_not_checked_is_taken_back_if_other_rows_are_gone(lake_store: Store) -> None:
    rows = lake_store.with_parts()
    plan = planned(lake_store)
    end_before_check(lake_store, plan, name_of(9))
    assert len(lake_store.rows()) < len(others(rows))
    with pytest.raises(InvalidLogError, match=RESTORED):
        lake_store.eraser().apply(plan, PEOPLE)
    assert in_order(lake_store.rows()) == in_order(rows)
    with pytest.raises(InvalidLogError, match="came in meanwhile"):  # it is not taken back once more
        lake_store.eraser().apply(plan, PEOPLE)
    assert in_order(lake_store.rows()) == in_order(rows)
    new = planned(lake_store)
    lake_store.eraser().apply(new, PEOPLE)
    assert in_order(lake_store.rows()) == others(rows)
    lake_store.eraser().apply(plan, PEOPLE)  # what was taken back does not count, also without its rows


def test_a_commit_that_was_not_checked_counts_if_other_rows_are_there(lake_store: Store) -> None:
    rows = lake_store.with_parts()
    plan = planned(lake_store)
    end_before_check(lake_store, plan)
    erasure = lake_store.eraser().apply(plan, PEOPLE)
    assert in_order(lake_store.rows()) == others(rows)
    assert erasure.after is not None


def test_a_commit_that_others_have_followed_is_not_taken_back(lake_store: Store) -> None:
    lake_store.with_parts()
    plan = planned(lake_store)
    end_before_check(lake_store, plan, name_of(9))
    later = [row for row in made_rows(7) if row[0] not in ERASED]
    lake_store.append(later)
    for _ in range(2):
        with pytest.raises(InvalidLogError, match="was not taken back, others have followed it"):
            lake_store.eraser().apply(plan, PEOPLE)
    assert set(later) <= set(lake_store.rows())


def test_a_commit_whose_files_are_gone_is_passed_over(lake_store: Store) -> None:
    """Nobody can check it any more."""
    lake_store.with_parts()
    plan = planned(lake_store)
    end_before_check(lake_store, plan, name_of(9))
    with pytest.MonkeyPatch.context() as patched:
        if isinstance(lake_store, IcebergStore):
            lake_store.eraser().purge(plan, PEOPLE, ignore_retention=True)
        else:
            patched.setattr(
                "armnesia.logs.erasing.delta_files.DeltaFolder.remove_log_entries", lambda _: None
            )
            lake_store.eraser().purge(plan, PEOPLE, ignore_retention=True)
    lake_store.eraser().apply(plan, PEOPLE)


def test_the_first_of_several_commits_is_checked_before_others_follow(
    table: DeltaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delta_ranges, "MOST_BYTES", 1)
    for part in range(3):
        rows = arrow_rows(made_rows(part))
        times = pa.array([1000 * part + row for row in range(len(rows))])
        deltalake.write_deltalake(str(table.folder), rows.append_column("time", times), mode="append")
    before = in_order(table.rows())
    plan = planned(table)
    end_before_check(table, plan, name_of(9))
    made = deltalake.DeltaTable(str(table.folder)).version()
    with pytest.raises(InvalidLogError, match=RESTORED):
        table.eraser().apply(plan, PEOPLE)
    assert in_order(table.rows()) == before
    assert deltalake.DeltaTable(str(table.folder)).version() == made + 1
    for _ in range(2):
        table.eraser().apply(plan, PEOPLE)
        assert in_order(table.rows()) == others(before)
