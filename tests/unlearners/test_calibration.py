"""Sensitivities, thresholds and joint noise against their defining equations and closed forms."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from armnesia import (
    LCB,
    Adaptive,
    ArmStatistics,
    Branch,
    Budget,
    DeletionRequest,
    Gaussian,
    privacy_curve,
)
from armnesia.unlearners.calibration import (
    Sensitivity,
    noise_threshold,
    score_sensitivity,
    sensitivity_certified,
)
from tests.quick import examples

taus = st.floats(1e-6, 1.0)
n_arms = st.integers(2, 20)


@st.composite
def partial_deletions(draw: st.DrawFn) -> tuple[int, int]:
    count = draw(st.integers(2, 5000))
    return count, draw(st.integers(1, count - 1))


def b(count: float, m: int, tau: float) -> float:
    return math.sqrt(math.log(m / tau) / (2 * count))


@examples(200)
@given(partial_deletions(), n_arms, taus)
def test_paper_sensitivity_is_certified_exactly_where_it_bounds_the_exact_one(
    deletion: tuple[int, int], m: int, tau: float
) -> None:
    """Both sides of the boundary: k/N + b(N−k) − b(N) ≤ 3k/(2N)."""
    count, k = deletion
    exact, printed = k / count + b(count - k, m, tau) - b(count, m, tau), 1.5 * k / count
    assume(abs(exact - printed) > 1e-12 * printed)
    learner = LCB(confidence=tau)
    assert sensitivity_certified("paper", learner, count, k, m) == (exact <= printed)
    assert score_sensitivity("paper", learner, count, k, m) == pytest.approx(printed, rel=1e-14)
    assert score_sensitivity("exact", learner, count, k, m) == pytest.approx(exact, rel=1e-11)
    assert sensitivity_certified("exact", learner, count, k, m)


def test_adaptive_switches_at_the_boundary_of_the_condition() -> None:
    """N = 200, τ = 0.001, m = 2: the largest certified k takes noise, the next one rolls back."""
    tau, count = 0.001, 200
    bound = [k / count + b(count - k, 2, tau) - b(count, 2, tau) <= 1.5 * k / count for k in range(1, count)]
    last = bound.index(False)  # k runs from 1, so this is the last k that is certified
    assert all(bound[:last])
    assert not any(bound[last:])
    assert 100 < last < 199
    statistics = ArmStatistics.from_rewards({"a": [1] * count, "b": [0] * count})
    budget = Budget(epsilon=20, delta=0.01)
    for unlearner in (Adaptive.as_in_the_paper(), Gaussian(sensitivity="paper")):
        branches = [
            unlearner.release(
                LCB(confidence=tau),
                statistics,
                DeletionRequest.from_rewards({"a": [1] * k, "b": []}),
                budget,
            ).branch
            for k in (last, last + 1)
        ]
        assert branches == [Branch.GAUSSIAN, Branch.NO_SENSITIVITY]
    k = last + 1
    rolled_back = Adaptive.as_in_the_paper().release(
        LCB(confidence=tau), statistics, DeletionRequest.from_rewards({"a": [1] * k, "b": []}), budget
    )
    assert set(rolled_back.probabilities.tolist()) == {0.0, 1.0}


@examples(100)
@given(partial_deletions(), n_arms, taus, st.sampled_from(["paper", "exact"]))
def test_the_exact_threshold_balances_noise_and_rollback(
    deletion: tuple[int, int], m: int, tau: float, kind: Sensitivity
) -> None:
    """2·b(N−k) = 2·b(N) + γ₀Δ/√(2π), plugged in."""
    count, k = deletion
    gamma = float(noise_threshold(LCB(confidence=tau), count, k, m, threshold="exact", sensitivity=kind))
    exact = k / count + b(count - k, m, tau) - b(count, m, tau)
    delta = 1.5 * k / count if kind == "paper" else exact
    noise = 2 * b(count, m, tau) + gamma * delta / math.sqrt(2 * math.pi)
    assert noise == pytest.approx(2 * b(count - k, m, tau), rel=1e-12)


@examples(100)
@given(partial_deletions(), n_arms, taus)
def test_closed_forms_of_the_threshold(deletion: tuple[int, int], m: int, tau: float) -> None:
    count, k = deletion
    log = math.log(m / tau)
    learner, root = LCB(confidence=tau), math.sqrt(count - k)
    exact = noise_threshold(learner, count, k, m, threshold="exact", sensitivity="paper")
    closed = 4 * math.sqrt(math.pi * count * log) / (3 * root * (root + math.sqrt(count)))
    assert exact == pytest.approx(closed, rel=1e-9)  # the package subtracts two nearly equal penalties
    printed = noise_threshold(learner, count, k, m, threshold="paper", sensitivity="paper")
    assert printed == pytest.approx(4 / 3 * math.sqrt(math.pi * log / (count - k)), rel=1e-14)


def test_the_printed_threshold_is_twice_the_exact_one_for_few_deletions() -> None:
    learner = LCB(confidence=0.01)
    ratios = []
    for count in (10, 1000, 100_000):
        printed, exact = (
            float(noise_threshold(learner, count, 1, 5, threshold=which, sensitivity="paper"))
            for which in ("paper", "exact")
        )
        ratios.append(printed / exact)
    assert ratios == sorted(ratios)
    assert ratios[-1] == pytest.approx(2, abs=1e-5)
    nearly_all = [
        float(noise_threshold(learner, 10**6, 10**6 - 1, 5, threshold=which, sensitivity="paper"))
        for which in ("paper", "exact")
    ]
    assert nearly_all[0] / nearly_all[1] == pytest.approx(1, abs=2e-3)


def test_there_is_no_threshold_where_nothing_or_everything_is_deleted() -> None:
    thresholds = noise_threshold(
        LCB(confidence=0.1), [10, 10, 0], [0, 10, 0], 3, threshold="paper", sensitivity="paper"
    )
    np.testing.assert_array_equal(thresholds, 0.0)


@pytest.mark.parametrize(("sources", "anchor"), [(2, 8e-4), (10, 0.077)])
def test_separate_noise_on_several_arms_reports_its_true_delta(sources: int, anchor: float) -> None:
    """σ_a = γΔ_a on ℓ arms is noise of γ/√ℓ: at (1, 1e-5), δ is 8e-4 for two arms and 0.077 for ten."""
    budget = Budget(epsilon=1.0, delta=1e-5)
    statistics = ArmStatistics.from_rewards({arm: [1, 0] * 20 for arm in range(sources)})
    request = DeletionRequest.from_rewards({arm: [1] for arm in range(sources)})
    learner = LCB(confidence=0.01)
    separate = Gaussian(joint=False).release(learner, statistics, request, budget).guarantee
    assert separate.delta == privacy_curve(budget.gamma / math.sqrt(sources)).delta(1.0)
    assert separate.delta == pytest.approx(anchor, rel=0.03)
    joint = Gaussian().release(learner, statistics, request, budget).guarantee
    assert joint.delta == budget.delta
    one = DeletionRequest.from_rewards({arm: [1] if arm == 0 else [] for arm in range(sources)})
    assert Gaussian(joint=False).release(learner, statistics, one, budget).guarantee.delta == budget.delta


def test_joint_noise_is_wider_by_the_root_of_the_number_of_arms() -> None:
    """Two equal arms and two sources: P(a wins) = Φ(gap/(√2·√2·γΔ)) jointly, Φ(gap/(√2·γΔ)) separately."""
    statistics = ArmStatistics.from_rewards({"a": [1] * 70 + [0] * 30, "b": [1] * 50 + [0] * 50})
    request = DeletionRequest.from_rewards({"a": [1] * 10, "b": [0] * 10})
    budget, tau = Budget(epsilon=4.0, delta=1e-3), 0.01
    sigma = budget.gamma * (0.1 + b(90, 2, tau) - b(100, 2, tau))
    for joint, width in ((True, 2.0), (False, math.sqrt(2))):
        release = Gaussian(joint=joint).release(LCB(confidence=tau), statistics, request, budget)
        expected = 0.5 * math.erfc(-0.2 / (width * sigma) / math.sqrt(2))
        assert release.probabilities[0] == pytest.approx(expected, abs=1e-12)
