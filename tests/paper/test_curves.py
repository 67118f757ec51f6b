"""The phase diagram and the bound curves: data that pictures are drawn from."""

import numpy as np
import pytest

from armnesia import ArmStatistics, Budget, DeletionRequest, privacy_curve
from armnesia.core.arrays import FloatArray
from armnesia.learners import LCB
from armnesia.paper.bounds.curves import Panel, bound_curves
from armnesia.paper.phase.diagram import CANDIDATES, Phase, phases
from armnesia.unlearners import Adaptive, Branch
from armnesia.unlearners.calibration import noise_threshold


@pytest.fixture(scope="module")
def maps() -> list[Phase]:
    return phases(quick=True)


@pytest.fixture(scope="module")
def panels() -> list[Panel]:
    return bound_curves(quick=True)


def test_maps_name_a_method_at_every_point(maps: list[Phase]) -> None:
    for phase in maps:
        best = np.array(phase["best"])
        assert best.shape == (len(phase["y"]), len(phase["x"]))
        assert set(best.flat) <= set(CANDIDATES)
        assert len(set(best.flat)) > 1  # a map of one colour would say nothing


def test_more_privacy_never_favours_noise(maps: list[Phase]) -> None:
    """Over (ε, δ) noise falls in both; rollback does not change."""
    is_noise = np.array(maps[1]["best"]) == "gaussian"
    assert (np.diff(is_noise.astype(int), axis=0) >= 0).all()
    assert (np.diff(is_noise.astype(int), axis=1) >= 0).all()


def test_the_lines_are_where_algorithm_2_switches(maps: list[Phase]) -> None:
    """On the printed line times 1.3 the γ of (ε, δ) is the threshold, to rounding."""
    gamma_0 = noise_threshold(
        LCB(confidence=1 / 1800), np.array([360]), np.array([80]), 5, threshold="paper", sensitivity="paper"
    )
    line = maps[1]["lines"]["1.3 γ₀, as it is run"]
    shown = [(epsilon, delta) for epsilon, delta in zip(maps[1]["x"], line, strict=True) if delta is not None]
    assert len(shown) >= 5
    for epsilon, delta in shown:
        assert Budget(epsilon=epsilon, delta=delta).gamma == pytest.approx(1.3 * float(gamma_0[0]), rel=1e-6)


def test_the_line_over_n_and_k_separates_the_branches(maps: list[Phase]) -> None:
    unlearner, budget = Adaptive.as_in_the_paper(), Budget.from_gamma(0.5, delta=1e-5)
    for n, share in zip(maps[0]["x"], maps[0]["lines"]["1.3 γ₀, as it is run"], strict=True):
        count = n // 5
        for k in (round(share * count), round(share * count) - 1):
            if not 0 < k < count:
                continue
            ones = {arm: [1] * (count - 10 * arm) + [0] * 10 * arm for arm in range(5)}
            statistics = ArmStatistics.from_rewards(ones)
            request = DeletionRequest.from_rewards({arm: [1] * k if arm == 0 else [] for arm in range(5)})
            branch = unlearner.release(LCB().bind(statistics), statistics, request, budget).branch
            assert (branch is Branch.GAUSSIAN) == (k / count >= share)


def test_upper_bounds_lie_above_and_lower_bounds_below_the_exact_values(panels: list[Panel]) -> None:
    for panel in panels:
        by_kind: dict[str, list[FloatArray]] = {kind: [] for kind in ("upper", "exact", "lower")}
        for series in panel["series"].values():
            assert len(series["values"]) == len(panel["x"])
            by_kind[series["kind"]].append(np.array(series["values"]))
        for exact in by_kind["exact"]:
            assert all((upper >= exact).all() for upper in by_kind["upper"])
            assert all((lower <= exact).all() for lower in by_kind["lower"])


def test_the_papers_setting_is_vacuous_and_the_other_is_not(panels: list[Panel]) -> None:
    paper, large_gaps, *_ = panels
    assert min(paper["series"]["upper bound of Algorithm 2"]["values"]) > paper["largest_gap"]
    assert min(large_gaps["series"]["upper bound of Algorithm 2"]["values"]) < large_gaps["largest_gap"]


def test_the_privacy_of_the_experiments_is_what_the_report_says() -> None:
    assert privacy_curve(0.5).epsilon(1e-5) == pytest.approx(10.0, abs=0.01)
