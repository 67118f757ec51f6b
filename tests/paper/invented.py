"""A run that evaluates nothing and gets invented values, and what every picture must satisfy."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from armnesia.paper.settings import Plan, Run
from armnesia.plotting.panels import Panel
from armnesia.simulation import Cell, Evaluation, FixedSample, Row, evaluate, run_cells
from armnesia.simulation.parallel import workers
from armnesia.unlearners import Rollback


def rows_of(cells: Sequence[Cell], *, error: float = 1e-4) -> list[Row]:
    """The k-th method of a cell loses k thousandths: exact under M_f, sampled under M_d."""
    made = []
    for cell in cells:
        exact = isinstance(cell.model, FixedSample) and cell.protocol != "sampled"
        for place, method in enumerate(cell.unlearners):
            value = 0.001 * (place + 1)
            row = cell.row(method, _SOME)
            row |= {"suboptimality": value, "standard_error": 0.0 if exact else error, "blocks": [value]}
            made.append(
                row | {"protocol": "exact" if exact else "sampled", "datasets": 0 if exact else 20_000}
            )
    return made


_CELL = Plan().cell(("", "", "", 0), 50, {0: 1}, ("rollback",))
_SOME: Evaluation = evaluate(_CELL.environment, _CELL.model, _CELL.request, Rollback(), _CELL.budget)


class InventedRun(Run):
    """A run whose cells have invented values."""

    def __init__(self, **plan: Any) -> None:
        with workers(1) as this_process:
            super().__init__(Plan(quick=True, **plan), this_process)

    def evaluate(self, cells: Sequence[Cell]) -> list[Row]:
        return rows_of(cells)


def run_here(cells: Sequence[Cell]) -> list[Row]:
    """The true rows."""
    with workers(1) as this_process:
        return run_cells(cells, None, this_process)


def series(panel: Panel) -> dict[str, Any]:
    """The values of a panel's curves by label."""
    return {curve.label: np.array(curve.y, dtype=float) for curve in panel.curves}


def legend_of(figure: Any) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]


def texts_of(figure: Any) -> list[Any]:
    """Every text that is shown, the ticks' numbers left out."""
    (legend,) = figure.legends
    inside = [
        text
        for axis in figure.axes
        for text in (axis.title, axis._left_title, axis.xaxis.label, axis.yaxis.label, *axis.texts)
    ]
    return [text for text in (*inside, *legend.get_texts(), figure._supxlabel) if text.get_text()]


def assert_nothing_overlaps(figure: Any) -> None:
    """No text lies over another or leaves the figure."""
    figure.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts_of(figure)]
    for place, (words, box) in enumerate(boxes):
        assert figure.bbox.padded(1).count_contains([box.min, box.max]) == 2, words
        for other_words, other in boxes[:place]:
            assert not box.overlaps(other), (words, other_words)
