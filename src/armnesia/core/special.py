"""Special functions. scipy.special is imported when first used, because its import takes long."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from armnesia.core.arrays import FloatArray, IntArray


@cache
def _functions() -> Any:
    import scipy.special  # noqa: PLC0415

    return scipy.special


def ndtr(x: ArrayLike) -> FloatArray:
    """Φ(x), the distribution function of the standard normal.

    >>> ndtr([0.0, -np.inf])
    array([0.5, 0. ])
    """
    return np.asarray(_functions().ndtr(x))


def log_ndtr(x: ArrayLike) -> FloatArray:
    """ln Φ(x), which does not underflow.

    >>> log_ndtr([-40.0]).round(4)
    array([-804.6084])
    """
    return np.asarray(_functions().log_ndtr(x))


def erfcx(x: ArrayLike) -> FloatArray:
    """exp(x²)·erfc(x), which does not underflow.

    >>> erfcx([0.0])
    array([1.])
    """
    return np.asarray(_functions().erfcx(x))


def gammaln(x: ArrayLike) -> FloatArray:
    """ln Γ(x), for x > 0.

    >>> gammaln([5.0]).round(6)
    array([3.178054])
    """
    return np.asarray(_functions().gammaln(x))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> FloatArray:
    """I_x(a, b), the distribution function of Beta(a, b).

    >>> betainc(1.0, 1.0, [0.25])
    array([0.25])
    """
    return np.asarray(_functions().betainc(a, b, x))


def gammaincinv(a: ArrayLike, p: ArrayLike) -> FloatArray:
    """The p-quantile of the gamma distribution with shape a and scale 1.

    >>> gammaincinv(1.0, 0.5).round(6)
    np.float64(0.693147)
    """
    return np.asarray(_functions().gammaincinv(a, p))


def hypergeometric(drawn: IntArray, population: IntArray, ones: IntArray, sample: IntArray) -> FloatArray:
    """P(a uniform sample without replacement holds `drawn` ones); 0 where that is impossible.

    >>> hypergeometric(np.arange(3), np.array(4), np.array(2), np.array(2)).round(6)
    array([0.166667, 0.666667, 0.166667])
    """
    zeros = population - ones
    possible = (drawn <= ones) & (drawn <= sample) & (sample - drawn <= zeros)
    hit = np.where(possible, drawn, np.maximum(sample - zeros, 0))
    log_weight = _by_binomials if np.max(population, initial=0) <= _MOST_BY_BINOMIALS else _by_deviances
    return np.asarray(np.where(possible, np.exp(log_weight(hit, population, ones, sample)), 0.0))


_MOST_BY_BINOMIALS = 10**4
"""Above this population, differences of ln Γ lose more than 10⁻¹¹ of the weights."""


def _by_binomials(hit: IntArray, population: IntArray, ones: IntArray, sample: IntArray) -> FloatArray:
    def log_choose(n: IntArray, k: IntArray) -> FloatArray:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    return (
        log_choose(ones, hit) + log_choose(population - ones, sample - hit) - log_choose(population, sample)
    )


def _by_deviances(hit: IntArray, population: IntArray, ones: IntArray, sample: IntArray) -> FloatArray:
    """The same from Stirling's formula and the deviance of each cell (Loader 2000), which do not cancel.

    With s of n in the sample, C(a, x)·C(n−a, s−x)/C(n, s) is a product of Poisson probabilities of the four
    cells, at their expected numbers, over those of the margins.
    """
    zeros, rest = population - ones, population - sample
    share, rest_share = sample / np.maximum(population, 1), rest / np.maximum(population, 1)
    cells = (
        (hit, ones * share),
        (ones - hit, ones * rest_share),
        (sample - hit, zeros * share),
        (rest - (ones - hit), zeros * rest_share),
    )
    of_margins = sum(_stirling(margin) for margin in (ones, zeros, sample, rest)) - _stirling(population)
    return np.asarray(of_margins - sum(_deviance(*cell) + _stirling(cell[0]) for cell in cells))


def _stirling(n: IntArray) -> FloatArray:
    """ln n! − n·ln n + n, and 0 at 0."""
    x = np.maximum(n, 1).astype(np.float64)
    small = np.minimum(x, 16.0)
    exact = gammaln(small + 1) - small * np.log(small) + small
    square = x**-2
    series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))) / x
    return np.where(n == 0, 0.0, np.where(x < 16, exact, series + np.log(2 * np.pi * x) / 2))


def _deviance(number: IntArray, expected: FloatArray) -> FloatArray:
    """n·ln(n/μ) − n + μ, accurate where n is near μ."""
    relative = (number - expected) / np.where(expected > 0, expected, 1.0)
    positive = np.where(number > 0, relative, 0.0)
    return np.where(number > 0, expected * ((1 + positive) * np.log1p(positive) - positive), expected)
