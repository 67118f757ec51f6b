"""The paper's experimental settings, its methods and ours by name, and how they are computed."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from armnesia import unlearners
from armnesia.paper.protocol import paper_protocol
from armnesia.paper.section import Claim
from armnesia.privacy import Budget
from armnesia.simulation import Cell, Environment, RequestModel, Row, SeveralArms, evaluate_all
from armnesia.simulation.parallel import Workers
from armnesia.simulation.sweep import CellStore, data_model, run_cells
from armnesia.theory import insured_from
from armnesia.unlearners import Unlearner

MEANS = (0.10, 0.08, 0.06, 0.04, 0.02)
ENVIRONMENT = Environment.bernoulli(MEANS)
BASE_N, BASE_K, BASE_GAMMA = 3000, 80, 0.5
C_STAR = 5.0
DELTA = 1e-5
"""The paper fixes γ. A budget also needs a δ, which changes the reported ε and nothing that is plotted."""

HARD, EASY = "hard", "easy"
ARM_OF_CASE = {HARD: 0, EASY: 2}
"""Hard: the best arm. Easy: the arm of mean 0.06 (the arm of mean 0.08 does not reproduce the figures)."""
ARMS_OF_MULTI_CASE = {HARD: (0, 1), EASY: (2, 3)}

RATIOS = tuple(f"mixing {ratio:g}" for ratio in (0.0, 0.25, 0.5, 0.75, 1.0))
METHODS: dict[str, Unlearner | None] = {
    "oracle": None,
    "rollback": unlearners.Rollback(),
    "gaussian": unlearners.Gaussian.as_in_the_paper(),
    "adaptive": unlearners.Adaptive.as_in_the_paper(),
    "mixing": unlearners.Mixing(ratio=0.5, sensitivity="paper"),
    "multi_source": unlearners.MultiSource.as_in_the_paper(),
    "imitation": unlearners.ImitationRollback(),
    "gaussian joint": unlearners.Gaussian(sensitivity="paper"),
    "centred_gaussian": unlearners.CentredGaussian(),
    "strict_adaptive": unlearners.StrictAdaptive(),
    "frozen_rollback": unlearners.FrozenRollback(),
    "tilt": unlearners.Tilt(),
    "tilt retained": unlearners.Tilt(assumed_share=0.95),
    **{name: unlearners.Mixing(ratio=float(name.split()[1]), sensitivity="paper") for name in RATIOS},
}
"""The paper's methods as it ran them: its threshold times 1.3, its sensitivity, noise for each arm alone.
Then Gaussian noise for all arms jointly, which an exact (ε, δ) needs, and our methods."""

PLACE = ("figure", "panel", "varied", "x")
"""Columns that say where a row is drawn: the figure, its panel, the varied parameter and x."""
FIGURE_1_METHODS = ("oracle", "rollback", "gaussian", "mixing", "adaptive")


@dataclass(frozen=True)
class Plan:
    """The protocol, the data sets per sampled point, the seed, and whether the grids are coarse (`quick`).

    >>> Plan(quick=True).ns
    [1000, 1300, 1800, 2200, 2600, 3000, 4000, 5000]
    """

    protocol: str = "exact"
    datasets: int = 200_000
    quick: bool = False
    seed: int = 0

    @property
    def ns(self) -> list[int]:
        """The N axis; when quick, the values that the claims name and a few more."""
        quick = [1000, 1300, 1800, 2200, 2600, 3000, 4000, 5000]
        return quick if self.quick else list(range(1000, 5001, 100))

    @property
    def ks(self) -> list[int]:
        """The k axis."""
        return list(range(20, 501, 80 if self.quick else 20))

    @property
    def gammas(self) -> list[float]:
        """The γ axis from 0.05 to 2, denser at small γ."""
        fine = [*np.arange(0.05, 0.5, 0.05), *np.arange(0.5, 1.0, 0.1), *np.arange(1.0, 2.01, 0.2)]
        values = [round(float(value), 10) for value in fine]
        return [*values[:-1:3], values[-1]] if self.quick else values

    def cell(
        self,
        place: tuple[str, str, str, float],
        n: int,
        request: RequestModel | Mapping[int, int],
        methods: Iterable[str] | Mapping[str, Unlearner | None],
        *,
        gamma: float = BASE_GAMMA,
        epsilon: float | None = None,
        delta: float = DELTA,
        c_star: float | None = None,
        protocol: str | None = None,
        datasets: int | None = None,
        environment: Environment = ENVIRONMENT,
    ) -> Cell:
        """A point of a figure at noise γ, or at (ε, δ): exact under M_f, sampled under M_d, unless asked for.

        `place` has the values of PLACE. C* chooses M_d. `methods` are names of
        METHODS, or unlearners by label.
        """
        how = protocol or self.protocol
        return Cell(
            environment=environment,
            model=data_model("fixed" if c_star is None else "distribution", n, environment, c_star or 2.0),
            request=SeveralArms(request) if isinstance(request, Mapping) else request,
            unlearners=methods if isinstance(methods, Mapping) else {name: METHODS[name] for name in methods},
            budget=_budget(gamma, epsilon, delta),
            # Under M_d sampled data sets give a smaller error in equal time than exact values of counts.
            protocol="exact" if how == "exact" and c_star is None else "sampled",
            datasets=datasets or self.datasets,
            seed=self.seed,
            labels=dict(zip(PLACE, (*place[:3], float(place[3])), strict=True)),
            evaluate=paper_protocol if how == "paper" else evaluate_all,
        )


@cache  # a few budgets serve all cells, and reading ε off the curve takes 10 ms
def _budget(gamma: float, epsilon: float | None, delta: float) -> Budget:
    return Budget.from_gamma(gamma, delta=delta) if epsilon is None else Budget(epsilon=epsilon, delta=delta)


Progress = Callable[[str, int, int], None]
"""Called with the label of a part, the number of its finished cells and the number of all its cells."""


@dataclass
class Run:
    """What the sections of the report are computed with, and where they leave result rows and claims."""

    plan: Plan
    workers: Workers
    store: CellStore | None = None
    progress: Progress | None = None
    rows: list[Row] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    label: str = ""

    def evaluate(self, cells: Sequence[Cell]) -> list[Row]:
        """Evaluate cells, reporting the progress; finished ones come from the store."""
        report = None if self.progress is None else partial(self.progress, self.label)
        return run_cells(cells, self.store, self.workers, report)

    def evaluate_and_record(self, cells: Sequence[Cell]) -> list[Row]:
        """Evaluate cells and add their rows to the results that are written to disk."""
        rows = self.evaluate(cells)
        self.rows += rows
        return rows


def as_in_the_figure(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Where a row stands in its figure."""
    return tuple(row[name] for name in PLACE)


def all_insured_from() -> float:
    """The ε, rounded up to hundredths, from which on tilt at `retained` insures all arms.

    >>> all_insured_from()
    2.62
    """
    return math.ceil(100 * insured_from(contenders=len(MEANS), delta=DELTA)) / 100
