"""Figures 1 to 3 and Table 2: their cells, and their sections made of invented values."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from armnesia import privacy_curve
from armnesia.paper.figures import (
    figure_1_cells,
    figure_1_section,
    figure_2_cells,
    figure_2_section,
    figure_3_cells,
    figure_3_section,
)
from armnesia.paper.pictures import METHOD_STYLE, name_of, note_on_uncertainty
from armnesia.paper.section import Section
from armnesia.paper.settings import METHODS, Plan, Run
from armnesia.paper.table_2 import table_2_cells, table_2_section
from armnesia.simulation import Cell, DistributionModel, SeveralArms
from tests.paper.invented import InventedRun, assert_nothing_overlaps, legend_of, rows_of

GAMMAS = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45]
GAMMAS += [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0]
AXES: dict[str, list[Any]] = {"N": list(range(1000, 5001, 100)), "k": list(range(20, 501, 20)), "γ": GAMMAS}


def deletions(cell: Cell) -> dict[int, int]:
    assert isinstance(cell.request, SeveralArms)
    return dict(cell.request.deletions)


@pytest.mark.parametrize(("cells", "panels"), [(figure_1_cells, 4), (figure_2_cells, 2)])
def test_the_panels_of_figures_1_and_2(cells: Callable[[Plan], list[Cell]], panels: int) -> None:
    """M_f and M_d, hard and easy (only hard in Figure 2), over N, k and γ; else N = 3000, k = 80, γ = ½."""
    found = Counter((cell.labels["panel"], cell.labels["varied"]) for cell in cells(Plan()))
    assert len(found) == 3 * panels
    for cell in cells(Plan()):
        panel, varied, x = (cell.labels[name] for name in ("panel", "varied", "x"))
        assert x in AXES[varied]
        assert found[panel, varied] == len(AXES[varied])
        setting = {"N": cell.model.n, "k": sum(deletions(cell).values()), "γ": cell.budget.gamma}
        assert setting == {"N": 3000, "k": 80, "γ": 0.5} | {varied: x}
        assert set(deletions(cell)) == {0 if "hard" in panel else 2}
        by_chance = isinstance(cell.model, DistributionModel)
        assert by_chance is panel.startswith("M_d")
        assert cell.protocol == ("sampled" if by_chance else "exact")


def test_the_panels_of_figure_3_and_table_2() -> None:
    settings = {(cell.model.n, tuple(deletions(cell).items())) for cell in figure_3_cells(Plan())}
    pairs = [((arms[0], k), (arms[1], k)) for arms in ((0, 1), (2, 3)) for k in (40, 80)]
    assert settings == {(n, pair) for n in (2000, 3000, 4000) for pair in pairs}
    assert [cell.model.n for cell in table_2_cells(Plan())] == [900, 1000, 1100, 1200]
    for cell in table_2_cells(Plan()):
        assert isinstance(cell.model, DistributionModel)
        assert cell.model.policy == pytest.approx((1 / 1.3, *[(1 - 1 / 1.3) / 4] * 4))


def test_a_quick_plan_is_a_part_of_the_whole_and_a_plan_reaches_every_cell() -> None:
    for cells in (figure_1_cells, figure_2_cells, figure_3_cells, table_2_cells):
        whole = {cell.key for cell in cells(Plan())}
        assert {cell.key for cell in cells(Plan(quick=True))} <= whole
        for cell in cells(Plan("sampled", 123, seed=9)):
            assert (cell.protocol, cell.datasets, cell.seed) == ("sampled", 123, 9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make_section", "cells", "panels", "table_rows"),
    [
        (figure_1_section, figure_1_cells, 12, 4 * 5),
        (figure_2_section, figure_2_cells, 6, None),
        (figure_3_section, figure_3_cells, 12, None),
        (table_2_section, table_2_cells, 0, 4 + 2 + 2),
    ],
)
def test_a_section_shows_every_row_and_no_words_overlap(
    make_section: Callable[[Run], Section], cells: Any, panels: int, table_rows: int | None
) -> None:
    run = InventedRun()
    section = make_section(run)
    assert [len(table.rows) for table in section.tables] == ([table_rows] if table_rows else [])
    assert run.rows == rows_of(cells(run.plan))
    for figure in section.pictures.values():
        axes: list[Any] = figure.axes
        assert len({(axis.get_title(loc="left"), axis.get_xlabel()) for axis in axes}) == len(axes) == panels
        assert sum(len(line.get_xdata()) for axis in axes for line in axis.get_lines()) == len(run.rows)
        assert legend_of(figure) == [
            name_of(name) for name in dict.fromkeys(row["method"] for row in run.rows)
        ]
        assert_nothing_overlaps(figure)


def test_bands_are_two_standard_errors_and_only_where_it_was_sampled() -> None:
    figure: Any = figure_1_section(InventedRun()).pictures["figure-1"]
    for axis in figure.axes:
        assert len(axis.collections) == (0 if "M_f" in axis.get_title(loc="left") else 5)
        for line, band in zip(axis.get_lines(), axis.collections, strict=False):
            corners = band.get_paths()[0].vertices[:, 1]
            value = float(line.get_ydata()[0])
            assert (corners.min(), corners.max()) == pytest.approx((value - 2e-4, value + 2e-4))


def test_the_note_says_which_curves_have_no_band() -> None:
    rows = rows_of(figure_1_cells(Plan(quick=True)))
    mixed = note_on_uncertainty(rows)
    assert "± 2 standard errors (20,000 data sets per point)" in mixed
    assert "without a band are exact" in mixed
    assert "exact" not in note_on_uncertainty([row for row in rows if row["standard_error"] > 0])


def test_every_method_has_a_look_of_its_own() -> None:
    assert set(METHOD_STYLE) == set(METHODS)
    for mixing in (True, False):
        styles = [METHOD_STYLE[name] for name in METHODS if ("mixing " in name) is mixing]
        assert len({name for name, _ in styles}) == len({look["color"] for _, look in styles}) == len(styles)
        # Without colours: by marker and line. Algorithms 2 and 7 are never in one picture.
        assert len({(look["marker"], look["linestyle"]) for _, look in styles}) >= len(styles) - 1


def test_the_privacy_of_the_experiments_is_what_the_report_says() -> None:
    assert privacy_curve(0.5).epsilon(1e-5) == pytest.approx(10.0, abs=0.01)
