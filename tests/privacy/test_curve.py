"""The exact privacy curve against 80-digit arithmetic, and against the definition it is derived from."""

import math
from collections.abc import Callable, Iterator
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armnesia.core.errors import InvalidInputError
from armnesia.privacy import privacy_curve
from tests.quick import examples, quick_only

TrueDelta = Callable[[float, float], mpmath.mpf]

GAMMAS = [float(gamma) for gamma in np.geomspace(1e-3, 1e6, 91)]
EPSILONS = [0.0, *(float(epsilon) for epsilon in np.geomspace(1e-12, 1e4, 65))]
# Both sides of the two places where the computation changes its method: γ = 100, and a = 1/(2γ) − εγ = 5.
SEAMS = [(gamma, epsilon) for gamma in (99.99, 100.0, 100.01) for epsilon in (0.0, 1e-3, 0.05, 0.3)]
SEAMS += [(0.05, (10 - 5 + nudge) / 0.05) for nudge in (-1e-9, 0.0, 1e-9)]

moderate_gammas = st.floats(0.02, 1e3)
moderate_epsilons = st.floats(0, 50)


def relative_errors(
    true_delta: TrueDelta, curve: Callable[[float, float], float], every: int = 1
) -> Iterator[tuple[float, float, float]]:
    """The signed relative error of a curve where the true δ is above 10⁻²⁹⁰."""
    for gamma, epsilon in [*product(GAMMAS[::every], EPSILONS), *SEAMS]:
        if epsilon * gamma - 1 / (2 * gamma) < 37:  # beyond, δ < Φ(−37) < 10⁻²⁹⁰; spare the digits
            truth = true_delta(gamma, epsilon)
            if truth > 1e-290:
                yield gamma, epsilon, float((mpmath.mpf(curve(gamma, epsilon)) - truth) / truth)


@pytest.mark.parametrize("every", quick_only([4], [1, 4]))
def test_delta_is_accurate_and_never_below_the_truth(true_delta: TrueDelta, every: int) -> None:
    """At every point of the grid, or at those of every fourth γ."""
    errors = list(
        relative_errors(true_delta, lambda gamma, epsilon: privacy_curve(gamma).delta(epsilon), every)
    )
    assert len(errors) > 4000 / every
    assert [error for error in errors if not 0 <= error[-1] <= 5e-11] == []


def test_the_grid_notices_noise_that_is_wrong_by_one_part_in_a_billion(true_delta: TrueDelta) -> None:
    """The planted fault: the curve of slightly more noise than there is claims too small a δ somewhere."""
    errors = relative_errors(
        true_delta, lambda gamma, epsilon: privacy_curve(gamma * (1 + 1e-9)).delta(epsilon)
    )
    assert any(error < 0 for *_, error in errors)


