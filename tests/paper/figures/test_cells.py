"""The cells of Figures 1 to 3 and Table 2: panels, axes and cases, whole and quick."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from armnesia.paper.cells import Cell
from armnesia.paper.figures.cells import figure_1_cells, figure_2_cells, figure_3_cells, table_2_cells
from armnesia.paper.plan import Plan
from armnesia.paper.settings import METHODS

Figure = Callable[[Plan], list[Cell]]


GAMMAS = [*np.arange(1, 10) / 20, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0]


def axis(panel: list[Cell], varied: str) -> list[float]:
    return [cell.x for cell in panel if cell.varied == varied]


@pytest.mark.parametrize(("figure", "panels"), [(figure_1_cells, 4), (figure_2_cells, 2)])
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
    listed = figure_3_cells(Plan())
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
    assert [(c.n, c.c_star, c.deletions, c.gamma) for c in table_2_cells(Plan())] == [
        (n, 1.3, ((0, 580),), 0.5) for n in (900, 1000, 1100, 1200)
    ]
    assert {"imitation", "adaptive"} <= set(table_2_cells(Plan())[0].methods)


@pytest.mark.parametrize("figure", [figure_1_cells, figure_2_cells, figure_3_cells])
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
    for cell in [*figure_1_cells(plan), *figure_2_cells(plan), *figure_3_cells(plan), *table_2_cells(plan)]:
        assert (cell.protocol, cell.datasets, cell.seed) == ("sampled", 123, 9)
        assert all(name in METHODS for name in cell.methods)
