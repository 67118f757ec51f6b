"""A year in which records arrive and are deleted every month, simulated with different strategies."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from armnesia.core.arrays import FloatArray, one_hot
from armnesia.core.randomness import generators
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import UNIT
from armnesia.learners import LCB
from armnesia.paper.settings import DELTA, ENVIRONMENT
from armnesia.privacy import Budget, Level
from armnesia.simulation import AcrossArms, FixedSample, RequestModel, SeveralArms
from armnesia.simulation.parallel import workers
from armnesia.unlearners import (
    Adaptive,
    CentredGaussian,
    FrozenRollback,
    Gaussian,
    Rollback,
    StrictAdaptive,
    Tilt,
    Unlearner,
)
from armnesia.unlearners.stream import Penalty, Stream

MONTHS = 12
INITIAL_LOG, MONTHLY_LOG = (FixedSample.round_robin(n, ENVIRONMENT.n_actions) for n in (3000, 250))
"""The first records, and the new records of each month; the arms take turns, as in the paper."""
BUDGET = Budget(epsilon=1.0, delta=DELTA)
K, K_OF_MAIN_ARM, K_OF_OTHER_ARMS = 60, 48, 3
"""Records deleted each month: in all, of the arm that most requests are about, and of each other arm."""


def _mostly_of(arm: int) -> SeveralArms:
    arms = range(ENVIRONMENT.n_actions)
    return SeveralArms({other: K_OF_MAIN_ARM if other == arm else K_OF_OTHER_ARMS for other in arms})


REQUESTS: dict[str, RequestModel] = {"hard": _mostly_of(0), "rival": _mostly_of(1), "even": AcrossArms(K)}
"""The deletions of each month: mostly of the best arm, mostly of the second best, or of any records."""
_BLOCK = 50
"""Data sets that are simulated together."""
_SLOW_EVERY = 10
"""Slow strategies are simulated in every tenth block."""


@dataclass(frozen=True)
class Strategy:
    """The unlearner that answers all requests of a year, and its penalty; None deletes nothing.

    A slow strategy, whose noise on all arms needs an integral per release, uses a tenth of the data sets.
    """

    unlearner: Unlearner | None
    penalty: Penalty = "retained"
    slow: bool = False


STRATEGIES: dict[str, Strategy] = {
    "no deletion": Strategy(None),
    "rollback": Strategy(Rollback()),
    "gaussian": Strategy(Gaussian(), slow=True),
    "gaussian, frozen": Strategy(Gaussian(), "frozen", slow=True),
    "centred gaussian": Strategy(CentredGaussian(), slow=True),
    "centred gaussian, frozen": Strategy(CentredGaussian(), "frozen", slow=True),
    "adaptive": Strategy(Adaptive()),
    "adaptive, frozen": Strategy(Adaptive(), "frozen"),
    "strict adaptive": Strategy(StrictAdaptive()),
    "strict adaptive, frozen": Strategy(StrictAdaptive(), "frozen"),
    "frozen rollback": Strategy(FrozenRollback()),
    "frozen rollback, frozen": Strategy(FrozenRollback(), "frozen"),
    "tilt, share assumed": Strategy(Tilt(assumed_share=0.05, predictive="flat")),
    "tilt": Strategy(Tilt()),
    "tilt, frozen": Strategy(Tilt(), "frozen"),
}
"""Rollback is retraining. With a frozen penalty, deletions would raise its penalty in their month only."""


@dataclass(frozen=True, eq=False)
class YearResult:
    """The sub-optimality of a strategy by data set and month, and the expected changes of the served arm.

    Both are exact given the data set: `losses` (data sets × months) are Σ p·gap, and `changes` (data sets)
    are the expected number of changes of independent draws, Σ_t (1 − Σ_a p_{t−1}(a)·p_t(a)).
    """

    losses: FloatArray
    changes: FloatArray
    level: Level | None

    @property
    def by_month(self) -> tuple[FloatArray, FloatArray]:
        """The expected sub-optimality of each month, and its standard error."""
        return self.losses.mean(axis=0), self.losses.std(axis=0, ddof=1) / math.sqrt(len(self.losses))

    @property
    def average(self) -> tuple[float, float]:
        """The mean of the expected sub-optimality over the year, and its standard error."""
        return _mean_and_error(self.losses.mean(axis=1))

    @property
    def churn(self) -> tuple[float, float]:
        """The expected number of changes of the served arm in a year, and its standard error."""
        return _mean_and_error(self.changes)


def simulate(
    requests: RequestModel,
    strategies: Mapping[str, Strategy] = STRATEGIES,
    *,
    datasets: int,
    seed: int = 0,
    n_jobs: int = 1,
) -> dict[str, YearResult]:
    """Simulate a year with every strategy on the same data sets; the result does not depend on `n_jobs`.

    >>> found = simulate(REQUESTS["hard"], {"rollback": STRATEGIES["rollback"]}, datasets=4)
    >>> found["rollback"].losses.shape, str(found["rollback"].level)
    ((4, 12), 'retained')
    """
    n_blocks = max(2, math.ceil(datasets / _BLOCK))
    fast = {name: strategy for name, strategy in strategies.items() if not strategy.slow}
    strategies_of_blocks = [dict(fast if block % _SLOW_EVERY else strategies) for block in range(n_blocks)]
    work = partial(_simulate_block, requests, math.ceil(datasets / n_blocks))
    with workers(n_jobs) as those:
        blocks = list(those.map(work, generators(seed, n_blocks), strategies_of_blocks))
    return {name: _concatenate([block[name] for block in blocks if name in block]) for name in strategies}


def _concatenate(blocks: list[YearResult]) -> YearResult:
    losses, changes = ([getattr(block, name) for block in blocks] for name in ("losses", "changes"))
    return YearResult(np.concatenate(losses), np.concatenate(changes), blocks[0].level)


def _simulate_block(
    requests: RequestModel, size: int, rng: np.random.Generator, strategies: dict[str, Strategy]
) -> dict[str, YearResult]:
    initial = _draw_records(INITIAL_LOG, rng, size)
    months = list(_draw_months(initial, requests, rng, size))
    return {name: _apply(strategy, initial, months) for name, strategy in strategies.items()}


def _draw_records(model: FixedSample, rng: np.random.Generator, size: int) -> ArmStatistics:
    counts = model.draw_counts(rng, size)
    sums = [arm.draw_sums(rng, counts[:, place]) for place, arm in enumerate(ENVIRONMENT.arms)]
    return ArmStatistics(tuple(range(ENVIRONMENT.n_actions)), counts, np.stack(sums, axis=-1))


def _draw_months(
    statistics: ArmStatistics, requests: RequestModel, rng: np.random.Generator, size: int
) -> Iterator[tuple[ArmStatistics, DeletionRequest]]:
    """The new records of each month, and the deletion of randomly chosen records at its end."""
    for _ in range(MONTHS):
        new = _draw_records(MONTHLY_LOG, rng, size)
        statistics = statistics.merge(new)
        deleted, _ = requests.draw_deleted(rng, statistics.counts)
        ones = statistics.sums // UNIT
        deleted_ones = rng.hypergeometric(ones, statistics.counts - ones, deleted)
        request = DeletionRequest(
            ArmStatistics(statistics.actions, deleted, deleted_ones * UNIT), binary=True
        )
        statistics = statistics.without(request)
        yield new, request


def _apply(
    strategy: Strategy, initial: ArmStatistics, months: list[tuple[ArmStatistics, DeletionRequest]]
) -> YearResult:
    """Apply one strategy; the release that answers the request of a month is served in that month."""
    stream = Stream(LCB(confidence=1 / INITIAL_LOG.n), initial, strategy.penalty)
    before = one_hot(stream.decision().index, ENVIRONMENT.n_actions)
    losses, changes, level = [], np.zeros(len(before)), None
    for new, request in months:
        stream = stream.add(new)
        if strategy.unlearner is None:
            p = one_hot(stream.decision().index, ENVIRONMENT.n_actions)
        else:
            release, stream = stream.forget(strategy.unlearner, request, BUDGET)
            p, level = release.probabilities, release.guarantee.level
        losses.append(p @ ENVIRONMENT.gaps)
        changes += 1 - (before * p).sum(axis=-1)
        before = p
    return YearResult(np.stack(losses, axis=-1), changes, level)


def _mean_and_error(values: FloatArray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
