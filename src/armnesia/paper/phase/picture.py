"""Maps of the best method, with the thresholds of Algorithm 2 as lines."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.paper.pictures import (
    BLACK,
    METHOD_STYLE,
    WIDTH,
    label_figure,
    plain_log_scale,
    title_panel,
    wrapped_panels,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LINES = ("-", (0, (6, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
_OTHER_COLOUR = "#999999"
_INCHES_PER_LETTER = 0.1
NOTE = "Colour: the method of least sub-optimality at that point. Lines: where Algorithm 2 would switch."


def picture_of_phases(panels: Sequence[Mapping[str, Any]]) -> "Figure":
    """Maps of the best method, with one legend.

    A panel has `title`, `x_name`, `y_name`, `x`, `y`, `best` (a row of method names for each y), `lines` (for
    each label one y or None for each x) and optionally `x_log` and `y_log`.
    """
    if not panels:
        raise InvalidInputError("panels must not be empty: there is nothing to draw")
    methods = _methods_of(panels)
    line_styles = {
        label: _LINES[number % len(_LINES)]
        for number, label in enumerate(dict.fromkeys(label for panel in panels for label in panel["lines"]))
    }
    figure, axes = wrapped_panels(len(panels), row_height=4.3)
    for axis, panel in zip(axes, panels, strict=True):
        _draw_map(axis, panel, methods, panel_inches=0.85 * WIDTH / min(len(panels), 3))
        _draw_lines(axis, panel, line_styles)
        title_panel(axis, panel["title"])
        axis.set_xlabel(panel["x_name"])
        axis.set_ylabel(panel["y_name"])
    label_figure(
        figure,
        "Which method has the least sub-optimality",
        NOTE,
        _handles(methods, line_styles),
        columns=4,
    )
    return figure


def _methods_of(panels: Sequence[Mapping[str, Any]]) -> list[str]:
    """All methods that are best at some point: the known ones in their usual order, then others."""
    found = dict.fromkeys(name for panel in panels for line in panel["best"] for name in line)
    return sorted(found, key=lambda name: [*METHOD_STYLE, name].index(name))


def _name(method: str) -> str:
    return METHOD_STYLE[method].name if method in METHOD_STYLE else method


def _pale(method: str) -> tuple[float, ...]:
    """The method's colour mixed with white, so that lines and names are readable on it."""
    from matplotlib.colors import to_rgb  # noqa: PLC0415 (an extra)

    colour = METHOD_STYLE[method].colour if method in METHOD_STYLE else _OTHER_COLOUR
    return tuple(0.55 * part + 0.45 for part in to_rgb(colour))


def _draw_map(axis: Any, panel: Mapping[str, Any], methods: list[str], panel_inches: float) -> None:
    from matplotlib.colors import ListedColormap  # noqa: PLC0415 (an extra)

    x, y = _edges(panel["x"], panel.get("x_log", False)), _edges(panel["y"], panel.get("y_log", False))
    best = np.array([[methods.index(name) for name in line] for line in panel["best"]])
    if best.shape != (len(panel["y"]), len(panel["x"])):
        raise InvalidInputError(
            f"best must have a row for each y and in it a name for each x; got {best.shape} "
            f"for {len(panel['y'])} y and {len(panel['x'])} x"
        )
    colours = ListedColormap([_pale(method) for method in methods])
    # Rasterized, because many small cells would make the SVG large.
    axis.pcolormesh(x, y, best, cmap=colours, vmin=-0.5, vmax=len(methods) - 0.5, rasterized=True)
    for letter in "xy":
        _scale(axis, letter, panel)
    axis.set_xlim(x[0], x[-1])
    axis.set_ylim(y[0], y[-1])
    axis.grid(False)
    free = ~_cells_with_a_line(panel, y)
    for number, method in enumerate(methods):
        region = (best == number) & free
        if not region.any():
            continue
        place, width = _place_for_name(region)
        if width * panel_inches > _INCHES_PER_LETTER * len(_name(method)):
            row, column = place
            _write(axis, panel["x"][column], panel["y"][row], _name(method))


