"""Drawing data sets with their requests, as counts and sums."""

from dataclasses import dataclass

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
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
    deleted_sums = np.zeros(counts.shape, dtype=np.int64)
    total = np.zeros(counts.shape, dtype=np.int64)
    prefix_sums: dict[int, IntArray] = {}
    for arm, rewards in enumerate(environment.arms):
        if isinstance(request, TiltedArm):
            total[:, arm], deleted_sums[:, arm] = _draw_tilted_arm(
                rng, rewards, counts[:, arm], deleted[:, arm], request if arm == request.arm else None
            )
            continue
        if request.choice == "random" and not isinstance(rewards, Bernoulli) and deleted[:, arm].any():
            prefix_sums[arm] = _prefix_sums(rng, rewards, deleted[:, arm])
            deleted_sums[:, arm] = prefix_sums[arm][:, -1]
            total[:, arm] = deleted_sums[:, arm] + rewards.draw_sums(rng, counts[:, arm] - deleted[:, arm])
            continue
        total[:, arm], deleted_sums[:, arm] = _draw_arm(
            rng, rewards, counts[:, arm], deleted[:, arm], request.choice
        )
    labels = tuple(range(environment.n_actions))
    records = ArmStatistics(labels, deleted, deleted_sums)
    return Drawn(
        ArmStatistics(labels, counts, total),
        DeletionRequest(records, environment.is_bernoulli),
        short_share,
        prefix_sums,
    )


def _draw_tilted_arm(
    rng: np.random.Generator,
    rewards: RewardDistribution,
    counts: IntArray,
    deleted: IntArray,
    request: TiltedArm | None,
) -> tuple[IntArray, IntArray]:
    """The sums of all records and of the deleted ones, which have another mean; no request: untouched."""
    if not isinstance(rewards, Bernoulli):
        raise UnsupportedError("tilted requests need Bernoulli rewards; use choice 'highest' or 'lowest'")
    if request is None:
        return rewards.draw_sums(rng, counts), np.zeros_like(deleted)
    deleted_sums = rng.binomial(deleted, request.deleted_mean) * UNIT
    left = rng.binomial(counts - deleted, request.mean_left(counts, rewards.mean)) * UNIT
    return deleted_sums + left, deleted_sums


def _prefix_sums(rng: np.random.Generator, rewards: RewardDistribution, deleted: IntArray) -> IntArray:
    """The sums of the first records of each request, so that any number can be rolled back first."""
    width = int(deleted.max(initial=0))
    units = to_units(rewards.draw(rng, (deleted.size, width)), (0.0, 1.0))
    units = np.where(np.arange(width) < deleted[:, None], units, 0)
    return np.concatenate([np.zeros((deleted.size, 1), dtype=np.int64), np.cumsum(units, axis=1)], axis=1)


def _draw_arm(
    rng: np.random.Generator, rewards: RewardDistribution, counts: IntArray, deleted: IntArray, choice: Choice
) -> tuple[IntArray, IntArray]:
    """The sums, in units, of all records of an arm and of the deleted ones."""
    if choice == "random":  # independent of the rewards: the two parts are independent sums
        deleted_sums = rewards.draw_sums(rng, deleted)
        return deleted_sums + rewards.draw_sums(rng, counts - deleted), deleted_sums
    total = np.zeros(counts.shape, dtype=np.int64)
    deleted_sums = np.zeros(counts.shape, dtype=np.int64)
    width = int(counts.max(initial=0))
    per_chunk = max(1, _ROWS_AT_ONCE // max(1, width))
    for first in range(0, counts.size, per_chunk):
        part = slice(first, first + per_chunk)
        units = to_units(rewards.draw(rng, (len(counts[part]), width)), (0.0, 1.0))
        there = np.arange(width) < counts[part, None]
        total[part] = (units * there).sum(axis=-1)
        # Records beyond the count sort last either way, so they are never among the deleted ones.
        key = np.where(there, units if choice == "lowest" else UNIT - units, UNIT + 1)
        ordered = np.sort(key, axis=-1)
        chosen = np.where(np.arange(width) < deleted[part, None], ordered, 0).sum(axis=-1)
        deleted_sums[part] = chosen if choice == "lowest" else deleted[part] * UNIT - chosen
    return total, deleted_sums
