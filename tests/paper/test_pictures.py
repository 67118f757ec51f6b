"""The pictures of the experiments: every panel and method is there, named, and with its uncertainty."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.paper.beyond.cells import beyond, one_arm
from armnesia.paper.beyond.section import rows_of_distances, rows_of_figure
from armnesia.paper.beyond.tables import places
from armnesia.paper.bounds.curves import epsilon_curves
from armnesia.paper.cells import Cell, Row
from armnesia.paper.figures.cells import Plan, figure_1, figure_2, figure_3
from armnesia.paper.figures.picture import (
    METHOD_STYLE,
    note_on_uncertainty,
    picture_of_beyond,
    picture_of_bounds,
    picture_of_distances,
    picture_of_figure_1,
    picture_of_figure_2,
    picture_of_figure_3,
    picture_of_phase,
    picture_of_phases,
)
from armnesia.paper.report import save_picture
from armnesia.paper.settings import METHODS

QUICK = Plan(quick=True)


def rows_of(cells: list[Cell], *, error: float = 1e-4) -> list[Row]:
    """What is drawn of the cells' rows, with invented values: exact under M_f, sampled under M_d."""
    return [
        {
            "panel": cell.panel,
            "model": "fixed" if cell.c_star is None else "distribution",
            "varied": cell.varied,
            "x": cell.x,
            "n": cell.n,
            "arms": " ".join(str(arm) for arm, _ in cell.deletions) or "any",
            "k": cell.people or cell.deletions[0][1],
            "gamma": cell.gamma,
            "epsilon": cell.epsilon,
            "c_star": cell.c_star,
            "method": method,
            "protocol": cell.protocol,
            "blocks": [0.001 * (place + 1)],
            "suboptimality": 0.001 * (place + 1),
            "standard_error": 0.0 if cell.c_star is None else error,
            "datasets": 0 if cell.c_star is None else 20_000,
        }
        for cell in cells
        for place, method in enumerate(cell.methods)
    ]


FIGURES: dict[str, tuple[Callable[[Any], Any], list[Row], int]] = {
    "1": (picture_of_figure_1, rows_of(figure_1(QUICK)), 12),
    "2": (picture_of_figure_2, rows_of(figure_2(QUICK)), 6),
    "3": (picture_of_figure_3, rows_of(figure_3(QUICK)), 12),
    "beyond": (picture_of_beyond, rows_of_figure(rows_of(one_arm(QUICK))), 12),
}


def legend_of(figure: Any) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def texts_of(figure: Any) -> list[Any]:
    """Every text that is shown, the ticks' numbers left out."""
    (legend,) = figure.legends
    inside = [
        text
        for axis in figure.axes
        for text in (axis.title, axis._left_title, axis.xaxis.label, axis.yaxis.label, *axis.texts)
    ]
    return [text for text in (*inside, *legend.get_texts(), figure._supxlabel) if text.get_text()]


def assert_nothing_overlaps(figure: Any) -> None:
    """No text lies over another or leaves the figure."""
    figure.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts_of(figure)]
    for place, (words, box) in enumerate(boxes):
        assert figure.bbox.padded(1).count_contains([box.min, box.max]) == 2, words
        for other_words, other in boxes[:place]:
            assert not box.overlaps(other), (words, other_words)


def test_every_method_of_the_experiments_has_a_look_of_its_own() -> None:
    assert set(METHOD_STYLE) == set(METHODS)
    for family in (
        {name for name in METHODS if "mixing " in name},
        {n for n in METHODS if "mixing " not in n},
    ):
        styles = [METHOD_STYLE[name] for name in family]
        assert len({style.name for style in styles}) == len(styles)
        assert len({style.colour for style in styles}) == len(styles)
        # Without colours: by marker and line.
        without_colour = {(style.marker, style.line) for style in styles}
        assert len(without_colour) >= len(styles) - 1  # Algorithms 2 and 7 are never in one picture


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_all_panels_with_named_axes_and_one_legend(name: str) -> None:
    draw, rows, panels = FIGURES[name]
    figure = draw(rows)
    assert len(figure.axes) == panels
    named = {(axis.get_title(loc="left"), axis.get_xlabel()) for axis in figure.axes}
    assert len(named) == panels
    assert all(title and x_name for title, x_name in named)
    first_column = [axis for axis in figure.axes if axis.get_subplotspec().is_first_col()]
    assert all(axis.get_ylabel() == "sub-optimality" for axis in first_column)
    methods = dict.fromkeys(row["method"] for row in rows)
    curves = [line for axis in figure.axes for line in axis.get_lines()]
    assert len(curves) == panels * len(methods)
    assert sum(len(curve.get_xdata()) for curve in curves) == len(rows)
    assert legend_of(figure) == [METHOD_STYLE[method].name for method in methods]