@pytest.mark.parametrize(
    ("gamma", "epsilon"), quick_only([(0.3, 3.0), (4.0, 0.5)], product([0.3, 1.0, 4.0], [0.0, 0.5, 3.0]))
)
def test_the_formula_is_the_hockey_stick_divergence_of_two_gaussians(gamma: float, epsilon: float) -> None:
    """∫ (N(1, γ²) − e^ε·N(0, γ²))₊, by quadrature from the point where the densities cross."""
    with mpmath.workdps(30):
        crossing = mpmath.mpf(epsilon) * gamma**2 + mpmath.mpf(1) / 2

        def excess(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.npdf(x, 1, gamma) - mpmath.exp(epsilon) * mpmath.npdf(x, 0, gamma)

        integral = mpmath.quad(excess, [crossing, crossing + gamma, crossing + 4 * gamma, mpmath.inf])
        assert excess(crossing + 0.01) > 0 > excess(crossing - 0.01)
    assert privacy_curve(gamma).delta(epsilon) == pytest.approx(float(integral), rel=5e-11)


def test_a_vector_of_epsilons_is_each_epsilon_alone() -> None:
    curve = privacy_curve(0.7)
    grid = np.array([[0.0, 0.5], [3.0, np.inf]])
    assert curve.delta(grid).tolist() == [[curve.delta(float(e)) for e in row] for row in grid]
    assert isinstance(curve.delta(0.5), float)


@pytest.mark.parametrize("gamma", [1e-3, 0.5, 1.0, 99.0, 101.0, 1e6])
def test_without_a_privacy_loss_delta_is_the_total_variation_distance(gamma: float) -> None:
    with mpmath.workdps(50):
        distance = float(mpmath.erf(1 / (2 * mpmath.sqrt(2) * mpmath.mpf(gamma))))
    assert privacy_curve(gamma).delta(0.0) == pytest.approx(distance, rel=5e-11)


@pytest.mark.parametrize("gamma", [0.01, 0.3, 1.0, 50.0, 100.5, 1e4])
def test_delta_falls_with_epsilon(gamma: float) -> None:
    deltas = privacy_curve(gamma).delta(np.geomspace(1e-6, 1e3, 400))
    assert (np.diff(deltas) <= 0).all()
    assert deltas[0] > deltas[-1] or deltas[0] == 1.0 == deltas[-1]


@examples(100)
@given(moderate_epsilons, st.floats(0.02, 1e3), st.floats(1.001, 10))
def test_delta_falls_with_the_noise(epsilon: float, gamma: float, factor: float) -> None:
    assert privacy_curve(gamma * factor).delta(epsilon) <= privacy_curve(gamma).delta(epsilon)


@examples(100)
@given(moderate_gammas, st.floats(1e-12, 0.99))
def test_epsilon_is_the_inverse_of_delta_on_the_safe_side(gamma: float, delta: float) -> None:
    curve = privacy_curve(gamma)
    epsilon = curve.epsilon(delta)
    assert curve.delta(epsilon) <= delta
    if epsilon > 0:
        # Tight: a billionth less would not do. (Where δ hardly depends on ε a float cannot tell: allow 10⁻⁹.)
        assert curve.delta(epsilon * (1 - 1e-9)) >= delta * (1 - 1e-9)


@examples(100)
@given(moderate_gammas, st.floats(1e-3, 50))
def test_delta_then_epsilon_comes_back(gamma: float, epsilon: float) -> None:
    curve = privacy_curve(gamma)
    delta = curve.delta(epsilon)
    if not 1e-250 < delta < 1 - 1e-6:  # outside, δ is too close to an end to determine ε
        return
    back = curve.epsilon(delta)
    assert curve.delta(back) == pytest.approx(delta, rel=1e-8)
    assert back <= epsilon * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(("gamma", "delta"), list(product([0.1, 0.5, 1.0, 30.0], [1e-12, 1e-5, 0.1])))
def test_epsilon_is_safe_and_tight_by_the_truth(true_delta: TrueDelta, gamma: float, delta: float) -> None:
    epsilon = privacy_curve(gamma).epsilon(delta)
    assert true_delta(gamma, epsilon) <= delta
    if epsilon > 0:
        assert true_delta(gamma, epsilon * (1 - 1e-9)) > delta


def test_no_noise_hides_nothing_and_infinite_noise_hides_all() -> None:
    nothing, everything = privacy_curve(0), privacy_curve(math.inf)
    assert nothing.delta([0, 1, 1e9]).tolist() == [1, 1, 1]
    assert [nothing.epsilon(delta) for delta in (0, 0.5, 1)] == [math.inf, math.inf, 0]
    assert everything.delta([0, 1, 1e9]).tolist() == [0, 0, 0]
    assert [everything.epsilon(delta) for delta in (0, 0.5, 1)] == [0, 0, 0]


@pytest.mark.parametrize("gamma", [0, 1e-3, 1.0, 1e6, math.inf])
def test_an_infinite_epsilon_promises_nothing_so_nothing_is_missing(gamma: float) -> None:
    assert privacy_curve(gamma).delta(math.inf) == 0


def test_the_ends_of_delta() -> None:
    curve = privacy_curve(0.5)
    assert curve.epsilon(0) == math.inf
    assert curve.epsilon(1) == 0
    assert curve.epsilon(curve.delta(0.0)) == 0
    # A Gaussian has no bounded privacy loss: δ may underflow but is never claimed to be zero.
    assert all(delta > 0 for delta in curve.delta([1e3, 1e4, 1e6]))
    assert all(first >= second for first, second in pairwise(curve.delta([0.0, 1e3, 1e4, 1e6])))


@pytest.mark.parametrize("gamma", [-1e-9, -math.inf, math.nan])
def test_noise_is_not_negative(gamma: float) -> None:
    with pytest.raises(InvalidInputError, match="gamma must be 0 or more; got"):
        privacy_curve(gamma)


@pytest.mark.parametrize("epsilon", [-1e-9, math.nan, [1.0, -2.0]])
def test_a_privacy_loss_is_not_negative(epsilon: float) -> None:
    with pytest.raises(InvalidInputError, match="epsilon must be 0 or more; got"):
        privacy_curve(1.0).delta(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1.0000001, math.nan, math.inf])
def test_delta_is_a_probability(delta: float) -> None:
    with pytest.raises(InvalidInputError, match="delta must be a probability between 0 and 1; got"):
        privacy_curve(1.0).epsilon(delta)
