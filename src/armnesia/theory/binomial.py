"""The number of records of an arm under the distribution model: Binomial(N, d(a))."""

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.special import betainc, gammaln


def log_probabilities(n: int, share: float) -> FloatArray:
    """ln P(X = x) for x = 0 … n, X ~ Binomial(n, share) with 0 < share < 1; it does not underflow.

    >>> log_probabilities(2, 0.25).round(6)
    array([-0.575364, -0.980829, -2.772589])
    """
    x = np.arange(n + 1)
    ways = gammaln(n + 1.0) - gammaln(x + 1.0) - gammaln(n - x + 1.0)
    return np.asarray(ways + x * np.log(share) + (n - x) * np.log1p(-share))


def probabilities(n: int, share: float) -> FloatArray:
    """P(X = x) for x = 0 … n.

    >>> probabilities(2, 0.25).round(6)
    array([0.5625, 0.375 , 0.0625])
    """
    return np.exp(log_probabilities(n, share))


def between(n: IntArray, mean: float, above: IntArray, most: IntArray) -> FloatArray:
    """P(above < Y ≤ most), Y ~ Binomial(n, mean), for limits from −1 to n.

    Below the mean it is a difference of lower tails, from there on one of upper tails: small probabilities
    keep their digits.

    >>> between(np.array([2, 2]), 0.25, np.array([-1, 0]), np.array([2, 1])).round(6)
    array([1.   , 0.375])
    """

    def upper_tail(limit: IntArray) -> FloatArray:
        inner = betainc(np.maximum(limit + 1, 1), np.maximum(n - limit, 1), mean)
        return np.where(limit < 0, 1.0, np.where(limit >= n, 0.0, inner))

    def lower_tail(limit: IntArray) -> FloatArray:
        inner = betainc(np.maximum(n - limit, 1), np.maximum(limit + 1, 1), 1 - mean)
        return np.where(limit < 0, 0.0, np.where(limit >= n, 1.0, inner))

    below = lower_tail(most) - lower_tail(above)
    return np.maximum(np.where(most <= n * mean, below, upper_tail(above) - upper_tail(most)), 0.0)


def lower_tail(n: int, share: float, most: int) -> float:
    """P(X ≤ most).

    >>> round(lower_tail(2, 0.25, 1), 6), lower_tail(2, 0.25, 7), lower_tail(2, 0.25, -1)
    (0.9375, 1.0, 0.0)
    """
    if most >= n:
        return 1.0
    return min(1.0, float(probabilities(n, share)[: max(most + 1, 0)].sum()))


def expected_retained(n: int, share: float, k: int) -> float:
    """E[max(X − k, 0)]: the expected number of retained records when k of the arm are deleted.

    >>> round(expected_retained(4, 0.5, 0), 6), round(expected_retained(4, 0.5, 2), 6)
    (2.0, 0.375)
    """
    return float(probabilities(n, share) @ np.maximum(np.arange(n + 1) - k, 0))
