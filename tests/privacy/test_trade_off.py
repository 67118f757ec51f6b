"""f-DP trade-off curves against all randomised tests, by linear programming, duality and closed forms."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import InvalidInputError
from armnesia.privacy import hockey_stick, trade_off, trade_off_corners

ALPHAS = np.linspace(0, 1, 21)


def pairs(seed: int, arms: int = 5) -> list[tuple[FloatArray, FloatArray]]:
    """Close and distant pairs; some arms have probability 0 on either side, some equal ratios."""
    random = np.random.default_rng(seed)
    found = [tuple(random.dirichlet(np.full(arms, 0.6), 2)) for _ in range(6)]
    found += [tuple(each / each.sum() for each in random.integers(0, 3, (2, arms)) + np.eye(2, arms))]
    found += [(found[0][0], found[0][0]), (np.eye(arms)[0], np.eye(arms)[1]), (np.eye(arms)[0], found[1][1])]
    return [(p, r) for p, r in found]


def best_test(null: FloatArray, alternative: FloatArray, alpha: float) -> float:
    """The smallest type II error over all randomised tests φ, arm by arm."""
    found = linprog(-alternative, A_ub=[null], b_ub=[alpha], bounds=(0, 1), method="highs")
    assert found.fun is not None
    return 1 + float(found.fun)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_no_test_does_better_and_mixtures_of_tests_do_as_well(seed: int) -> None:
    for p, r in pairs(seed):
        corners = trade_off_corners(p, r)
        best = [min(best_test(r, p, each), best_test(p, r, each)) for each in ALPHAS]
        assert (trade_off(corners, ALPHAS) <= np.array(best) + 1e-9).all()
        for alpha, beta in corners:
            assert min(best_test(r, p, alpha), best_test(p, r, alpha)) == pytest.approx(beta, abs=1e-9)


@pytest.mark.parametrize("seed", [3, 4])
def test_it_is_the_curve_of_all_its_epsilon_and_delta(seed: int) -> None:
    """f(α) = max over ε of 1 − δ(ε) − e^ε·α and e^{−ε}·(1 − δ(ε) − α), δ being that of both directions."""
    for p, r in pairs(seed):
        f = trade_off(trade_off_corners(p, r), ALPHAS)
        epsilon = np.concatenate([np.linspace(0, 8, 1500), np.linspace(8, 60, 50)])
        delta = np.array([max(hockey_stick(p, r, each), hockey_stick(r, p, each)) for each in epsilon])
        lines = [1 - delta - np.exp(epsilon) * each for each in ALPHAS]
        mirrored = [np.exp(-epsilon) * (1 - delta - each) for each in ALPHAS]
        dual = np.maximum(np.max(np.maximum(lines, mirrored), axis=-1), 0.0)
        assert (f >= dual - 1e-12).all()  # every (ε, δ) is a bound on f
        np.testing.assert_allclose(f, dual, atol=3e-3)  # the grid of ε has steps of 0.005


@pytest.mark.parametrize("seed", [5, 6])
def test_the_area_between_guessing_and_the_curve_begins_with_the_advantage(seed: int) -> None:
    for p, r in pairs(seed):
        corners = trade_off_corners(p, r)
        advantage = (1 - corners.sum(axis=-1)).max()
        assert advantage == pytest.approx(float(hockey_stick(p, r, 0.0)), abs=1e-12)
        assert (np.diff(corners, axis=0)[:, 0] > 0).all()
        slopes = np.diff(corners[:, 1]) / np.diff(corners[:, 0])
        assert (slopes[:-1] < slopes[1:]).all()  # convex
        assert slopes[-1] <= 0
        inner = corners[(corners > 0).all(axis=-1)]
        np.testing.assert_allclose(trade_off(corners, inner[:, 1]), inner[:, 0], atol=1e-12)  # a mirror image


def test_randomised_response_has_two_lines() -> None:
    for epsilon in (0.1, 1.0, 3.0):
        truth = 1 / (1 + math.exp(-epsilon))
        corners = trade_off_corners(np.array([truth, 1 - truth]), np.array([1 - truth, truth]))
        expected = np.maximum(1 - math.exp(epsilon) * ALPHAS, math.exp(-epsilon) * (1 - ALPHAS))
        np.testing.assert_allclose(trade_off(corners, ALPHAS), expected, atol=1e-15)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_a_fine_grid_of_two_gaussians_has_their_curve(mu: float) -> None:
    """Φ(Φ⁻¹(1 − α) − μ): parting the line into cells can only raise it, and hardly does."""
    edges = np.linspace(-8, 8, 4001)
    p, r = (np.diff(norm.cdf(edges, loc), prepend=0.0, append=1.0) for loc in (mu, 0.0))
    alphas = ALPHAS[1:]  # at 0 the digits of a distribution function near 1 decide
    expected = norm.cdf(norm.ppf(1 - alphas) - mu)
    found = trade_off(trade_off_corners(p, r), alphas)
    assert (found >= expected - 1e-9).all()
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_what_is_no_error_and_no_vector_is_refused() -> None:
    half = np.array([0.5, 0.5])
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidInputError, match="a type I error is a probability"):
            trade_off(trade_off_corners(half, half), wrong)
    with pytest.raises(InvalidInputError, match=r"over the same arms; got shapes \(1, 2\), \(1, 2\)"):
        trade_off_corners(half[None], half[None])
