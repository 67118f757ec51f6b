"""What each guarantee level costs: one method for each level, over ε and the size of the request."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from armnesia.paper.comparisons import Estimate, loss, only, ratio, with_error
from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table
from armnesia.paper.settings import ARM_OF_CASE, DELTA, HARD, MEANS, METHODS, Plan, all_insured_from
from armnesia.privacy import Budget
from armnesia.simulation import Cell, Row
from armnesia.unlearners import Tilt, Unlearner
from armnesia.unlearners.tilt_reference import insurance_price

EPSILONS = (0.5, 1.0, 2.0, 3.0, 5.0)
SETTINGS = ((1000, (0, 20, 80)), (3000, (0, 120, 300)))
"""N, and the numbers of records of the best arm deleted: none, a part, and nearly or just half."""
CHOICE_EPSILONS = (1.0, 3.0)
UNEQUAL_SETTINGS = ((1000, (0, 200), 2.0), (1000, (0, 40), 10.0))
"""N, k and C* under M_d: half of the records are those of the best arm, or only a tenth."""

FLAT_01, FLAT_95 = "tilt retained, share 0.1", "tilt retained, share 0.95"
WITHOUT_COUNTS = "tilt retained, nothing or share"
CHOICES: dict[str, tuple[str, Unlearner | None]] = {
    "oracle": ("no deletion", None),
    "rollback": ("rollback", METHODS["rollback"]),
    FLAT_01: ("ρ = 0.1, flat", Tilt(assumed_share=0.1, predictive="flat")),
    FLAT_95: ("ρ = 0.95, flat", Tilt(assumed_share=0.95, predictive="flat")),
    WITHOUT_COUNTS: (
        "ρ = 0.95, nothing_or_share",
        Tilt(assumed_share=0.95, predictive="nothing_or_share"),
    ),
    "tilt retained, equal counts": (
        "ρ = 0.95, equal_counts",
        Tilt(assumed_share=0.95, predictive="equal_counts"),
    ),
    "tilt retained": ("ρ = 0.95, by_counts", METHODS["tilt retained"]),
    "tilt retained, uninsured": ("the same, insurance 0", Tilt(assumed_share=0.95, insurance=0)),
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
RETAINED_METHODS = ("tilt retained", WITHOUT_COUNTS)
"""Tilt at level `retained` has no exact formula."""
_FEWEST = 100
"""Data sets of a cell; with too few of them no deletion may lose nothing, and there is no ratio to it."""


class Point(NamedTuple):
    """A setting of the first table: N, the number of deleted records of the best arm, and ε."""

    n: int
    k: int
    epsilon: float


def level_cells(plan: Plan) -> list[Cell]:
    """An exact and a sampled cell, each with an oracle, for each setting and ε (M_f, the best arm)."""
    split = [(EXACT_METHODS, "exact"), (("oracle", *RETAINED_METHODS), "sampled")]
    if plan.protocol == "sampled":
        split = [((*EXACT_METHODS, *RETAINED_METHODS), "sampled")]
    return [
        _cell(plan, f"M_f N = {n}", n, k, epsilon, methods, protocol, 20)
        for n, ks in (SETTINGS[:1] if plan.quick else SETTINGS)
        for k in ks
        for epsilon in EPSILONS
        for methods, protocol in split
    ]


def choice_cells(plan: Plan) -> list[Cell]:
    """Every way to choose the parameters at `retained`, on the same data sets; equal and unequal counts."""
    settings: list[tuple[int, tuple[int, ...], float | None]] = [(n, ks, None) for n, ks in SETTINGS]
    return [
        _cell(
            *(plan, f"choices {'M_f' if c_star is None else f'M_d C* = {c_star:g}'} N = {n}", n, k, epsilon),
            *(tuple(CHOICES), "sampled", 40, c_star),
        )
        for n, ks, c_star in (settings[:1] if plan.quick else [*settings, *UNEQUAL_SETTINGS])
        for k in ks
        for epsilon in CHOICE_EPSILONS
    ]


def _cell(
    plan: Plan,
    panel: str,
    n: int,
    k: int,
    epsilon: float,
    methods: Sequence[str],
    protocol: str,
    part: int,
    c_star: float | None = None,
) -> Cell:
    """A sampled cell has a part of the plan's data sets: each of them needs integrals over all arms."""
    named = {name: CHOICES[name][1] if name in CHOICES else METHODS[name] for name in methods}
    return plan.cell(
        ("level_costs", panel, "k", k),
        *(n, {ARM_OF_CASE[HARD]: k}, named),
        epsilon=epsilon,
        c_star=c_star,
        protocol=protocol,
        datasets=max(plan.datasets // part, _FEWEST),
    )


def level_costs_section(run: Run) -> Section:
    """Evaluate all cells, and describe the results."""
    cells = level_cells(run.plan), choice_cells(run.plan)
    return describe_results(*map(run.evaluate_and_record, cells))


def describe_results(levels: Sequence[Row], choices: Sequence[Row]) -> Section:
    """The tables, and paragraphs with their numbers."""
    costs = costs_by_point(levels)
    oracles = {(row["n"], row["k"]): row for row in reversed(levels) if row["method"] == "oracle"}
    lines: list[list[object]] = [
        [
            *(point.n, point.k, f"{point.epsilon:g}"),
            f"{oracles[point.n, point.k]['suboptimality']:.5f}",
            *(_shown(found[name]) for name in COLUMNS),
        ]
        for point, found in costs.items()
    ]
    header = ["N", "deleted of the best arm", "ε", "no deletion", *COLUMNS.values()]
    caption = (
        "Sub-optimality divided by that of no deletion, at δ = 10⁻⁵, M_f with equal counts. ± is one standard"
        " error; without it a value is exact."
    )
    return Section(
        "What a guarantee level costs",
        [*_paragraphs(costs), _on_choices(choices)],
        tables=[Table(header, lines, caption), table_of_choices(choices)],
    )


def table_of_choices(rows: Sequence[Row]) -> Table:
    """Sub-optimality by setting and ε, with a column for each way to choose the parameters."""
    found: dict[tuple[str, int, float], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["panel"], row["k"], row["epsilon"]), {})[row["method"]] = row
    lines: list[list[object]] = [
        [panel.removeprefix("choices "), k, f"{epsilon:g}", *(loss(by[name], 1e5, 0) for name in CHOICES)]
        for (panel, k, epsilon), by in found.items()
    ]
    return Table(
        ["counts", "deleted of the best arm", "ε", *(column for column, _ in CHOICES.values())],
        lines,
        "How to choose the parameters of tilt at retained: sub-optimality ×10⁵ at δ = 10⁻⁵, on the same data"
        " sets in each row; ± is one standard error.",
    )


