"""Calibration of Gaussian noise: the smallest γ, against `dp-accounting` and against 80-digit arithmetic."""

import math
from collections.abc import Callable
from itertools import product

import dp_accounting
import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.privacy import calibrate, privacy_curve
from tests.quick import examples

TrueDelta = Callable[[float, float], mpmath.mpf]

POINTS = [
    (float(epsilon), float(delta))
    for epsilon, delta in product(np.geomspace(1e-3, 100, 21), np.geomspace(1e-14, 0.5, 12))
]


@pytest.mark.parametrize(
    ("epsilon", "gamma"), [(1.0, 3.730631634816), (5.0, 0.891868264952), (10.0, 0.499888619709)]
)
def test_the_anchor_values_at_a_delta_of_one_in_a_hundred_thousand(epsilon: float, gamma: float) -> None:
    assert calibrate(epsilon=epsilon, delta=1e-5) == pytest.approx(gamma, rel=1e-9)


@pytest.mark.slow
def test_calibration_agrees_with_dp_accounting() -> None:
    assert len(POINTS) >= 200
    disagreements = [
        (epsilon, delta)
        for epsilon, delta in POINTS
        if calibrate(epsilon=epsilon, delta=delta)
        != pytest.approx(dp_accounting.get_sigma_gaussian(epsilon, delta, tol=1e-14), rel=1e-9)
    ]
    assert disagreements == []


def unsafe_points(true_delta: TrueDelta, noise: Callable[[float, float], float]) -> list[tuple[float, float]]:
    return [(e, d) for e, d in [*POINTS, (0.0, 1e-12), (0.0, 0.3)] if true_delta(noise(e, d), e) > d]


@pytest.mark.slow
def test_calibrated_noise_is_never_too_small(true_delta: TrueDelta) -> None:
    assert unsafe_points(true_delta, lambda e, d: calibrate(epsilon=e, delta=d)) == []


def test_a_billionth_less_noise_is_too_small_everywhere(true_delta: TrueDelta) -> None:
    """The planted fault, and the proof that calibration is tight to 10⁻⁹."""
    unsafe = unsafe_points(true_delta, lambda e, d: calibrate(epsilon=e, delta=d) * (1 - 1e-9))
    assert len(unsafe) == len(POINTS) + 2


@pytest.mark.parametrize("delta", [1e-14, 1e-9, 1e-3, 0.3, 0.9])
def test_at_epsilon_zero_the_noise_has_a_closed_form(delta: float) -> None:
    """δ = erf(1/(2√2·γ)). (dp-accounting loses its digits here for small δ; the closed form does not.)"""
    with mpmath.workdps(50):
        gamma = float(1 / (2 * mpmath.sqrt(2) * mpmath.erfinv(mpmath.mpf(delta))))
    assert calibrate(epsilon=0.0, delta=delta) == pytest.approx(gamma, rel=1e-9)


@examples(100)
@given(st.floats(0, 50), st.floats(1e-12, 0.9))
def test_curve_and_calibration_are_inverses(epsilon: float, delta: float) -> None:
    gamma = calibrate(epsilon=epsilon, delta=delta)
    curve = privacy_curve(gamma)
    assert curve.delta(epsilon) <= delta
    assert curve.epsilon(delta) <= epsilon * (1 + 1e-9)
    assert privacy_curve(gamma * (1 - 1e-9)).delta(epsilon) > delta


@examples(100)
@given(st.floats(1e-2, 1e3), st.floats(0.01, 20))
def test_noise_then_budget_then_noise_comes_back(gamma: float, epsilon: float) -> None:
    delta = privacy_curve(gamma).delta(epsilon)
    if 1e-250 < delta < 1 - 1e-6:  # outside, δ is too close to an end to determine γ
        assert calibrate(epsilon=epsilon, delta=delta) == pytest.approx(gamma, rel=1e-8)


@examples(100)
@given(st.floats(0, 50), st.floats(1e-12, 0.9), st.floats(1.0001, 2))
def test_a_larger_budget_needs_less_noise(epsilon: float, delta: float, factor: float) -> None:
    gamma = calibrate(epsilon=epsilon, delta=delta)
    assert calibrate(epsilon=epsilon * factor + 1e-3, delta=delta) < gamma
    assert calibrate(epsilon=epsilon, delta=min(delta * factor, 0.999)) < gamma


def test_where_no_noise_is_enough_or_none_is_needed() -> None:
    assert calibrate(epsilon=1.0, delta=0) == math.inf
    assert calibrate(epsilon=0, delta=0) == math.inf
    assert calibrate(epsilon=1.0, delta=1) == 0
    assert calibrate(epsilon=math.inf, delta=1e-5) == 0
    assert calibrate(epsilon=math.inf, delta=0) == 0  # an infinite ε asks for nothing, also at δ = 0


@pytest.mark.parametrize("epsilon", [-1e-9, -math.inf, math.nan])
def test_epsilon_must_be_a_privacy_loss(epsilon: float) -> None:
    with pytest.raises(InvalidInputError, match="epsilon must be 0 or more; got"):
        calibrate(epsilon=epsilon, delta=0.1)


@pytest.mark.parametrize("delta", [-1e-9, 1.0000001, math.nan])
def test_delta_must_be_a_probability(delta: float) -> None:
    with pytest.raises(InvalidInputError, match="delta must be a probability between 0 and 1; got"):
        calibrate(epsilon=1.0, delta=delta)


def test_the_two_numbers_cannot_be_swapped_by_position() -> None:
    with pytest.raises(TypeError, match="positional"):
        calibrate(1.0, 1e-5)  # type: ignore[call-arg]
