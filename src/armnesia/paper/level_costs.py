"""What each guarantee level costs: one method for each level, over ε and the size of the request."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from armnesia.paper.comparisons import distance_as_text, loss, pick, table_of_rows, with_distances
from armnesia.paper.section import Section
from armnesia.paper.settings import DELTA, MEANS, METHODS, Plan, Run, all_insured_from
from armnesia.privacy import Budget
from armnesia.simulation import Cell, Row
from armnesia.unlearners import Tilt, Unlearner
from armnesia.unlearners.tilt_reference import insurance_price

EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0)
CHOICE_EPSILONS = (1.0, 3.0)
SETTINGS: Sequence[tuple[str, int, tuple[int, ...], float | None]] = (
    ("M_f N = 1000", 1000, (0, 20, 80), None),
    ("M_f N = 3000", 3000, (0, 120, 300), None),
    ("M_d C* = 2 N = 1000", 1000, (0, 200), 2.0),
    ("M_d C* = 10 N = 1000", 1000, (0, 40), 10.0),
)
"""Name, N, numbers of deleted records of the best arm, and C*. The levels are compared under M_f."""

AT_95 = partial(Tilt, assumed_share=0.95)
WITHOUT_COUNTS = "tilt retained, nothing or share"
CHOICES: dict[str, tuple[str, Unlearner | None]] = {
    "oracle": ("no deletion", None),
    "rollback": ("rollback", METHODS["rollback"]),
    "tilt retained, share 0.1": ("ρ = 0.1, flat", Tilt(assumed_share=0.1, predictive="flat")),
    "tilt retained, share 0.95": ("ρ = 0.95, flat", AT_95(predictive="flat")),
    WITHOUT_COUNTS: ("ρ = 0.95, nothing_or_share", AT_95(predictive="nothing_or_share")),
    "tilt retained, equal counts": ("ρ = 0.95, equal_counts", AT_95(predictive="equal_counts")),
    "tilt retained": ("ρ = 0.95, by_counts", METHODS["tilt retained"]),
    "tilt retained, uninsured": ("the same, insurance 0", AT_95(insurance=0)),
}
"""Ways to choose the parameters of tilt at level `retained`, with their columns in the second table."""
COLUMNS = {
    "rollback": "rollback: retained, (0, 0)",
    "tilt retained": "tilt: retained, by_counts",
    WITHOUT_COUNTS: "tilt: retained, nothing_or_share",
    "frozen_rollback": "frozen rollback: request_shape, (0, 0)",
    "tilt": "tilt: request_shape",
}
"""The methods of the first table, from the strictest level on."""
EXACT_METHODS = ("oracle", "rollback", "frozen_rollback", "tilt")
_FEWEST = 100
"""Data sets of a cell; with too few of them no deletion may lose nothing, and there is no ratio to it."""


def level_cells(plan: Plan) -> list[Cell]:
    """An exact and a sampled cell, each with an oracle, for each setting and ε (M_f, the best arm)."""
    retained = ("tilt retained", WITHOUT_COUNTS)  # these have no exact formula
    split = [(EXACT_METHODS, "exact"), (("oracle", *retained), "sampled")]
    if plan.protocol == "sampled":
        split = [((*EXACT_METHODS, *retained), "sampled")]
    return _cells(plan, "", SETTINGS[:2], EPSILONS, split, 20)


def choice_cells(plan: Plan) -> list[Cell]:
    """Every way to choose the parameters at `retained`, on the same data sets; equal and unequal counts."""
    return _cells(plan, "choices ", SETTINGS, CHOICE_EPSILONS, [(tuple(CHOICES), "sampled")], 40)


def _cells(plan: Plan, prefix: str, settings: Any, epsilons: Any, split: Any, part: int) -> list[Cell]:
    """Cells have a part of the plan's data sets: each of them needs integrals over all arms."""
    unlearners = METHODS | {method: unlearner for method, (_, unlearner) in CHOICES.items()}
    return [
        plan.cell(
            ("level_costs", prefix + name, "k", k),
            *(n, {0: k}, {method: unlearners[method] for method in methods}),
            epsilon=epsilon,
            c_star=c_star,
            protocol=protocol,
            datasets=max(plan.datasets // part, _FEWEST),
        )
        for name, n, ks, c_star in (settings[:1] if plan.quick else settings)
        for k in ks
        for epsilon in epsilons
        for methods, protocol in split
    ]


def level_costs_section(run: Run) -> Section:
    """Evaluate all cells, and describe the results."""
    cells = level_cells(run.plan), choice_cells(run.plan)
    return describe_results(*map(run.evaluate_and_record, cells))


def describe_results(levels: Sequence[Row], choices: Sequence[Row]) -> Section:
    """The two tables, and what they show."""
    price = float(insurance_price(np.array(len(MEANS)), Budget(epsilon=3.0, delta=DELTA)))
    unequal = (
        " Under M_d with C* = 2 the counts are far from equal, and by_counts is nothing_or_share. With C* ="
        " 10 it is wrong: four arms have equally many records, which the best arm never had."
    ) * bool(pick(choices, model="distribution"))  # quick runs have equal counts only
    setting = {"N": "n", "deleted of the best arm": "k", "ε": "epsilon"}
    return Section(
        "What a guarantee level costs",
        [
            "A stricter level lets the reference see less, and the release must stay near it. At"
            " request_shape the reference sees how many records of each arm were deleted. So it can keep the"
            " penalties of the counts before. At retained it sees D∖U only: one vector must serve whether"
            " nothing or half of the best arm was deleted. So only tilt at retained may cost something where"
            " nothing is deleted.",
            "The recommended form of it is Tilt(assumed_share=0.95) with its default predictive, by_counts."
            " Where all arms had equally many records, the counts that are left show which arm lost some, and"
            " how many. Without insurance it costs about what tilt costs at request_shape."
            f" From ε = {all_insured_from():.2f} on it also insures all five arms. The other form,"
            " nothing_or_share, ignores the counts.",
            "The second table compares ways to choose the parameters. A small share ρ keeps the penalties of"
            " D∖U, as rollback does. A large one judges by means, which costs most where nothing was deleted."
            " The form nothing_or_share is the average of that and no deletion." + unequal,
            f"At ε = 3 all five arms are insured, which costs up to {math.ceil(1e4 * price) / 1e4:.4f} of"
            " keep probability. In return the excess is at most h times the largest gap. This holds for every"
            " request of at most the share ρ of each arm.",
        ],
        tables=[
            table_of_rows(
                with_distances(levels),
                setting,
                {"no deletion": {"method": "oracle"}}
                | {column: {"method": name} for name, column in COLUMNS.items()},
                distance_as_text,
                "Sub-optimality divided by that of no deletion, at δ = 10⁻⁵, M_f with equal counts. ± is one"
                " standard error; without it a value is exact.",
            ),
            table_of_rows(
                [{**row, "counts": row["panel"].removeprefix("choices ")} for row in choices],
                {"counts": "counts"} | {name: key for name, key in setting.items() if key != "n"},
                {column: {"method": name} for name, (column, _) in CHOICES.items()},
                lambda row: loss(row, 1e5, 0),
                "How to choose the parameters of tilt at retained: sub-optimality ×10⁵ at δ = 10⁻⁵. A row"
                " has the same data sets; ± is one standard error.",
            ),
        ],
    )
