"""Request models: which records are deleted, of one arm, of several, or of random users of all arms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Literal, Protocol

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.simulation.models import is_count

Choice = Literal["random", "lowest", "highest", "tilted"]
"""Which records of an arm: at random (the paper's assumption), those with the lowest or highest reward, or
records whose mean differs from that of the others (`TiltedArm` only)."""


class RequestModel(Protocol):
    """Draws how many records of each arm are deleted from data sets with given counts."""

    @property
    def choice(self) -> Choice: ...  # noqa: D102

    def draw_deleted(self, rng: np.random.Generator, counts: IntArray) -> tuple[IntArray, float]:
        """The deleted counts, and the share of data sets with fewer records than requested."""


@dataclass(frozen=True)
class SeveralArms:
    """k_a records of each listed arm a. An arm with fewer records loses all of them.

    >>> SeveralArms({0: 40, 2: 5}).draw_deleted(np.random.default_rng(0), np.array([[100, 50, 3]]))
    (array([[40,  0,  3]]), 1.0)
    """

    deletions: Mapping[int, int]
    choice: Choice = "random"

    def __post_init__(self) -> None:
        if not self.deletions:
            raise InvalidInputError("deletions must name at least one arm; got none")
        for arm, k in self.deletions.items():
            if not is_count(arm) or not is_count(k):
                raise InvalidInputError(
                    f"deletions are whole numbers of records of arms; got {k!r} of arm {arm!r}"
                )
        _check_choice(self.choice)

    def requested(self, n_actions: int) -> IntArray:
        """How many records of each arm are asked for."""
        requested = np.zeros(n_actions, dtype=np.int64)
        for arm, k in self.deletions.items():
            if arm >= n_actions:
                raise InvalidInputError(f"arm must be below the number of arms, {n_actions}; got {arm}")
            requested[arm] = k
        return requested

    def draw_deleted(self, rng: np.random.Generator, counts: IntArray) -> tuple[IntArray, float]:
        """The requested numbers, at most the counts."""
        requested = self.requested(counts.shape[-1])
        short = (counts < requested).any(axis=-1)
        return np.minimum(requested, counts), float(short.mean())


def OneArm(arm: int, k: int, choice: Choice = "random") -> SeveralArms:  # noqa: N802 (named like a model)
    """k records of one arm: the paper's single-source request."""
    return SeveralArms({arm: k}, choice)


@dataclass(frozen=True)
class AcrossArms:
    """k random records of the log, whatever their arm."""

    k: int
    choice: Choice = "random"

    def __post_init__(self) -> None:
        if not is_count(self.k):
            raise InvalidInputError(f"k must be a whole number of records; got {self.k!r}")
        _check_choice(self.choice)

    def draw_deleted(self, rng: np.random.Generator, counts: IntArray) -> tuple[IntArray, float]:
        """Multivariate hypergeometric: every record is equally likely to be deleted."""
        left_total = counts.sum(axis=-1)
        short = float((left_total < self.k).mean())
        to_go = np.minimum(self.k, left_total)
        deleted = np.zeros(counts.shape, dtype=np.int64)
        for arm in range(counts.shape[-1]):
            left_total = left_total - counts[:, arm]
            deleted[:, arm] = rng.hypergeometric(counts[:, arm], left_total, to_go)
            to_go = to_go - deleted[:, arm]
        return deleted, short


@dataclass(frozen=True)
class TiltedArm:
    """k records of one arm whose mean is `deleted_mean`; the mean of all its records stays the arm's.

    Of N records with mean μ, the N − k that are left have mean (N·μ − k·deleted_mean)/(N − k).

    >>> TiltedArm(0, 300, deleted_mean=0.2).mean_left(np.array([600]), 0.1)
    array([0.])
    """

    arm: int
    k: int
    deleted_mean: float
    choice: Choice = field(default="tilted", init=False)

    def __post_init__(self) -> None:
        if not is_count(self.arm) or not is_count(self.k):
            raise InvalidInputError(
                f"arm and k must be whole numbers, 0 or more; got {self.k!r} of arm {self.arm!r}"
            )
        if not (isinstance(self.deleted_mean, Real) and 0 <= self.deleted_mean <= 1):
            raise InvalidInputError(f"deleted_mean must lie in [0, 1]; got {self.deleted_mean!r}")

    def draw_deleted(self, rng: np.random.Generator, counts: IntArray) -> tuple[IntArray, float]:
        """k records of the arm, or all of them if it has fewer."""
        return SeveralArms({self.arm: self.k}).draw_deleted(rng, counts)

    def mean_left(self, counts: IntArray, mean: float) -> FloatArray:
        """The mean of the records left of an arm with these counts; a mean that cannot be is refused."""
        left = counts - np.minimum(self.k, counts)
        means = (counts * mean - np.minimum(self.k, counts) * self.deleted_mean) / np.maximum(left, 1)
        means = np.where(np.abs(means) < 1e-12, 0.0, means)  # 60 − 300 · 0.2 is not 0 in doubles
        if np.any((left > 0) & ((means < 0) | (means > 1))):
            raise InvalidInputError(
                f"deleted_mean must leave a mean between 0 and 1 for the other records; {self.k} records with"
                f" mean {self.deleted_mean:g} of an arm with mean {mean:g} do not"
            )
        return np.where(left > 0, means, 0.0)


def _check_choice(choice: str) -> None:
    if choice not in ("random", "lowest", "highest"):
        raise InvalidInputError(f"choice must be 'random', 'lowest' or 'highest'; got {choice!r}")
