"""The report's section on what a guarantee level costs."""

from collections.abc import Sequence
from typing import NamedTuple

from armnesia.paper.cells import Row
from armnesia.paper.comparisons import Estimate, ratio
from armnesia.paper.level_costs.cells import EPSILONS, level_cells
from armnesia.paper.run import Run
from armnesia.paper.section import Section, Table, with_error

COLUMNS = {
    "rollback": "rollback: retained, (0, 0)",
    "tilt retained": "tilt: retained",
    "frozen_rollback": "frozen rollback: request_shape, (0, 0)",
    "tilt": "tilt: request_shape",
}
"""The methods of the table, from the strictest level on."""


class Point(NamedTuple):
    """A setting of the table: N, the number of deleted records of the best arm, and ε."""

    n: int
    k: int
    epsilon: float


def level_costs_section(run: Run) -> Section:
    """Evaluate all cells, and describe the results."""
    return describe_results(run.evaluate_and_record(level_cells(run.plan)))


def describe_results(rows: Sequence[Row]) -> Section:
    """The table, and paragraphs with its numbers."""
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
        "What a guarantee level costs", _paragraphs(costs), tables=[Table(header, table_rows, caption)]
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
    return with_error(cost.value, cost.error, digits=2) if cost.error else f"{cost.value:.2f}"


def _paragraphs(costs: dict[Point, dict[str, Estimate]]) -> list[str]:
    n = min(point.n for point in costs)
    none, some, many = sorted({point.k for point in costs if point.n == n})

    def cost(name: str, k: int, epsilon: float) -> str:
        return f"{costs[Point(n, k, epsilon)][name].value:.2f}"

    def over_epsilon(name: str, k: int) -> str:
        return ", ".join(f"{cost(name, k, epsilon)} (ε = {epsilon:g})" for epsilon in EPSILONS)

    return [
        "A stricter level lets the reference see less, and the release must stay near it. At request_shape"
        " the reference sees how many records of each arm were deleted, so it can keep the penalties of the"
        " counts before. At retained it sees D∖U only: the same vector must serve whether nothing or half of"
        " the best arm was deleted. So tilt at retained also costs something where nothing is deleted, and"
        " the other methods do not. It is the recommended one: the average of no deletion and an assumed"
        " share of 0.95 of every arm.",
        f"At N = {n}, with {many} of the best arm's {n // 5} records deleted, the cost of tilt at retained is"
        f" {over_epsilon('tilt retained', many)} times no deletion, and at request_shape"
        f" {over_epsilon('tilt', many)}; rollback costs {cost('rollback', many, 1.0)} at every ε. With"
        f" {some} deleted, tilt costs {cost('tilt retained', some, 1.0)} at retained and"
        f" {cost('tilt', some, 1.0)} at request_shape at ε = 1, and rollback"
        f" {cost('rollback', some, 1.0)}. With {none} deleted, tilt at retained costs"
        f" {over_epsilon('tilt retained', none)}.",
    ]
