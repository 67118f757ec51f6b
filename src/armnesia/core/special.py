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


def hypergeometric(drawn: IntArray, population: IntArray, ones: IntArray, sample: IntArray) -> FloatArray:
    """P(a uniform sample without replacement holds `drawn` ones); 0 where that is impossible.

    >>> hypergeometric(np.arange(3), np.array(4), np.array(2), np.array(2)).round(6)
    array([0.166667, 0.666667, 0.166667])
    """

    def log_choose(n: IntArray, k: IntArray) -> FloatArray:
        return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)

    zeros = population - ones
    possible = (drawn <= ones) & (drawn <= sample) & (sample - drawn <= zeros)
    hit = np.where(possible, drawn, np.maximum(sample - zeros, 0))
    log_ways = log_choose(ones, hit) + log_choose(zeros, sample - hit) - log_choose(population, sample)
    return np.asarray(np.where(possible, np.exp(log_ways), 0.0))