def _scale(axis: Any, letter: str, panel: Mapping[str, Any]) -> None:
    """Set a logarithmic scale: plain numbers if they are short, otherwise powers of ten (δ)."""
    values = panel[letter]
    if not panel.get(f"{letter}_log", False):
        return
    if min(values) >= 0.01 and max(values) <= 100_000:
        plain_log_scale(axis, letter)
    else:
        axis.set(**{f"{letter}scale": "log"})


def _edges(centres: Sequence[float], log: bool) -> Any:
    """The borders between cells: halfway between their centres, on the scale of the axis."""
    values = np.log(centres) if log else np.asarray(centres, dtype=float)
    if len(values) < 2:
        raise InvalidInputError(f"a map needs at least two values on each axis; got {len(values)}")
    middle = (values[1:] + values[:-1]) / 2
    edges = np.concatenate(([2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]))
    return np.exp(edges) if log else edges


def _cells_with_a_line(panel: Mapping[str, Any], y_edges: Any) -> Any:
    """The cells that a line crosses: names are not written there."""
    crossed = np.zeros((len(panel["y"]), len(panel["x"])), dtype=bool)
    for values in panel["lines"].values():
        y = np.array([np.nan if value is None else value for value in values], dtype=float)
        for column in range(len(y)):
            # From the previous value to the next one, because a steep line crosses many rows between columns.
            near = y[max(column - 1, 0) : column + 2]
            if np.isnan(near).all():
                continue
            first, last = np.searchsorted(y_edges, [np.nanmin(near), np.nanmax(near)])
            crossed[max(first - 1, 0) : last, column] = True
    return crossed


def _place_for_name(region: Any) -> tuple[tuple[int, int], float]:
    """The cell of a region with most room for a name, and the width there as a share of the panel's width."""
    from scipy.ndimage import distance_transform_edt  # noqa: PLC0415 (slow to load)

    rows, columns = region.shape
    # Padded with "outside", so that the border of the panel counts as a border.
    framed = np.pad(region, 1)
    # A name is wider than high, so that room to the sides counts less.
    room = distance_transform_edt(framed, sampling=(1 / rows, 0.3 / columns))[1:-1, 1:-1]
    row, column = (int(place) for place in np.unravel_index(int(room.argmax()), region.shape))
    outside = np.flatnonzero(~framed[row + 1])
    left, right = outside[outside <= column].max(), outside[outside > column + 1].min()
    return (row, column), (right - left - 1) / columns


def _write(axis: Any, x: float, y: float, text: str) -> None:
    from matplotlib.patheffects import withStroke  # noqa: PLC0415 (an extra)

    halo = [withStroke(linewidth=3, foreground="white")]
    axis.text(
        x, y, text, ha="center", va="center", fontsize=10.5, fontweight="bold", path_effects=halo, zorder=5
    )


def _draw_lines(axis: Any, panel: Mapping[str, Any], line_styles: Mapping[str, Any]) -> None:
    from matplotlib.patheffects import withStroke  # noqa: PLC0415 (an extra)

    for label, values in panel["lines"].items():
        y = np.array([np.nan if value is None else value for value in values], dtype=float)
        halo = [withStroke(linewidth=3.5, foreground="white")]
        axis.plot(
            panel["x"],
            y,
            color=BLACK,
            linestyle=line_styles[label],
            linewidth=1.8,
            label=label,
            path_effects=halo,
        )


def _handles(methods: list[str], line_styles: Mapping[str, Any]) -> list[Any]:
    from matplotlib.lines import Line2D  # noqa: PLC0415 (an extra)
    from matplotlib.patches import Patch  # noqa: PLC0415

    areas = [Patch(facecolor=_pale(method), edgecolor="#555555", label=_name(method)) for method in methods]
    lines = [
        Line2D([], [], color=BLACK, linestyle=style, linewidth=1.8, label=label)
        for label, style in line_styles.items()
    ]
    return [*areas, *lines]
