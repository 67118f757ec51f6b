"""The cells of the table of levels: one method for each level, over ε and the size of the request."""

from armnesia.paper.cells import Cell
from armnesia.paper.plan import Plan
from armnesia.paper.settings import ARM_OF_CASE, BASE_GAMMA, HARD

FIGURE = "level_costs"
EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0)
EXACT_METHODS = ("oracle", "rollback", "frozen_rollback", "tilt")
RETAINED_METHODS = ("tilt retained", "tilt retained, nothing or share")
SAMPLED_METHODS = ("oracle", *RETAINED_METHODS)
"""Tilt at level `retained` has no exact formula; the oracle is on the same data sets."""

SETTINGS = ((1000, (0, 20, 80)), (3000, (0, 120, 300)))
"""N, and the numbers of records of the best arm deleted: none, a part, and nearly or just half."""

CHOICES = (
    *("tilt retained, share 0.1", "tilt retained, share 0.95", "tilt retained, nothing or share"),
    *("tilt retained, equal counts", "tilt retained", "tilt retained, uninsured"),
)
"""Ways to choose the parameters of tilt at level `retained`; the fifth is the recommended one."""
CHOICE_EPSILONS = (1.0, 3.0)
UNEQUAL_SETTINGS = ((1000, (0, 200), 2.0), (1000, (0, 40), 10.0))
"""N, k and C* under M_d: half of the records are those of the best arm, or only a tenth."""
_PER_SAMPLED_CELL, _PER_CHOICE_CELL = 20, 40
"""A sampled cell has a part of the plan's data sets: each of them needs integrals over all arms."""
_FEWEST = 100
"""Data sets of a cell; with too few of them no deletion may lose nothing, and there is no ratio to it."""


def level_cells(plan: Plan) -> list[Cell]:
    """An exact and a sampled cell for each setting and ε (M_f, deletions from the best arm)."""
    settings = SETTINGS[:1] if plan.quick else SETTINGS
    return [
        Cell(
            figure=FIGURE,
            panel=f"M_f N = {n}",
            varied="k",
            x=float(k),
            n=n,
            deletions=((ARM_OF_CASE[HARD], k),),
            gamma=BASE_GAMMA,
            methods=methods,
            protocol=protocol,
            datasets=max(plan.datasets // _PER_SAMPLED_CELL, _FEWEST),
            seed=plan.seed,
            epsilon=epsilon,
        )
        for n, ks in settings
        for k in ks
        for epsilon in EPSILONS
        for methods, protocol in _methods_by_protocol(plan)
    ]


def choice_cells(plan: Plan) -> list[Cell]:
    """Every way to choose the parameters at `retained`, on the same data sets; equal and unequal counts."""
    settings: list[tuple[int, tuple[int, ...], float | None]] = [(n, ks, None) for n, ks in SETTINGS]
    return [
        Cell(
            figure=FIGURE,
            panel=f"choices {'M_f' if c_star is None else f'M_d C* = {c_star:g}'} N = {n}",
            varied="k",
            x=float(k),
            n=n,
            deletions=((ARM_OF_CASE[HARD], k),),
            gamma=BASE_GAMMA,
            methods=("oracle", "rollback", *CHOICES),
            protocol="sampled",
            c_star=c_star,
            datasets=max(plan.datasets // _PER_CHOICE_CELL, _FEWEST),
            seed=plan.seed,
            epsilon=epsilon,
        )
        for n, ks, c_star in (settings[:1] if plan.quick else [*settings, *UNEQUAL_SETTINGS])
        for k in ks
        for epsilon in CHOICE_EPSILONS
    ]


def _methods_by_protocol(plan: Plan) -> list[tuple[tuple[str, ...], str]]:
    if plan.protocol == "sampled":
        return [((*EXACT_METHODS, *RETAINED_METHODS), "sampled")]
    return [(EXACT_METHODS, "exact"), (SAMPLED_METHODS, "sampled")]
