"""The number of records of an arm under the distribution model: Binomial(N, d(a))."""

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.special import gammaln


def probabilities(n: int, share: float) -> FloatArray:
    """P(X = x) for x = 0 … n, X ~ Binomial(n, share) with 0 < share < 1.

    >>> probabilities(2, 0.25).round(6)
    array([0.5625, 0.375 , 0.0625])
    """
    x = np.arange(n + 1)
    ways = gammaln(n + 1.0) - gammaln(x + 1.0) - gammaln(n - x + 1.0)
    return np.asarray(np.exp(ways + x * np.log(share) + (n - x) * np.log1p(-share)))


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
