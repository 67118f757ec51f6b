"""The cells of the table of levels: one method for each level, over ε and the size of the request."""

from armnesia.paper.cells import Cell
from armnesia.paper.plan import Plan
from armnesia.paper.settings import ARM_OF_CASE, BASE_GAMMA, HARD

FIGURE = "level_costs"
EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0)
EXACT_METHODS = ("oracle", "rollback", "frozen_rollback", "tilt")
SAMPLED_METHODS = ("oracle", "tilt retained")
"""Tilt at level `retained` has no exact formula; the oracle is on the same data sets."""

SETTINGS = ((1000, (0, 20, 80)), (3000, (0, 60, 300)))
"""N, and the numbers of records of the best arm deleted: none, a tenth, and nearly or just half."""
_PER_SAMPLED_CELL = 10
"""A sampled cell has a tenth of the plan's data sets: each of them needs an integral over all arms."""


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
            datasets=max(plan.datasets // _PER_SAMPLED_CELL, 2),
            seed=plan.seed,
            epsilon=epsilon,
        )
        for n, ks in settings
        for k in ks
        for epsilon in EPSILONS
        for methods, protocol in _methods_by_protocol(plan)
    ]


def _methods_by_protocol(plan: Plan) -> list[tuple[tuple[str, ...], str]]:
    if plan.protocol == "sampled":
        return [((*EXACT_METHODS, "tilt retained"), "sampled")]
    return [(EXACT_METHODS, "exact"), (SAMPLED_METHODS, "sampled")]
