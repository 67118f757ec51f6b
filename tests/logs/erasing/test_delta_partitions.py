"""An erasure at a Delta table reads the partitions that have rows of the people, and no others."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest

from armnesia.logs.erasing import People, SourceState
from tests.logs.erasing.stores import DeltaStore

pytestmark = pytest.mark.slow  # tests/promises erase every kind quickly

PEOPLE = People.named(["ann"])
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "texts": (pa.string(), ["it's", "a\\b", '"q"', "2026-01-02", " x ", "NULL", "%", None]),
    "short": (pa.int16(), [-3, 0, 7, None]),
    "long": (pa.int64(), [-(2**63), -1, 0, 2**63 - 1, None]),
    "date": (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(2026, 2, 28), None]),
    "boolean": (pa.bool_(), [True, False, None]),
    "double": (pa.float64(), [0.1, -2.5e3, None]),
    "decimal": (pa.decimal128(10, 2), [Decimal("1.50"), Decimal("-2.00"), None]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), datetime(1969, 1, 2, tzinfo=UTC), None],
    ),
}


def partitioned(folder: Path, *columns: pa.Array, people: list[str]) -> DeltaStore:
    """A table of these people, partitioned by columns of these values."""
    names = [f"p{place}" for place in range(len(columns))]
    rows = {
        "user": pa.array(people),
        "action": pa.array(["a"] * len(people)),
        "reward": pa.array([place / 1000 for place in range(len(people))]),
        **dict(zip(names, columns, strict=True)),
    }
    deltalake.write_deltalake(str(folder), pa.table(rows), partition_by=names)
    return DeltaStore(folder)


def remaining(store: DeltaStore) -> list[tuple[str, float]]:
    table = deltalake.DeltaTable(str(store.folder)).to_pyarrow_table(columns=["user", "reward"])
    return sorted(zip(table["user"].to_pylist(), table["reward"].to_pylist(), strict=True))


def erased(store: DeltaStore, people: People = PEOPLE) -> dict[str, Any]:
    """Erase and purge; what the commit of the erasure said of itself."""
    plan = store.eraser().plan(people)
    assert plan is not None
    version = store.eraser().apply(plan, people).after
    commit = (store.folder / "_delta_log" / f"{version:020}.json").read_text("utf-8")
    assert store.eraser().purge(plan, people, ignore_retention=True).state == SourceState.PURGED
    actions = [json.loads(line) for line in commit.splitlines()]
    (said,) = [action["commitInfo"] for action in actions if "commitInfo" in action]
    return dict(said["operationParameters"])


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("where", range(3))
def test_rows_are_erased_in_every_partition(kind: str, where: int, tmp_path: Path) -> None:
    """Whatever the values are, all rows go, and those of others stay; by turns the person is in some."""
    type_, values = VALUES[kind]
    people = [["ann", "bob"], ["bob", "bob"]]
    who = [name for place, _ in enumerate(values) for name in people[(place + where) % 3 > 0]]
    store = partitioned(tmp_path / "log", pa.array([v for v in values for _ in "ab"], type_), people=who)
    before = remaining(store)
    assert len(before) == len(who) > who.count("ann") > 0
    said = erased(store)
    assert remaining(store) == [row for row in before if row[0] != "ann"]
    assert ("p0" in said["mergePredicate"]) == (kind in ("texts", "short", "long", "date"))


def test_partitions_by_two_columns(tmp_path: Path) -> None:
    days = pa.array([date(2026, 1, day % 3 + 1) for day in range(12)])
    pages = pa.array([f"page-{place % 4}" for place in range(12)])
    people = ["ann" if place in (0, 5) else "bob" for place in range(12)]
    store = partitioned(tmp_path / "log", days, pages, people=people)
    said = erased(store)
    assert [name for name, _ in remaining(store)] == ["bob"] * 10
    assert "page-0" in said["mergePredicate"]
    assert "page-1" in said["mergePredicate"]
    assert "page-2" not in said["mergePredicate"]


def test_a_partition_that_is_named_like_a_person_is_not_said_in_the_log(tmp_path: Path) -> None:
    store = partitioned(tmp_path / "log", pa.array(["ann", "x"]), people=["ann", "bob"])
    plan = store.eraser().plan(PEOPLE)
    assert plan is not None
    version = store.eraser().apply(plan, PEOPLE).after
    commit = (store.folder / "_delta_log" / f"{version:020}.json").read_text("utf-8")
    (said,) = [json.loads(line)["commitInfo"] for line in commit.splitlines() if "commitInfo" in line]
    assert "p0" not in json.dumps(said)
    assert [name for name, _ in remaining(store)] == ["bob"]
