"""Pictures of bounds: their kinds, the line of the largest gap, and the scales."""

from typing import Any

import pytest

from armnesia.core.errors import InvalidInputError
from armnesia.paper.bounds.picture import picture_of_bounds
from tests.paper.drawing import assert_nothing_overlaps, bounds_panel, legend_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("panels", [1, 2, 3, 5])
def test_bounds_show_their_kind_and_where_they_are_vacuous(panels: int) -> None:
    figure: Any = picture_of_bounds([bounds_panel()] * panels)
    assert len(figure.axes) == panels
    assert legend_of(figure) == ["bound", "value", "floor"]
    for axis in figure.axes:
        assert axis.get_yscale() == "log"
        assert (axis.get_xlabel(), axis.get_ylabel()) == ("N", "sub-optimality (log scale)")
        upper, exact, lower, gap = axis.get_lines()
        assert [line.get_linestyle() for line in (upper, exact, lower)] == ["--", "-", "--"]
        assert upper._unscaled_dash_pattern != lower._unscaled_dash_pattern
        assert set(gap.get_ydata()) == {0.08}
        assert axis.texts[0].get_text() == "largest gap: bounds above it are vacuous"
    assert_nothing_overlaps(figure)


def test_bounds_without_a_largest_gap_have_no_line() -> None:
    (axis,) = picture_of_bounds([{**bounds_panel(), "largest_gap": None}]).axes
    assert len(axis.get_lines()) == 3
    assert not axis.texts


def test_bounds_over_a_wide_range_have_a_logarithmic_x_axis_by_default() -> None:
    wide = {**bounds_panel(), "x": [10, 1000, 100_000]}
    figure = picture_of_bounds([bounds_panel(), wide, {**wide, "x_log": False}])
    assert [axis.get_xscale() for axis in figure.axes] == ["linear", "log", "linear"]


def test_a_bound_of_unknown_kind_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'guess'"):
        picture_of_bounds([{**bounds_panel(), "series": {"x": {"values": [1, 1, 1], "kind": "guess"}}}])
