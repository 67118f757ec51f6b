"""The maps of the best method, and the lines at which Algorithm 2 switches."""

import numpy as np
import pytest

from armnesia import ArmStatistics, Budget, DeletionRequest
from armnesia.learners import LCB
from armnesia.paper.phase.diagram import (
    CANDIDATES,
    THRESHOLDS,
    TRUE_BALANCE,
    PhaseMap,
    _over_epsilon_and_delta,
    _over_n_and_k,
    phase_maps,
)
from armnesia.unlearners import Adaptive, Branch
from armnesia.unlearners.calibration import noise_threshold


@pytest.mark.slow
def test_small_maps_have_their_methods_and_lines() -> None:
    """Much deleted of few records: noise. Little deleted of many, or strong privacy: rollback."""
    by_k, by_budget = (
        _over_n_and_k([1000, 5000], [0.1, 0.9]),
        _over_epsilon_and_delta([1.0, 40.0], [1e-5, 0.5]),
    )
    assert by_k["best"] == [["rollback", "rollback"], ["gaussian", "gaussian"]]
    assert by_budget["best"][0][0] == "rollback"
    assert by_budget["best"][1][1] == "gaussian"
    for small in (by_k, by_budget):
        assert set(small["lines"]) == {*THRESHOLDS, TRUE_BALANCE}
        assert all(len(line) == len(small["x"]) for line in small["lines"].values())


@pytest.fixture(scope="module")
def maps() -> list[PhaseMap]:
    return phase_maps(quick=True)


@pytest.mark.slow
def test_maps_name_a_method_at_every_point(maps: list[PhaseMap]) -> None:
    for phase in maps:
        best = np.array(phase["best"])
        assert best.shape == (len(phase["y"]), len(phase["x"]))
        assert set(best.flat) <= set(CANDIDATES)
        assert len(set(best.flat)) > 1  # a map of one colour would say nothing


@pytest.mark.slow
def test_more_privacy_never_favours_noise(maps: list[PhaseMap]) -> None:
    """Over (ε, δ) noise falls in both; rollback does not change."""
    is_noise = np.array(maps[1]["best"]) == "gaussian"
    assert (np.diff(is_noise.astype(int), axis=0) >= 0).all()
    assert (np.diff(is_noise.astype(int), axis=1) >= 0).all()


@pytest.mark.slow
def test_the_lines_are_where_algorithm_2_switches(maps: list[PhaseMap]) -> None:
    """On the printed line times 1.3 the γ of (ε, δ) is the threshold, to rounding."""
    gamma_0 = noise_threshold(
        LCB(confidence=1 / 1800), np.array([360]), np.array([80]), 5, threshold="paper", sensitivity="paper"
    )
    line = maps[1]["lines"]["1.3 γ₀, as it is run"]
    shown = [(epsilon, delta) for epsilon, delta in zip(maps[1]["x"], line, strict=True) if delta is not None]
    assert len(shown) >= 3
    for epsilon, delta in shown:
        assert Budget(epsilon=epsilon, delta=delta).gamma == pytest.approx(1.3 * float(gamma_0[0]), rel=1e-6)


@pytest.mark.slow
def test_the_line_over_n_and_k_separates_the_branches(maps: list[PhaseMap]) -> None:
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
            assert (branch == Branch.GAUSSIAN) == (k / count >= share)
