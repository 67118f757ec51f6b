"""Tilt with each of its predictives, for requests that concern the best arm, an easy arm or a random one.

Reproducing the old decision is not the same as deciding well. A predictive that relies on the retained
records of the arm is better if the best arm lost records; one that relies on the other arms is better if a
worse arm did. The average over arms is the fair comparison. All methods and every ε share their data sets.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.randomness import generators
from armnesia.learners import LCB
from armnesia.paper.cells import Row
from armnesia.paper.comparisons import Estimate
from armnesia.paper.plan import Plan
from armnesia.paper.settings import C_STAR, DELTA, MEANS
from armnesia.privacy import Budget
from armnesia.simulation import DataModel, DistributionModel, Environment, FixedSample, OneArm, draw_data_sets
from armnesia.simulation.parallel import workers
from armnesia.unlearners import Rollback, Tilt
from armnesia.unlearners.base import decision_distribution
from armnesia.unlearners.predictive import PREDICTIVES

NO_DELETION, ROLLBACK = "no deletion", "rollback"
TILTS = {"flat": "tilt, flat", "empirical_bayes": "tilt, empirical Bayes"}
METHODS = (NO_DELETION, ROLLBACK, *TILTS.values())
EPSILONS, QUICK_EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0), (0.1, 1.0, 3.0)
ONE_GOOD_ARM = (0.10, *[0.05] * 5)
"""Means with which the other arms carry no information about the best one."""
_BLOCKS = 10
_SHARE_OF_DATASETS = 8
"""Each setting uses the plan's number of data sets divided by this."""


@dataclass(frozen=True)
class Setting:
    """The means, N, k and, under M_d, C*; any one arm may be requested."""

    n: int
    k: int
    c_star: float | None = None
    means: tuple[float, ...] = MEANS

    @property
    def environment(self) -> Environment:
        """Bernoulli arms."""
        return Environment.bernoulli(self.means)

    @property
    def model(self) -> DataModel:
        """M_f with equal counts, or M_d."""
        if self.c_star is None:
            return FixedSample.round_robin(self.n, len(self.means))
        return DistributionModel.with_coverage(
            self.n, n_actions=len(self.means), best=self.environment.best, c_star=self.c_star
        )

    @property
    def name(self) -> str:
        """The model, and the arms if they are not the paper's."""
        model = "M_f" if self.c_star is None else "M_d"
        return model if self.means == MEANS else f"{model}, one good arm of {len(self.means)}"


MAIN_SETTING = Setting(3000, 500)
GRID = tuple(
    Setting(n, k, c_star)
    for c_star in (None, C_STAR)
    for n, k in ((1000, 80), (1000, 160), (2000, 80), (2000, 350), (3000, 80), (3000, 300), (3000, 500))
)
ONE_GOOD_ARM_SETTING = Setting(2400, 332, None, ONE_GOOD_ARM)


@dataclass(frozen=True, eq=False)
class SettingResults:
    """The losses of each method and ε in a setting, by requested arm and block of data sets."""

    setting: Setting
    losses: dict[tuple[str, float], FloatArray]
    datasets: int = 0
    epsilons: tuple[float, ...] = field(default=())

    def suboptimality(self, method: str, epsilon: float, arms: Sequence[int] | None = None) -> Estimate:
        """The expected sub-optimality if the requested arm is drawn uniformly from `arms` (None: all)."""
        blocks = self._blocks(method, epsilon, arms)
        return Estimate(float(blocks.mean()), _error(blocks), epsilon)

    def distance(self, method: str, epsilon: float, arms: Sequence[int] | None = None) -> Estimate:
        """The same, divided by the sub-optimality of no deletion on the same data sets."""
        mine, none = self._blocks(method, epsilon, arms), self._blocks(NO_DELETION, epsilon, arms)
        ratio = float(mine.mean() / none.mean())
        return Estimate(ratio, _error((mine - ratio * none) / none.mean()), epsilon)

    def _blocks(self, method: str, epsilon: float, arms: Sequence[int] | None) -> FloatArray:
        losses = self.losses[method, epsilon]
        return np.asarray((losses if arms is None else losses[list(arms)]).mean(axis=0))


