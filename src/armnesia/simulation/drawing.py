"""Drawing data sets with their requests, as counts and sums."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from armnesia.core.arrays import IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics, add_products, exact_row_sums, products_of
from armnesia.core.units import UNIT, to_units
from armnesia.simulation.environment import Bernoulli, Environment, RewardDistribution
from armnesia.simulation.models import DataModel
from armnesia.simulation.requests import Choice, RequestModel, TiltedArm

_ROWS_AT_ONCE = 2**22


@dataclass(frozen=True, eq=False)
class Drawn:
    """A batch of data sets D with requests U, and the share of requests for more records than there were."""

    statistics: ArmStatistics
    request: DeletionRequest
    short_share: float
    deleted_prefix_sums: dict[int, IntArray]
    """The sums of the first 0, 1, 2, … deleted records, for arms whose rewards are not all 0 or 1."""


def draw_data_sets(
    environment: Environment, model: DataModel, request: RequestModel, rng: np.random.Generator, size: int
) -> Drawn:
    """Draw `size` independent data sets and requests.

    >>> from armnesia.simulation import FixedSample, OneArm
    >>> environment, rng = Environment.bernoulli([0.5, 0.4]), np.random.default_rng(0)
    >>> drawn = draw_data_sets(environment, FixedSample((10, 20)), OneArm(0, 4), rng, size=3)
    >>> drawn.request.counts.tolist()
    [[4, 0], [4, 0], [4, 0]]
    """
    counts = model.draw_counts(rng, size)
    deleted, short_share = request.draw_deleted(rng, counts)
    everything, gone = [], []
    prefix_sums: dict[int, IntArray] = {}
    for arm, rewards in enumerate(environment.arms):
        if isinstance(request, TiltedArm):
            drawn = _draw_tilted_arm(
                rng, rewards, counts[:, arm], deleted[:, arm], request if arm == request.arm else None
            )
        elif request.choice == "random" and not isinstance(rewards, Bernoulli) and deleted[:, arm].any():
            units = _deleted_units(rng, rewards, deleted[:, arm])
            prefix_sums[arm] = np.cumsum(np.pad(units, ((0, 0), (1, 0))), axis=1)
            own = _Moments(prefix_sums[arm][:, -1], exact_row_sums(products_of(units)))
            left = _Moments(*rewards.draw_moments(rng, counts[:, arm] - deleted[:, arm]))
            drawn = own.plus(left), own
        else:
            drawn = _draw_arm(rng, rewards, counts[:, arm], deleted[:, arm], request.choice)
        everything.append(drawn[0])
        gone.append(drawn[1])
    labels = tuple(range(environment.n_actions))
    return Drawn(
        _statistics(labels, counts, everything),
        DeletionRequest(_statistics(labels, deleted, gone), environment.is_bernoulli),
        short_share,
        prefix_sums,
    )


class _Moments(NamedTuple):
    """The sums of reward units of an arm and of their products, per data set; see `ArmStatistics`."""

    sums: IntArray
    products: NDArray[Any]

    def plus(self, other: "_Moments") -> "_Moments":
        products = add_products(self.products, other.products)
        assert products is not None
        return _Moments(self.sums + other.sums, products)


def _statistics(labels: tuple[int, ...], counts: IntArray, arms: list[_Moments]) -> ArmStatistics:
    sums, products = (np.stack(part, axis=-1) for part in zip(*arms, strict=True))
    return ArmStatistics(labels, counts, sums, products=products)


def _draw_tilted_arm(
    rng: np.random.Generator,
    rewards: RewardDistribution,
    counts: IntArray,
    deleted: IntArray,
    request: TiltedArm | None,
) -> tuple[_Moments, _Moments]:
    """The moments of all records and of the deleted ones, which have another mean; no request: untouched."""
    if not isinstance(rewards, Bernoulli):
        raise UnsupportedError("tilted requests need Bernoulli rewards; use choice 'highest' or 'lowest'")
    nothing = np.zeros_like(deleted)
    if request is None:
        return _Moments(rewards.draw_sums(rng, counts), nothing), _Moments(nothing, nothing)
    deleted_sums = rng.binomial(deleted, request.deleted_mean) * UNIT
    left = rng.binomial(counts - deleted, request.mean_left(counts, rewards.mean)) * UNIT
    return _Moments(deleted_sums + left, nothing), _Moments(deleted_sums, nothing)


def _deleted_units(rng: np.random.Generator, rewards: RewardDistribution, deleted: IntArray) -> IntArray:
    """The rewards of each request in order, so that any number can be rolled back first; then zeros."""
    width = int(deleted.max(initial=0))
    units = to_units(rewards.draw(rng, (deleted.size, width)), (0.0, 1.0))
    return np.where(np.arange(width) < deleted[:, None], units, 0)


def _draw_arm(
    rng: np.random.Generator, rewards: RewardDistribution, counts: IntArray, deleted: IntArray, choice: Choice
) -> tuple[_Moments, _Moments]:
    """The moments of all records of an arm and of the deleted ones."""
    if choice == "random":  # independent of the rewards: the two parts are independent sums
        gone = _Moments(*rewards.draw_moments(rng, deleted))
        return gone.plus(_Moments(*rewards.draw_moments(rng, counts - deleted))), gone
    total, deleted_sums = np.zeros((2, *counts.shape), dtype=np.int64)
    products, deleted_products = np.zeros((2, *counts.shape), dtype=object)
    width = int(counts.max(initial=0))
    per_chunk = max(1, _ROWS_AT_ONCE // max(1, width))
    for start in range(0, counts.size, per_chunk):
        part = slice(start, start + per_chunk)
        units = to_units(rewards.draw(rng, (len(counts[part]), width)), (0.0, 1.0))
        there = np.arange(width) < counts[part, None]
        total[part] = (units * there).sum(axis=-1)
        # Records beyond the count sort last either way, so they are never among the deleted ones.
        key = np.where(there, units if choice == "lowest" else UNIT - units, UNIT + 1)
        ordered = np.sort(key, axis=-1)
        first = np.where(np.arange(width) < deleted[part, None], ordered, 0)
        chosen = first.sum(axis=-1)
        deleted_sums[part] = chosen if choice == "lowest" else deleted[part] * UNIT - chosen
        products[part] = exact_row_sums(products_of(units * there))
        deleted_products[part] = exact_row_sums(products_of(first))  # alike for u and 10⁹ − u
    return _Moments(total, products), _Moments(deleted_sums, deleted_products)
