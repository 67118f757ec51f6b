"""The paper's estimation protocol: 200 trajectories, 5 requests each, sampled noise, the mean of 10 runs."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.randomness import generators
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.privacy import Budget
from armnesia.simulation import DataModel, Environment, Evaluation, FixedSample, SeveralArms
from armnesia.simulation.estimates import bounded_interval
from armnesia.simulation.evaluation import bound_learner
from armnesia.unlearners import Unlearner
from armnesia.unlearners.base import decision_distribution

RUNS, TRAJECTORIES, REQUESTS, LONGEST = 10, 200, 5, 5000
BLOCK = 10
"""Records per arm in a block of 50; a request takes consecutive records from the start of a random block."""
BLOCKS = 100
"""Groups of trajectories, of which the standard error is computed."""


def paper_protocol(
    environment: Environment,
    model: DataModel,
    request: SeveralArms,
    unlearners: Mapping[str, Unlearner | None],
    budget: Budget,
    *,
    seed: int = 0,
    shared: bool = False,
    **_: Any,
) -> dict[str, Evaluation]:
    """Estimate sub-optimality as the paper does, record by record; in place of `evaluate_all`.

    Each of the five requests of a trajectory starts at a random block. The ten runs have new trajectories, or
    the same ones with new requests and new noise (`shared`). The standard error is that of the mean of all,
    from 100 blocks of trajectories.
    """
    losses: dict[str, list[FloatArray]] = {name: [] for name in unlearners}
    short: list[float] = []
    n_runs, n_requests = (1, RUNS * REQUESTS) if shared else (RUNS, REQUESTS)
    for rng in generators(seed, n_runs):
        statistics, deleted = _one_run(environment, model, request.deletions, rng, n_requests)
        requested = np.array([request.deletions.get(arm, 0) for arm in range(environment.n_actions)])
        short.append(float((deleted.counts < requested).any(axis=-1).mean()))
        uniform = rng.random(statistics.counts.shape[:-1])  # the same for all methods
        for name, unlearner in unlearners.items():
            learner = bound_learner(unlearner, model.n)
            if unlearner is None:
                p = decision_distribution(learner, statistics)
            else:
                p = unlearner.release(learner, statistics, deleted, budget).probabilities
            arms = (uniform[..., None] > np.cumsum(p, axis=-1)[..., :-1]).sum(axis=-1)
            losses[name].append(environment.gaps[arms].mean(axis=1))
    found = {}
    for name, values in losses.items():
        blocks = np.concatenate(values).reshape(BLOCKS, -1).mean(axis=1)
        error = blocks.std(ddof=1) / np.sqrt(BLOCKS)
        case = blocks.mean(), error, float(environment.gaps.max()), n_runs * TRAJECTORIES, blocks
        found[name] = estimated(*case, protocol="paper", short=float(np.mean(short)))
    return found


def paper_protocol_shared(*case: Any, **options: Any) -> dict[str, Evaluation]:
    """`paper_protocol` with the same trajectories in all ten runs."""
    return paper_protocol(*case, **options, shared=True)


def _one_run(
    environment: Environment,
    model: DataModel,
    deletions: Mapping[int, int],
    rng: np.random.Generator,
    n_requests: int = REQUESTS,
) -> tuple[ArmStatistics, DeletionRequest]:
    """200 trajectories, cut to their first N records, each with five requests."""
    n_actions = environment.n_actions
    size = TRAJECTORIES, max(model.n, LONGEST)
    if not isinstance(model, FixedSample):
        arms = rng.choice(n_actions, size=size, p=model.policy)
    elif model == FixedSample.round_robin(model.n, n_actions):
        arms = np.broadcast_to(np.arange(size[1]) % n_actions, size)
    else:
        raise UnsupportedError(f"the paper's protocol serves the arms in turn; got counts {model.counts}")
    rewards = rng.random(arms.shape) < environment.means[arms]
    arms, rewards = arms[:, : model.n], rewards[:, : model.n]  # settings with different N share a prefix
    shape = (TRAJECTORIES, n_requests, n_actions)
    counts, sums, deleted_counts, deleted_sums = (np.zeros(shape, dtype=np.int64) for _ in range(4))
    for arm in range(n_actions):
        is_arm = arms == arm
        counts[..., arm] = is_arm.sum(axis=1)[:, None]
        sums[..., arm] = (rewards & is_arm).sum(axis=1)[:, None]
        k = deletions.get(arm, 0)
        rank = np.cumsum(is_arm, axis=1) - 1
        n_starts = 1 + np.maximum(counts[:, 0, arm] - k, 0) // BLOCK
        for number in range(n_requests if k else 0):
            start = BLOCK * rng.integers(n_starts)[:, None]
            is_deleted = is_arm & (rank >= start) & (rank < start + k)
            deleted_counts[:, number, arm] = is_deleted.sum(axis=1)
            deleted_sums[:, number, arm] = (rewards & is_deleted).sum(axis=1)
    labels = tuple(range(n_actions))
    deleted = ArmStatistics(labels, deleted_counts, deleted_sums * UNIT)
    return ArmStatistics(labels, counts, sums * UNIT), DeletionRequest(deleted, binary=True)


def estimated(
    value: float,
    error: float,
    largest: float,
    datasets: int,
    blocks: FloatArray,
    *,
    protocol: str = "sampled",
    short: float = 0.0,
) -> Evaluation:
    """An evaluation of which only the loss, from 0 to `largest`, and its standard error are known."""
    interval = bounded_interval(float(value), float(error), largest, datasets)
    unknown = np.full(1, np.nan)
    return Evaluation(float(value), float(error), protocol, unknown, datasets, short, blocks, interval)
