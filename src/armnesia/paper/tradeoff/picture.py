"""A picture of tilt with each of its predictives, over ε."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.paper.pictures import (
    BLACK,
    BLUE,
    GREEN,
    VERMILION,
    label_figure,
    plain_log_scale,
    title_panel,
    wrapped_panels,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOOKS: tuple[dict[str, Any], ...] = (
    {"color": BLACK, "marker": ".", "linestyle": (0, (5, 2))},
    {"color": BLUE, "marker": "o", "linestyle": (0, (1.5, 1.2))},
    {"color": VERMILION, "marker": "D", "linestyle": "-"},
    {"color": GREEN, "marker": "^", "linestyle": (0, (7, 2, 1.5, 2))},
)
"""In the order of the methods; line and marker identify them in a print without colours."""

EpsilonPanel = Mapping[str, Any]
"""`title`, `y_name`, `y_log`, `epsilons`, and `lines`: for each method its `values` and standard `errors`."""


def picture_of_tradeoff(panels: Sequence[EpsilonPanel]) -> "Figure":
    """Draw panels over ε, with a logarithmic x axis; bands are two standard errors."""
    methods = list(dict.fromkeys(method for panel in panels for method in panel["lines"]))
    if not methods:
        raise InvalidInputError("panels must not be empty: there is nothing to draw")
    if len(methods) > len(_LOOKS):
        raise InvalidInputError(f"panels must hold at most {len(_LOOKS)} methods; got {len(methods)}")
    looks = dict(zip(methods, _LOOKS, strict=False))
    figure, axes = wrapped_panels(len(panels), row_height=3.5)
    for axis, panel in zip(axes, panels, strict=True):
        for method, line in panel["lines"].items():
            _draw_line(axis, panel["epsilons"], line, looks[method])
        plain_log_scale(axis, "x")
        if panel["y_log"]:
            plain_log_scale(axis, "y")
        title_panel(axis, panel["title"])
        axis.set_xlabel("ε (log scale)")
        axis.set_ylabel(panel["y_name"])
    label_figure(
        figure,
        "Tilt's predictive: better for requests of some arms is worse for others",
        r"$\delta = 10^{-5}$. Bands: ± 2 standard errors; all methods on the same data sets.",
        _handles(looks),
        columns=4,
    )
    return figure


def _draw_line(
    axis: Any, epsilons: Sequence[float], line: Mapping[str, Any], look: Mapping[str, Any]
) -> None:
    values, errors = (np.array(line[key], dtype=float) for key in ("values", "errors"))
    axis.plot(epsilons, values, **look, linewidth=1.8, markersize=6)
    low = np.maximum(values - 2 * errors, values / 2)
    axis.fill_between(epsilons, low, values + 2 * errors, color=look["color"], alpha=0.15, linewidth=0)


def _handles(looks: Mapping[str, Mapping[str, Any]]) -> list[Any]:
    from matplotlib.lines import Line2D  # noqa: PLC0415 (an extra)

    return [Line2D([], [], **look, linewidth=1.8, label=method) for method, look in looks.items()]
