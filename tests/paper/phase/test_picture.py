"""Maps of the best method: names, lines, axes; and the search for overlapping text sees planted faults."""

from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.paper.phase.picture import picture_of_phases
from armnesia.paper.pictures import METHOD_STYLE
from tests.paper.drawing import assert_nothing_overlaps, legend_of, phase_map


def test_the_search_for_overlaps_sees_planted_faults() -> None:
    figure: Any = picture_of_phases([phase_map()])
    figure.axes[0].text(*figure.axes[0].texts[0].get_position(), "in the way")
    with pytest.raises(AssertionError, match="in the way"):
        assert_nothing_overlaps(figure)
    figure = picture_of_phases([{**phase_map(), "title": "endless"}])
    figure.axes[0].set_xlabel("endless " * 40)
    with pytest.raises(AssertionError, match="endless"):
        assert_nothing_overlaps(figure)


@pytest.mark.parametrize("log", [False, True])
def test_a_phase_diagram_names_methods_lines_and_axes(log: bool) -> None:
    figure = picture_of_phases([phase_map(log=log)])
    (axis,) = figure.axes
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("N", "k / N(a₀)")
    assert axis.get_xscale() == axis.get_yscale() == ("log" if log else "linear")
    assert legend_of(figure) == ["Rollback", "Gaussian", "γ₀", "1.3 γ₀"]
    assert [line.get_label() for line in axis.get_lines()] == ["γ₀", "1.3 γ₀"]
    assert {text.get_text() for text in axis.texts} == {"Rollback", "Gaussian"}
    assert_nothing_overlaps(figure)


def test_the_names_in_a_phase_diagram_stand_in_their_regions() -> None:
    panel = phase_map()
    (axis,) = picture_of_phases([panel]).axes
    for text in axis.texts:
        x, y = text.get_position()
        best = panel["best"][panel["y"].index(y)][panel["x"].index(x)]
        assert METHOD_STYLE[best].name == text.get_text()


def test_several_phase_diagrams_share_a_legend_and_may_miss_a_method() -> None:
    alone = {**phase_map(), "best": [["mixing"] * 19] * 9, "lines": {}}
    figure = picture_of_phases([phase_map(), alone])
    assert len(figure.axes) == 2
    assert legend_of(figure) == ["Rollback", "Gaussian", "Mixing (k′ = k/2)", "γ₀", "1.3 γ₀"]
    assert [text.get_text() for text in figure.axes[1].texts] == ["Mixing (k′ = k/2)"]
    assert_nothing_overlaps(figure)


@pytest.mark.parametrize("fault", [{"best": [["rollback"]]}, {"x": [1.0], "best": [["rollback"]] * 9}])
def test_a_phase_diagram_of_the_wrong_shape_is_refused(fault: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=r"best must have|at least two values"):
        picture_of_phases([{**phase_map(), "lines": {}, **fault}])
