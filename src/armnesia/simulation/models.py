"""The paper's two data models: how many records of each arm a log holds."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.statistics import is_whole
from armnesia.simulation.environment import Environment


@dataclass(frozen=True)
class FixedSample:
    """The fixed-sample model M_f: the counts are given; `n_star` is the promised N_* ≤ N(a*).

    >>> FixedSample.round_robin(1000, 5).counts
    (200, 200, 200, 200, 200)
    """

    counts: tuple[int, ...]
    n_star: int | None = None

    def __post_init__(self) -> None:
        counts = tuple(self.counts)
        if not counts or not all(is_count(count) for count in counts) or not sum(counts):
            raise InvalidInputError(f"counts must be whole numbers, not all 0; got {list(counts)}")
        object.__setattr__(self, "counts", tuple(int(count) for count in counts))

    @classmethod
    def round_robin(cls, n: int, n_actions: int) -> "FixedSample":
        """Each arm in turn: equal counts, and one more for the first arms if n is not a multiple."""
        if not is_count(n) or n < 1:
            raise InvalidInputError(f"n must be a whole number, 1 or more; got {n!r}")
        return cls(tuple(n // n_actions + (arm < n % n_actions) for arm in range(n_actions)))

    @property
    def n(self) -> int:
        """N: the number of records."""
        return sum(self.counts)

    def check(self, environment: Environment) -> None:
        """Refuse an environment with another number of arms, or with N(a*) < N_*."""
        _check_arms(len(self.counts), environment)
        if self.n_star is not None and self.counts[environment.best] < self.n_star:
            raise InvalidInputError(
                f"n_star must not exceed N(a*) = {self.counts[environment.best]}; got {self.n_star}"
            )

    def draw_counts(self, rng: np.random.Generator, size: int) -> IntArray:
        """The same counts for every data set."""
        return np.broadcast_to(np.array(self.counts, dtype=np.int64), (size, len(self.counts)))


@dataclass(frozen=True)
class DistributionModel:
    """The distribution model M_d: each record's arm is drawn from a behaviour policy d.

    >>> DistributionModel.with_coverage(1000, n_actions=5, best=0, c_star=2).policy
    (0.5, 0.125, 0.125, 0.125, 0.125)
    """

    n: int
    policy: tuple[float, ...]

    def __post_init__(self) -> None:
        policy = tuple(float(share) for share in self.policy)
        if not is_count(self.n) or self.n < 1:
            raise InvalidInputError(f"n must be a whole number, 1 or more; got {self.n!r}")
        if not policy or not all(share >= 0 for share in policy) or abs(sum(policy) - 1) > 1e-9:
            raise InvalidInputError(f"policy must be probabilities that sum to 1; got {list(self.policy)}")
        object.__setattr__(self, "policy", tuple(share / sum(policy) for share in policy))

    @classmethod
    def with_coverage(cls, n: int, *, n_actions: int, best: int, c_star: float) -> "DistributionModel":
        """d(a*) = 1/C*, the rest uniform over the other arms, as in the paper's experiments."""
        if not c_star > 1:
            raise InvalidInputError(f"c_star must be greater than 1; got {c_star!r}")
        if n_actions < 2 or not 0 <= best < n_actions:
            raise InvalidInputError(f"best must be one of at least two arms; got {best!r} of {n_actions}")
        others = (1 - 1 / c_star) / (n_actions - 1)
        return cls(n, tuple(1 / c_star if arm == best else others for arm in range(n_actions)))

    def c_star(self, environment: Environment) -> float:
        """The coverage coefficient 1/d(a*)."""
        return 1 / self.policy[environment.best]

    def check(self, environment: Environment) -> None:
        """Refuse an environment with another number of arms."""
        _check_arms(len(self.policy), environment)

    def draw_counts(self, rng: np.random.Generator, size: int) -> IntArray:
        """Multinomial counts."""
        return np.asarray(rng.multinomial(self.n, self.policy, size=size), dtype=np.int64)


DataModel: TypeAlias = FixedSample | DistributionModel


def is_count(value: Any) -> bool:
    """Whether a value is a whole number, 0 or more."""
    return is_whole(value) and value >= 0


def _check_arms(n_actions: int, environment: Environment) -> None:
    if n_actions != environment.n_actions:
        raise InvalidInputError(
            f"data model and environment must have the same arms; got {n_actions} and {environment.n_actions}"
        )
