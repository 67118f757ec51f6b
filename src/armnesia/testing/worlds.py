"""The data that the checks run on: data sets with requests, small and large, from fixed seeds."""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from armnesia.auditing.small_worlds import stacked
from armnesia.core.randomness import generator
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics

Range = tuple[float, float]
Rewards = tuple[tuple[float, ...], ...]
"""The rewards of each arm, multiples of 1/8: exact in floats and in units."""


@dataclass(frozen=True)
class World:
    """The records that stay and those to be deleted; the arms are 0, 1, 2, …"""

    kept: Rewards
    deleted: Rewards

    def instance(
        self, arms: Sequence[int] | None = None, reward_range: Range = (0.0, 1.0)
    ) -> tuple[ArmStatistics, DeletionRequest]:
        """The data set and the request, with these arms in this order; all of them if not given."""
        chosen, (low, high) = range(len(self.kept)) if arms is None else arms, reward_range
        kept, deleted = (
            {arm: [low + (high - low) * reward for reward in rewards[arm]] for arm in chosen}
            for rewards in (self.kept, self.deleted)
        )
        request = DeletionRequest.from_rewards(deleted, reward_range)
        return ArmStatistics.from_rewards(kept, reward_range).merge(request.records), request

    def untouched(self) -> "World":
        """The records that stay, with an empty request."""
        return World(self.kept, ((),) * len(self.kept))


@lru_cache
def worlds(n_actions: int, *, one_arm: bool = False, binary: bool = True) -> tuple[World, ...]:
    """Random worlds: from 1 to 200 records per arm, some arms empty, some emptied."""
    random = generator(4 * n_actions + 2 * one_arm + binary)

    def rewards(most: int, mean: float) -> tuple[float, ...]:
        count = random.integers(most // 2, most + 1)
        drawn = random.random(count) < mean if binary else random.binomial(8, mean, count) / 8
        return tuple(drawn.astype(float).tolist())

    made = []
    for _ in range(24):
        size, arm = random.choice([1, 3, 30, 200]), random.integers(n_actions)
        mean, other = random.random(2)  # the deleted records may be unlike the others
        kept = [rewards(random.choice([0, size, size]), mean) for _ in range(n_actions)]
        most = [random.choice([0, 8, size]) if not one_arm or a == arm else 0 for a in range(n_actions)]
        made.append(World(tuple(kept), tuple(rewards(each, other) for each in most)))
    return tuple(made)


def batch(of: tuple[World, ...], reward_range: Range = (0.0, 1.0)) -> tuple[ArmStatistics, DeletionRequest]:
    """The worlds as one batch, a data set each; always a new one, because a faulty class may change it."""
    found: tuple[ArmStatistics, DeletionRequest] = pickle.loads(_pickled_batch(of, reward_range))
    return found


@lru_cache
def _pickled_batch(of: tuple[World, ...], reward_range: Range) -> bytes:
    return pickle.dumps(stacked([world.instance(reward_range=reward_range) for world in of]))
