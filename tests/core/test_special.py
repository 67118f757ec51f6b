"""Hypergeometric weights, compared with rational and with many-digit arithmetic."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from armnesia.core import special
from armnesia.core.special import hypergeometric

CASES = [
    (4, 2, 2),
    (80, 10, 40),
    (300, 299, 150),
    (20, 20, 5),
    (20, 0, 5),
    (10, 4, 10),
    (10, 4, 0),
    (0, 0, 0),
]


@pytest.mark.parametrize("most_by_binomials", [10**4, -1])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_both_formulas_are_exact(
    case: tuple[int, int, int], most_by_binomials: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    population, ones, sample = case
    monkeypatch.setattr(special, "_MOST_BY_BINOMIALS", most_by_binomials)
    found = hypergeometric(np.arange(sample + 2), *(np.array(number) for number in case))
    exact = [
        Fraction(
            math.comb(ones, hit) * math.comb(population - ones, sample - hit), math.comb(population, sample)
        )
        if hit <= sample
        else Fraction(0)
        for hit in range(sample + 2)
    ]
    np.testing.assert_allclose(found, [float(one) for one in exact], rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("off", [0, 3000, -10_000, 60_000])
def test_large_populations_keep_eleven_digits(off: int) -> None:
    """5·10⁸ records; differences of ln Γ in doubles have six digits there."""
    population, ones, sample = 5 * 10**8, 5 * 10**7, 25 * 10**7
    hit = 25 * 10**6 + off
    with mpmath.workdps(50):

        def log_choose(n: int, k: int) -> mpmath.mpf:
            return mpmath.loggamma(n + 1) - mpmath.loggamma(k + 1) - mpmath.loggamma(n - k + 1)

        log_exact = log_choose(ones, hit) + log_choose(population - ones, sample - hit)
        exact = float(mpmath.exp(log_exact - log_choose(population, sample)))
    arguments = (np.array(number) for number in (hit, population, ones, sample))
    assert float(hypergeometric(*arguments)) == pytest.approx(exact, rel=3e-11)
