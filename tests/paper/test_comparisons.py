"""Reductions, excesses and ratios of sub-optimality, and their standard errors."""

import math

import numpy as np
import pytest

from armnesia.paper.claims import loses_less, to_best
from armnesia.paper.comparisons import Estimate, points, ratio
from armnesia.simulation import Row


def row(method: str, blocks: list[float], x: float = 1.0) -> Row:
    mean = sum(blocks) / len(blocks)
    return {
        "figure": "1",
        "panel": "p",
        "varied": "N",
        "x": x,
        "method": method,
        "suboptimality": mean,
        "blocks": blocks,
    }


def test_a_reduction_is_in_per_cent_of_the_other() -> None:
    point = {"rollback": row("rollback", [0.01]), "adaptive": row("adaptive", [0.04])}
    assert loses_less("rollback", "adaptive", point) == Estimate(75.0)
    assert to_best("adaptive", point).value == pytest.approx(300.0)
    assert to_best("rollback", point).value == 0.0


def test_the_error_of_a_reduction_is_that_of_correlated_means() -> None:
    """Against the spread over 4000 repetitions; the jackknife is within 10 % of it, and far from ignoring the
    correlation, which would give four times as much. The spread of 4000 values is known to 1.1 %, so 10 % is
    a false alarm for fewer than 10⁻¹⁵ of seeds.
    """
    rng = np.random.default_rng(1)
    errors, values = [], []
    for _ in range(4000):
        common = rng.normal(1.0, 0.2, 20)
        a = common + rng.normal(0, 0.05, 20)
        b = 2 * common + rng.normal(0, 0.05, 20)
        found = loses_less("a", "b", {"a": row("a", a.tolist()), "b": row("b", b.tolist())})
        errors.append(found.error)
        values.append(found.value)
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.1)
    independent = 50 * math.sqrt(2 * (0.2 / 1.0) ** 2 / 20)
    assert np.mean(errors) < independent / 3


def test_points_are_grouped_by_setting() -> None:
    rows = [row("a", [1.0]), row("b", [2.0]), row("a", [3.0], x=2.0)]
    assert [sorted(point) for point in points(rows)] == [["a", "b"], ["a"]]
    assert points(rows, x=2.0)[0]["a"]["suboptimality"] == 3.0


def test_a_distance_is_a_ratio_with_the_error_of_its_kind() -> None:
    """Both exact: none. Sampled over exact: the value's own. Sampled on shared data: the jackknife's."""

    def row(value: float, error: float, blocks: list[float]) -> Row:
        return {"suboptimality": value, "standard_error": error, "blocks": blocks, "x": 1.0}

    exact, other = row(2.0, 0.0, [2.0]), row(3.0, 0.0, [3.0])
    assert ratio(other, exact) == Estimate(1.5)
    sampled, oracle = row(3.0, 0.3, [2.7, 3.0, 3.3]), row(2.0, 0.2, [1.8, 2.0, 2.2])
    assert ratio(sampled, exact).error == pytest.approx(0.15)
    assert ratio(sampled, oracle).error == pytest.approx(0.0, abs=1e-12)  # they move together
    apart = row(2.0, 0.2, [2.2, 2.0, 1.8])
    assert ratio(sampled, apart).error > 0.1
