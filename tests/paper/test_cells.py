"""Cells: kept as they finish, resumed after an interruption, the same whatever n_jobs; and the plan."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.paper import cells as cells_module
from armnesia.paper.cells import Cell, Row, Store, run_cell, run_cells
from armnesia.paper.figures.cells import Plan, figure_1, figure_2, figure_3, table_2
from armnesia.paper.settings import ENVIRONMENT, METHODS, method
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
        run_cells(CELLS, Store(path))
    assert before == CELLS[:2]
    after = counting(monkeypatch)
    rows = run_cells(CELLS, Store(path))
    assert after == CELLS[2:]
    assert rows == run_cells(CELLS, Store())  # as if nothing had happened
    again = counting(monkeypatch)
    assert run_cells(CELLS, Store(path)) == rows
    assert again == []


@pytest.mark.parametrize("cut", [1, 20, 200])
def test_a_torn_last_line_is_a_cell_not_finished(
    cut: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cells.jsonl"
    rows = run_cells(CELLS[:3], Store(path))
    path.write_text(path.read_text(encoding="utf-8").rstrip("\n")[:-cut], encoding="utf-8")
    store = Store(path)
    assert set(store.finished) == {cell.key for cell in CELLS[:2]}
    evaluated = counting(monkeypatch)
    assert run_cells(CELLS[:3], store) == rows
    assert evaluated == [CELLS[2]]


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
    run_cells([SMALL], Store(path))
    changed = replace(SMALL, **change)  # type: ignore[arg-type]
    evaluated = counting(monkeypatch)
    run_cells([SMALL, changed], Store(path))
    assert evaluated == [changed]


def test_rows_come_in_the_order_of_the_cells_whatever_n_jobs() -> None:
    order = [CELLS[2], CELLS[0], CELLS[3], CELLS[1], CELLS[0]]  # one of them twice
    one = run_cells(order, Store())
    two = run_cells(order, Store(), n_jobs=2)
    assert one == two
    assert [(row["x"], row["method"]) for row in one] == [
        (cell.x, name) for cell in order for name in cell.methods
    ]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_counts_what_is_to_do(n_jobs: int) -> None:
    store, seen = Store(), list[tuple[int, int]]()
    run_cells(CELLS[:1], store)
    run_cells(CELLS, store, n_jobs=n_jobs, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_rows_are_tidy() -> None:
    rows = run_cells(CELLS, Store())
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
    assert method("oracle") is None
    assert all(method(name) is METHODS[name] for name in METHODS)
    with pytest.raises(InvalidInputError, match=r"one of oracle, rollback, .*; got 'best'"):
        method("best")


Figure = Callable[[Plan], list[Cell]]
GAMMAS = [*np.arange(1, 10) / 20, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0]


def axis(panel: list[Cell], varied: str) -> list[float]:
    return [cell.x for cell in panel if cell.varied == varied]


@pytest.mark.parametrize(("figure", "panels"), [(figure_1, 4), (figure_2, 2)])
def test_the_panels_of_figures_1_and_2(figure: Figure, panels: int) -> None:
    """M_f and M_d, hard and easy (hard only in Figure 2), each over N, k and γ: 12 panels and 6."""
    listed = figure(Plan())
    by_panel: dict[str, list[Cell]] = {}
    for cell in listed:
        by_panel.setdefault(cell.panel, []).append(cell)
    assert len(by_panel) == panels
    assert len({(cell.panel, cell.varied) for cell in listed}) == 3 * panels
    for name, panel in by_panel.items():
        assert axis(panel, "N") == [1000 + 100 * i for i in range(41)]
        assert axis(panel, "k") == [20 + 20 * i for i in range(25)]
        assert axis(panel, "γ") == pytest.approx(GAMMAS)
        assert {cell.c_star for cell in panel} == {None if name.startswith("M_f") else 5.0}
        assert {arm for cell in panel for arm, _ in cell.deletions} == {0 if "hard" in name else 2}
        for cell in panel:
            setting = {"N": cell.n, "k": cell.deletions[0][1], "γ": cell.gamma}
            assert setting == {"N": 3000, "k": 80, "γ": 0.5} | {cell.varied: cell.x}
    assert len({cell.key for cell in listed}) == len(listed)
    methods = {cell.methods for cell in listed}
    assert len(methods) == 1
    assert len(methods.pop()) == 5


def test_the_cases_of_figure_3() -> None:
    listed = figure_3(Plan())
    cases = Counter((cell.deletions, cell.n) for cell in listed)
    expected = {
        (tuple((arm, k) for arm in arms), n)
        for arms in ((0, 1), (2, 3))
        for k in (40, 80)
        for n in (2000, 3000, 4000)
    }
    assert set(cases) == expected
    assert set(cases.values()) == {len(GAMMAS)}
    assert all(cell.x == cell.gamma and cell.c_star is None for cell in listed)
    assert len({cell.panel for cell in listed}) == 12


def test_the_cases_of_table_2() -> None:
    assert [(c.n, c.c_star, c.deletions, c.gamma) for c in table_2(Plan())] == [
        (n, 1.3, ((0, 580),), 0.5) for n in (900, 1000, 1100, 1200)
    ]
    assert {"imitation", "adaptive"} <= set(table_2(Plan())[0].methods)


@pytest.mark.parametrize("figure", [figure_1, figure_2, figure_3])
def test_a_quick_plan_is_a_part_of_the_whole(figure: Figure) -> None:
    """Fewer points, all of them points of the whole figure, both ends of every axis included."""
    whole, quick = figure(Plan()), figure(Plan(quick=True))
    assert {cell.key for cell in quick} < {cell.key for cell in whole}
    assert len(quick) < len(whole) / 2
    for panel, varied in {(cell.panel, cell.varied) for cell in whole}:
        ends = [
            {pick(c.x for c in some if (c.panel, c.varied) == (panel, varied)) for pick in (min, max)}
            for some in (whole, quick)
        ]
        assert ends[0] == ends[1]


def test_the_plan_reaches_the_cells() -> None:
    plan = Plan(protocol="sampled", datasets=123, seed=9, quick=True)
    for cell in [*figure_1(plan), *figure_2(plan), *figure_3(plan), *table_2(plan)]:
        assert (cell.protocol, cell.datasets, cell.seed) == ("sampled", 123, 9)
        assert all(name in METHODS for name in cell.methods)


def test_a_cell_written_after_a_torn_line_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "cells.jsonl"
    cells = figure_1(Plan(quick=True))[:3]
    run_cells(cells[:2], Store(path))
    torn = path.read_text(encoding="utf-8")[:-20]
    path.write_text(torn, encoding="utf-8")
    run_cells(cells, Store(path))
    assert set(Store(path).finished) == {cell.key for cell in cells}
