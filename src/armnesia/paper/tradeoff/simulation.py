"""What tilt's predictive decides: the best arm's deletions against everybody else's, and a fair summary.

Matching the old decision is not the same as deciding well. A predictive that trusts what is left of an arm
serves well where the best arm lost records, one that leans on the other arms where a worse one did. The fair
summary draws the requested arm at random. Data sets are drawn once for all methods and every ε.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from armnesia.core.arrays import FloatArray
from armnesia.core.randomness import generators
from armnesia.learners import LCB
from armnesia.paper.cells import Row
from armnesia.paper.figures.cells import Plan
from armnesia.paper.measures import Measured
from armnesia.paper.settings import C_STAR, DELTA, MEANS
from armnesia.privacy import Budget
from armnesia.simulation import DataModel, DistributionModel, Environment, FixedSample, OneArm, draw_data_sets
from armnesia.simulation.parallel import worker_pool
from armnesia.unlearners import Rollback, Tilt
from armnesia.unlearners.base import served
from armnesia.unlearners.predictive import PREDICTIVES

NO_DELETION, ROLLBACK = "no deletion", "rollback"
TILTS = {"flat": "tilt, flat", "empirical_bayes": "tilt, empirical Bayes"}
METHODS = (NO_DELETION, ROLLBACK, *TILTS.values())
EPSILONS, EPSILONS_WHEN_QUICK = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0), (0.1, 1.0, 3.0)
ONE_GOOD_ARM = (0.10, *[0.05] * 5)
"""A world in which the other arms say nothing of the best one."""
_BLOCKS, _SHARE_OF_DATASETS = 10, 8


@dataclass(frozen=True)
class Place:
    """A setting in which any one arm may lose records: the means, N, k, and C* under M_d."""

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
        """The model, and the world where it is not the paper's."""
        model = "M_f" if self.c_star is None else "M_d"
        return model if self.means == MEANS else f"{model}, one good arm of {len(self.means)}"


MAIN = Place(3000, 500)
GRID = tuple(
    Place(n, k, c_star)
    for c_star in (None, C_STAR)
    for n, k in ((1000, 80), (1000, 160), (2000, 80), (2000, 350), (3000, 80), (3000, 300), (3000, 500))
)
SPARSE = Place(2400, 332, None, ONE_GOOD_ARM)


@dataclass(frozen=True, eq=False)
class Found:
    """Losses in a place: for each method and ε, by arm and block of data sets."""

    place: Place
    losses: dict[tuple[str, float], FloatArray]
    datasets: int = 0
    epsilons: tuple[float, ...] = field(default=())

    def value(self, method: str, epsilon: float, arms: Sequence[int] | None = None) -> Measured:
        """Expected sub-optimality if one of these arms (any) is drawn at random for the request."""
        blocks = self._blocks(method, epsilon, arms)
        return Measured(float(blocks.mean()), _error(blocks), epsilon)

    def times(self, method: str, epsilon: float, arms: Sequence[int] | None = None) -> Measured:
        """The same as a multiple of what no deletion gives up, on the same data sets."""
        mine, none = self._blocks(method, epsilon, arms), self._blocks(NO_DELETION, epsilon, arms)
        ratio = float(mine.mean() / none.mean())
        return Measured(ratio, _error((mine - ratio * none) / none.mean()), epsilon)

    def _blocks(self, method: str, epsilon: float, arms: Sequence[int] | None) -> FloatArray:
        losses = self.losses[method, epsilon]
        return np.asarray((losses if arms is None else losses[list(arms)]).mean(axis=0))


def _error(blocks: FloatArray) -> float:
    return float(blocks.std(ddof=1) / np.sqrt(blocks.size))


def tradeoff(plan: Plan, n_jobs: int) -> list[Found]:
    """Every place of the grid; when quick, the main one, a mild one and the one where the prior misleads."""
    places = (MAIN, Place(1000, 80), SPARSE) if plan.quick else (*GRID, SPARSE)
    epsilons = EPSILONS_WHEN_QUICK if plan.quick else EPSILONS
    size = max(2, plan.datasets // (_SHARE_OF_DATASETS * _BLOCKS))
    jobs = [(place, arm) for place in places for arm in range(len(place.means))]
    work = partial(_of_one_arm, epsilons=epsilons, size=size, seed=plan.seed)
    with ExitStack() as stack:
        # To start processes takes longer than a quick run does.
        parallel = n_jobs > 1 and not plan.quick
        run_all = stack.enter_context(worker_pool(n_jobs)).map if parallel else map
        found = dict(zip(jobs, run_all(work, jobs), strict=True))
    return [
        Found(
            place,
            {
                key: np.stack([found[place, arm][key] for arm in range(len(place.means))])
                for key in found[place, 0]
            },
            size * _BLOCKS,
            epsilons,
        )
        for place in places
    ]


def _of_one_arm(
    job: tuple[Place, int], *, epsilons: tuple[float, ...], size: int, seed: int
) -> dict[tuple[str, float], FloatArray]:
    """The mean losses of every block, if the requests are for this arm."""
    place, arm = job
    rng = generators(seed, arm + 1)[arm]  # other data for every arm
    losses = _losses(place, arm, epsilons, _BLOCKS * size, rng)
    return {key: each.reshape(_BLOCKS, size).mean(axis=1) for key, each in losses}


def _losses(
    place: Place, arm: int, epsilons: Iterable[float], size: int, rng: np.random.Generator
) -> Iterator[tuple[tuple[str, float], FloatArray]]:
    environment, learner = place.environment, LCB(confidence=1 / place.n)
    drawn = draw_data_sets(environment, place.model, OneArm(arm, place.k), rng, size)
    world = learner, drawn.statistics, drawn.request
    retained = drawn.statistics.without(drawn.request)
    # What an ε does not change is computed once: the guesses are most of the work.
    guesses = {name: PREDICTIVES[name](learner, retained, drawn.request.counts) for name in TILTS}
    without = served(learner, drawn.statistics)
    rolled_back = Rollback().release(*world, Budget(epsilon=0.0, delta=0.0)).probabilities
    for epsilon in epsilons:
        budget = Budget(epsilon=epsilon, delta=DELTA)
        released = {NO_DELETION: without, ROLLBACK: rolled_back}
        for name, guess in guesses.items():
            known = Tilt(predictive=lambda *_, guess=guess: guess)
            released[TILTS[name]] = known.release(*world, budget).probabilities
        for method, p in released.items():
            yield (method, epsilon), p @ environment.gaps


def tidy_rows(found: Iterable[Found]) -> list[Row]:
    """One line a method, arm and ε."""
    return [
        {
            "figure": "tradeoff",
            "panel": of_place.place.name,
            "model": "fixed" if of_place.place.c_star is None else "distribution",
            "varied": "ε",
            "x": epsilon,
            "n": of_place.place.n,
            "arms": str(arm),
            "k": of_place.place.k,
            "gamma": Budget(epsilon=epsilon, delta=DELTA).gamma,
            "epsilon": epsilon,
            "c_star": of_place.place.c_star,
            "method": method,
            "suboptimality": of_place.value(method, epsilon, [arm]).value,
            "standard_error": of_place.value(method, epsilon, [arm]).error,
            "protocol": "sampled",
            "datasets": of_place.datasets,
            "short_share": 0.0,
        }
        for of_place in found
        for method, epsilon in of_place.losses
        for arm in range(len(of_place.place.means))
    ]
