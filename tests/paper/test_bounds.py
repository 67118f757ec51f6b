"""Bounds beside exact values, over N and over ε: their sides, their shape and their pictures."""

from typing import Any

import numpy as np
import pytest

from armnesia.paper.beyond import epsilon_panels
from armnesia.paper.bounds import VACUOUS, bound_panels, picture_of_bounds
from armnesia.paper.settings import Plan
from armnesia.plotting.panels import Panel
from tests.paper.invented import assert_nothing_overlaps, legend_of, run_here, series

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def over_n() -> list[Panel]:
    return bound_panels(4)


@pytest.fixture(scope="module")
def over_epsilon() -> list[Panel]:
    return epsilon_panels(6)


def test_upper_bounds_lie_above_and_lower_bounds_below_the_exact_values(
    over_n: list[Panel], over_epsilon: list[Panel]
) -> None:
    for panel in [*over_n, *over_epsilon]:
        values = series(panel)
        for name, exact in values.items():
            if name.startswith(("upper", "lower")):
                continue
            ours = "tilt" if "tilt" in name else "Algorithm 2"
            uppers = [
                v for label, v in values.items() if label == f"upper bound of {ours}" and "no del" not in name
            ]
            assert all((upper >= exact).all() for upper in uppers)
            lowers = [v for label, v in values.items() if label.startswith("lower")]
            assert all((lower <= exact).all() for lower in lowers if "no deletion" not in name)


def test_the_papers_setting_is_vacuous_and_the_other_is_not(over_n: list[Panel]) -> None:
    for panel, vacuous in zip(over_n[:2], (True, False), strict=True):
        assert panel.ceiling is not None
        assert bool(min(series(panel)["upper bound of Algorithm 2"]) > panel.ceiling[0]) is vacuous


def test_over_epsilon_the_lower_bound_and_tilts_excess_fall_alike(over_epsilon: list[Panel]) -> None:
    """By e^−ε (to the δ of 10⁻⁵) on the lower bound's instances; tilt's upper bound holds."""
    hard = series(over_epsilon[0])
    epsilon = np.array(over_epsilon[0].curves[0].x)
    lower = hard["lower bound"] * np.exp(epsilon)
    assert lower == pytest.approx(np.full_like(lower, lower[0]), rel=1e-9)
    upper = hard["upper bound of tilt, predictive right"]
    excess = (upper - hard["no deletion, exact"]) * np.exp(epsilon)
    assert excess == pytest.approx(np.full_like(excess, excess[0]), rel=0.01)
    for panel in over_epsilon:
        values = series(panel)
        assert (values["upper bound of tilt, predictive right"] >= values["tilt, exact"]).all()
        assert (values["tilt, exact"] >= values["no deletion, exact"]).all()


def test_over_epsilon_the_values_are_those_of_the_experiments(over_epsilon: list[Panel]) -> None:
    cell = Plan().cell(("", "", "", 0), 1000, {0: 80}, ("tilt", "rollback"), epsilon=5.0)
    tilt, rollback = (row["suboptimality"] for row in run_here([cell]))
    assert series(over_epsilon[1])["tilt, exact"][-1] == tilt
    assert series(over_epsilon[1])["rollback, exact"][-1] == rollback


def test_the_picture_shows_kinds_by_lines_and_where_bounds_are_vacuous(over_n: list[Panel]) -> None:
    figure: Any = picture_of_bounds(over_n, "Bounds", "a note")
    labels = list(dict.fromkeys(curve.label for panel in over_n for curve in panel.curves))
    assert legend_of(figure) == labels
    colours = [handle.get_color() for handle in figure.legends[0].get_lines()]
    lines = [handle.get_linestyle() for handle in figure.legends[0].get_lines()]
    assert len(set(zip(colours, lines, strict=True))) == len(labels)
    for axis, panel in zip(figure.axes, over_n, strict=True):
        assert axis.get_yscale() == "log"
        solid = {line.get_label() for line in axis.get_lines() if line.get_linestyle() == "-"}
        bounds = {curve.label for curve in panel.curves if curve.label.startswith(("upper", "lower"))}
        assert not solid & bounds
        assert [text.get_text() for text in axis.texts] == ([VACUOUS] if panel.ceiling else [])
    assert_nothing_overlaps(figure)
