"""The points that the claims are about, and the standard error that the paper's protocol has at them.

The claims are about Figures 1 to 3 and Table 2: this slice uses the cells of `figures`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from armnesia.paper.cells import Cell, Row
from armnesia.paper.comparisons import Estimate, Point, points
from armnesia.paper.figures.cells import figure_1_cells, figure_2_cells, figure_3_cells, table_2_cells
from armnesia.paper.plan import Plan

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
        self._cells = {(cell.figure, cell.panel, cell.varied, cell.x): cell for cell in cells}

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
        cell = self._cells[row["figure"], row["panel"], row["varied"], row["x"]]
        (as_the_paper,) = points(self._evaluate([replace(cell, protocol="paper")]))
        return measure(as_the_paper).error


def _any_row(point: Point) -> Row:
    return next(iter(point.values()))