def costs_by_point(rows: Sequence[Row]) -> dict[Point, dict[str, Estimate]]:
    """Each method's sub-optimality over that of no deletion, by setting; on the same data sets if sampled."""
    found: dict[Point, dict[str, Row]] = {}
    for row in rows:
        by_name = found.setdefault(Point(row["n"], row["k"], row["epsilon"]), {})
        by_name[f"oracle {row['protocol']}" if row["method"] == "oracle" else row["method"]] = row
    return {
        point: {
            name: ratio(by_name[name], by_name[f"oracle {by_name[name]['protocol']}"]) for name in COLUMNS
        }
        for point, by_name in found.items()
    }


def _shown(cost: Estimate) -> str:
    return with_error(cost.value, cost.error, digits=2)


def _paragraphs(costs: dict[Point, dict[str, Estimate]]) -> list[str]:
    n = min(point.n for point in costs)
    none, some, many = sorted({point.k for point in costs if point.n == n})

    def cost(name: str, k: int, epsilon: float) -> str:
        return _shown(costs[Point(n, k, epsilon)][name])

    def over_epsilon(name: str, k: int) -> str:
        return ", ".join(f"{cost(name, k, epsilon)} (ε = {epsilon:g})" for epsilon in EPSILONS)

    return [
        "A stricter level lets the reference see less, and the release must stay near it. At request_shape"
        " the reference sees how many records of each arm were deleted, so it can keep the penalties of the"
        " counts before. At retained it sees D∖U only: the same vector must serve whether nothing or half of"
        " the best arm was deleted. So tilt at retained may cost something where nothing is deleted, and the"
        " other methods do not. Two forms of it are shown. The recommended one, Tilt(assumed_share=0.95)"
        " with its default predictive, by_counts, looks at the counts: here all arms had equally many"
        " records, so those that"
        " are left show which arm lost some, and how many. Without insurance it costs about what tilt costs"
        f" at request_shape; from ε = {all_insured_from():.2f} on it also insures all five arms. The other"
        " one, nothing_or_share, ignores the counts; by_counts is the same where they are not about equal.",
        f"At N = {n}, with {many} of the best arm's {n // 5} records deleted, the cost of tilt at retained is"
        f" {over_epsilon('tilt retained', many)} times no deletion by counts, and"
        f" {over_epsilon(WITHOUT_COUNTS, many)} without them; at request_shape it is"
        f" {over_epsilon('tilt', many)}. Rollback costs {cost('rollback', many, 1.0)} at every ε. With"
        f" {some} deleted, tilt costs {cost('tilt retained', some, 1.0)} and"
        f" {cost(WITHOUT_COUNTS, some, 1.0)} at retained and"
        f" {cost('tilt', some, 1.0)} at request_shape at ε = 1, and rollback"
        f" {cost('rollback', some, 1.0)} (± is one standard error). With {none} deleted, tilt at retained"
        f" costs {over_epsilon('tilt retained', none)}; without the counts"
        f" {over_epsilon(WITHOUT_COUNTS, none)}.",
    ]


def _on_choices(rows: Sequence[Row]) -> str:
    first = rows[0]["panel"]
    many = max(row["k"] for row in rows if row["panel"] == first)

    def both(name: str) -> str:
        found = (only(rows, panel=first, k=k, epsilon=1.0, method=name) for k in (0, many))
        return " and ".join(loss(row, 1e5, 0) for row in found)

    panels = " ".join(row["panel"] for row in rows)
    unequal = ""
    if "C* = 2 " in panels and "C* = 10 " in panels:  # quick runs have equal counts only
        unequal = (
            " Under M_d with C* = 2 the counts are far from equal, and by_counts falls back on"
            " nothing_or_share. With C* = 10 it is wrong: four arms have equally many records, and the best"
            " arm never had as many."
        )
    price = float(insurance_price(np.array(len(MEANS)), Budget(epsilon=3.0, delta=DELTA)))
    return (
        "The second table compares ways to choose its parameters. A small share keeps the penalties of D∖U,"
        " as rollback does; a large one judges by means, which costs most where nothing was deleted."
        f" At ε = 1 and N = 1000, with 0 and {many} records deleted, ρ = 0.1 has"
        f" {both(FLAT_01)}, ρ = 0.95 {both(FLAT_95)}, the average of"
        f" no deletion and ρ = 0.95 {both(WITHOUT_COUNTS)}, and the recommended choice"
        f" {both('tilt retained')} (no deletion: {both('oracle')}, ×10⁻⁵).{unequal} At ε = 3 all five arms"
        f" are insured, which costs up to {math.ceil(1e4 * price) / 1e4:.4f} of keep probability; in"
        " return the excess is at most h times the largest gap for every request of at most the share ρ of"
        " each arm."
    )
