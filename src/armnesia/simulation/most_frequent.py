"""The law of the most frequent arm under the distribution model, exactly: what imitation serves."""

import math

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.special import gammaln
from armnesia.simulation.models import DistributionModel

_UNLIKELY = 1e-22


def most_frequent(model: DistributionModel, deleted: IntArray, default: int) -> FloatArray:
    """P(arm has the most records left) after up to `deleted` records of each arm; ties go to the first.

    Multinomial counts are independent Poisson counts, given their total. The winner a has y records left, and
    every other arm at most y (y − 1 if it comes before a); the total is a convolution over the arms.

    >>> most_frequent(DistributionModel(3, (0.5, 0.5)), np.array([2, 0]), default=0).round(3)
    array([0.125, 0.875])
    """
    m, n = len(model.policy), model.n
    chances = [_poisson(n, share) for share in model.policy]
    possible = [np.flatnonzero(chance > _UNLIKELY) for chance in chances]
    won = np.zeros(m)
    left = [np.unique(np.maximum(counts - k, 0)) for counts, k in zip(possible, deleted, strict=True)]
    for y in np.unique(np.concatenate(left)):
        if y == 0:
            continue
        # Of the arms before each arm, and of those after it, the law of the total, none of them ahead.
        before, after = [np.ones(1)], [np.ones(1)]
        for arm in range(m - 1):
            before.append(_convolved(before[-1], chances[arm][: deleted[arm] + y], n))
        for arm in range(m - 1, 0, -1):
            after.append(_convolved(after[-1], chances[arm][: deleted[arm] + y + 1], n))
        for arm in range(m):
            own = int(deleted[arm] + y)
            if own <= n and chances[arm][own] > _UNLIKELY:
                others = _convolved(before[arm], after[m - 1 - arm], n)
                won[arm] += chances[arm][own] * others[n - own : n - own + 1].sum()
    won /= _poisson(n, 1.0)[n]
    won[default] += max(0.0, 1.0 - won.sum())  # nothing is left
    return np.asarray(won / won.sum())


def chance_of_at_least(model: DistributionModel, counts: IntArray) -> float:
    """P(every arm has at least so many records).

    >>> round(chance_of_at_least(DistributionModel(3, (0.5, 0.5)), np.array([2, 0])), 3)
    0.5
    """
    total = np.ones(1)
    for least, share in zip(counts, model.policy, strict=True):
        law = _poisson(model.n, share)
        law[: int(least)] = 0.0
        total = _convolved(total, law, model.n)
    return float(total[model.n :].sum() / _poisson(model.n, 1.0)[model.n])


def products(model: DistributionModel) -> float:
    """The products that are added up, about: values of y, times arms, times two counts."""
    width = 20 * math.sqrt(model.n / len(model.policy)) + 40
    return 2 * len(model.policy) ** 2 * width**3


def _poisson(n: int, share: float) -> FloatArray:
    """P(Poisson(n·share) = 0, …, n)."""
    counts = np.arange(n + 1.0)
    if share == 0:
        return np.asarray(counts == 0, dtype=np.float64)
    return np.exp(counts * math.log(n * share) - n * share - gammaln(counts + 1))


def _convolved(total: FloatArray, chances: FloatArray, n: int) -> FloatArray:
    """The law of the sum, up to n, without what is unlikely at both ends."""
    (first, a), (second, b) = _core(total), _core(chances)
    return np.concatenate([np.zeros(first + second), np.convolve(a, b)])[: n + 1]


def _core(law: FloatArray) -> tuple[int, FloatArray]:
    likely = np.flatnonzero(law > _UNLIKELY)
    if not likely.size:
        return 0, np.zeros(1)
    return int(likely[0]), law[likely[0] : likely[-1] + 1]
