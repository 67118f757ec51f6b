"""The Bernoulli-KL lower confidence bound, against many-digit arithmetic and its confidence."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armnesia.core.statistics import ArmStatistics
from armnesia.learners import KLLCB, LCB
from armnesia.learners.kl_lcb import bernoulli_kl


def kl_in_digits(p: float, q: float) -> mpmath.mpf:
    p, q = mpmath.mpf(p), mpmath.mpf(q)
    ones = p * mpmath.log(p / q) if p > 0 else mpmath.mpf(0)
    zeros = (1 - p) * mpmath.log((1 - p) / (1 - q)) if p < 1 else mpmath.mpf(0)
    return ones + zeros


@pytest.mark.parametrize("n", [1, 7, 200, 10_000])
@pytest.mark.parametrize("mean", [0.0, 0.005, 0.3, 0.5, 0.99, 1.0])
def test_the_bound_solves_its_equation(n: int, mean: float) -> None:
    """N·kl(μ̂, μ) = ln(m/τ) with 40 digits; an arm that never paid has the bound 0."""
    learner = KLLCB(confidence=0.01)
    bound = float(learner.lower_bounds(np.array([mean]), [n], 5)[0])
    if mean == 0:
        assert bound == 0
        return
    with mpmath.workdps(40):
        gap = n * kl_in_digits(mean, bound) - mpmath.log(5 / mpmath.mpf("0.01"))
        slope = (
            n * (mpmath.mpf(bound) - mpmath.mpf(mean)) / (mpmath.mpf(bound) * (1 - mpmath.mpf(bound) + 1e-30))
        )
        assert abs(gap) <= abs(slope) * mpmath.mpf("1e-14") + mpmath.mpf("1e-9")


@settings(deadline=None)
@given(st.floats(0, 1), st.integers(1, 10_000), st.floats(1e-6, 1), st.integers(1, 50))
def test_it_lies_between_hoeffding_and_the_mean(mean: float, n: int, confidence: float, m: int) -> None:
    """Pinsker: kl(p, q) ≥ 2(p − q)², so Chernoff is never looser than Hoeffding."""
    means = np.array([mean])
    tight = KLLCB(confidence=confidence).lower_bounds(means, [n], m)
    wide = LCB(confidence=confidence).lower_bounds(means, [n], m)
    # kl is flat where it is 0, so that rounding moves its root by up to the root of the rounding, downwards.
    assert wide[0] - 1e-7 <= tight[0] <= mean
    assert tight[0] >= 0


def test_it_fails_no_more_often_than_promised() -> None:
    """P(bound > μ) ≤ τ/m, exactly, by summing the binomial; and a bound with half the log fails it."""
    for mean in (0.005, 0.1, 0.5, 0.9):
        for n in (10, 200, 2000):
            sums = np.arange(n + 1)
            weights = np.exp(
                [
                    math.lgamma(n + 1) - math.lgamma(s + 1) - math.lgamma(n - s + 1)
                    + s * math.log(mean) + (n - s) * math.log1p(-mean)
                    for s in sums
                ]
            )  # fmt: skip
            promised = 0.05 / 2
            bounds = KLLCB(confidence=0.05).lower_bounds(sums / n, np.full(n + 1, n), 2)
            assert weights[bounds > mean].sum() <= promised + 1e-12
    halved = KLLCB(confidence=math.sqrt(0.05 * 2)).lower_bounds(sums / n, np.full(n + 1, n), 2)
    assert weights[halved > mean].sum() > promised  # the last of them: mean 0.9, n = 2000


def test_kl_at_its_edges() -> None:
    p, q = np.array([0.0, 1.0, 0.5, 0.0, 0.4]), np.array([0.0, 1.0, 0.0, 0.3, 0.4])
    expected = [0.0, 0.0, math.inf, -math.log(0.7), 0.0]
    assert bernoulli_kl(p, q) == pytest.approx(expected)


def test_rare_rewards_are_where_it_pays() -> None:
    """Click rates of 0.6 % and 0.3 %: Hoeffding serves the arm with most records, KL the better one."""
    counts = np.array([20_000, 60_000])
    statistics = ArmStatistics(("good", "often"), counts, np.array([120, 180]) * 10**9)
    assert LCB().bind(statistics).decide(statistics).action == "often"
    assert KLLCB().bind(statistics).decide(statistics).action == "good"
