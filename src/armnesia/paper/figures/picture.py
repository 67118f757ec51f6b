"""The paper's figures, drawn from tidy rows: one dictionary for each method in each setting."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.paper.bounds.picture import picture_of_bounds
from armnesia.paper.phase.picture import picture_of_phase, picture_of_phases
from armnesia.plotting.panels import (
    METHOD_STYLE,
    MethodStyle,
    label_figure,
    panel_grid,
    plain_log_scale,
    style_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "METHOD_STYLE",
    "note_on_uncertainty",
    "picture_of_beyond",
    "picture_of_bounds",
    "picture_of_distances",
    "picture_of_figure_1",
    "picture_of_figure_2",
    "picture_of_figure_3",
    "picture_of_phase",
    "picture_of_phases",
]

Rows = Sequence[Mapping[str, Any]]

SUBOPTIMALITY = "sub-optimality"
MARKERS_OF_A_CURVE = 5
_MODEL_NAMES = {"M_f": "$M_f$", "M_d": "$M_d$"}


@dataclass(frozen=True)
class _Panel:
    """One panel: its rows, its words, and whom it shares the y scale with."""

    rows: Rows
    title: str
    x_name: str
    scale_group: str = ""


def picture_of_figure_1(rows: Rows) -> "Figure":
    """Figure 1: down, what is varied (N, k, γ); across, both models in the hard and the easy case."""
    grid = [
        [_model_panel(chosen) for chosen in _split(of_sweep, "panel", among=rows)]
        for of_sweep in _split(rows, "varied")
    ]
    return _draw(grid, rows, "Figure 1: Algorithm 2 and its baselines, one arm", legend_columns=5)


def picture_of_figure_2(rows: Rows) -> "Figure":
    """Figure 2: the mixing algorithm; down, the two models; across, what is varied."""
    grid = [
        [_model_panel(chosen) for chosen in _split(of_model, "varied", among=rows)]
        for of_model in _split(rows, "panel")
    ]
    return _draw(grid, rows, "Figure 2: mixing, from pure noise to pure rollback", legend_columns=5)


def picture_of_figure_3(rows: Rows) -> "Figure":
    """Figure 3: several arms; down, hard and easy for each k; across, N."""
    cases = [{**row, "case": row["panel"].split()[0]} for row in rows]
    grid = [
        [_several_arms_panel(chosen) for chosen in _split(of_k, "n", among=cases)]
        for of_case in _split(cases, "case")
        for of_k in _split(of_case, "k")
    ]
    return _draw(
        grid, rows, "Figure 3: Algorithm 7 and its baselines, k points of each of two arms", legend_columns=4
    )


def picture_of_beyond(rows: Rows) -> "Figure":
    """Figure 1's layout at a fixed (ε, δ): down, what is varied (N, k, ε); across, models and cases."""
    grid = [
        [_model_panel(chosen, privacy="ε") for chosen in _split(of_sweep, "panel", among=rows)]
        for of_sweep in _split(rows, "varied")
    ]
    title = "Figure 1's settings at the same exact (ε, δ): the paper's methods and ours"
    return _draw(grid, rows, title, legend_columns=4)


def picture_of_distances(rows: Rows) -> "Figure":
    """Over ε, how many times as much as no deletion each method gives up; a panel for each `title`."""
    panels = [_Panel(chosen, chosen[0]["title"], "ε, log scale") for chosen in _split(rows, "title")]
    grid: list[list[_Panel | None]] = [[*panels[first : first + 3]] for first in range(0, len(panels), 3)]
    grid[-1] += [None] * (len(grid[0]) - len(grid[-1]))
    title = "Distance to no deletion at δ = 10⁻⁵: 1 is as good as never having deleted"
    return _draw(grid, rows, title, legend_columns=5, y_name="times no deletion")


def note_on_uncertainty(rows: Rows) -> str:
    """What the bands of a picture mean, and which of its curves have none.

    >>> note_on_uncertainty([{"standard_error": 0.0, "model": "fixed"}])
    'All curves are exact: they have no sampling error, so there are no bands.'
    """
    sampled = [row for row in rows if row["standard_error"] > 0]
    if not sampled:
        return "All curves are exact: they have no sampling error, so there are no bands."
    datasets = sorted({int(row["datasets"]) for row in sampled})
    shown = " to ".join(f"{number:,}" for number in dict.fromkeys((datasets[0], datasets[-1])))
    note = f"Bands: ± 2 standard errors ({shown} data sets a point), often narrower than the line."
    if len(sampled) == len(rows):
        return note
    if not any(row["model"] == "fixed" for row in sampled):
        return f"{note} The curves under M_f are exact and have none."
    return f"{note} Curves without a band are exact."


def _split(rows: Rows, key: str, *, among: Rows | None = None) -> list[list[Mapping[str, Any]]]:
    """Rows by the value of a key, in order of appearance; an empty list for a value found only in `among`."""
    if not rows:
        raise InvalidInputError("rows must not be empty: there is nothing to draw")
    values = dict.fromkeys(row[key] for row in (rows if among is None else among))
    return [[row for row in rows if row[key] == value] for value in values]


