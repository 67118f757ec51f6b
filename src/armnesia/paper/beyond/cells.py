"""The paper's settings at a fixed (ε, δ), with our methods beside its own, and requests that it leaves out.

The paper fixes the noise γ, which is no promise by itself. Here every method keeps the same exact (ε, δ).
"""

from collections.abc import Sequence
from dataclasses import replace

from armnesia.paper.cells import Cell
from armnesia.paper.figures.cells import Plan
from armnesia.paper.settings import (
    ARM_OF_CASE,
    ARMS_OF_MULTI_CASE,
    BASE_GAMMA,
    BASE_K,
    BASE_N,
    C_STAR,
    EASY,
    FIGURE_2_METHODS,
    HARD,
)

FIGURE = "beyond"
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0)
FEW_EPSILONS = (1.0, 3.0, 5.0)
"""In a quick run, and where every data set drawn takes an integral."""

WITHOUT_BUDGET = ("oracle", "rollback", "frozen_rollback")
"""Methods that no ε changes: evaluated once a setting."""
ONE_ARM_METHODS = ("gaussian", "mixing", "adaptive", "strict_adaptive", "tilt")
TWO_ARM_METHODS = ("gaussian joint", "multi_source", "strict_adaptive", "tilt")
PEOPLE_METHODS = ("multi_source", "strict_adaptive", "tilt")

SPREAD, EVEN = (160, 20, 20, 20, 20), (48,) * 5
PEOPLE_N, PEOPLE_K = 2000, sum(SPREAD)
FEWEST_RECORDS, MOST_RECORDS = 1500, 5000
"""A plan's number of data sets is meant for the largest N; it shrinks with N, to the smaller of these."""

Deletions = tuple[tuple[int, int], ...]
Sweep = list[tuple[str, int, int]]
"""What is varied, N and k."""


def beyond(plan: Plan) -> list[Cell]:
    """All cells, in the order of the report."""
    return [*one_arm(plan), *mixing_parts(plan), *two_arms(plan), *people(plan)]


def one_arm(plan: Plan) -> list[Cell]:
    """Figure 1's settings over N and k, for every ε; under M_d, which is sampled, on a coarser grid."""
    cells: list[Cell] = []
    for c_star, sweep in ((None, _fine(plan)), (C_STAR, _coarse(plan))):
        for case in (HARD, EASY):
            for varied, n, k in sweep:
                base = _setting(plan, case, n, ((ARM_OF_CASE[case], k),), c_star, varied=varied)
                cells += _at_budgets(base, ONE_ARM_METHODS, FEW_EPSILONS if plan.quick else EPSILONS)
    return cells


def mixing_parts(plan: Plan) -> list[Cell]:
    """Figure 2's mixing with k′/k from 0 to 1: M_f, hard case, on the coarser grid."""
    return [
        replace(_setting(plan, HARD, n, ((ARM_OF_CASE[HARD], k),)), methods=FIGURE_2_METHODS, epsilon=epsilon)
        for _, n, k in _coarse(plan)
        for epsilon in (FEW_EPSILONS[1:2] if plan.quick else EPSILONS)
    ]


def two_arms(plan: Plan) -> list[Cell]:
    """Figure 3's settings and N = 1000 under M_f, and two arms under M_d, which the paper leaves out."""
    if plan.quick:
        settings = [(None, HARD, 1000, 80), (C_STAR, HARD, 1000, 80)]
    else:
        sizes = [(n, k) for k in (40, 80) for n in (2000, 3000, 4000)]
        settings = [(None, HARD, 1000, 80)]
        settings += [(None, case, n, k) for case in (HARD, EASY) for n, k in sizes]
        settings += [(C_STAR, HARD, 1000, 80), (C_STAR, HARD, 3000, 80), (C_STAR, EASY, 3000, 80)]
    cells: list[Cell] = []
    for c_star, case, n, k in settings:
        deletions = tuple((arm, k) for arm in ARMS_OF_MULTI_CASE[case])
        cells += _at_budgets(_setting(plan, case, n, deletions, c_star), TWO_ARM_METHODS, FEW_EPSILONS)
    return cells


def people(plan: Plan) -> list[Cell]:
    """People's records, over all arms: most of them of the best arm, as many of each, or drawn at random."""
    spread, even = (_setting(plan, "people", PEOPLE_N, tuple(enumerate(gone))) for gone in (SPREAD, EVEN))
    by_chance = _setting(plan, "people", PEOPLE_N, (), C_STAR, people=PEOPLE_K)
    if plan.quick:
        return _at_budgets(spread, TWO_ARM_METHODS, FEW_EPSILONS[1:2])
    return [
        *_at_budgets(spread, TWO_ARM_METHODS, FEW_EPSILONS),
        *_at_budgets(even, TWO_ARM_METHODS, FEW_EPSILONS),
        *_at_budgets(by_chance, PEOPLE_METHODS, FEW_EPSILONS),
    ]


def _fine(plan: Plan) -> Sweep:
    """Figure 1's grid over N and k; a part of it when quick."""
    if plan.quick:
        return _sweep((1000, 2000, 3000, 5000), (100, 300, 500))
    return _sweep([int(n) for n in plan.ns], [int(k) for k in plan.grid(20, 500, 20)])


def _coarse(plan: Plan) -> Sweep:
    """A part of the same, where sampling makes a point dear."""
    if plan.quick:
        return _sweep((1000, 3000), (300, 500))
    return _sweep((1000, 2000, 3000, 5000), (20, 200, 300, 500))


def _sweep(ns: Sequence[int], ks: Sequence[int]) -> Sweep:
    return [("N", n, BASE_K) for n in ns] + [("k", BASE_N, k) for k in ks]


def _setting(
    plan: Plan,
    case: str,
    n: int,
    deletions: Deletions,
    c_star: float | None = None,
    *,
    varied: str = "N",
    people: int = 0,
) -> Cell:
    """A setting, still without methods. A standard error of 1 % takes more data sets where N is large."""
    return Cell(
        figure=FIGURE,
        panel=f"{'M_f' if c_star is None else 'M_d'} {case}",
        varied=varied,
        x=float(n if varied == "N" else deletions[0][1]),
        n=n,
        deletions=deletions,
        gamma=BASE_GAMMA,
        methods=(),
        protocol="sampled" if plan.protocol == "sampled" else "exact",
        c_star=c_star,
        datasets=plan.datasets * max(n, FEWEST_RECORDS) // MOST_RECORDS,
        seed=plan.seed,
        people=people,
    )


def _at_budgets(base: Cell, methods: tuple[str, ...], epsilons: Sequence[float]) -> list[Cell]:
    """The methods at every ε, those that need none once; all on the same data sets.

    Tilt on several arms is sampled, beside an oracle on the same data sets; the other methods stay exact.
    """
    cells = [replace(base, methods=WITHOUT_BUDGET, epsilon=epsilons[0])]
    apart = ("tilt",) if len(base.deletions) > 1 and base.c_star is None and base.protocol == "exact" else ()
    together = tuple(name for name in methods if name not in apart)
    cells += [replace(base, methods=together, epsilon=epsilon) for epsilon in epsilons]
    if apart:
        sampled = replace(base, protocol="sampled")
        cells.append(replace(sampled, methods=("oracle",), epsilon=epsilons[0]))
        cells += [replace(sampled, methods=apart, epsilon=epsilon) for epsilon in epsilons]
    return cells
