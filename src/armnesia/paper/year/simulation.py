"""A year of monthly deletions with new records every month: what each way of forgetting costs over time."""

import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
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
from armnesia.simulation.parallel import worker_pool
from armnesia.unlearners import Adaptive, FrozenRollback, Gaussian, Rollback, StrictAdaptive, Tilt, Unlearner
from armnesia.unlearners.stream import Penalty, Stream

MONTHS = 12
FIRST, MONTHLY = (FixedSample.round_robin(n, ENVIRONMENT.n_actions) for n in (3000, 250))
"""The log at the beginning, and what comes in every month: each arm in turn, as in the paper."""
BUDGET = Budget(epsilon=1.0, delta=DELTA)
K, MOSTLY, OTHERS = 60, 48, 3


def _mostly_of(arm: int) -> SeveralArms:
    return SeveralArms({other: MOSTLY if other == arm else OTHERS for other in range(ENVIRONMENT.n_actions)})


REQUESTS: dict[str, RequestModel] = {"hard": _mostly_of(0), "rival": _mostly_of(1), "even": AcrossArms(K)}
"""Each month's K deletions: mostly by people who were shown the best arm, the second best, or by anybody."""
_BLOCK = 50  # data sets a piece of work
_ONE_IN = 10  # blocks in which the costly ways are lived too


@dataclass(frozen=True)
class Way:
    """One way to forget over a year; without an unlearner nothing is ever deleted.

    A costly way, whose noise on all arms takes an integral a release, is lived on a tenth of the data sets.
    """

    unlearner: Unlearner | None
    penalty: Penalty = "retained"
    costly: bool = False


WAYS: dict[str, Way] = {
    "no deletion": Way(None),
    "rollback": Way(Rollback()),
    "gaussian": Way(Gaussian(), costly=True),
    "gaussian, frozen": Way(Gaussian(), "frozen", costly=True),
    "adaptive": Way(Adaptive()),
    "adaptive, frozen": Way(Adaptive(), "frozen"),
    "strict adaptive": Way(StrictAdaptive()),
    "strict adaptive, frozen": Way(StrictAdaptive(), "frozen"),
    "frozen rollback": Way(FrozenRollback()),
    "frozen rollback, frozen": Way(FrozenRollback(), "frozen"),
    "tilt, share assumed": Way(Tilt(assumed_share=0.05)),
    "tilt": Way(Tilt()),
    "tilt, frozen": Way(Tilt(), "frozen"),
}
"""Rollback is retraining. With a frozen penalty it would give up each month's penalty for that month only."""


@dataclass(frozen=True, eq=False)
class Year:
    """What a way of forgetting gave up in each month and data set, and how often the served arm changed.

    Both are exact given the data set: `losses` (data sets × months) are Σ p·gap, `changes` (data sets) the
    expected number of changes Σ_t (1 − Σ_a p_{t−1}(a)·p_t(a)) of independent draws.
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
        """The expected sub-optimality over the year, and its standard error over data sets."""
        return _mean_and_error(self.losses.mean(axis=1))

    @property
    def churn(self) -> tuple[float, float]:
        """The expected number of changes of the served arm in a year, and its standard error."""
        return _mean_and_error(self.changes)


def years(
    requests: RequestModel, ways: Mapping[str, Way] = WAYS, *, datasets: int, seed: int = 0, n_jobs: int = 1
) -> dict[str, Year]:
    """Live the same simulated years with every way of forgetting; the result does not depend on `n_jobs`.

    >>> found = years(REQUESTS["hard"], {"rollback": WAYS["rollback"]}, datasets=4)
    >>> found["rollback"].losses.shape, str(found["rollback"].level)
    ((4, 12), 'retained')
    """
    n_blocks = max(2, math.ceil(datasets / _BLOCK))
    few = {name: way for name, way in ways.items() if not way.costly}
    ways_of_blocks = [dict(few if block % _ONE_IN else ways) for block in range(n_blocks)]
    live = partial(_live, requests, math.ceil(datasets / n_blocks))
    with ExitStack() as stack:
        run_all = stack.enter_context(worker_pool(n_jobs)).map if n_jobs > 1 else map
        blocks = list(run_all(live, generators(seed, n_blocks), ways_of_blocks))
    return {name: _together([block[name] for block in blocks if name in block]) for name in ways}


def _together(blocks: list[Year]) -> Year:
    losses, changes = ([getattr(block, name) for block in blocks] for name in ("losses", "changes"))
    return Year(np.concatenate(losses), np.concatenate(changes), blocks[0].level)


def _live(
    requests: RequestModel, size: int, rng: np.random.Generator, ways: dict[str, Way]
) -> dict[str, Year]:
    first = _records(FIRST, rng, size)
    months = list(_months(first, requests, rng, size))
    return {name: _lived(way, first, months) for name, way in ways.items()}


def _records(model: FixedSample, rng: np.random.Generator, size: int) -> ArmStatistics:
    counts = model.draw_counts(rng, size)
    sums = [arm.draw_sums(rng, counts[:, place]) for place, arm in enumerate(ENVIRONMENT.arms)]
    return ArmStatistics(tuple(range(ENVIRONMENT.n_actions)), counts, np.stack(sums, axis=-1))


def _months(
    statistics: ArmStatistics, requests: RequestModel, rng: np.random.Generator, size: int
) -> Iterator[tuple[ArmStatistics, DeletionRequest]]:
    """Each month's new records, and then the deletion of randomly chosen ones of all that are there."""
    for _ in range(MONTHS):
        new = _records(MONTHLY, rng, size)
        statistics = statistics.merge(new)
        deleted, _ = requests.draw_deleted(rng, statistics.counts)
        ones = statistics.sums // UNIT
        deleted_ones = rng.hypergeometric(ones, statistics.counts - ones, deleted)
        request = DeletionRequest(
            ArmStatistics(statistics.actions, deleted, deleted_ones * UNIT), binary=True
        )
        statistics = statistics.without(request)
        yield new, request


def _lived(way: Way, first: ArmStatistics, months: list[tuple[ArmStatistics, DeletionRequest]]) -> Year:
    """One way through the same months; what is served in a month is what answers its request."""
    stream = Stream(LCB(confidence=1 / FIRST.n), first, way.penalty)
    before = one_hot(stream.decision().index, ENVIRONMENT.n_actions)
    losses, changes, level = [], np.zeros(len(before)), None
    for new, request in months:
        stream = stream.add(new)
        if way.unlearner is None:
            p = one_hot(stream.decision().index, ENVIRONMENT.n_actions)
        else:
            release, stream = stream.forget(way.unlearner, request, BUDGET)
            p, level = release.probabilities, release.guarantee.level
        losses.append(p @ ENVIRONMENT.gaps)
        changes += 1 - (before * p).sum(axis=-1)
        before = p
    return Year(np.stack(losses, axis=-1), changes, level)


def _mean_and_error(values: FloatArray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
