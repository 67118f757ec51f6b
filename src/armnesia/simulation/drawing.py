"""Drawing data sets with their requests, as counts and sums."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from armnesia.core.arrays import IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics, exact_row_sums, products_of
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
    arms_left, arms_gone = [], []
    prefix_sums: dict[int, IntArray] = {}
    for arm, rewards in enumerate(environment.arms):
        if isinstance(request, TiltedArm):
            left, gone = _draw_tilted_arm(
                rng, rewards, counts[:, arm], deleted[:, arm], request if arm == request.arm else None
            )
        elif request.choice == "random" and not isinstance(rewards, Bernoulli) and deleted[:, arm].any():
            units = _deleted_units(rng, rewards, deleted[:, arm])
            prefix_sums[arm] = np.cumsum(np.pad(units, ((0, 0), (1, 0))), axis=1)
            gone = prefix_sums[arm][:, -1], exact_row_sums(products_of(units))
            left = rewards.draw_moments(rng, counts[:, arm] - deleted[:, arm])
        else:
            left, gone = _draw_arm(rng, rewards, counts[:, arm], deleted[:, arm], request.choice)
        arms_left.append(left)
        arms_gone.append(gone)
    records = _statistics(deleted, arms_gone)
    return Drawn(
        _statistics(counts - deleted, arms_left).merge(records),
        DeletionRequest(records, environment.is_bernoulli),
        short_share,
        prefix_sums,
    )


_Moments = tuple[IntArray, NDArray[Any]]
"""The sums of reward units of an arm and of their products, per data set; see `ArmStatistics`."""


def _statistics(counts: IntArray, arms: list[_Moments]) -> ArmStatistics:
    sums, products = (np.stack(part, axis=-1) for part in zip(*arms, strict=True))
    return ArmStatistics(tuple(range(len(arms))), counts, sums, products=products)


def _draw_tilted_arm(
    rng: np.random.Generator,
    rewards: RewardDistribution,
    counts: IntArray,
    deleted: IntArray,
    request: TiltedArm | None,
) -> tuple[_Moments, _Moments]:
    """The moments of the records left and of the deleted ones, which have another mean, or all and none."""
    if not isinstance(rewards, Bernoulli):
        raise UnsupportedError("tilted requests need Bernoulli rewards; use choice 'highest' or 'lowest'")
    none = np.zeros_like(deleted)
    if request is None:
        return rewards.draw_moments(rng, counts), (none, none)
    deleted_sums = rng.binomial(deleted, request.deleted_mean) * UNIT
    left = rng.binomial(counts - deleted, request.mean_left(counts, rewards.mean)) * UNIT
    return (left, none), (deleted_sums, none)


def _deleted_units(rng: np.random.Generator, rewards: RewardDistribution, deleted: IntArray) -> IntArray:
    """The rewards of each request in order, so that any number can be rolled back first; then zeros."""
    width = int(deleted.max(initial=0))
    units = to_units(rewards.draw(rng, (deleted.size, width)), (0.0, 1.0))
    return np.where(np.arange(width) < deleted[:, None], units, 0)


def _draw_arm(
    rng: np.random.Generator, rewards: RewardDistribution, counts: IntArray, deleted: IntArray, choice: Choice
) -> tuple[_Moments, _Moments]:
    """The moments of the records of an arm that are left, and of the deleted ones."""
    if choice == "random":  # independent of the rewards: the two parts are independent sums
        gone = rewards.draw_moments(rng, deleted)
        return rewards.draw_moments(rng, counts - deleted), gone
    sums, products = np.zeros((2, *counts.shape), dtype=np.int64), np.zeros((2, *counts.shape), dtype=object)
    width = int(counts.max(initial=0))
    per_chunk = max(1, _ROWS_AT_ONCE // max(1, width))
    for start in range(0, counts.size, per_chunk):
        part = slice(start, start + per_chunk)
        units = to_units(rewards.draw(rng, (len(counts[part]), width)), (0.0, 1.0))
        there = np.arange(width) < counts[part, None]
        # Records beyond the count sort last either way, so they are never among the deleted ones.
        key = np.where(there, units if choice == "lowest" else UNIT - units, UNIT + 1)
        ordered = np.sort(key, axis=-1)
        chosen = np.arange(width) < deleted[part, None]
        for which, mask in enumerate((there & ~chosen, chosen)):
            own = np.where(mask, ordered, 0)
            total = own.sum(axis=-1)
            sums[which, part] = total if choice == "lowest" else mask.sum(axis=-1) * UNIT - total
            products[which, part] = exact_row_sums(products_of(own))  # alike for u and 10⁹ − u
    return (sums[0], products[0]), (sums[1], products[1])
