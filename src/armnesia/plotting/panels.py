"""Panels of curves with one legend: every picture of values over a parameter is made of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.plotting.style import COLOURS, panel_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 11.5
"""Inches; 1104 pixels in a browser, so that a font of 10 points has about the size of the text around it."""
MARKERS_PER_CURVE = 5
_DASHES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", ".")
_COLOURS = (
    *(colour for colour in COLOURS if colour != "#F0E442"),
    "#8c6d1f",
)  # yellow is too pale for a line

Look = Mapping[str, Any]
"""How a curve is drawn, in the words of matplotlib."""


@dataclass(frozen=True)
class Curve:
    """Points and, where they were sampled, their standard errors. None and what is not finite are gaps."""

    label: str
    x: Sequence[float]
    y: Sequence[float | None]
    errors: Sequence[float] = ()
    look: Look | None = None


@dataclass(frozen=True)
class Panel:
    """Curves under a title; panels of one `scale_group` share their y scale; `ceiling` is a named level."""

    title: str
    x_name: str
    y_name: str
    curves: Sequence[Curve]
    x_log: bool = False
    y_log: bool = False
    scale_group: object = field(default_factory=object)
    ceiling: tuple[float, str] | None = None


def look(number: int, **changes: Any) -> dict[str, Any]:
    """The look of the n-th curve: no two of the first 32 share both their colour and their line.

    >>> look(0)["color"], look(8)["linestyle"] == look(0)["linestyle"]
    ('#0072B2', False)
    """
    lap, place = divmod(number, len(_COLOURS))
    return {
        "color": _COLOURS[place],
        "linestyle": _DASHES[(place + lap) % len(_DASHES)],
        "marker": _MARKERS[(place + lap) % len(_MARKERS)],
        "linewidth": 1.8,
        "markersize": 5.5,
        "markeredgecolor": "white",
        "markeredgewidth": 0.8,
        **changes,
    }


def picture_of_panels(
    panels: Sequence[Sequence[Panel | None]],
    *,
    title: str,
    note: str = "",
    legend_columns: int = 4,
    row_height: float = 2.55,
) -> "Figure":
    """Draw rows of panels, with one legend above and a note below; None is an empty place."""
    if not any(panel and panel.curves for row in panels for panel in row):
        raise InvalidInputError("panels must not be empty: there is nothing to draw")
    labels = list(dict.fromkeys(c.label for row in panels for panel in row if panel for c in panel.curves))
    looks = {label: look(number) for number, label in enumerate(labels)}
    looks |= {
        c.label: dict(c.look) for row in panels for panel in row if panel for c in panel.curves if c.look
    }
    columns = max(len(row) for row in panels)
    figure, axes = panel_grid(len(panels), columns, width=WIDTH, height=row_height * len(panels) + 1.15)
    figure.set_layout_engine("constrained", hspace=0.04, wspace=0.03, w_pad=0.06)
    limits = _limits([panel for row in panels for panel in row if panel])
    for axis_row, row in zip(axes, panels, strict=True):
        for column, axis in enumerate(axis_row):
            panel = row[column] if column < len(row) else None
            if panel is None:
                figure.delaxes(axis)
                continue
            _draw_panel(
                axis,
                panel,
                {label: (looks[label], place / len(labels)) for place, label in enumerate(labels)},
            )
            axis.set_ylim(*limits[panel.scale_group])
            if panel.y_log:
                log_scale(axis, "y")
            if column and row[column - 1] and panel.y_name == row[column - 1].y_name:  # type: ignore[union-attr]
                axis.set_ylabel("")
    add_legend(figure, title, note, [handle(label, looks[label]) for label in labels], legend_columns)
    return figure


def _draw_panel(axis: Any, panel: Panel, looks: Mapping[str, tuple[Look, float]]) -> None:
    for curve in panel.curves:
        shown, phase = looks[curve.label]
        y = np.array([np.nan if value is None else value for value in curve.y], dtype=float)
        y[~(np.isfinite(y) & ((y > 0) | (not panel.y_log)))] = np.nan  # a logarithmic scale has no 0
        # Curves that coincide show their markers at different points.
        step = max(1, round(len(y) / MARKERS_PER_CURVE))
        axis.plot(curve.x, y, **shown, label=curve.label, markevery=(int(phase * step), step))
        error = np.asarray(curve.errors or [0.0], dtype=float)
        if (error > 0).any():
            low = np.maximum(y - 2 * error, y / 2 if panel.y_log else -np.inf)
            axis.fill_between(curve.x, low, y + 2 * error, color=shown["color"], alpha=0.2, linewidth=0)
    if panel.x_log:
        log_scale(axis, "x")
    else:
        axis.locator_params(axis="x", nbins=6, steps=[1, 2, 5, 10])
    if panel.ceiling:
        _draw_ceiling(axis, *panel.ceiling)
    title_panel(axis, panel.title)
    axis.set_xlabel(panel.x_name)
    axis.set_ylabel(panel.y_name)
    axis.tick_params(axis="x", labelsize=9)  # four panels in a row have no room for larger ones


def _limits(panels: Sequence[Panel]) -> dict[object, tuple[float, float]]:
    """The y limits of each scale group: from 0 on, or the decades of its values."""
    found: dict[object, tuple[float, float]] = {}
    for panel in panels:
        values = [
            value + sign * 2 * error * (not panel.y_log or sign > 0)
            for curve in panel.curves
            for value, error in zip(curve.y, curve.errors or [0.0] * len(curve.y), strict=True)
            for sign in (-1, 1)
            if value is not None and np.isfinite(value) and (value > 0 or not panel.y_log)
        ]
        low, high = min(values, default=0.0), max(values, default=1.0)
        if panel.ceiling:  # what lies far above or below it is cut, and the words on it have room
            low = max(low, panel.ceiling[0] * 1e-13)
            room = max(panel.ceiling[0] * (panel.ceiling[0] / low) ** 0.15, panel.ceiling[0] * 1.5)
            high = max(min(high, panel.ceiling[0] * 1e4), room)
        bottom, top = (low / 1.25, high * 1.25) if panel.y_log else (0.0, 1.06 * high or 1.0)
        before = found.get(panel.scale_group, (bottom, top))
        found[panel.scale_group] = min(bottom, before[0]), max(top, before[1])
    return found


def _draw_ceiling(axis: Any, level: float, name: str) -> None:
    axis.axhline(level, color="#555555", linewidth=1.2, zorder=1)
    # x in fractions of the panel, y in data; below the curves, so that one that crosses the text is visible.
    axis.annotate(
        *(name, (0.99, level)),
        **{"xycoords": axis.get_yaxis_transform(), "xytext": (0, 3), "textcoords": "offset points"},
        **{"ha": "right", "va": "bottom", "fontsize": 9, "color": "#333333", "zorder": 1.5},
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.5},
    )


def handle(label: str, shown: Look) -> Any:
    """A line for the legend."""
    from matplotlib.lines import Line2D  # noqa: PLC0415 (an extra)

    return Line2D([], [], **shown, label=label)


def add_legend(figure: "Figure", title: str, note: str, handles: list[Any], columns: int) -> None:
    """Add a title and one legend above all panels, and a note below them."""
    # The title is the legend's title, because the layout lets a figure's own title overlap the legend.
    figure.legend(
        handles=handles,
        title=title,
        title_fontproperties={"size": 13, "weight": "bold"},
        alignment="left",
        loc="outside upper left",
        ncols=columns,
        fontsize=10.5,
        handlelength=3.4,
        borderaxespad=0.3,
        frameon=False,
    )
    figure.supxlabel(note, x=0.01, ha="left", fontsize=9, color="#444444")


def title_panel(axis: Any, title: str) -> None:
    """Give a panel its title, wrapped to the panel's width; "k = 80" stays on one line."""
    unbroken = title.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    lines = [line for part in unbroken.split("\n") for line in wrap(part, 112 // axis.get_gridspec().ncols)]
    axis.set_title("\n".join(lines), loc="left", fontsize=10.5)


def log_scale(axis: Any, letter: str) -> None:
    """Make the "x" or "y" axis logarithmic, labelled 1, 2, 5, 10 … where short, else by powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415 (an extra)

    axis.set(**{f"{letter}scale": "log"})
    low, high = axis.get_xlim() if letter == "x" else axis.get_ylim()
    if high <= 500 * low:
        scale = getattr(axis, f"{letter}axis")
        scale.set_major_locator(LogLocator(subs=(1, 2, 5)))
        scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        scale.set_minor_locator(NullLocator())


def for_print(figure: "Figure") -> str:
    """Replace the titles by letters, as journals want them, and return what the letters stand for."""
    (legend,) = figure.legends
    named = [legend.get_title().get_text() + ":"]
    for number, axis in enumerate(figure.axes):
        letter = f"({chr(ord('a') + number)})"
        named.append(f"{letter} {' '.join(axis.get_title(loc='left').split())}".replace("$", ""))
        axis.set_title(letter, loc="left", fontsize=10.5, fontweight="bold")
    legend.set_title("")
    return " ".join(named)


_SETTING = {
    "environment": "means",
    "model": "model",
    "n": "N",
    "c_star": "C*",
    "arms": "arms",
    "k": "k",
    "choice": "chosen",
    "epsilon": "ε",
    "delta": "δ",
    "gamma": "γ",
    "learner": "learner",
    "confidence": "τ",
    "seed": "seed",
}


def picture_of_rows(rows: Sequence[Mapping[str, Any]], x: str | None = None) -> "Figure":
    """The rows of a sweep over a column: a curve for each method, a panel for each value of the others."""
    varied = {name: list(dict.fromkeys(row[name] for row in rows)) for name in _SETTING}
    numbers = ("n", "k", "epsilon", "gamma", "c_star", "delta", "confidence")
    x = x or max(numbers, key=lambda name: len(varied[name]))
    if x not in numbers:
        raise InvalidInputError(f"x must be one of {', '.join(numbers)}; got {x!r}")
    # ε and γ follow from each other: the one that was given has the shorter numbers. So may τ, from N.
    given = min(("epsilon", "gamma"), key=lambda name: max(len(f"{value}") for value in varied[name]))
    others = [name for name in _SETTING if len(varied[name]) > 1 and name != x]
    for implied, by in (("gamma", "epsilon"), ("epsilon", "gamma"), ("confidence", "n")):
        if implied in others and (by == x or (by in others and implied != given)):
            others.remove(implied)
    panels = []
    for values in dict.fromkeys(tuple(row[name] for name in others) for row in rows):
        chosen = [row for row in rows if tuple(row[name] for name in others) == values]
        shown = zip(others, values, strict=True)
        title = ", ".join(f"{_SETTING[name]} = {_short(value)}" for name, value in shown if value is not None)
        panels.append(
            Panel(title, _SETTING[x], "sub-optimality", curves_of(chosen, x), x_log=_wide(varied[x]))
        )
    columns = min(len(panels), 3)
    grid = [panels[first : first + columns] for first in range(0, len(panels), columns)]
    note = (
        "Bands: ± 2 standard errors."
        if any(row["standard_error"] for row in rows)
        else "All values are exact."
    )
    return picture_of_panels(grid, title="Expected sub-optimality of the released arm", note=note)


def curves_of(
    rows: Iterable[Mapping[str, Any]], x: str, looks: Mapping[str, tuple[str, Look]] | None = None
) -> list[Curve]:
    """A curve for each method of the rows; `looks` gives its name and look."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["method"], []).append(row)
    curves = []
    for method, unsorted in found.items():
        chosen = sorted(unsorted, key=lambda row: float(row[x]))
        name, shown = (method, None) if looks is None else looks[method]
        values, errors = ([row[key] for row in chosen] for key in ("suboptimality", "standard_error"))
        curves.append(Curve(name, [row[x] for row in chosen], values, errors, shown))
    return curves


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _wide(values: Sequence[float]) -> bool:
    return len(values) > 1 and min(values) > 0 and max(values) >= 20 * min(values)
