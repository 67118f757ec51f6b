"""The environment that logs are drawn from: one reward distribution on [0, 1] per arm."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.special import ndtr
from armnesia.core.statistics import exact_sums_at, products_of
from armnesia.core.units import UNIT, to_units

_CHUNK = 2**22  # rewards in memory at once


class RewardDistribution(ABC):
    """The rewards of one arm, between 0 and 1."""

    mean: float

    @abstractmethod
    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> FloatArray:
        """Independent rewards."""

    def draw_sums(self, rng: np.random.Generator, counts: IntArray) -> IntArray:
        """The sums, in units, of `counts` rewards each."""
        return self.draw_moments(rng, counts)[0]

    def draw_moments(self, rng: np.random.Generator, counts: IntArray) -> tuple[IntArray, NDArray[Any]]:
        """The sums of the units and of the products (`ArmStatistics`) of `counts` rewards each, in chunks."""
        sums, products = np.zeros(counts.shape, dtype=np.int64), np.zeros(counts.shape, dtype=object)
        per_chunk = max(1, _CHUNK // max(1, int(counts.max(initial=0))))
        for first in range(0, counts.size, per_chunk):
            part = counts[first : first + per_chunk]
            owner = np.repeat(np.arange(part.size), part)
            units = to_units(self.draw(rng, int(part.sum())), (0.0, 1.0))
            np.add.at(sums, first + owner, units)
            products[first : first + per_chunk] = exact_sums_at(part.shape, owner, products_of(units))
        return sums, products


@dataclass(frozen=True)
class Bernoulli(RewardDistribution):
    """Rewards 0 and 1; their sums are drawn directly from binomial distributions."""

    mean: float

    def __post_init__(self) -> None:
        if not 0 <= self.mean <= 1:
            raise InvalidInputError(f"the mean of a Bernoulli reward must lie in [0, 1]; got {self.mean!r}")

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> FloatArray:
        """Zeros and ones."""
        return np.asarray(rng.random(size) < self.mean, dtype=np.float64)

    def draw_moments(self, rng: np.random.Generator, counts: IntArray) -> tuple[IntArray, NDArray[Any]]:
        """Binomial numbers of ones, in units; the products are 0."""
        sums = np.asarray(rng.binomial(counts, self.mean) * UNIT, dtype=np.int64)
        return sums, np.zeros_like(sums)


@dataclass(frozen=True)
class ClippedNormal(RewardDistribution):
    """A normal reward clipped to [0, 1]."""

    location: float
    scale: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.location) and 0 < self.scale < math.inf):
            raise InvalidInputError(f"a clipped normal needs a finite location and scale > 0; got {self}")

    @property
    def mean(self) -> float:  # type: ignore[override]
        """E[min(1, max(0, X))] for X ~ N(location, scale²)."""
        low, high = -self.location / self.scale, (1 - self.location) / self.scale
        density = (math.exp(-(low**2) / 2) - math.exp(-(high**2) / 2)) / math.sqrt(2 * math.pi)
        inside = float(ndtr(high) - ndtr(low))
        return self.location * inside + self.scale * density + float(ndtr(-high))

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> FloatArray:
        """Clipped normals."""
        return np.clip(rng.normal(self.location, self.scale, size), 0.0, 1.0)


@dataclass(frozen=True)
class Beta(RewardDistribution):
    """A Beta(a, b) reward."""

    a: float
    b: float

    def __post_init__(self) -> None:
        if not (0 < self.a < math.inf and 0 < self.b < math.inf):
            raise InvalidInputError(f"a beta reward needs finite a > 0 and b > 0; got {self}")

    @property
    def mean(self) -> float:  # type: ignore[override]
        """a/(a + b)."""
        return self.a / (self.a + self.b)

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> FloatArray:
        """Independent draws."""
        return rng.beta(self.a, self.b, size)


@dataclass(frozen=True)
class Uniform(RewardDistribution):
    """A reward that is uniform between two ends."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high <= 1:
            raise InvalidInputError(f"the ends of a uniform reward must rise within [0, 1]; got {self}")

    @property
    def mean(self) -> float:  # type: ignore[override]
        """The middle."""
        return (self.low + self.high) / 2

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> FloatArray:
        """Independent draws."""
        return self.low + (self.high - self.low) * rng.random(size)


@dataclass(frozen=True)
class FrozenDistribution(RewardDistribution):
    """A frozen scipy distribution whose support lies in [0, 1]."""

    frozen: Any

    def __post_init__(self) -> None:
        low, high = self.frozen.support()
        if not (0 <= low <= high <= 1):
            raise InvalidInputError(
                f"rewards must lie in [0, 1]; this distribution's support is [{low}, {high}]"
            )

    @property
    def mean(self) -> float:  # type: ignore[override]
        """The distribution's mean."""
        return float(self.frozen.mean())

    def draw(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> FloatArray:
        """Independent draws."""
        return np.asarray(self.frozen.rvs(size=size, random_state=rng), dtype=np.float64)


@dataclass(frozen=True)
class Environment:
    """The reward distributions of all arms.

    >>> environment = Environment.bernoulli([0.10, 0.08, 0.06])
    >>> environment.best, environment.gaps.round(2)
    (0, array([0.  , 0.02, 0.04]))
    """

    arms: tuple[RewardDistribution, ...]

    def __post_init__(self) -> None:
        if not self.arms:
            raise InvalidInputError("an environment needs at least one arm; got none")

    @classmethod
    def bernoulli(cls, means: Sequence[float]) -> "Environment":
        """Rewards 0 and 1 with these means."""
        return cls(tuple(Bernoulli(float(mean)) for mean in means))

    @classmethod
    def beta(cls, shapes: Sequence[tuple[float, float]]) -> "Environment":
        """Beta(a, b) rewards.

        >>> Environment.beta([(1, 1), (2, 6)]).means
        array([0.5 , 0.25])
        """
        return cls(tuple(Beta(a, b) for a, b in shapes))

    @classmethod
    def uniform(cls, ranges: Sequence[tuple[float, float]]) -> "Environment":
        """Rewards uniform between two ends."""
        return cls(tuple(Uniform(low, high) for low, high in ranges))

    @classmethod
    def clipped_normal(cls, parameters: Sequence[tuple[float, float]]) -> "Environment":
        """Normal(location, scale) rewards clipped to [0, 1]."""
        return cls(tuple(ClippedNormal(location, scale) for location, scale in parameters))

    @property
    def n_actions(self) -> int:
        """The number of arms, m."""
        return len(self.arms)

    @property
    def means(self) -> FloatArray:
        """The true mean of each arm."""
        return np.array([arm.mean for arm in self.arms])

    @property
    def best(self) -> int:
        """The best arm, a*; the first of several."""
        return int(np.argmax(self.means))

    @property
    def gaps(self) -> FloatArray:
        """The difference between the best mean and each arm's."""
        return np.asarray(self.means.max() - self.means)

    @property
    def is_bernoulli(self) -> bool:
        """Whether every reward is 0 or 1, so that sums can be enumerated."""
        return all(isinstance(arm, Bernoulli) for arm in self.arms)
