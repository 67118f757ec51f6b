"""The beta-binomial distribution: the number of ones among deleted records whose mean is uncertain."""

from typing import TypeAlias

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.special import betainc, gammaln

Belief: TypeAlias = tuple[FloatArray, FloatArray]
"""(ones, zeros) per arm: the mean of the arm is Beta(ones, zeros)."""

_MOST_TERMS = 1000
_UNDERFLOW = -600.0
"""Below this logarithm P(0) is close to the smallest numbers, and products that begin with it are inexact."""
_MANY = 200  # so many numbers make a loop over the values faster than an array of all of them


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
    log_none = _log_chance_of_none(deleted, hits, misses)
    long = (terms > _MOST_TERMS) | (log_none < _UNDERFLOW)
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


def _log_chance_of_none(deleted: IntArray, hits: FloatArray, misses: FloatArray) -> FloatArray:
    """ln P(0) of a beta-binomial number of hits."""
    n = hits + misses
    if n.size and (n == n.flat[0]).all() and (deleted == deleted.flat[0]).all():
        # Of equal numbers ln Γ is computed once.
        n, deleted = np.asarray(n.flat[0]), np.asarray(deleted.flat[0])
    return np.asarray(gammaln(misses + deleted) - gammaln(misses) + (gammaln(n) - gammaln(n + deleted)))


def numbers_of_ones(deleted: IntArray, belief: Belief, most: int) -> FloatArray:
    """P(g of the `deleted` records were ones), for g = 0, …, `most` on a new last axis.

    >>> numbers_of_ones(np.array([2]), (np.array([1.0]), np.array([1.0])), most=3).round(3)
    array([[0.333, 0.333, 0.333, 0.   ]])
    """
    k, (ones, zeros) = deleted[..., None], (part[..., None] for part in belief)
    g = np.arange(most)
    steps = np.maximum(k - g, 1) * (ones + g) / ((g + 1) * (zeros + np.maximum(k - g, 1) - 1))
    first = _log_chance_of_none(k, ones, zeros)
    if (
        first.min(initial=0.0) >= _UNDERFLOW
    ):  # products are faster than logarithms, where P(0) is no underflow
        ratios = np.cumprod(np.where(g < k, steps, 0.0), axis=-1)  # 0 beyond k
        return np.asarray(np.exp(first) * np.concatenate([np.ones_like(first), ratios], axis=-1))
    logs = first + np.concatenate([np.zeros_like(first), np.cumsum(np.log(steps), axis=-1)], axis=-1)
    return np.exp(np.where(np.arange(most + 1) <= k, logs, -np.inf))


def likely_numbers_of_ones(deleted: IntArray, belief: Belief, negligible: float) -> tuple[int, FloatArray]:
    """The same on a new first axis, without the ends where all are negligible; and the first number of ones.

    >>> first, chances = likely_numbers_of_ones(np.array([9]), (np.array([5.0]), np.array([50.0])), 1e-3)
    >>> first, chances[:, 0].round(3)
    (0, array([0.45 , 0.349, 0.147, 0.043, 0.009, 0.002]))
    """
    first = _log_chance_of_none(deleted, *belief)
    most = int(deleted.max(initial=0))
    if first.size < _MANY or first.min(initial=0.0) < _UNDERFLOW:
        chances = np.moveaxis(numbers_of_ones(deleted, belief, most), -1, 0)
        highest = chances.reshape(most + 1, -1).max(axis=-1)
    else:
        chances, highest = _up_to_negligible(deleted, belief, np.exp(first), most, negligible)
    likely = np.flatnonzero(highest > negligible)
    return int(likely[0]), chances[likely[0] : likely[-1] + 1]


def _up_to_negligible(
    deleted: IntArray, belief: Belief, none: FloatArray, most: int, negligible: float
) -> tuple[FloatArray, FloatArray]:
    """P(0), P(1), … on the first axis, until all that follow are negligible; and the highest of each."""
    (ones, zeros), k = belief, deleted.astype(np.float64)
    # With a zero or more, P(g+1)/P(g) does not rise above 1 again.
    falls_for_good, equal = zeros.min() >= 1, bool((deleted == most).all())
    found, highest, others = np.empty((most + 1, *none.shape)), [none.max()], zeros + (k - 1)
    found[0] = none
    for g in range(most):
        ratio = ones + g
        if equal:
            ratio /= others - g
            ratio *= (most - g) / (g + 1)
        else:
            ratio *= np.maximum(k - g, 0.0)
            # The divisor is at least `zeros` as long as a record is left, and must not be 0 after that.
            ratio /= np.maximum(others - g, zeros) * (g + 1)
        np.multiply(found[g], ratio, out=found[g + 1])
        highest.append(found[g + 1].max())
        if falls_for_good and highest[-1] < negligible and ratio.max() <= 1:
            break
    return found[: len(highest)], np.array(highest)
