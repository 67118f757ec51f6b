"""The cells of the paper's figures and of Table 2."""

from collections.abc import Iterable

from armnesia.paper.cells import Cell
from armnesia.paper.plan import Plan
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


def _sweeps(plan: Plan) -> Iterable[tuple[str, float, int, int, float]]:
    """The three sweeps of Figures 1 and 2: (varied parameter, x, N, k, γ)."""
    for n in plan.ns:
        yield "N", n, int(n), BASE_K, BASE_GAMMA
    for k in plan.grid(20, 500, 20):
        yield "k", k, BASE_N, int(k), BASE_GAMMA
    for gamma in plan.gammas:
        yield "γ", gamma, BASE_N, BASE_K, gamma


def figure_1_cells(plan: Plan) -> list[Cell]:
    """Figure 1: both models, hard and easy case, over N, k and γ."""
    return _one_arm(plan, "1", (HARD, EASY), FIGURE_1_METHODS)


def figure_2_cells(plan: Plan) -> list[Cell]:
    """Figure 2: mixing with k′/k from 0 (noise) to 1 (rollback), hard case, both models."""
    return _one_arm(plan, "2", (HARD,), FIGURE_2_METHODS)


def _one_arm(plan: Plan, figure: str, cases: tuple[str, ...], methods: tuple[str, ...]) -> list[Cell]:
    """Deletion of records of one arm: both models, the given cases, all sweeps."""
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


def figure_3_cells(plan: Plan) -> list[Cell]:
    """Figure 3: multi-source deletion of k records of each of two arms, over γ, for several N."""
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


def table_2_cells(plan: Plan) -> list[Cell]:
    """Table 2: imitation and Algorithm 2 at C* = 1.3 (the paper omits k; k = 580 fits Algorithm 2's row)."""
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
