"""Cells: kept as they finish, resumed after an interruption, the same for every n_jobs."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.paper import cells as cells_module
from armnesia.paper.cells import Cell, CellStore, Row, run_cell, run_cells
from armnesia.paper.settings import ENVIRONMENT, METHODS, unlearner_named
from armnesia.simulation import DistributionModel, FixedSample

SMALL = Cell(
    figure="test",
    panel="M_f hard",
    varied="N",
    x=50.0,
    n=50,
    deletions=((0, 4),),
    gamma=0.5,
    methods=("oracle", "rollback", "mixing"),
    protocol="exact",
    datasets=400,
)


CELLS = [
    SMALL,
    replace(SMALL, x=60.0, n=60),
    replace(SMALL, x=70.0, n=70, protocol="sampled"),
    replace(SMALL, x=80.0, n=80, c_star=2.0, panel="M_d hard"),
]


def counting(monkeypatch: pytest.MonkeyPatch, stop_after: int | None = None) -> list[Cell]:
    """Record which cells are evaluated; interrupt the run at one of them."""
    evaluated: list[Cell] = []

    def run(cell: Cell) -> list[Row]:
        if len(evaluated) == stop_after:
            raise KeyboardInterrupt
        evaluated.append(cell)
        return run_cell(cell)

    monkeypatch.setattr(cells_module, "run_cell", run)
    return evaluated


def test_an_interrupted_run_keeps_what_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "some" / "where" / "cells.jsonl"
    before = counting(monkeypatch, stop_after=2)
    with pytest.raises(KeyboardInterrupt):
        run_cells(CELLS, CellStore(path))
    assert before == CELLS[:2]
    after = counting(monkeypatch)
    rows = run_cells(CELLS, CellStore(path))
    assert after == CELLS[2:]
    assert rows == run_cells(CELLS, CellStore())  # as if nothing had happened
    again = counting(monkeypatch)
    assert run_cells(CELLS, CellStore(path)) == rows
    assert again == []


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_a_cell_not_finished(
    cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cells.jsonl"
    rows = run_cells(CELLS[:3], CellStore(path))
    path.write_text(path.read_text(encoding="utf-8").rstrip("\n")[:-cut], encoding="utf-8")
    store = CellStore(path)
    assert set(store.finished) == {cell.key for cell in CELLS[:2]}
    evaluated = counting(monkeypatch)
    assert run_cells(CELLS[:3], store) == rows
    assert evaluated == [CELLS[2]]


def test_a_cell_written_after_a_torn_line_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    cells = CELLS[:3]
    run_cells(cells[:2], CellStore(path))
    torn = path.read_text(encoding="utf-8")[:-20]
    path.write_text(torn, encoding="utf-8")
    run_cells(cells, CellStore(path))
    assert set(CellStore(path).finished) == {cell.key for cell in cells}


@pytest.mark.parametrize(
    "change",
    [
        {"n": 55},
        {"deletions": ((0, 5),)},
        {"deletions": ((1, 4),)},
        {"gamma": 0.6},
        {"methods": ("oracle", "rollback")},
        {"protocol": "sampled"},
        {"c_star": 3.0},
        {"datasets": 500},
        {"seed": 1},
    ],
)
def test_a_changed_setting_is_another_cell(
    change: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cells.jsonl"
    run_cells([SMALL], CellStore(path))
    changed = replace(SMALL, **change)  # type: ignore[arg-type]
    evaluated = counting(monkeypatch)
    run_cells([SMALL, changed], CellStore(path))
    assert evaluated == [changed]


@pytest.mark.slow
def test_rows_come_in_the_order_of_the_cells_whatever_n_jobs() -> None:
    order = [CELLS[2], CELLS[0], CELLS[3], CELLS[1], CELLS[0]]  # one of them twice
    one = run_cells(order, CellStore())
    two = run_cells(order, CellStore(), n_jobs=2)
    assert one == two
    assert [(row["x"], row["method"]) for row in one] == [
        (cell.x, name) for cell in order for name in cell.methods
    ]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_counts_what_is_to_do(n_jobs: int) -> None:
    store, seen = CellStore(), list[tuple[int, int]]()
    run_cells(CELLS[:1], store)
    run_cells(CELLS, store, n_jobs=n_jobs, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_rows_are_tidy() -> None:
    rows = run_cells(CELLS, CellStore())
    assert len({tuple(row) for row in rows}) == 1  # the same keys, in the same order
    assert json.loads(json.dumps(rows)) == rows
    multi = run_cell(replace(SMALL, deletions=((2, 3), (3, 5)), methods=("rollback",)))[0]
    assert (multi["arms"], multi["k"], multi["method"]) == ("2 3", 5, "rollback")
    by_protocol = [(row["model"], row["protocol"], row["c_star"]) for row in rows[:: len(SMALL.methods)]]
    assert by_protocol == [
        ("fixed", "exact", None),
        ("fixed", "exact", None),
        ("fixed", "sampled", None),
        ("distribution", "sampled", 2.0),
    ]
    for row in rows:
        assert np.mean(row["blocks"]) == pytest.approx(row["suboptimality"], rel=1e-12)
        assert (row["standard_error"] == 0) == (row["protocol"] == "exact")


def test_the_model_of_a_cell() -> None:
    assert replace(SMALL, n=52).model == FixedSample((11, 11, 10, 10, 10))
    by_chance = replace(SMALL, c_star=4.0).model
    assert isinstance(by_chance, DistributionModel)
    assert by_chance.policy == pytest.approx((0.25,) + (0.75 / 4,) * 4)
    assert by_chance.c_star(ENVIRONMENT) == pytest.approx(4.0)


def test_methods_have_names() -> None:
    assert unlearner_named("oracle") is None
    assert all(unlearner_named(name) is METHODS[name] for name in METHODS)
    with pytest.raises(InvalidInputError, match=r"one of oracle, rollback, .*; got 'best'"):
        unlearner_named("best")