@pytest.mark.parametrize("name", FIGURES)
def test_no_words_overlap_in_a_figure(name: str) -> None:
    draw, rows, _ = FIGURES[name]
    assert_nothing_overlaps(draw(rows))


def test_the_search_for_overlaps_sees_planted_faults() -> None:
    figure: Any = picture_of_phase(phase())
    figure.axes[0].text(*figure.axes[0].texts[0].get_position(), "in the way")
    with pytest.raises(AssertionError, match="in the way"):
        assert_nothing_overlaps(figure)
    figure = picture_of_phase({**phase(), "title": "endless"})
    figure.axes[0].set_xlabel("endless " * 40)
    with pytest.raises(AssertionError, match="endless"):
        assert_nothing_overlaps(figure)


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
    assert "± 2 standard errors (20,000 data sets a point)" in mixed
    assert "M_f are exact" in mixed
    sampled = [row for row in FIGURES["1"][1] if row["standard_error"] > 0]
    assert "exact" not in note_on_uncertainty(sampled)
    assert note_on_uncertainty(FIGURES["3"][1]) in [
        t.get_text() for t in texts_of(picture_of_figure_3(FIGURES["3"][1]))
    ]


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


def test_at_a_fixed_budget_the_axes_name_epsilon() -> None:
    draw, rows, _ = FIGURES["beyond"]
    names = {axis.get_xlabel() for axis in draw(rows).axes}
    assert names == {
        "data points N\n(k = 80, ε = 1)",
        "deleted points k\n(N = 3000, ε = 1)",
        "ε, log scale\n(N = 3000, k = 80)",
    }


@pytest.mark.parametrize("quick", [True, False])
def test_distances_have_a_panel_for_each_chosen_setting(quick: bool) -> None:
    rows = rows_of_distances(places(rows_of(beyond(Plan(quick=quick)))))
    figure: Any = picture_of_distances(rows)
    drawn = [axis for axis in figure.axes if axis.get_visible()]
    assert len(drawn) == len({row["title"] for row in rows}) == (6 if quick else 9)
    assert all(axis.get_xlabel() == "ε, log scale" for axis in drawn)
    assert {axis.get_ylabel() for axis in figure.axes} == {"times no deletion", ""}
    assert len(legend_of(figure)) == len({row["method"] for row in rows})
    assert_nothing_overlaps(figure)


def test_the_figure_over_epsilon_says_whom_the_lower_bound_is_about() -> None:
    figure: Any = picture_of_bounds(
        epsilon_curves(quick=True), title="What an ε buys", note="not Algorithm 2"
    )
    assert [axis.get_xlabel() for axis in figure.axes] == ["ε (δ = 10⁻⁵)"] * 2
    assert figure._supxlabel.get_text() == "not Algorithm 2"
    assert_nothing_overlaps(figure)


@pytest.mark.parametrize(
    "draw",
    [picture_of_figure_1, picture_of_figure_2, picture_of_figure_3, picture_of_phases, picture_of_bounds],
)
def test_nothing_to_draw_is_refused(draw: Callable[[Any], Any]) -> None:
    with pytest.raises(InvalidInputError, match="must not be empty"):
        draw([])


def test_an_unknown_method_is_refused() -> None:
    rows = [{**row, "method": "prayer"} for row in FIGURES["3"][1]]
    with pytest.raises(InvalidInputError, match="'prayer'"):
        picture_of_figure_3(rows)


def phase(*, log: bool = False) -> dict[str, Any]:
    x, y = [float(value) for value in range(500, 5001, 250)], [0.1 * step for step in range(1, 10)]
    return {
        "title": "γ = 0.5",
        "x_name": "N",
        "y_name": "k / N(a₀)",
        "x": x,
        "y": y,
        "best": [["rollback" if n > 4000 * share else "gaussian" for n in x] for share in y],
        "lines": {"γ₀": [n / 6000 for n in x], "1.3 γ₀": [None if n < 900 else n / 8000 for n in x]},
        "x_log": log,
        "y_log": log,
    }