def _model_panel(rows: Rows, privacy: str = "γ") -> _Panel | None:
    if not rows:
        return None
    model, case = rows[0]["panel"].split()
    coverage = "" if rows[0]["c_star"] is None else f" (C* = {rows[0]['c_star']:g})"
    return _Panel(rows, f"{_MODEL_NAMES.get(model, model)}{coverage}, {case} case", _x_name(rows[0], privacy))


def _several_arms_panel(rows: Rows) -> _Panel | None:
    if not rows:
        return None
    first = rows[0]
    title = (
        f"arms {{{first['arms'].replace(' ', ', ')}}} ({first['case']}), k = {first['k']}, N = {first['n']}"
    )
    return _Panel(rows, title, "noise multiplier γ (log scale)", scale_group=first["case"])


def _x_name(row: Mapping[str, Any], privacy: str) -> str:
    """Name what is varied, and what is kept."""
    level = row["gamma" if privacy == "γ" else "epsilon"]
    kept = {"N": f"N = {row['n']}", "k": f"k = {row['k']}", privacy: f"{privacy} = {level:g}"}
    varied = kept.pop(row["varied"])
    words = {"N": "data points N", "k": "deleted points k", "γ": "noise multiplier γ, log scale"}
    words["ε"] = "ε, log scale"
    return f"{words.get(row['varied'], varied)}\n({', '.join(kept.values())})"


def _draw(
    grid: list[list[_Panel | None]],
    rows: Rows,
    title: str,
    *,
    legend_columns: int,
    y_name: str = SUBOPTIMALITY,
) -> "Figure":
    """Draw a grid of panels with one legend; panels of a group have the same y scale."""
    # A method's place in the legend, and which of its points have markers, are the same in all panels.
    methods = list(dict.fromkeys(row["method"] for row in rows))
    figure, axes = panel_grid(len(grid), len(grid[0]), height=2.55 * len(grid) + 1.15, sharey="row")
    tops = _tops(panel for line in grid for panel in line)
    for axis_row, panel_row in zip(axes, grid, strict=True):
        for column, (axis, panel) in enumerate(zip(axis_row, panel_row, strict=True)):
            if panel is None:
                axis.set_visible(False)
                continue
            for place, method in enumerate(methods):
                _draw_curve(axis, panel.rows, method, place / len(methods))
            axis.set_title(panel.title, loc="left", fontsize=10.5)
            axis.set_xlabel(panel.x_name)
            axis.set_ylabel(y_name if column == 0 else "")
            axis.set_ylim(0, tops[panel.scale_group])
            _scale_x(axis, panel.rows)
    handles = [_handle(style_of(method)) for method in methods]
    note = note_on_uncertainty(rows).replace("M_f", _MODEL_NAMES["M_f"])
    label_figure(figure, title, note, handles, legend_columns)
    return figure


def _draw_curve(axis: Any, rows: Rows, method: str, phase: float) -> None:
    """One method's curve, with a band of two standard errors where it was sampled."""
    chosen = sorted((row for row in rows if row["method"] == method), key=lambda row: float(row["x"]))
    x, y, error = (
        np.array([row[key] for row in chosen], dtype=float)
        for key in ("x", "suboptimality", "standard_error")
    )
    style = style_of(method)
    # Curves that coincide show markers in turn, so that every one of them can be told.
    step = max(1, round(len(x) / MARKERS_OF_A_CURVE))
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
        # A wide line is wide in order to be seen below a narrow one.
        "zorder": 2.0 if style.width > 3 else 2.5,
    }


def _handle(style: MethodStyle) -> Any:
    from matplotlib.lines import Line2D  # noqa: PLC0415 (an extra)

    return Line2D([], [], label=style.name, **_look(style))


def _scale_x(axis: Any, rows: Rows) -> None:
    """γ and ε span a factor of 40 and matter most where they are small; N and k are plain."""
    if rows[0]["varied"] in ("γ", "ε"):
        plain_log_scale(axis, "x")
    else:
        axis.locator_params(axis="x", nbins=6)
    # Four panels side by side: their outermost numbers must not run into each other.
    axis.tick_params(axis="x", labelsize=9)


def _tops(panels: Iterable[_Panel | None]) -> dict[str, float]:
    """For each group of panels, a y limit that leaves room above its highest point."""
    tops: dict[str, float] = {}
    for panel in filter(None, panels):
        highest = max(row["suboptimality"] + 2 * row["standard_error"] for row in panel.rows)
        tops[panel.scale_group] = max(tops.get(panel.scale_group, 0.0), 1.06 * highest)
    # A scale from 0 to 0 is no scale: where nothing is given up, any positive top will do.
    return {group: top or 1.0 for group, top in tops.items()}
