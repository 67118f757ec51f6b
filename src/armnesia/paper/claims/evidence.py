"""The points that the claims are about, and the standard error that the paper's protocol has at them.

The claims are about Figures 1 to 3 and Table 2: this part uses their cells.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from armnesia.paper.comparisons import Estimate, Point, points
from armnesia.paper.figure_1 import figure_1_cells
from armnesia.paper.figure_2 import figure_2_cells
from armnesia.paper.figure_3 import figure_3_cells
from armnesia.paper.protocol import paper_protocol
from armnesia.paper.settings import Plan, as_in_the_figure
from armnesia.paper.table_2 import table_2_cells
from armnesia.simulation import Cell, Row

EvaluateCells = Callable[[Sequence[Cell]], list[Row]]
Measure = Callable[[Point], Estimate]


class Evidence:
    """All points of the figures, by figure, panel and sweep."""

    def __init__(self, plan: Plan, evaluate: EvaluateCells) -> None:
        self._evaluate = evaluate
        # Claims are compared with exact values, whatever protocol the figures use.
        plan = replace(plan, protocol="exact")
        cells = [
            *figure_1_cells(plan),
            *figure_2_cells(plan),
            *figure_3_cells(plan),
            *table_2_cells(plan),
        ]
        self.rows = evaluate(cells)
        self._cells = {as_in_the_figure(cell.labels): cell for cell in cells}

    def points(
        self, figure: str, panel: str, varied: str, keep: Callable[[float], bool] = lambda x: True
    ) -> list[Point]:
        """The points of one panel and sweep whose x is to be kept."""
        found = points(self.rows, figure=figure, panel=panel, varied=varied)
        return [point for point in found if keep(_any_row(point)["x"])]

    def panels(self, figure: str) -> list[str]:
        """The panels of a figure, in order."""
        return list(dict.fromkeys(row["panel"] for row in self.rows if row["figure"] == figure))

    def error_of_paper(self, point: Point, measure: Measure) -> float:
        """The standard error of a measure under the paper's protocol, with new data sets in each run."""
        row = _any_row(point)
        cell = replace(self._cells[as_in_the_figure(row)], evaluate=paper_protocol)
        (as_the_paper,) = points(self._evaluate([cell]))
        return measure(as_the_paper).error


def _any_row(point: Point) -> Row:
    return next(iter(point.values()))