def _error(blocks: FloatArray) -> float:
    return float(blocks.std(ddof=1) / np.sqrt(blocks.size))


def simulate(plan: Plan, n_jobs: int) -> list[SettingResults]:
    """Simulate all settings; when quick, the main one, one with few deletions, and ONE_GOOD_ARM_SETTING."""
    settings = (MAIN_SETTING, Setting(1000, 80)) if plan.quick else GRID
    settings = (*settings, ONE_GOOD_ARM_SETTING)
    epsilons = QUICK_EPSILONS if plan.quick else EPSILONS
    size = max(2, plan.datasets // (_SHARE_OF_DATASETS * _BLOCKS))
    jobs = [(setting, arm) for setting in settings for arm in range(len(setting.means))]
    work = partial(_simulate_arm, epsilons=epsilons, size=size, seed=plan.seed)
    # A quick run is shorter than the start of the worker processes.
    with workers(1 if plan.quick else n_jobs) as those:
        found = dict(zip(jobs, those.map(work, jobs), strict=True))
    return [
        SettingResults(
            setting,
            {
                key: np.stack([found[setting, arm][key] for arm in range(len(setting.means))])
                for key in found[setting, 0]
            },
            size * _BLOCKS,
            epsilons,
        )
        for setting in settings
    ]


def _simulate_arm(
    job: tuple[Setting, int], *, epsilons: tuple[float, ...], size: int, seed: int
) -> dict[tuple[str, float], FloatArray]:
    """The mean losses of every block if this arm is requested."""
    setting, arm = job
    rng = generators(seed, arm + 1)[arm]  # different data for each arm
    losses = _losses(setting, arm, epsilons, _BLOCKS * size, rng)
    return {key: each.reshape(_BLOCKS, size).mean(axis=1) for key, each in losses}


def _losses(
    setting: Setting, arm: int, epsilons: Iterable[float], size: int, rng: np.random.Generator
) -> Iterator[tuple[tuple[str, float], FloatArray]]:
    environment, learner = setting.environment, LCB(confidence=1 / setting.n)
    drawn = draw_data_sets(environment, setting.model, OneArm(arm, setting.k), rng, size)
    data = learner, drawn.statistics, drawn.request
    retained = drawn.statistics.without(drawn.request)
    # The predictives, which take most of the time, do not depend on ε.
    predictives = {name: PREDICTIVES[name](learner, retained, drawn.request.counts) for name in TILTS}
    no_deletion = decision_distribution(learner, drawn.statistics)
    rolled_back = Rollback().release(*data, Budget(epsilon=0.0, delta=0.0)).probabilities
    for epsilon in epsilons:
        budget = Budget(epsilon=epsilon, delta=DELTA)
        released = {NO_DELETION: no_deletion, ROLLBACK: rolled_back}
        for name, predictive in predictives.items():
            tilt = Tilt(predictive=lambda *_, predictive=predictive: predictive)
            released[TILTS[name]] = tilt.release(*data, budget).probabilities
        for method, p in released.items():
            yield (method, epsilon), p @ environment.gaps


def result_rows(found: Iterable[SettingResults]) -> list[Row]:
    """One row per method, arm and ε."""
    return [
        {
            "figure": "tradeoff",
            "panel": results.setting.name,
            "model": "fixed" if results.setting.c_star is None else "distribution",
            "varied": "ε",
            "x": epsilon,
            "n": results.setting.n,
            "arms": str(arm),
            "k": results.setting.k,
            "gamma": Budget(epsilon=epsilon, delta=DELTA).gamma,
            "epsilon": epsilon,
            "c_star": results.setting.c_star,
            "method": method,
            "suboptimality": results.suboptimality(method, epsilon, [arm]).value,
            "standard_error": results.suboptimality(method, epsilon, [arm]).error,
            "protocol": "sampled",
            "datasets": results.datasets,
            "short_share": 0.0,
        }
        for results in found
        for method, epsilon in results.losses
        for arm in range(len(results.setting.means))
    ]
