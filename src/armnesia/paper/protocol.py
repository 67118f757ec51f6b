"""The paper's estimation protocol: 200 trajectories, 5 requests each, sampled noise, the mean of 10 runs."""

from collections.abc import Mapping

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.core.errors import UnsupportedError
from armnesia.core.randomness import generators
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.paper.settings import DELTA, ENVIRONMENT
from armnesia.privacy import Budget
from armnesia.simulation import DataModel, Evaluation, FixedSample
from armnesia.simulation.evaluation import bound_learner
from armnesia.unlearners import Unlearner
from armnesia.unlearners.base import decision_distribution

RUNS, TRAJECTORIES, REQUESTS, LONGEST = 10, 200, 5, 5000
_STUDENT = 2.2621571627409915  # the 97.5 % quantile with 9 degrees of freedom
BLOCK = 10
"""Records per arm in a block of 50; a request takes consecutive records from the start of a random block."""


def paper_protocol(
    model: DataModel,
    deletions: Mapping[int, int],
    methods: Mapping[str, Unlearner | None],
    gamma: float,
    *,
    seed: int = 0,
) -> dict[str, Evaluation]:
    """Estimate sub-optimality as the paper does, record by record.

    The paper does not say how the five requests of a trajectory differ; here each starts at a random block.
    The standard error is that of the mean of the ten runs; the paper plots this mean without an error.
    """
    budget = Budget.from_gamma(gamma, delta=DELTA)
    losses: dict[str, list[float]] = {name: [] for name in methods}
    short: list[float] = []
    for rng in generators(seed, RUNS):
        statistics, request = _one_run(model, deletions, rng)
        requested = np.array([deletions.get(arm, 0) for arm in range(ENVIRONMENT.n_actions)])
        short.append(float((request.counts < requested).any(axis=-1).mean()))
        uniform = rng.random(statistics.counts.shape[:-1])
        for name, unlearner in methods.items():
            losses[name].append(_mean_loss(statistics, request, unlearner, model.n, budget, uniform))
    return {name: _evaluation(np.array(values), float(np.mean(short))) for name, values in losses.items()}


def _one_run(
    model: DataModel, deletions: Mapping[int, int], rng: np.random.Generator
) -> tuple[ArmStatistics, DeletionRequest]:
    """200 trajectories, cut to their first N records, each with five requests."""
    arms = _arm_sequences(model, rng)
    rewards = rng.random(arms.shape) < ENVIRONMENT.means[arms]
    arms, rewards = arms[:, : model.n], rewards[:, : model.n]  # settings with different N share a prefix
    shape = (TRAJECTORIES, REQUESTS, ENVIRONMENT.n_actions)
    counts, sums, deleted_counts, deleted_sums = (np.zeros(shape, dtype=np.int64) for _ in range(4))
    for arm in range(ENVIRONMENT.n_actions):
        is_arm = arms == arm
        counts[..., arm] = is_arm.sum(axis=1)[:, None]
        sums[..., arm] = (rewards & is_arm).sum(axis=1)[:, None]
        k = deletions.get(arm, 0)
        rank = np.cumsum(is_arm, axis=1) - 1
        n_starts = 1 + np.maximum(counts[:, 0, arm] - k, 0) // BLOCK
        for number in range(REQUESTS if k else 0):
            start = BLOCK * rng.integers(n_starts)[:, None]
            is_deleted = is_arm & (rank >= start) & (rank < start + k)
            deleted_counts[:, number, arm] = is_deleted.sum(axis=1)
            deleted_sums[:, number, arm] = (rewards & is_deleted).sum(axis=1)
    labels = tuple(range(ENVIRONMENT.n_actions))
    deleted = ArmStatistics(labels, deleted_counts, deleted_sums * UNIT)
    return ArmStatistics(labels, counts, sums * UNIT), DeletionRequest(deleted, binary=True)


def _arm_sequences(model: DataModel, rng: np.random.Generator) -> IntArray:
    """The arm of each record of each trajectory."""
    length, m = max(model.n, LONGEST), ENVIRONMENT.n_actions
    if isinstance(model, FixedSample):
        if model != FixedSample.round_robin(model.n, m):
            raise UnsupportedError(f"the paper's protocol serves the arms in turn; got counts {model.counts}")
        return np.broadcast_to(np.arange(length) % m, (TRAJECTORIES, length))
    return rng.choice(m, size=(TRAJECTORIES, length), p=model.policy)


def _mean_loss(
    statistics: ArmStatistics,
    request: DeletionRequest,
    unlearner: Unlearner | None,
    n: int,
    budget: Budget,
    uniform: FloatArray,
) -> float:
    """Draw an arm for every request, with the same uniform number for all methods, and average the gaps."""
    learner = bound_learner(unlearner, n)
    if unlearner is None:
        p = decision_distribution(learner, statistics)
    else:
        p = unlearner.release(learner, statistics, request, budget).probabilities
    drawn = (uniform[..., None] > np.cumsum(p, axis=-1)[..., :-1]).sum(axis=-1)
    return float(ENVIRONMENT.gaps[drawn].mean())


def _evaluation(run_means: FloatArray, short: float) -> Evaluation:
    error = float(run_means.std(ddof=1) / np.sqrt(RUNS))
    nothing = np.full(ENVIRONMENT.n_actions, np.nan)
    value, reach = float(run_means.mean()), _STUDENT * error
    interval = max(0.0, value - reach), value + reach
    return Evaluation(value, error, "paper", nothing, RUNS * TRAJECTORIES, short, run_means, interval)
