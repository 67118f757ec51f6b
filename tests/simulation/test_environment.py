"""Reward distributions: means against numerical integration, sums against single draws, refusals.

Statistical checks allow 5 standard errors: a false alarm in fewer than 6·10⁻⁷ of comparisons; there are
about 20 of them, with fixed seeds.
"""

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from armnesia.core.errors import InvalidInputError
from armnesia.core.units import UNIT
from armnesia.simulation import (
    Bernoulli,
    ClippedNormal,
    Environment,
    FrozenDistribution,
    RewardDistribution,
)
from tests.quick import examples

N_SUMS, N_REWARDS = 4000, 30


def clipped_normal_mean(location: float, scale: float) -> float:
    """∫₀¹ P(X > x) dx, the mean of min(1, max(0, X)), with 30 digits."""
    with mpmath.workdps(30):
        tail = mpmath.quad(
            lambda x: 1 - mpmath.ncdf(x, location, scale),
            sorted({0, 1, min(max(location - 3 * scale, 0), 1), min(max(location + 3 * scale, 0), 1)}),
        )
    return float(tail)


@pytest.mark.parametrize(
    ("location", "scale"),
    [(0.5, 0.1), (0.1, 0.5), (1.3, 0.2), (-0.4, 0.3), (0.0, 1.0), (0.97, 0.02), (0.5, 20.0), (-3.0, 0.5)],
)
def test_the_mean_of_a_clipped_normal(location: float, scale: float) -> None:
    assert ClippedNormal(location, scale).mean == pytest.approx(
        clipped_normal_mean(location, scale), abs=1e-14
    )


@examples(30)
@given(st.floats(-1, 2), st.floats(0.05, 5))
def test_the_mean_of_any_clipped_normal(location: float, scale: float) -> None:
    found = Environment.clipped_normal([(location, scale)]).means[0]
    assert found == pytest.approx(clipped_normal_mean(location, scale), abs=1e-12)


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 6), (1.5, 3.2), (8.0, 1.2)])
def test_the_mean_of_a_beta(a: float, b: float) -> None:
    normaliser = mpmath.beta(a, b)
    mean = mpmath.quad(lambda x: x * x ** (a - 1) * (1 - x) ** (b - 1) / normaliser, [0, 0.5, 1])
    assert Environment.beta([(a, b)]).means[0] == pytest.approx(float(mean), abs=1e-9)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (0.2, 0.5), (0.9, 1.0)])
def test_the_mean_of_a_uniform(low: float, high: float) -> None:
    mean = mpmath.quad(lambda x: x / (high - low), [low, high])
    assert Environment.uniform([(low, high)]).means[0] == pytest.approx(float(mean), abs=1e-14)


def test_a_discrete_scipy_distribution() -> None:
    """Three values with given weights: the mean by hand."""
    die = stats.rv_discrete(values=([0, 1], [0.25, 0.75]))()
    assert FrozenDistribution(die).mean == pytest.approx(0.75)


