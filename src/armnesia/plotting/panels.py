"""What the pictures of the experiments share: one look for each method, and a grid of panels."""

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from armnesia.core.errors import InvalidInputError, MissingExtraError
from armnesia.plotting.style import COLOURS, STYLE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, _YELLOW, BLACK = COLOURS

WIDEST = 11.5
"""Inches. Shown 1104 pixels wide in a browser, so that a font of 10 points looks like the text around it."""

Dashes = str | tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class MethodStyle:
    """How a method is drawn everywhere; line and marker tell it in a print without colours too."""

    name: str
    colour: str
    marker: str
    line: Dashes
    width: float = 1.8
    marker_size: float = 5.5
    filled: bool = True


METHOD_STYLE = {
    "oracle": MethodStyle("Oracle (no deletion)", BLACK, ".", (0, (5, 2)), width=1.5),
    # Algorithm 2 often equals rollback to the last digit: the wide line stays visible below the narrow one.
    "rollback": MethodStyle("Rollback", BLUE, "o", "-", width=3.6, marker_size=7.5, filled=False),
    "gaussian": MethodStyle("Gaussian", ORANGE, "s", (0, (7, 2, 1.5, 2))),
    "mixing": MethodStyle("Mixing (k′ = k/2)", GREEN, "^", (0, (1.5, 1.2))),
    "adaptive": MethodStyle("Algorithm 2", VERMILION, "D", "-"),
    "multi_source": MethodStyle("Algorithm 7 (multi-source)", PURPLE, "D", "-"),
    "imitation": MethodStyle("Imitation", SKY, "v", (0, (3, 1.5))),
    "gaussian joint": MethodStyle("Gaussian (joint noise)", "#8c6d1f", "s", (0, (7, 2, 1.5, 2, 1.5, 2))),
    "strict_adaptive": MethodStyle("Strict adaptive", "#7f7f7f", "P", (0, (4, 1.5, 1, 1.5))),
    "frozen_rollback": MethodStyle("Frozen rollback", "#4b3f9e", "v", (0, (6, 1.5))),
    "tilt": MethodStyle("Tilt", "#b0003a", "*", "-", width=2.2, marker_size=8.5),
    # Even steps of the viridis map without its palest end: dark to light, also for colour-blind readers.
    "mixing 0": MethodStyle("k′/k = 0 (noise only)", "#440154", "s", "-"),
    "mixing 0.25": MethodStyle("k′/k = 0.25", "#3b528b", "v", (0, (7, 2))),
    "mixing 0.5": MethodStyle("k′/k = 0.5", "#21918c", "^", (0, (1.5, 1.2))),
    "mixing 0.75": MethodStyle("k′/k = 0.75", "#44bf70", "D", (0, (7, 2, 1.5, 2))),
    "mixing 1": MethodStyle("k′/k = 1 (rollback)", "#c7b60b", "o", "-"),
}


def style_of(method: str) -> MethodStyle:
    """How a method is drawn.

    >>> style_of("adaptive").name
    'Algorithm 2'
    """
    if method not in METHOD_STYLE:
        raise InvalidInputError(f"method must be one of {', '.join(METHOD_STYLE)}; got {method!r}")
    return METHOD_STYLE[method]


def panel_grid(rows: int, columns: int, *, height: float, **options: Any) -> tuple["Figure", list[list[Any]]]:
    """Make a figure of full width with rows of panels, in the house style."""
    try:
        import matplotlib  # noqa: PLC0415 (an extra)
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError.naming("Drawing pictures", "plots") from None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDEST, height))
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    figure.set_layout_engine("constrained", hspace=0.04, wspace=0.03, w_pad=0.06)
    return figure, [list(row) for row in axes]


def wrapped_panels(n: int, *, row_height: float) -> tuple["Figure", list[Any]]:
    """Make n panels, two in a row or all three; places left over in the last row stay empty."""
    columns = 3 if n == 3 else min(n, 2)
    rows = -(-n // columns)
    figure, grid = panel_grid(rows, columns, height=row_height * rows + 1.2)
    axes = [axis for row in grid for axis in row]
    for spare in axes[n:]:
        figure.delaxes(spare)
    return figure, axes[:n]


def label_figure(figure: "Figure", title: str, note: str, handles: list[Any], columns: int) -> None:
    """Give the whole figure a title and one legend above the panels, and a note below them."""
    # The title is the legend's: the layout keeps room for the two as one, but lets a figure's own title and
    # a legend at the same edge overlap.
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
    """Give a panel its title, in as many lines as its width takes."""
    letters = 112 // axis.get_gridspec().ncols
    # "k = 80" stays on one line.
    unbroken = title.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    axis.set_title("\n".join(wrap(unbroken, letters)), loc="left", fontsize=10.5)


def plain_log_scale(panel: Any, letter: str) -> None:
    """Make a panel's axis ("x" or "y") logarithmic with plain numbers at 1, 2, 5, 10 … instead of powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415 (an extra)

    panel.set(**{f"{letter}scale": "log"})
    axis = getattr(panel, f"{letter}axis")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
