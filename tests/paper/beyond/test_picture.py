"""The pictures beyond the paper, and the rows that they show."""

from typing import Any

import pytest

from armnesia.paper.beyond.cells import beyond_cells, one_arm_cells
from armnesia.paper.beyond.picture import (
    picture_of_beyond,
    picture_of_distances,
    rows_of_distances,
    rows_of_figure,
)
from armnesia.paper.beyond.results import SettingResults, results_by_setting
from armnesia.paper.bounds.curves import BoundsPanel
from armnesia.paper.bounds.picture import picture_of_bounds
from armnesia.paper.cells import Row
from armnesia.paper.plan import Plan
from tests.paper.beyond.distances import distance
from tests.paper.drawing import assert_all_panels, assert_nothing_overlaps, legend_of, rows_of

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def one_arm_rows() -> list[Row]:
    return rows_of_figure(rows_of(one_arm_cells(Plan(quick=True))))


def test_the_picture_has_all_panels_and_no_text_overlaps(one_arm_rows: list[Row]) -> None:
    figure = picture_of_beyond(one_arm_rows)
    assert_all_panels(figure, one_arm_rows, panels=12)
    assert_nothing_overlaps(figure)


def test_at_a_fixed_budget_the_axes_name_epsilon(one_arm_rows: list[Row]) -> None:
    names = {axis.get_xlabel() for axis in picture_of_beyond(one_arm_rows).axes}
    assert names == {
        "data points N\n(k = 80, ε = 1)",
        "deleted points k\n(N = 3000, ε = 1)",
        "ε, log scale\n(N = 3000, k = 80)",
    }


@pytest.mark.slow
def test_the_rows_of_the_pictures(beyond_settings: list[SettingResults], beyond_rows: list[Row]) -> None:
    drawn = rows_of_figure(beyond_rows)
    assert {row["varied"] for row in drawn} == {"N", "k", "ε"}
    assert {row["epsilon"] for row in drawn if row["varied"] != "ε"} == {1.0}
    over_epsilon = [row for row in drawn if row["varied"] == "ε"]
    assert {(row["n"], row["k"]) for row in over_epsilon} == {(3000, 80)}
    for method in ("rollback", "tilt"):
        xs = [r["x"] for r in over_epsilon if r["method"] == method and r["panel"] == "M_f hard"]
        assert sorted(xs) == [1.0, 3.0, 5.0]
    distances = rows_of_distances(beyond_settings)
    (hard,) = [p for p in beyond_settings if (p.panel, p.n, p.request) == ("M_f hard", 3000, "500 of arm 0")]
    at_three = [
        r for r in distances if "500 of arm 0" in r["title"] and (r["method"], r["x"]) == ("tilt", 3.0)
    ]
    assert [r["suboptimality"] for r in at_three] == [distance(hard, "tilt", 3.0)]


@pytest.mark.parametrize("quick", [True, False])
def test_distances_have_a_panel_for_each_chosen_setting(quick: bool) -> None:
    rows = rows_of_distances(results_by_setting(rows_of(beyond_cells(Plan(quick=quick)))))
    figure: Any = picture_of_distances(rows)
    drawn = [axis for axis in figure.axes if axis.get_visible()]
    assert len(drawn) == len({row["title"] for row in rows}) == (6 if quick else 9)
    assert all(axis.get_xlabel() == "ε, log scale" for axis in drawn)
    assert {axis.get_ylabel() for axis in figure.axes} == {"times no deletion", ""}
    assert len(legend_of(figure)) == len({row["method"] for row in rows})
    assert_nothing_overlaps(figure)


def test_the_figure_over_epsilon_says_whom_the_lower_bound_is_about(
    epsilon_panels: list[BoundsPanel],
) -> None:
    figure: Any = picture_of_bounds(epsilon_panels, title="What an ε buys", note="not Algorithm 2")
    assert [axis.get_xlabel() for axis in figure.axes] == ["ε (δ = 10⁻⁵)"] * 2
    assert figure._supxlabel.get_text() == "not Algorithm 2"
    assert_nothing_overlaps(figure)
