"""Upper bounds, exact values and lower bounds over N."""

import numpy as np
import pytest

from armnesia.core.arrays import FloatArray
from armnesia.paper.bounds.curves import BoundsPanel, bound_curves

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def panels() -> list[BoundsPanel]:
    return bound_curves(quick=True)


def test_upper_bounds_lie_above_and_lower_bounds_below_the_exact_values(panels: list[BoundsPanel]) -> None:
    for panel in panels:
        by_kind: dict[str, list[FloatArray]] = {kind: [] for kind in ("upper", "exact", "lower")}
        for series in panel["series"].values():
            assert len(series["values"]) == len(panel["x"])
            by_kind[series["kind"]].append(np.array(series["values"]))
        for exact in by_kind["exact"]:
            assert all((upper >= exact).all() for upper in by_kind["upper"])
            assert all((lower <= exact).all() for lower in by_kind["lower"])


def test_the_papers_setting_is_vacuous_and_the_other_is_not(panels: list[BoundsPanel]) -> None:
    paper, large_gaps, *_ = panels
    assert min(paper["series"]["upper bound of Algorithm 2"]["values"]) > paper["largest_gap"]
    assert min(large_gaps["series"]["upper bound of Algorithm 2"]["values"]) < large_gaps["largest_gap"]
