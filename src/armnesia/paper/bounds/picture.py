"""Pictures of bounds beside the exact values that they bound."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.paper.pictures import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILION,
    label_figure,
    title_panel,
    wrapped_panels,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KIND_LINES: dict[str, Any] = {"exact": "-", "upper": (0, (6, 2)), "lower": (0, (1.5, 1.5))}
_COLOURS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_WIDE_RANGE = 50
"""If x spans at least this factor, its scale is logarithmic by default."""
VACUOUS = "largest gap: bounds above it are vacuous"
TITLE = "The paper's bounds beside the exact sub-optimality"
NOTE = "Solid: exact ($M_d$: averaged over 100 count vectors). Dashed: upper bounds. Dotted: lower bounds."


def picture_of_bounds(
    curves: Sequence[Mapping[str, Any]], *, title: str = TITLE, note: str = NOTE
) -> "Figure":
    """Bounds and exact values over one parameter, with a logarithmic y axis; one panel for each entry.

    A panel has `title`, `x_name`, `x`, `series` (for each label its `values` and its `kind`: upper, lower or
    exact), `largest_gap` (None: no line) and optionally `x_log`. A label has one style in all panels.
    """
    if not curves:
        raise InvalidInputError("curves must not be empty: there is nothing to draw")
    looks = _looks(curves)
    figure, axes = wrapped_panels(len(curves), row_height=3.6)
    for axis, panel in zip(axes, curves, strict=True):
        _draw_panel(axis, panel, looks)
    label_figure(
        figure,
        title,
        note,
        _handles(looks),
        columns=3 if len(looks) > 4 else max(1, len(looks)),
    )
    return figure


def _looks(curves: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Colour, marker and line of each label; the line style shows its kind."""
    kinds = {label: series["kind"] for panel in curves for label, series in panel["series"].items()}
    wrong = sorted(set(kinds.values()) - set(KIND_LINES))
    if wrong:
        raise InvalidInputError(f"kind must be one of {', '.join(KIND_LINES)}; got {wrong[0]!r}")
    wide = {label for panel in curves for label in _first_of_several_exact(panel)}
    return {
        label: {
            "color": _COLOURS[number % len(_COLOURS)],
            # When the colours repeat, the markers differ.
            "marker": _MARKERS[(number + number // len(_COLOURS)) % len(_MARKERS)],
            "linestyle": KIND_LINES[kind],
            "linewidth": 4.0 if label in wide else 1.8,
            "markersize": 8 if label in wide else 5,
            "markeredgecolor": "white",
            "markeredgewidth": 0.6,
            "label": label,
        }
        for number, (label, kind) in enumerate(kinds.items())
    }


def _first_of_several_exact(panel: Mapping[str, Any]) -> list[str]:
    """The exact curve that is drawn wide, so that it is visible below another one with equal values."""
    exact = [label for label, series in panel["series"].items() if series["kind"] == "exact"]
    return exact[:1] if len(exact) > 1 else []


def _draw_panel(axis: Any, panel: Mapping[str, Any], looks: Mapping[str, dict[str, Any]]) -> None:
    axis.set_yscale("log")
    if panel.get("x_log", max(panel["x"]) > _WIDE_RANGE * min(panel["x"])):
        axis.set_xscale("log")
    for number, (label, series) in enumerate(panel["series"].items()):
        # A logarithmic scale cannot show a bound that is 0, infinite or missing.
        values = np.array([np.nan if value is None else value for value in series["values"]], dtype=float)
        values[~(np.isfinite(values) & (values > 0))] = np.nan
        step = max(1, len(values) // 5)
        axis.plot(panel["x"], values, **looks[label], markevery=(number % step, step))
    if panel["largest_gap"] is not None:
        _draw_largest_gap(axis, panel["largest_gap"])
    title_panel(axis, panel["title"])
    axis.set_xlabel(panel["x_name"])
    axis.set_ylabel("sub-optimality (log scale)")


def _draw_largest_gap(axis: Any, gap: float) -> None:
    """Draw the line above which an upper bound is vacuous, and limit the y axis to its surroundings."""
    axis.axhline(gap, color="#555555", linewidth=1.2, zorder=1)
    # x in fractions of the panel, y in data: the text is placed on the line.
    axis.annotate(
        VACUOUS,
        (0.99, gap),
        xycoords=axis.get_yaxis_transform(),
        xytext=(0, 3),
        textcoords="offset points",
        ha="right",
        va="bottom",
        fontsize=9,
        color="#333333",
        bbox={"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 0.5},
        zorder=1.5,  # below the curves, so that a curve that crosses the text stays visible
    )
    low, high = axis.get_ylim()
    low = max(low, gap * 1e-13)
    # The text on the line needs an eighth of the height.
    axis.set_ylim(low, max(min(high, gap * 1e4), gap * (gap / low) ** 0.15, gap * 1.5))


def _handles(looks: Mapping[str, dict[str, Any]]) -> list[Any]:
    from matplotlib.lines import Line2D  # noqa: PLC0415 (an extra)

    return [Line2D([], [], **look) for look in looks.values()]
