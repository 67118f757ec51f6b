"""Bounds and exact values over ε."""

import numpy as np
import pytest

from armnesia.paper.bounds.curves import BoundsPanel
from armnesia.paper.cells import Cell, run_cell
from armnesia.paper.settings import METHODS
from armnesia.unlearners import Tilt


def test_over_epsilon_the_bounds_lie_on_their_sides(epsilon_panels: list[BoundsPanel]) -> None:
    for panel in epsilon_panels:
        values = {name: np.array(series["values"]) for name, series in panel["series"].items()}
        assert (values["upper bound of tilt, predictive right"] >= values["tilt, exact"]).all()
        for exact in ("rollback, exact", "Algorithm 2, exact"):
            assert (values["upper bound of Algorithm 2"] >= values[exact]).all()
        assert (values["tilt, exact"] >= values["no deletion, exact"]).all()
        assert (np.diff(values["tilt, exact"]) < 0).all()
    lower = np.array(epsilon_panels[0]["series"]["lower bound"]["values"])
    for name in ("rollback, exact", "tilt, exact", "Algorithm 2, exact"):
        assert (lower <= np.array(epsilon_panels[0]["series"][name]["values"])).all()


def test_over_epsilon_the_lower_bound_and_tilts_excess_fall_alike(epsilon_panels: list[BoundsPanel]) -> None:
    """By e^−ε (to the δ of 10⁻⁵) on the lower bound's instances."""
    hard = epsilon_panels[0]
    epsilon = np.array(hard["x"])
    series = {name: np.array(entry["values"]) for name, entry in hard["series"].items()}
    lower = series["lower bound"] * np.exp(epsilon)
    assert lower == pytest.approx(np.full_like(lower, lower[0]), rel=1e-9)
    excess = (series["upper bound of tilt, predictive right"] - series["no deletion, exact"]) * np.exp(
        epsilon
    )
    assert excess == pytest.approx(np.full_like(excess, excess[0]), rel=0.01)


def test_over_epsilon_the_values_are_those_of_the_experiments(epsilon_panels: list[BoundsPanel]) -> None:
    papers = epsilon_panels[1]
    assert papers["x"][-1] == 5.0
    cell = Cell("beyond", "", "N", 1000, 1000, ((0, 80),), 0.5, ("tilt", "rollback"), "exact", epsilon=5.0)
    tilt, rollback = (row["suboptimality"] for row in run_cell(cell))
    assert papers["series"]["tilt, exact"]["values"][-1] == tilt
    assert papers["series"]["rollback, exact"]["values"][-1] == rollback
    assert METHODS["tilt"] == Tilt()
