"""All small data sets with all their requests, on which a level can be checked completely."""

from collections.abc import Sequence

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT

LARGEST_COUNT = 12
"""With more records per arm there are too many data sets to try them all."""


def small_worlds(max_count: int = 6, *, several_arms: bool = True) -> tuple[ArmStatistics, DeletionRequest]:
    """All (D, U) with two arms, at most `max_count` records per arm and rewards in {0, 1}, as one batch.

    >>> statistics, request = small_worlds(2)
    >>> statistics.counts.shape
    (224, 2)
    """
    if not 1 <= max_count <= LARGEST_COUNT:
        raise InvalidInputError(f"max_count must lie between 1 and {LARGEST_COUNT}; got {max_count!r}")
    one_arm = np.array(
        [
            (kept, kept_ones, removed, removed_ones)
            for kept in range(max_count + 1)
            for removed in range(max_count + 1 - kept)
            for kept_ones in range(kept + 1)
            for removed_ones in range(removed + 1)
        ]
    )
    pairs = np.array(np.meshgrid(*[np.arange(len(one_arm))] * 2)).reshape(2, -1).T
    kept, kept_ones, removed, removed_ones = np.moveaxis(one_arm[pairs], -1, 0)
    usable = (kept + removed).sum(axis=-1) > 0
    if not several_arms:
        usable &= (removed > 0).sum(axis=-1) <= 1
    deleted = _statistics(removed[usable], removed_ones[usable])
    return _statistics(kept[usable], kept_ones[usable]).merge(deleted), DeletionRequest(deleted, binary=True)


def stacked(
    instances: Sequence[tuple[ArmStatistics, DeletionRequest]],
) -> tuple[ArmStatistics, DeletionRequest]:
    """Stack instances over the same actions into one batch."""
    if not instances:
        raise InvalidInputError("instances must hold at least one (statistics, request); got none")
    first = instances[0][0]
    for statistics, request in instances:
        first.merge(statistics).merge(request)  # refuses other actions or another reward range

    def batch(items: Sequence[ArmStatistics]) -> ArmStatistics:
        counts, sums = np.stack([item.counts for item in items]), np.stack([item.sums for item in items])
        known = [item.products for item in items if item.products is not None]
        products = np.stack(known) if len(known) == len(items) else None
        return ArmStatistics(first.actions, counts, sums, first.reward_range, products)

    return batch([statistics for statistics, _ in instances]), DeletionRequest(
        batch([request.records for _, request in instances]),
        binary=all(request.binary for _, request in instances),
    )


def _statistics(counts: IntArray, ones: IntArray) -> ArmStatistics:
    return ArmStatistics((0, 1), counts, ones * UNIT, products=np.zeros_like(ones))
