"""Exact sub-optimality in small worlds, computed independently: nothing here is imported from the package.

One arm is Bernoulli, the others have a constant reward, so that a data set is described by two binomial
numbers (ones retained, ones deleted) and N can be large. A constant opponent suffices, because the bounds
are about an underestimated best arm. Ties go to the first arm.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

Floats = NDArray[np.float64]


def penalty(count: int, m: int, tau: float) -> float:
    return math.sqrt(math.log(m / tau) / (2 * count)) if count > 0 else 1.0


def printed_gamma_0(count: int, k: int, m: int, tau: float) -> float:
    return 4 / 3 * math.sqrt(math.pi * math.log(m / tau) / (count - k))


def exact_gamma_0(count: int, k: int, m: int, tau: float) -> float:
    """The γ at which 2b(N−k) = 2b(N) + γ·3k/(2N)/√(2π)."""
    gain = 2 * penalty(count - k, m, tau) - 2 * penalty(count, m, tau)
    return gain * math.sqrt(2 * math.pi) / (1.5 * k / count)


@dataclass(frozen=True)
class World:
    """Arm 0 is Bernoulli(`mean`), the others have rewards `constants`; `deleted` of `counts` are deleted."""

    mean: float
    constants: tuple[float, ...]
    counts: tuple[int, ...]
    deleted: tuple[int, ...]
    tau: float

    @property
    def m(self) -> int:
        return len(self.counts)

    @property
    def gaps(self) -> Floats:
        means = np.array([self.mean, *self.constants])
        return np.asarray(means.max() - means)

    @property
    def largest_gap(self) -> float:
        return float(self.gaps.max())

    def b(self, arm: int, deleted: int = 0) -> float:
        return penalty(self.counts[arm] - deleted, self.m, self.tau)

    def scores(self, ones: Floats, deleted: Sequence[int]) -> Floats:
        """LCB scores of every arm without its `deleted` points, if arm 0 has `ones` left."""
        left = [count - k for count, k in zip(self.counts, deleted, strict=True)]
        means = [ones / left[0] if left[0] else 0 * ones]
        means += [np.full_like(ones, c if left[i + 1] else 0.0) for i, c in enumerate(self.constants)]
        return np.array([mean - self.b(arm, deleted[arm]) for arm, mean in enumerate(means)])

    def loss(self, gamma: float, limit: float, first: int = 0) -> float:
        """Noise on the served arm if it is requested and γ < limit, `first` of its points rolled back
        before; rollback of everything else. `first` is for arm 0 alone (mixing)."""
        return _loss(self, gamma, limit, first)

    def no_deletion(self) -> float:
        """The loss of the learner itself."""
        return replace(self, deleted=(0,) * self.m).loss(0.0, 0.0)


@cache
def _loss(world: World, gamma: float, limit: float, first: int) -> float:
    kept, p_kept = outcomes(world.counts[0] - world.deleted[0], world.mean)
    early, p_early = outcomes(first, world.mean)
    late, p_late = outcomes(world.deleted[0] - first, world.mean)
    weights = p_kept[:, None, None] * p_early[None, :, None] * p_late[None, None, :]
    kept, early, late = np.meshgrid(kept, early, late, indexing="ij")
    before = world.scores(kept + early + late, (0,) * world.m)
    partly = world.scores(kept + late, (first, *(0,) * (world.m - 1)))
    after = world.scores(kept, world.deleted)
    served = before.argmax(axis=0)
    release = np.take_along_axis(world.gaps, after.argmax(axis=0).ravel(), 0).reshape(served.shape)
    for arm, k in enumerate(world.deleted):
        rest = k - (first if arm == 0 else 0)
        if rest == 0 or not gamma < limit:
            continue
        others = np.delete(after, arm, axis=0)
        other_gaps = np.delete(world.gaps, arm)[others.argmax(axis=0)]
        left = world.counts[arm] - (first if arm == 0 else 0)
        sigma = gamma * 1.5 * rest / left
        stays = ndtr((partly[arm] - others.max(axis=0)) / max(sigma, 1e-300))
        noisy = stays * world.gaps[arm] + (1 - stays) * other_gaps
        release = np.where(served == arm, noisy, release)
    return float((weights * release).sum())


def outcomes(n: int, mean: float) -> tuple[Floats, Floats]:
    """The likely values of Binomial(n, mean), all but less than 10⁻⁸ of it, with their probabilities."""
    reach = 6 * math.sqrt(n * mean * (1 - mean)) + 12
    values = np.arange(max(0, math.floor(n * mean - reach)), min(n, math.ceil(n * mean + reach)) + 1)
    return values.astype(np.float64), np.asarray(binom.pmf(values, n, mean))


def distribution_loss(
    n: int, share: float, world: Callable[[int], World], gamma: float, limit: Callable[[World], float]
) -> float:
    """The loss under M_d: the mean over N(arm 0) ~ Binomial(N, share) of that of `world(N(arm 0))`."""
    values, weights = outcomes(n, share)
    return float(
        sum(
            weight * world(int(value)).loss(gamma, limit(world(int(value))))
            for value, weight in zip(values, weights, strict=True)
        )
    )


def two_arm_loss(means: tuple[float, float], counts: tuple[int, int], tau: float) -> float:
    """LCB on two Bernoulli arms."""
    first, p_first = outcomes(counts[0], means[0])
    second, p_second = outcomes(counts[1], means[1])
    score_1 = first / max(counts[0], 1) - penalty(counts[0], 2, tau)
    score_2 = second / max(counts[1], 1) - penalty(counts[1], 2, tau)
    gap = means[0] - means[1]
    second_wins = score_2[None, :] > score_1[:, None]
    lost = second_wins if gap > 0 else ~second_wins  # not 1 − P: it may be 10⁻¹²
    return abs(gap) * float(p_first @ lost @ p_second)
