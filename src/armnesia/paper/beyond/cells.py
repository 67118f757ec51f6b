"""The cells beyond the paper: its settings at a fixed (ε, δ) with our methods too, and further requests.

The paper fixes the noise γ, which is not a guarantee by itself. Here every method has the same exact (ε, δ).
"""

from collections.abc import Sequence
from dataclasses import replace

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
    FIGURE_2_METHODS,
    HARD,
)

FIGURE = "beyond"
EPSILONS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0)
FEW_EPSILONS = (1.0, 3.0, 5.0)
"""For quick runs, and for requests over several arms, where every data set or sum needs an integral."""

WITHOUT_BUDGET = ("oracle", "rollback", "frozen_rollback")
"""Methods that do not depend on ε: evaluated once per setting."""
ONE_ARM_METHODS = ("gaussian", "centred_gaussian", "mixing", "adaptive", "strict_adaptive", "tilt")
TWO_ARM_METHODS = ("gaussian joint", "centred_gaussian", "multi_source", "strict_adaptive", "tilt")
PEOPLE_METHODS = ("multi_source", "strict_adaptive", "tilt")

SPREAD, EVEN = (160, 20, 20, 20, 20), (48,) * 5
PEOPLE_N, PEOPLE_K = 2000, sum(SPREAD)
FEWEST_RECORDS, MOST_RECORDS = 1500, 5000
"""The plan's number of data sets is for the larger N; it is proportional to N, down to the smaller N."""

Deletions = tuple[tuple[int, int], ...]
Sweep = list[tuple[str, int, int]]
"""Varied parameter, N and k."""


def beyond_cells(plan: Plan) -> list[Cell]:
    """All cells, in the order of the report."""
    return [*one_arm_cells(plan), *mixing_cells(plan), *two_arm_cells(plan), *people_cells(plan)]


def one_arm_cells(plan: Plan) -> list[Cell]:
    """The settings of Figure 1 over N and k, for every ε; on a coarser grid under M_d, which is sampled."""
    cells: list[Cell] = []
    for c_star, sweep in ((None, _fine(plan)), (C_STAR, _coarse(plan))):
        for case in (HARD, EASY):
            for varied, n, k in sweep:
                base = _setting(plan, case, n, ((ARM_OF_CASE[case], k),), c_star, varied=varied)
                cells += _at_budgets(base, ONE_ARM_METHODS, FEW_EPSILONS if plan.quick else EPSILONS)
    return cells


def mixing_cells(plan: Plan) -> list[Cell]:
    """Mixing with k′/k from 0 to 1, as in Figure 2: M_f, hard case, on the coarser grid."""
    return [
        replace(_setting(plan, HARD, n, ((ARM_OF_CASE[HARD], k),)), methods=FIGURE_2_METHODS, epsilon=epsilon)
        for _, n, k in _coarse(plan)
        for epsilon in (FEW_EPSILONS[1:2] if plan.quick else EPSILONS)
    ]


def two_arm_cells(plan: Plan) -> list[Cell]:
    """The settings of Figure 3 and N = 1000 under M_f, and two arms under M_d, which the paper omits."""
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


def people_cells(plan: Plan) -> list[Cell]:
    """Requests over all arms: mostly records of the best arm, equally many of each, or drawn at random."""
    spread, even = (_setting(plan, "people", PEOPLE_N, tuple(enumerate(counts))) for counts in (SPREAD, EVEN))
    at_random = _setting(plan, "people", PEOPLE_N, (), C_STAR, people=PEOPLE_K)
    if plan.quick:
        return _at_budgets(spread, TWO_ARM_METHODS, FEW_EPSILONS[1:2])
    return [
        *_at_budgets(spread, TWO_ARM_METHODS, FEW_EPSILONS),
        *_at_budgets(even, TWO_ARM_METHODS, FEW_EPSILONS),
        *_at_budgets(at_random, PEOPLE_METHODS, FEW_EPSILONS),
    ]


def _fine(plan: Plan) -> Sweep:
    """The grid of Figure 1 over N and k; a part of it when quick."""
    if plan.quick:
        return _sweep((1000, 2000, 3000, 5000), (100, 300, 500))
    return _sweep([int(n) for n in plan.ns], [int(k) for k in plan.grid(20, 500, 20)])


def _coarse(plan: Plan) -> Sweep:
    """A part of the same grid, for cells that take long because they are sampled."""
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
    """A cell without methods; larger N need more data sets for a standard error of 1 %."""
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
    """The methods at every ε, and those without a budget once; all on the same data sets.

    Tilt on more than two arms is sampled, with an oracle on the same data sets; the other methods stay exact.
    """
    cells = [replace(base, methods=WITHOUT_BUDGET, epsilon=epsilons[0])]
    many_arms = len(base.deletions) > 2 and base.c_star is None
    sampled_methods = ("tilt",) if many_arms and base.protocol == "exact" else ()
    other_methods = tuple(name for name in methods if name not in sampled_methods)
    cells += [replace(base, methods=other_methods, epsilon=epsilon) for epsilon in epsilons]
    if sampled_methods:
        sampled = replace(base, protocol="sampled")
        cells.append(replace(sampled, methods=("oracle",), epsilon=epsilons[0]))
        cells += [replace(sampled, methods=sampled_methods, epsilon=epsilon) for epsilon in epsilons]
    return cells
