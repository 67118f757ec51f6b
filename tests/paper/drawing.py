"""Invented rows and panels, a run that evaluates nothing, and what every picture must satisfy."""

from collections.abc import Sequence
from typing import Any

from armnesia.paper.cells import Cell, Row
from armnesia.paper.pictures import METHOD_STYLE
from armnesia.paper.run import Run


def rows_of(cells: Sequence[Cell], *, error: float = 1e-4) -> list[Row]:
    """What is drawn of the cells' rows, with invented values: exact under M_f, sampled under M_d."""
    return [
        {
            "figure": cell.figure,
            "panel": cell.panel,
            "model": "fixed" if cell.c_star is None else "distribution",
            "varied": cell.varied,
            "x": cell.x,
            "n": cell.n,
            "arms": " ".join(str(arm) for arm, _ in cell.deletions) or "any",
            "k": cell.people or cell.deletions[0][1],
            "gamma": cell.gamma,
            "epsilon": cell.epsilon,
            "c_star": cell.c_star,
            "method": method,
            "protocol": cell.protocol,
            "blocks": [0.001 * (place + 1)],
            "suboptimality": 0.001 * (place + 1),
            "standard_error": 0.0 if cell.c_star is None else error,
            "datasets": 0 if cell.c_star is None else 20_000,
        }
        for cell in cells
        for place, method in enumerate(cell.methods)
    ]


class InventedRun(Run):
    """A run whose cells have invented values."""

    def evaluate(self, cells: Sequence[Cell]) -> list[Row]:
        return rows_of(cells)


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


def assert_all_panels(figure: Any, rows: list[Row], *, panels: int) -> None:
    """Every panel and every row is drawn, the axes are named, and there is one legend."""
    assert len(figure.axes) == panels
    named = {(axis.get_title(loc="left"), axis.get_xlabel()) for axis in figure.axes}
    assert len(named) == panels
    assert all(title and x_name for title, x_name in named)
    first_column = [axis for axis in figure.axes if axis.get_subplotspec().is_first_col()]
    assert all(axis.get_ylabel() == "sub-optimality" for axis in first_column)
    methods = dict.fromkeys(row["method"] for row in rows)
    curves = [line for axis in figure.axes for line in axis.get_lines()]
    assert len(curves) == panels * len(methods)
    assert sum(len(curve.get_xdata()) for curve in curves) == len(rows)
    assert legend_of(figure) == [METHOD_STYLE[method].name for method in methods]


def phase_map(*, log: bool = False) -> dict[str, Any]:
    x, y = [float(value) for value in range(500, 5001, 250)], [0.1 * step for step in range(1, 10)]
    return {
        "title": "γ = 0.5",
        "x_name": "N",
        "y_name": "k / N(a₀)",
        "x": x,
        "y": y,
        "best": [["rollback" if n > 4000 * share else "gaussian" for n in x] for share in y],
        "lines": {"γ₀": [n / 6000 for n in x], "1.3 γ₀": [None if n < 900 else n / 8000 for n in x]},
        "x_log": log,
        "y_log": log,
    }


def bounds_panel(
    title: str = "The paper's setting, hard case, k = 80, γ = 0.5, and more words",
) -> dict[str, Any]:
    return {
        "title": title,
        "x_name": "N",
        "x": [1000, 2000, 3000],
        "series": {
            "bound": {"values": [0.5, None, float("inf")], "kind": "upper"},
            "value": {"values": [0.02, 0.01, 0.0], "kind": "exact"},
            "floor": {"values": [0.002, 0.001, 1e-4], "kind": "lower"},
        },
        "largest_gap": 0.08,
    }
