"""The cells of the paper's figures and of Table 2."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from armnesia.paper.cells import Cell
from armnesia.paper.settings import (
    ARM_OF_CASE,
    ARMS_OF_MULTI_CASE,
    BASE_GAMMA,
    BASE_K,
    BASE_N,
    C_STAR,
    EASY,
    FIGURE_1_METHODS,
    FIGURE_2_METHODS,
    FIGURE_3_METHODS,
    HARD,
)

TABLE_2_K, TABLE_2_C_STAR, TABLE_2_NS = 580, 1.3, (900, 1000, 1100, 1200)


@dataclass(frozen=True)
class Plan:
    """How finely and how accurately the figures are computed."""

    protocol: str = "exact"
    datasets: int = 200_000
    quick: bool = False
    seed: int = 0

    def grid(self, low: float, high: float, step: float) -> list[float]:
        """Values from low to high; four times as far apart when quick."""
        wide = step * 4 if self.quick else step
        return [
            float(value) for value in np.round(np.arange(low, high + wide / 2, wide), 10) if value <= high
        ]

    @property
    def ns(self) -> list[float]:
        """The N axis from 1000 to 5000; when quick, the values that the claims name and a few more."""
        if self.quick:
            return [1000.0, 1300.0, 1800.0, 2200.0, 2600.0, 3000.0, 4000.0, 5000.0]
        return self.grid(1000, 5000, 100)

    @property
    def gammas(self) -> list[float]:
        """The γ axis from 0.05 to 2, denser where it is small."""
        fine = [*np.arange(0.05, 0.5, 0.05), *np.arange(0.5, 1.0, 0.1), *np.arange(1.0, 2.01, 0.2)]
        values = [round(float(value), 10) for value in fine]
        return [*values[:-1:3], values[-1]] if self.quick else values


def _sweeps(plan: Plan) -> Iterable[tuple[str, float, int, int, float]]:
    """The three sweeps of Figures 1 and 2: (what is varied, x, N, k, γ)."""
    for n in plan.ns:
        yield "N", n, int(n), BASE_K, BASE_GAMMA
    for k in plan.grid(20, 500, 20):
        yield "k", k, BASE_N, int(k), BASE_GAMMA
    for gamma in plan.gammas:
        yield "γ", gamma, BASE_N, BASE_K, gamma


def figure_1(plan: Plan) -> list[Cell]:
    """Figure 1: both models, hard and easy, over N, k and γ."""
    return _one_arm(plan, "1", (HARD, EASY), FIGURE_1_METHODS)


def figure_2(plan: Plan) -> list[Cell]:
    """Figure 2: mixing with k′/k from 0 (noise) to 1 (rollback), hard case, both models."""
    return _one_arm(plan, "2", (HARD,), FIGURE_2_METHODS)


def _one_arm(plan: Plan, figure: str, cases: tuple[str, ...], methods: tuple[str, ...]) -> list[Cell]:
    """Records of one arm deleted: both models, each case, all sweeps."""
    return [
        Cell(
            figure=figure,
            panel=f"{'M_f' if c_star is None else 'M_d'} {case}",
            varied=varied,
            x=x,
            n=n,
            deletions=((ARM_OF_CASE[case], k),),
            gamma=gamma,
            methods=methods,
            protocol=plan.protocol,
            c_star=c_star,
            datasets=plan.datasets,
            seed=plan.seed,
        )
        for c_star in (None, C_STAR)
        for case in cases
        for varied, x, n, k, gamma in _sweeps(plan)
    ]


def figure_3(plan: Plan) -> list[Cell]:
    """Figure 3: multi-source, k of each of two arms, over γ for several N."""
    return [
        Cell(
            figure="3",
            panel=f"{case} k={k} N={n}",
            varied="γ",
            x=gamma,
            n=n,
            deletions=tuple((arm, k) for arm in ARMS_OF_MULTI_CASE[case]),
            gamma=gamma,
            methods=FIGURE_3_METHODS,
            protocol=plan.protocol,
            datasets=plan.datasets,
            seed=plan.seed,
        )
        for case in (HARD, EASY)
        for k in (40, 80)
        for n in (2000, 3000, 4000)
        for gamma in plan.gammas
    ]


def table_2(plan: Plan) -> list[Cell]:
    """Table 2: imitation against Algorithm 2 at C* = 1.3 (k is not stated; 580 fits Algorithm 2's row)."""
    return [
        Cell(
            figure="table2",
            panel="C*=1.3",
            varied="N",
            x=n,
            n=n,
            deletions=((0, TABLE_2_K),),
            gamma=BASE_GAMMA,
            methods=("oracle", "rollback", "adaptive", "imitation"),
            protocol=plan.protocol,
            c_star=TABLE_2_C_STAR,
            datasets=plan.datasets,
            seed=plan.seed,
        )
        for n in TABLE_2_NS
    ]
