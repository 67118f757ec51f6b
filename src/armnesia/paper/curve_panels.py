"""Panels of curves, one for each method, drawn from result rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.paper.pictures import (
    MethodStyle,
    full_width_panels,
    label_figure,
    plain_log_scale,
    style_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Rows = Sequence[Mapping[str, Any]]

MARKERS_PER_CURVE = 5
_BOUND_LOOK: dict[str, Any] = {"color": "#222222", "linestyle": (0, (1, 1)), "linewidth": 2.6}
_X_NAMES = {
    "N": "data points N",
    "k": "deleted points k",
    "γ": "noise multiplier γ, log scale",
    "ε": "ε, log scale",
}


@dataclass(frozen=True)
class CurvePanel:
    """The rows of a panel, its title and x label; panels of one `scale_group` share their y scale.

    `bound` holds points (x, y) of an upper bound, which is drawn as a line without markers.
    """

    rows: Rows
    title: str
    x_name: str
    scale_group: str = ""
    bound: Sequence[tuple[float, float]] = ()


def note_on_uncertainty(rows: Rows) -> str:
    """A note for below a picture: what the bands mean, and which curves have none.

    >>> note_on_uncertainty([{"standard_error": 0.0, "model": "fixed"}])
    'All curves are exact: they have no sampling error, so there are no bands.'
    """
    sampled = [row for row in rows if row["standard_error"] > 0]
    if not sampled:
        return "All curves are exact: they have no sampling error, so there are no bands."
    datasets = sorted({int(row["datasets"]) for row in sampled})
    shown = " to ".join(f"{number:,}" for number in dict.fromkeys((datasets[0], datasets[-1])))
    note = f"Bands: ± 2 standard errors ({shown} data sets per point), often narrower than the line."
    if len(sampled) == len(rows):
        return note
    if not any(row["model"] == "fixed" for row in sampled):
        return f"{note} The curves under M_f are exact and have none."
    return f"{note} Curves without a band are exact."


def split_rows(rows: Rows, key: str, *, among: Rows | None = None) -> list[list[Mapping[str, Any]]]:
    """Split rows by the value of a key, in order of appearance; values that only `among` has get no rows."""
    if not rows:
        raise InvalidInputError("rows must not be empty: there is nothing to draw")
    values = dict.fromkeys(row[key] for row in (rows if among is None else among))
    return [[row for row in rows if row[key] == value] for value in values]


def model_panel(rows: Rows, privacy: str = "γ") -> CurvePanel | None:
    """A panel titled with the model and the case of its rows; `privacy` names the privacy parameter."""
    if not rows:
        return None
    model, case = rows[0]["panel"].split()
    coverage = "" if rows[0]["c_star"] is None else f" (C* = {rows[0]['c_star']:g})"
    title = f"${model}${coverage}, {case} case"
    return CurvePanel(rows, title, _x_name(rows[0], privacy))


def _x_name(row: Mapping[str, Any], privacy: str) -> str:
    """The varied parameter and, in parentheses, the fixed ones."""
    level = row["gamma" if privacy == "γ" else "epsilon"]
    fixed = {"N": f"N = {row['n']}", "k": f"k = {row['k']}", privacy: f"{privacy} = {level:g}"}
    del fixed[row["varied"]]
    return f"{_X_NAMES[row['varied']]}\n({', '.join(fixed.values())})"


def draw_curve_panels(
    grid: list[list[CurvePanel | None]],
    rows: Rows,
    title: str,
    *,
    legend_columns: int,
    y_name: str = "sub-optimality",
    bound_name: str = "",
) -> "Figure":
    """Draw a grid of panels with one legend; None is an empty place in the grid.

    `bound_name` names the panels' bounds in the legend.
    """
    # The order of the methods decides their place in the legend and which of their points have markers.
    methods = list(dict.fromkeys(row["method"] for row in rows))
    figure, axes = full_width_panels(len(grid), len(grid[0]), height=2.55 * len(grid) + 1.15, sharey="row")
    upper_limits = _upper_limits(panel for line in grid for panel in line)
    for axis_row, panel_row in zip(axes, grid, strict=True):
        for column, (axis, panel) in enumerate(zip(axis_row, panel_row, strict=True)):
            if panel is None:
                axis.set_visible(False)
                continue
            for place, method in enumerate(methods):
                _draw_curve(axis, panel.rows, method, place / len(methods))
            if panel.bound:
                axis.plot(*zip(*panel.bound, strict=True), **_BOUND_LOOK)
            axis.set_title(panel.title, loc="left", fontsize=10.5)
            axis.set_xlabel(panel.x_name)
            axis.set_ylabel(y_name if column == 0 else "")
            axis.set_ylim(0, upper_limits[panel.scale_group])
            _scale_x(axis, panel.rows)
    handles = [_handle(style_of(method)) for method in methods]
    if bound_name:
        handles.append(_line_handle(bound_name, _BOUND_LOOK))
    note = note_on_uncertainty(rows).replace("M_f", "$M_f$")
    label_figure(figure, title, note, handles, legend_columns)
    return figure


def _draw_curve(axis: Any, rows: Rows, method: str, phase: float) -> None:
    """Draw the curve of one method, with a band of two standard errors if it was sampled."""
    chosen = sorted((row for row in rows if row["method"] == method), key=lambda row: float(row["x"]))
    x, y, error = (
        np.array([row[key] for row in chosen], dtype=float)
        for key in ("x", "suboptimality", "standard_error")
    )
    style = style_of(method)
    # Curves that coincide show their markers at different points.
    step = max(1, round(len(x) / MARKERS_PER_CURVE))
    axis.plot(x, y, **_look(style), markevery=(int(phase * step), step), label=style.name)
    if (error > 0).any():
        axis.fill_between(x, y - 2 * error, y + 2 * error, color=style.colour, alpha=0.25, linewidth=0)


def _look(style: MethodStyle) -> dict[str, Any]:
    return {
        "color": style.colour,
        "linestyle": style.line,
        "linewidth": style.width,
        "marker": style.marker,
        "markersize": style.marker_size,
        "markerfacecolor": style.colour if style.filled else "white",
        "markeredgewidth": 0.8 if style.filled else 1.6,
        "markeredgecolor": "white" if style.filled and style.marker != "." else style.colour,
        # Wide lines are drawn below narrow ones, so that both are visible.
        "zorder": 2.0 if style.width > 3 else 2.5,
    }


def _handle(style: MethodStyle) -> Any:
    return _line_handle(style.name, _look(style))


def _line_handle(label: str, look: Mapping[str, Any]) -> Any:
    from matplotlib.lines import Line2D  # noqa: PLC0415 (an extra)

    return Line2D([], [], label=label, **look)


def _scale_x(axis: Any, rows: Rows) -> None:
    """A logarithmic x axis for γ and ε, which span a factor of 40; a linear one for N and k."""
    if rows[0]["varied"] in ("γ", "ε"):
        plain_log_scale(axis, "x")
    else:
        axis.locator_params(axis="x", nbins=6)
    # With four panels in a row, larger labels would run into each other.
    axis.tick_params(axis="x", labelsize=9)


def _upper_limits(panels: Iterable[CurvePanel | None]) -> dict[str, float]:
    """The upper y limit of each scale group, a little above its highest point."""
    tops: dict[str, float] = {}
    for panel in filter(None, panels):
        highest = max(row["suboptimality"] + 2 * row["standard_error"] for row in panel.rows)
        tops[panel.scale_group] = max(tops.get(panel.scale_group, 0.0), 1.06 * highest)
    # If all values are 0, any positive limit will do.
    return {group: top or 1.0 for group, top in tops.items()}
