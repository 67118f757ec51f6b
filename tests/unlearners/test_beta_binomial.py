"""The beta-binomial distribution against that of scipy."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import betabinom

from armnesia.unlearners.beta_binomial import chance_of_at_least, likely_numbers_of_ones, numbers_of_ones

Floats = NDArray[np.float64]


def test_numbers_of_ones_are_beta_binomial() -> None:
    rng = np.random.default_rng(8)
    deleted, ones, zeros = (
        rng.integers(0, 60, size=200),
        rng.gamma(1, 20, 200) + 0.1,
        rng.gamma(1, 90, 200) + 0.1,
    )
    exact = betabinom.pmf(np.arange(61), deleted[:, None], ones[:, None], zeros[:, None])
    np.testing.assert_allclose(numbers_of_ones(deleted, (ones, zeros), most=60), exact, rtol=0, atol=1e-11)


@pytest.mark.parametrize("largest", [400, 499])
def test_numbers_of_ones_where_most_are_ones_and_the_sizes_differ(largest: int) -> None:
    """By products, and by logarithms where P(0) is too small; neither overflows."""
    deleted, ones, zeros = (
        np.array([1, largest, 30]),
        np.array([300.0, 30.0, 900.0]),
        np.array([0.1, 0.3, 40.0]),
    )
    for more in (1.0, 40.0):
        exact = betabinom.pmf(np.arange(largest + 1), deleted[:, None], more * ones[:, None], zeros[:, None])
        found = numbers_of_ones(deleted, (more * ones, zeros), most=largest)
        np.testing.assert_allclose(found, exact, rtol=0, atol=1e-10)
        assert np.isfinite(found).all()


@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("fewest_zeros", [0.1, 1.0, 30.0])
def test_the_likely_numbers_of_ones_are_all_that_are_not_negligible(fewest_zeros: float, equal: bool) -> None:
    """Many at once, with few and with many ones, few and many deleted: against scipy's distribution.

    If all have equally many records, and equally many deleted, that is used.
    """
    rng = np.random.default_rng(5)
    k = rng.integers(0, 60, size=(2, 150))
    ones: Floats = rng.choice(np.array([0.1, 0.7, 1.0, 3.1, 80.1]), size=k.shape)
    zeros: Floats = np.asarray(fewest_zeros + rng.integers(0, 90, k.shape), dtype=np.float64)
    if equal:
        k, zeros = np.full_like(k, 60), fewest_zeros + 128.0 - ones + ones.min()
    first, found = likely_numbers_of_ones(k, (ones, zeros), 1e-15)
    expected = np.array(betabinom.pmf(np.arange(k.max() + 1)[:, None, None], k, ones, zeros))
    np.testing.assert_allclose(found, expected[first : first + len(found)], rtol=1e-9, atol=1e-16)
    expected[first : first + len(found)] = 0
    assert expected.max() <= 1.001e-15


def test_the_chance_is_the_beta_binomial_one() -> None:
    rng = np.random.default_rng(4)
    deleted = rng.integers(0, 400, size=3000)
    ones, zeros = rng.gamma(1, 20, size=3000) + 0.1, rng.gamma(1, 100, size=3000) + 0.1
    spread = np.sqrt(deleted + 1) * rng.normal(size=3000)
    needed = np.round(deleted * ones / (ones + zeros) + spread).astype(np.int64)
    exact = betabinom.sf(needed - 1, deleted, ones, zeros)
    assert np.sum((exact > 0.01) & (exact < 0.99)) > 1000
    np.testing.assert_allclose(chance_of_at_least(needed, deleted, (ones, zeros)), exact, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    ("deleted", "mean", "records"), [(20_000, 0.1, 1000), (20_000, 0.1, 100_000), (100_000, 0.02, 20_000)]
)
def test_where_the_sum_is_long_the_chance_is_off_by_two_thousandths_at_most(
    deleted: int, mean: float, records: int
) -> None:
    """Half a standard deviation would be off by a hundred times as much."""
    sd = math.sqrt(deleted * mean * (1 - mean) * (records + deleted) / (records + 1))
    needed = np.round(deleted * mean + sd * np.linspace(-4, 4, 41)).astype(np.int64)
    belief = np.array(records * mean), np.array(records * (1 - mean))
    exact = betabinom.sf(needed - 1, deleted, *belief)
    assert np.abs(chance_of_at_least(needed, np.array(deleted), belief) - exact).max() < 0.002