DISTRIBUTIONS: dict[str, RewardDistribution] = {
    "bernoulli": Bernoulli(0.3),
    "beta": Environment.beta([(2, 5)]).arms[0],
    "uniform": Environment.uniform([(0.2, 0.9)]).arms[0],
    "clipped normal": ClippedNormal(0.2, 0.4),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_draws_lie_in_the_unit_interval_and_have_the_mean(name: str) -> None:
    rewards = DISTRIBUTIONS[name]
    drawn = rewards.draw(np.random.default_rng(1), (300, 100))
    assert drawn.shape == (300, 100)
    assert drawn.min() >= 0
    assert drawn.max() <= 1
    assert abs(drawn.mean() - rewards.mean) < 5 * drawn.std() / math.sqrt(drawn.size)


def standardised(rewards: RewardDistribution, sums: Any, count: int) -> tuple[float, float]:
    """How many standard errors the mean and the variance of the sums lie from `count` single draws."""
    single = rewards.draw(np.random.default_rng(99), 200_000)
    values = np.asarray(sums) / UNIT
    mean_error = math.sqrt(values.var() / values.size + count**2 * single.var() / single.size)
    fourth = ((values - values.mean()) ** 4).mean()
    fourth_single = ((single - single.mean()) ** 4).mean()
    variance_error = math.sqrt(
        (fourth - values.var() ** 2) / values.size
        + count**2 * (fourth_single - single.var() ** 2) / single.size
    )
    return (
        float((values.mean() - count * single.mean()) / mean_error),
        float((values.var() - count * single.var()) / variance_error),
    )


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_sums_are_sums_of_draws(name: str) -> None:
    rewards = DISTRIBUTIONS[name]
    sums = rewards.draw_sums(np.random.default_rng(2), np.full(N_SUMS, N_REWARDS))
    assert sums.dtype == np.int64
    assert all(abs(z) < 5 for z in standardised(rewards, sums, N_REWARDS))


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_the_check_of_sums_sees_one_reward_too_many(name: str) -> None:
    """The planted fault: sums of 31 rewards are not sums of 30."""
    rewards = DISTRIBUTIONS[name]
    sums = rewards.draw_sums(np.random.default_rng(2), np.full(N_SUMS, N_REWARDS + 1))
    assert abs(standardised(rewards, sums, N_REWARDS)[0]) > 5


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_sums_of_unequal_counts_stay_with_their_owners(name: str) -> None:
    counts = np.array([0, 1, 400, 0, 7, 1000])
    sums = DISTRIBUTIONS[name].draw_sums(np.random.default_rng(3), counts) / UNIT
    assert (sums[counts == 0] == 0).all()
    assert (sums <= counts).all()
    same, products = DISTRIBUTIONS[name].draw_moments(np.random.default_rng(3), counts)
    assert (same == sums * UNIT).all()
    assert (products <= same * (1 - sums / np.maximum(counts, 1)) * UNIT * (1 + 1e-9)).all()  # Cauchy–Schwarz
    big = counts >= 400
    allowed = 5 * np.sqrt(0.25 / counts[big])  # no reward in [0, 1] has a larger variance
    assert (abs(sums[big] / counts[big] - DISTRIBUTIONS[name].mean) < allowed).all()


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Continuous sums are drawn in chunks; the draws, in order, are the same."""
    from armnesia.simulation import environment

    counts = np.array([5, 0, 3, 9, 2])
    rewards = DISTRIBUTIONS["clipped normal"]
    whole = rewards.draw_sums(np.random.default_rng(4), counts)
    monkeypatch.setattr(environment, "_CHUNK", 10)
    assert (rewards.draw_sums(np.random.default_rng(4), counts) == whole).all()


def test_best_gaps_and_kind() -> None:
    environment = Environment.bernoulli([0.2, 0.7, 0.7])
    assert environment.best == 1  # the first of two
    assert environment.gaps == pytest.approx([0.5, 0.0, 0.0])
    assert environment.n_actions == 3
    assert environment.is_bernoulli
    assert not Environment((Bernoulli(0.5), ClippedNormal(0.5, 0.1))).is_bernoulli


@pytest.mark.parametrize("mean", [-0.01, 1.01, math.nan, math.inf])
def test_a_bernoulli_mean_is_a_probability(mean: float) -> None:
    with pytest.raises(InvalidInputError, match="mean of a Bernoulli"):
        Environment.bernoulli([0.5, mean])


@pytest.mark.parametrize(("location", "scale"), [(0.5, 0.0), (0.5, -1.0), (math.nan, 1.0), (math.inf, 1.0)])
def test_a_clipped_normal_has_a_location_and_a_scale(location: float, scale: float) -> None:
    with pytest.raises(InvalidInputError, match="clipped normal"):
        ClippedNormal(location, scale)


def test_betas_and_uniforms_have_parameters() -> None:
    with pytest.raises(InvalidInputError, match="beta reward needs"):
        Environment.beta([(1, 1), (0, 2)])
    with pytest.raises(InvalidInputError, match=r"uniform reward must rise within \[0, 1\]"):
        Environment.uniform([(0, 1), (0.5, 1.5)])


@pytest.mark.parametrize("frozen", [stats.norm(0.5, 0.1), stats.uniform(-0.1, 1.0), stats.uniform(0.5, 1.0)])
def test_rewards_outside_the_unit_interval_are_refused(frozen: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"must lie in \[0, 1\]"):
        FrozenDistribution(frozen)


def test_an_environment_has_arms() -> None:
    with pytest.raises(InvalidInputError, match="at least one arm"):
        Environment(())
    with pytest.raises(InvalidInputError, match="at least one arm"):
        Environment.bernoulli([])
