"""The least error of a reference on two instances that it must tell apart, under (ε, δ), and the best gap."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.privacy import Budget
from armnesia.theory.binomial import between
from armnesia.unlearners.tilt_reference import factors, knee

_LEFT_OUT = 1e-12
"""Counts with a smaller weight, in parts of the largest, are left out. This makes a lower bound smaller."""
_LARGEST_MEAN = 1 - 1e-12


@dataclass(frozen=True)
class TwoPoints:
    """What the records that are left show of two instances: their counts, and rewards for or against each.

    `first` and `second` are the log-probabilities of the counts under the instances. With these counts,
    `points` rewards speak for the first instance with probability `mean` > ½ each if it is true, and with
    probability 1 − `mean` if the second is.
    """

    first: FloatArray
    second: FloatArray
    points: IntArray

    def least_error(self, mean: float, budget: Budget) -> float:
        """The least average probability, over both instances, that the worse arm is released.

        A reference that serves the worse arm with probability r forces the release to serve it with
        probability lo(r) = 1 − hi(1 − r) or more. Given data with probabilities p and q, a reference chooses
        r to minimise p·lo(r) + q·lo(1 − r). Both terms are convex and piecewise linear, so the best r is a
        break: δ if p ≥ e^{2ε}q, h = (1−δ)/(1+e^ε) (or δ, if larger) if e^{2ε}q > p ≥ q, and their mirror
        images. At ε = δ = 0 the sum is min(p, q), and the error (1 − TV)/2.

        >>> two_rewards = TwoPoints(np.zeros(1), np.zeros(1), np.array([2]))
        >>> round(two_rewards.least_error(0.75, Budget(epsilon=0.0, delta=0.0)), 6)
        0.25
        >>> round(two_rewards.least_error(0.75, Budget(epsilon=1.0, delta=0.0)), 6)
        0.131477
        """
        kept = np.minimum(self.first, self.second)
        kept = kept >= kept.max() + math.log(_LEFT_OUT)
        first, second, points = self.first[kept], self.second[kept], self.points[kept]
        (up, down), h, delta = factors(budget), knee(budget), budget.delta
        mean = min(mean, _LARGEST_MEAN)
        certain = max(1 - delta - up * delta, down * (1 - 2 * delta), 0.0)  # lo(1 − δ); lo(δ) is 0
        right, wrong = (down * (h - delta), h) if delta < h else (0.0, certain)  # lo(h), lo(1 − h)

        def limit(log_ratio: float) -> IntArray:
            """The most rewards for the first instance with which ln p/q is below this."""
            needed = points / 2 + (log_ratio - first + second) / (2 * math.log(mean / (1 - mean)))
            return np.asarray(np.clip(np.ceil(needed) - 1, -1, points), dtype=np.int64)

        ratios = (-2 * budget.epsilon, 0.0, 2 * budget.epsilon)
        edges = [np.full_like(points, -1), *map(limit, ratios), points]
        total = 0.0
        for weights, chance, lost in (
            (first, mean, (certain, wrong, right, 0.0)),
            (second, 1 - mean, (0.0, right, wrong, certain)),
        ):
            for above, most, each in zip(edges, edges[1:], lost, strict=False):
                if each > 0:
                    total += each * float(np.exp(weights) @ between(points, chance, above, most))
        return total / 2


def largest_over_gaps(
    bound: Callable[[float], float], *, usual: float, most: float, points: int
) -> tuple[float, float]:
    """The gap in (0, `most`] with the largest bound for so many rewards, and the bound; at least at `usual`.

    The best gap is near 0.38/√points where nothing but the rewards tells the instances apart.

    >>> gap, value = largest_over_gaps(lambda gap: gap * (1 - gap), usual=0.1, most=1.0, points=9)
    >>> round(gap, 3), round(value, 6)
    (0.5, 0.25)
    """
    from scipy.optimize import minimize_scalar  # noqa: PLC0415

    grid = np.sort(np.append(np.geomspace(min(usual, (points + 1) ** -0.5) / 8, most, 24), usual))
    values = [bound(gap) for gap in grid]
    best = int(np.argmax(values))
    around = (float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)]))
    found = minimize_scalar(lambda gap: -bound(gap), bounds=around, options={"xatol": 1e-4 * around[1]})
    if -found.fun > values[best]:
        return float(found.x), float(-found.fun)
    return float(grid[best]), float(values[best])
