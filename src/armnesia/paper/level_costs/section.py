"""The report's section on what a guarantee level costs."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from armnesia.paper.cells import Row
from armnesia.paper.comparisons import Estimate, ratio
from armnesia.paper.level_costs.cells import CHOICES, EPSILONS, choice_cells, level_cells
from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table, with_error
from armnesia.paper.settings import DELTA, ENVIRONMENT, all_insured_from
from armnesia.privacy import Budget
from armnesia.unlearners.tilt_reference import insurance_price

COLUMNS = {
    "rollback": "rollback: retained, (0, 0)",
    "tilt retained": "tilt: retained, by_counts",
    "tilt retained, nothing or share": "tilt: retained, nothing_or_share",
    "frozen_rollback": "frozen rollback: request_shape, (0, 0)",
    "tilt": "tilt: request_shape",
}
"""The methods of the table, from the strictest level on."""
CHOICE_COLUMNS = {
    "oracle": "no deletion",
    "rollback": "rollback",
    **dict(
        zip(
            CHOICES,
            (
                "ρ = 0.1, flat",
                "ρ = 0.95, flat",
                "ρ = 0.95, nothing_or_share",
                "ρ = 0.95, equal_counts",
                "ρ = 0.95, by_counts",
                "the same, insurance 0",
            ),
            strict=True,
        )
    ),
}
"""The methods of the second table."""


class Point(NamedTuple):
    """A setting of the table: N, the number of deleted records of the best arm, and ε."""

    n: int
    k: int
    epsilon: float


def level_costs_section(run: Run) -> Section:
    """Evaluate all cells, and describe the results."""
    cells = level_cells(run.plan)
    return describe_results(*_split(run.evaluate_and_record([*cells, *choice_cells(run.plan)])))


def _split(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """The rows of the table of levels, and those of the choices at `retained`."""
    levels = [row for row in rows if not row["panel"].startswith("choices")]
    return levels, [row for row in rows if row["panel"].startswith("choices")]


def describe_results(rows: Sequence[Row], choice_rows: Sequence[Row]) -> Section:
    """The tables, and paragraphs with their numbers."""
    costs = costs_by_point(rows)
    oracles = {(row["n"], row["k"]): row for row in reversed(rows) if row["method"] == "oracle"}
    table_rows: list[list[object]] = [
        [
            point.n,
            point.k,
            f"{point.epsilon:g}",
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
        [*_paragraphs(costs), _on_choices(choice_rows)],
        tables=[Table(header, table_rows, caption), table_of_choices(choice_rows)],
    )


def table_of_choices(rows: Sequence[Row]) -> Table:
    """Sub-optimality by setting and ε, with a column for each way to choose the parameters."""
    found: dict[tuple[str, int, float], dict[str, Row]] = {}
    for row in rows:
        found.setdefault((row["panel"], row["k"], row["epsilon"]), {})[row["method"]] = row
    lines: list[list[object]] = [
        [
            panel.removeprefix("choices "),
            k,
            f"{epsilon:g}",
            *(_hundred_thousandths(by_name[name]) for name in CHOICE_COLUMNS),
        ]
        for (panel, k, epsilon), by_name in found.items()
    ]
    return Table(
        ["counts", "deleted of the best arm", "ε", *CHOICE_COLUMNS.values()],
        lines,
        "How to choose the parameters of tilt at retained: sub-optimality ×10⁵ at δ = 10⁻⁵, on the same data"
        " sets in each row; ± is one standard error.",
    )


def _hundred_thousandths(row: Row) -> str:
    return with_error(1e5 * row["suboptimality"], 1e5 * row["standard_error"], digits=0)


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
    return with_error(cost.value, cost.error, digits=2) if cost.error else f"{cost.value:.2f}"


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
        f" {over_epsilon('tilt retained, nothing or share', many)} without them; at request_shape it is"
        f" {over_epsilon('tilt', many)}. Rollback costs {cost('rollback', many, 1.0)} at every ε. With"
        f" {some} deleted, tilt costs {cost('tilt retained', some, 1.0)} and"
        f" {cost('tilt retained, nothing or share', some, 1.0)} at retained and"
        f" {cost('tilt', some, 1.0)} at request_shape at ε = 1, and rollback"
        f" {cost('rollback', some, 1.0)} (± is one standard error). With {none} deleted, tilt at retained"
        f" costs {over_epsilon('tilt retained', none)}; without the counts"
        f" {over_epsilon('tilt retained, nothing or share', none)}.",
    ]


def _on_choices(rows: Sequence[Row]) -> str:
    first = rows[0]["panel"]
    many = max(row["k"] for row in rows if row["panel"] == first)

    def shown(name: str, k: int) -> str:
        (row,) = (
            row
            for row in rows
            if (row["panel"], row["k"], row["epsilon"], row["method"]) == (first, k, 1.0, name)
        )
        return _hundred_thousandths(row)

    def both(name: str) -> str:
        return f"{shown(name, 0)} and {shown(name, many)}"

    panels = " ".join(row["panel"] for row in rows)
    unequal = ""
    if "C* = 2 " in panels and "C* = 10 " in panels:  # quick runs have equal counts only
        unequal = (
            " Under M_d with C* = 2 the counts are far from equal, and by_counts falls back on"
            " nothing_or_share. With C* = 10 it is wrong: four arms have equally many records, and the best"
            " arm never had as many."
        )
    price = float(insurance_price(np.array(len(ENVIRONMENT.means)), Budget(epsilon=3.0, delta=DELTA)))
    return (
        "The second table compares ways to choose its parameters. A small share keeps the penalties of D∖U,"
        " as rollback does; a large one judges by means, which costs most where nothing was deleted."
        f" At ε = 1 and N = 1000, with 0 and {many} records deleted, ρ = 0.1 has"
        f" {both('tilt retained, share 0.1')}, ρ = 0.95 {both('tilt retained, share 0.95')}, the average of"
        f" no deletion and ρ = 0.95 {both('tilt retained, nothing or share')}, and the recommended choice"
        f" {both('tilt retained')} (no deletion: {both('oracle')}, ×10⁻⁵).{unequal} At ε = 3 all five arms"
        f" are insured, which costs up to {math.ceil(1e4 * price) / 1e4:.4f} of keep probability; in"
        " return the excess is at most h times the largest gap for every request of at most the share ρ of"
        " each arm."
    )