@pytest.mark.parametrize("log", [False, True])
def test_a_phase_diagram_names_methods_lines_and_axes(log: bool) -> None:
    figure = picture_of_phase(phase(log=log))
    (axis,) = figure.axes
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("N", "k / N(a₀)")
    assert axis.get_xscale() == axis.get_yscale() == ("log" if log else "linear")
    assert legend_of(figure) == ["Rollback", "Gaussian", "γ₀", "1.3 γ₀"]
    assert [line.get_label() for line in axis.get_lines()] == ["γ₀", "1.3 γ₀"]
    assert {text.get_text() for text in axis.texts} == {"Rollback", "Gaussian"}
    assert_nothing_overlaps(figure)


def test_the_names_in_a_phase_diagram_stand_in_their_regions() -> None:
    panel = phase()
    (axis,) = picture_of_phase(panel).axes
    for text in axis.texts:
        x, y = text.get_position()
        best = panel["best"][panel["y"].index(y)][panel["x"].index(x)]
        assert METHOD_STYLE[best].name == text.get_text()


def test_several_phase_diagrams_share_a_legend_and_may_miss_a_method() -> None:
    alone = {**phase(), "best": [["mixing"] * 19] * 9, "lines": {}}
    figure = picture_of_phases([phase(), alone])
    assert len(figure.axes) == 2
    assert legend_of(figure) == ["Rollback", "Gaussian", "Mixing (k′ = k/2)", "γ₀", "1.3 γ₀"]
    assert [text.get_text() for text in figure.axes[1].texts] == ["Mixing (k′ = k/2)"]
    assert_nothing_overlaps(figure)


@pytest.mark.parametrize("fault", [{"best": [["rollback"]]}, {"x": [1.0], "best": [["rollback"]] * 9}])
def test_a_phase_diagram_of_the_wrong_shape_is_refused(fault: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"best must have|at least two values"):
        picture_of_phase({**phase(), "lines": {}, **fault})


def bounds(title: str = "The paper's setting, hard case, k = 80, γ = 0.5, and more words") -> dict[str, Any]:
    return {
        "title": title,
        "x_name": "N",
        "x": [1000, 2000, 3000],
        "series": {
            "bound": {"values": [0.5, None, float("inf")], "kind": "upper"},
            "value": {"values": [0.02, 0.01, 0.0], "kind": "exact"},
            "floor": {"values": [0.002, 0.001, 1e-4], "kind": "lower"},
        },
        "largest_gap": 0.08,
    }


@pytest.mark.parametrize("panels", [1, 2, 3, 5])
def test_bounds_tell_their_kind_and_where_they_say_nothing(panels: int) -> None:
    figure: Any = picture_of_bounds([bounds()] * panels)
    assert len(figure.axes) == panels
    assert legend_of(figure) == ["bound", "value", "floor"]
    for axis in figure.axes:
        assert axis.get_yscale() == "log"
        assert (axis.get_xlabel(), axis.get_ylabel()) == ("N", "sub-optimality (log scale)")
        upper, exact, lower, gap = axis.get_lines()
        assert [line.get_linestyle() for line in (upper, exact, lower)] == ["--", "-", "--"]
        assert upper._unscaled_dash_pattern != lower._unscaled_dash_pattern
        assert set(gap.get_ydata()) == {0.08}
        assert axis.texts[0].get_text() == "largest gap: bounds above say nothing"
    assert_nothing_overlaps(figure)


def test_bounds_without_a_largest_gap_have_no_line() -> None:
    (axis,) = picture_of_bounds([{**bounds(), "largest_gap": None}]).axes
    assert len(axis.get_lines()) == 3
    assert not axis.texts


def test_bounds_over_a_wide_range_have_a_logarithmic_x_axis_unless_told_otherwise() -> None:
    wide = {**bounds(), "x": [10, 1000, 100_000]}
    figure = picture_of_bounds([bounds(), wide, {**wide, "x_log": False}])
    assert [axis.get_xscale() for axis in figure.axes] == ["linear", "log", "linear"]


def test_a_bound_of_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'guess'"):
        picture_of_bounds([{**bounds(), "series": {"x": {"values": [1, 1, 1], "kind": "guess"}}}])


def test_a_picture_is_saved_in_two_formats_the_same_each_time(tmp_path: Path) -> None:
    def saved(folder: str) -> list[Path]:
        return save_picture(picture_of_bounds([bounds()]), tmp_path / folder, "bounds")

    once, again = saved("new/one"), saved("new/two")
    assert [file.name for file in once] == ["bounds.png", "bounds.svg"]
    assert once[0].read_bytes().startswith(b"\x89PNG")
    assert "<svg" in once[1].read_text("utf-8")
    assert [file.read_bytes() for file in once] == [file.read_bytes() for file in again]
    assert sorted(file.name for file in once[0].parent.iterdir()) == ["bounds.png", "bounds.svg"]
