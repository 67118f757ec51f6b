"""The computed points behind the claims, and what the paper's own protocol would have scattered by."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from armnesia.paper.cells import Cell, Row
from armnesia.paper.figures.cells import Plan, figure_1, figure_2, figure_3, table_2
from armnesia.paper.measures import Measured, Point, points

RunCells = Callable[[Sequence[Cell]], list[Row]]
Measure = Callable[[Point], Measured]


class Evidence:
    """All points of the figures, found by figure, panel and sweep."""

    def __init__(self, plan: Plan, run: RunCells) -> None:
        self._run = run
        plan = replace(plan, protocol="exact")  # whatever the figures show, a claim is held against the truth
        cells = [*figure_1(plan), *figure_2(plan), *figure_3(plan), *table_2(plan)]
        self.rows = run(cells)
        self._cells = {(cell.figure, cell.panel, cell.varied, cell.x): cell for cell in cells}

    def at(
        self, figure: str, panel: str, varied: str, keep: Callable[[float], bool] = lambda x: True
    ) -> list[Point]:
        """The points of one panel whose x is wanted."""
        found = points(self.rows, figure=figure, panel=panel, varied=varied)
        return [point for point in found if keep(_any_row(point)["x"])]

    def panels(self, figure: str) -> list[str]:
        """The panels of a figure, in order."""
        return list(dict.fromkeys(row["panel"] for row in self.rows if row["figure"] == figure))

    def scatter(self, point: Point, measure: Measure) -> float:
        """The standard error of a measure under the paper's protocol, with fresh data sets in each run."""
        row = _any_row(point)
        cell = self._cells[row["figure"], row["panel"], row["varied"], row["x"]]
        (as_the_paper,) = points(self._run([replace(cell, protocol="paper")]))
        return measure(as_the_paper).error


def _any_row(point: Point) -> Row:
    return next(iter(point.values()))
