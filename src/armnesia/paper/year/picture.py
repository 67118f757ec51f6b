"""A picture of a year of deletions: one line for each strategy."""

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
    full_width_panels,
    label_figure,
    plain_log_scale,
    title_panel,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLOURS = (BLACK, BLUE, ORANGE, VERMILION, SKY, GREEN, PURPLE, "#b0003a")
_MARKERS = (".", "o", "s", "D", "P", "v", "^", "*")
_PENALTY_LINES: dict[str, Any] = {"retained": (0, (5, 2)), "frozen": "-"}

Line = Mapping[str, Any]
"""`method`, `penalty`, and the `values` of the months with their standard `errors`."""


def picture_of_year(panels: Mapping[str, Sequence[Line]]) -> "Figure":
    """Sub-optimality by month, with a logarithmic y axis; one colour per method.

    Lines are solid for a frozen penalty and dashed for a retained one; bands are two standard errors.
    """
    if not panels or not all(panels.values()):
        raise InvalidInputError("panels must not be empty: there is nothing to draw")
    looks = _looks(panels)
    figure, (axes,) = full_width_panels(1, len(panels), height=5.6, sharey="row")
    for column, (axis, (title, lines)) in enumerate(zip(axes, panels.items(), strict=True)):
        for line in lines:
            _draw_line(axis, line, looks[line["method"], line["penalty"]])
        plain_log_scale(axis, "y")
        title_panel(axis, title)
        axis.set_xlabel("month")
        axis.set_ylabel("sub-optimality (log scale)" if column == 0 else "")
    label_figure(
        figure,
        "A year of monthly deletions",
        "Solid: penalties frozen. Dashed: penalties of the records that are left. Bands: ± 2 standard errors."
        " Each month's decision is the release that answers its deletions.",
        _handles(looks),
        columns=4,
    )
    return figure


def _looks(panels: Mapping[str, Sequence[Line]]) -> dict[tuple[str, str], dict[str, Any]]:
    """A colour and marker for each method; wide lines for those that others may cover."""
    every = list(
        dict.fromkeys((line["method"], line["penalty"]) for lines in panels.values() for line in lines)
    )
    wrong = sorted({penalty for _, penalty in every} - set(_PENALTY_LINES))
    if wrong:
        raise InvalidInputError(f"penalty must be one of {', '.join(_PENALTY_LINES)}; got {wrong[0]!r}")
    methods = list(dict.fromkeys(method for method, _ in every))
    looks = {}
    for method, penalty in every:
        number = methods.index(method)
        several = sum(other == method for other, _ in every) > 1
        looks[method, penalty] = {
            "label": f"{method}, {penalty}" if several else method,
            "color": _COLOURS[number % len(_COLOURS)],
            "marker": _MARKERS[(number + number // len(_COLOURS)) % len(_MARKERS)],
            "linestyle": _PENALTY_LINES[penalty],
            # Methods with equal decisions coincide: the earlier ones are wider and below.
            "linewidth": max(1.4, 3.6 - 0.4 * number),
            "markersize": max(5.0, 8.5 - 0.7 * number),
            "markeredgecolor": "white",
            "markeredgewidth": 0.5,
            "zorder": 2 + 0.05 * number,
        }
    return looks


def _draw_line(axis: Any, line: Line, look: Mapping[str, Any]) -> None:
    values, errors = (np.array(line[key], dtype=float) for key in ("values", "errors"))
    # A logarithmic scale cannot show 0.
    shown = np.where(values > 0, values, np.nan)
    months = np.arange(1, len(values) + 1)
    axis.plot(months, shown, **look)
    low = np.maximum(values - 2 * errors, shown / 2)
    axis.fill_between(months, low, values + 2 * errors, color=look["color"], alpha=0.15, linewidth=0)


def _handles(looks: Mapping[tuple[str, str], Mapping[str, Any]]) -> list[Any]:
    from matplotlib.lines import Line2D  # noqa: PLC0415 (an extra)

    return [Line2D([], [], **{**look, "linewidth": min(look["linewidth"], 2.4)}) for look in looks.values()]
