"""The pictures of Figures 1 to 3: every panel and method is drawn, named, and shows its uncertainty."""

from collections.abc import Callable
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.paper.cells import Row
from armnesia.paper.curve_panels import note_on_uncertainty
from armnesia.paper.figures.cells import figure_1_cells, figure_2_cells, figure_3_cells
from armnesia.paper.figures.picture import picture_of_figure_1, picture_of_figure_2, picture_of_figure_3
from armnesia.paper.plan import Plan
from tests.paper.drawing import assert_all_panels, assert_nothing_overlaps, rows_of, texts_of

QUICK = Plan(quick=True)
FIGURES: dict[str, tuple[Callable[[Any], Any], list[Row], int]] = {
    "1": (picture_of_figure_1, rows_of(figure_1_cells(QUICK)), 12),
    "2": (picture_of_figure_2, rows_of(figure_2_cells(QUICK)), 6),
    "3": (picture_of_figure_3, rows_of(figure_3_cells(QUICK)), 12),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_all_panels_with_named_axes_and_one_legend(name: str) -> None:
    draw, rows, panels = FIGURES[name]
    assert_all_panels(draw(rows), rows, panels=panels)


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_no_words_overlap_in_a_figure(name: str) -> None:
    draw, rows, _ = FIGURES[name]
    assert_nothing_overlaps(draw(rows))


def test_bands_are_two_standard_errors_and_only_where_it_was_sampled() -> None:
    draw, rows, _ = FIGURES["1"]
    for axis in draw(rows).axes:
        if "M_f" in axis.get_title(loc="left"):
            assert not axis.collections
            continue
        assert len(axis.collections) == 5
        curve = axis.get_lines()[0]
        corners = axis.collections[0].get_paths()[0].vertices[:, 1]
        value = float(curve.get_ydata()[0])
        assert (corners.min(), corners.max()) == pytest.approx((value - 2e-4, value + 2e-4))


def test_the_note_says_which_curves_have_no_band() -> None:
    assert "All curves are exact" in note_on_uncertainty(FIGURES["3"][1])
    mixed = note_on_uncertainty(FIGURES["1"][1])
    assert "± 2 standard errors (20,000 data sets per point)" in mixed
    assert "M_f are exact" in mixed
    sampled = [row for row in FIGURES["1"][1] if row["standard_error"] > 0]
    assert "exact" not in note_on_uncertainty(sampled)
    assert note_on_uncertainty(FIGURES["3"][1]) in [
        t.get_text() for t in texts_of(picture_of_figure_3(FIGURES["3"][1]))
    ]


@pytest.mark.slow
def test_the_y_scale_begins_at_nought_and_is_shared_within_a_case() -> None:
    draw, rows, _ = FIGURES["3"]
    easier = [{**row, "suboptimality": row["suboptimality"] * (1 + ("hard" in row["panel"]))} for row in rows]
    limits: dict[bool, set[tuple[float, float]]] = {True: set(), False: set()}
    for axis in draw(easier).axes:
        limits["hard" in axis.get_title(loc="left")].add(axis.get_ylim())
    assert [len(found) for found in limits.values()] == [1, 1]
    ((_, hard_top),), ((easy_bottom, easy_top),) = limits[True], limits[False]
    assert easy_bottom == 0
    assert hard_top == pytest.approx(2 * easy_top)


def test_a_part_of_a_figure_can_be_drawn() -> None:
    rows = [row for row in FIGURES["1"][1] if (row["panel"], row["varied"]) != ("M_d easy", "γ")]
    assert sum(axis.get_visible() for axis in picture_of_figure_1(rows).axes) == 11
    only = [row for row in rows if row["panel"] == "M_f hard" and row["varied"] == "N"]
    assert len(picture_of_figure_1(only).axes) == 1
    nothing_given_up = [{**row, "suboptimality": 0.0} for row in only]
    assert picture_of_figure_1(nothing_given_up).axes[0].get_ylim() == (0, 1)


def test_an_unknown_method_is_refused() -> None:
    rows = [{**row, "method": "prayer"} for row in FIGURES["3"][1]]
    with pytest.raises(InvalidInputError, match="'prayer'"):
        picture_of_figure_3(rows)
