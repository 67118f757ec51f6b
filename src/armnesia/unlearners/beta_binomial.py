"""The beta-binomial distribution: the number of ones among deleted records whose mean is uncertain."""

from typing import TypeAlias

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.special import betainc, gammaln

Belief: TypeAlias = tuple[FloatArray, FloatArray]
"""(ones, zeros) per arm: the mean of the arm is Beta(ones, zeros)."""

_MOST_TERMS = 1000


def chance_of_at_least(needed: IntArray, deleted: IntArray, belief: Belief) -> FloatArray:
    """P(at least `needed` ones among `deleted` records), given the belief about their arm's mean.

    The number of ones is beta-binomial: P(0) = Γ(z+k)Γ(n)/(Γ(z)Γ(n+k)) for z zeros of n = ones + zeros, and
    P(g+1)/P(g) = (k−g)(ones+g)/((g+1)(zeros+k−g−1)). Instead of a long sum, a Beta distribution with the same
    mean and variance is used for the share of ones.

    >>> chance_of_at_least(np.array([0, 3, 11]), np.array(10), (np.array(20.0), np.array(60.0))).round(3)
    array([1.  , 0.47, 0.  ])
    """
    needed, deleted, ones, zeros = np.broadcast_arrays(needed, deleted, *belief)
    # If most must be ones, the sum over the zeros is shorter.
    flipped = 2 * needed > deleted
    terms = np.where(flipped, deleted - needed + 1, needed)
    below = _fewer(terms, deleted, np.where(flipped, zeros, ones), np.where(flipped, ones, zeros))
    return np.where(flipped, below, 1 - below)


def _fewer(terms: IntArray, deleted: IntArray, hits: FloatArray, misses: FloatArray) -> FloatArray:
    """P(fewer than `terms` hits) for a beta-binomial number of hits."""
    n = hits + misses
    log_none = gammaln(misses + deleted) - gammaln(misses) + gammaln(n) - gammaln(n + deleted)
    long = (terms > _MOST_TERMS) | (log_none < -600)
    chance, total = np.exp(np.where(long, -np.inf, log_none)), np.zeros(terms.shape)
    for g in range(int(terms.max(initial=0, where=~long))):
        total += np.where(g < terms, chance, 0.0)
        rest = np.maximum(misses + deleted - g - 1, 1e-300)
        chance = chance * (deleted - g) * (hits + g) / ((g + 1) * rest)
    if not long.any():
        return np.minimum(total, 1.0)
    k = np.maximum(deleted, 1)
    centre = (k * hits / n + 0.5) / (k + 1)  # whole numbers as intervals of length 1, from −½ to k + ½
    variance = k * hits * misses * (n + k) / (n**2 * (n + 1) * (k + 1) ** 2)
    pieces = centre * (1 - centre) / variance - 1
    shapes = np.maximum(pieces * centre, 1e-9), np.maximum(pieces * (1 - centre), 1e-9)
    return np.where(long, betainc(*shapes, np.clip(terms / (k + 1), 0.0, 1.0)), np.minimum(total, 1.0))


def numbers_of_ones(deleted: IntArray, belief: Belief, most: int) -> FloatArray:
    """P(g of the `deleted` records were ones), for g = 0, …, `most` on a new last axis.

    >>> numbers_of_ones(np.array([2]), (np.array([1.0]), np.array([1.0])), most=3).round(3)
    array([[0.333, 0.333, 0.333, 0.   ]])
    """
    k, (ones, zeros) = deleted[..., None], (part[..., None] for part in belief)
    g = np.arange(most)
    steps = np.maximum(k - g, 1) * (ones + g) / ((g + 1) * (zeros + np.maximum(k - g, 1) - 1))
    first = gammaln(zeros + k) - gammaln(zeros) + gammaln(ones + zeros) - gammaln(ones + zeros + k)
    if first.min(initial=0.0) > -600:  # products are faster than logarithms, where P(0) is no underflow
        ratios = np.cumprod(np.where(g < k, steps, 0.0), axis=-1)  # 0 beyond k
        return np.asarray(np.exp(first) * np.concatenate([np.ones_like(first), ratios], axis=-1))
    logs = first + np.concatenate([np.zeros_like(first), np.cumsum(np.log(steps), axis=-1)], axis=-1)
    return np.exp(np.where(np.arange(most + 1) <= k, logs, -np.inf))
