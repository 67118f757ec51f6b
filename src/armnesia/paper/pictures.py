"""What the paper's pictures share: the style of each method, panels, legends and files."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from armnesia.core.errors import InvalidInputError
from armnesia.core.files import atomic_write
from armnesia.plotting.style import COLOURS, panel_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, _YELLOW, BLACK = COLOURS

WIDTH = 11.5
"""Inches; 1104 pixels in a browser, so that a font of 10 points has about the size of the text around it."""

Dashes = str | tuple[int, tuple[float, ...]]


@dataclass(frozen=True)
class MethodStyle:
    """How a method is drawn; line and marker identify it in a print without colours."""

    name: str
    colour: str
    marker: str
    line: Dashes
    width: float = 1.8
    marker_size: float = 5.5
    filled: bool = True


METHOD_STYLE = {
    "oracle": MethodStyle("Oracle (no deletion)", BLACK, ".", (0, (5, 2)), width=1.5),
    # Algorithm 2 is often identical to rollback: the wide line stays visible below the narrow one.
    "rollback": MethodStyle("Rollback", BLUE, "o", "-", width=3.6, marker_size=7.5, filled=False),
    "gaussian": MethodStyle("Gaussian", ORANGE, "s", (0, (7, 2, 1.5, 2))),
    "mixing": MethodStyle("Mixing (k′ = k/2)", GREEN, "^", (0, (1.5, 1.2))),
    "adaptive": MethodStyle("Algorithm 2", VERMILION, "D", "-"),
    "multi_source": MethodStyle("Algorithm 7 (multi-source)", PURPLE, "D", "-"),
    "imitation": MethodStyle("Imitation", SKY, "v", (0, (3, 1.5))),
    "gaussian joint": MethodStyle("Gaussian (joint noise)", "#8c6d1f", "s", (0, (7, 2, 1.5, 2, 1.5, 2))),
    "centred_gaussian": MethodStyle("Centred Gaussian", "#a65628", "X", (0, (3, 1, 1, 1))),
    "strict_adaptive": MethodStyle("Strict adaptive", "#7f7f7f", "P", (0, (4, 1.5, 1, 1.5))),
    "frozen_rollback": MethodStyle("Frozen rollback", "#4b3f9e", "v", (0, (6, 1.5))),
    "tilt": MethodStyle("Tilt", "#b0003a", "*", "-", width=2.2, marker_size=8.5),
    "tilt retained": MethodStyle("Tilt, level retained", "#e377a2", "h", (0, (2, 1))),
    # Even steps of the viridis colour map, without its palest end.
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


def full_width_panels(
    rows: int, columns: int, *, height: float, **options: Any
) -> tuple["Figure", list[list[Any]]]:
    """Make a figure of the report's width with rows of panels."""
    figure, axes = panel_grid(rows, columns, width=WIDTH, height=height, **options)
    figure.set_layout_engine("constrained", hspace=0.04, wspace=0.03, w_pad=0.06)
    return figure, axes


def wrapped_panels(n: int, *, row_height: float) -> tuple["Figure", list[Any]]:
    """Make n panels of the report's width: three in one row, any other number in rows of two."""
    columns = 3 if n == 3 else min(n, 2)
    rows = -(-n // columns)
    figure, grid = full_width_panels(rows, columns, height=row_height * rows + 1.2)
    axes = [axis for row in grid for axis in row]
    for spare in axes[n:]:
        figure.delaxes(spare)
    return figure, axes[:n]


def label_figure(figure: "Figure", title: str, note: str, handles: list[Any], columns: int) -> None:
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
    """Give a panel its title, wrapped to the panel's width."""
    letters = 112 // axis.get_gridspec().ncols
    # Keep "k = 80" on one line.
    unbroken = title.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    axis.set_title("\n".join(wrap(unbroken, letters)), loc="left", fontsize=10.5)


def plain_log_scale(panel: Any, letter: str) -> None:
    """Make a panel's "x" or "y" axis logarithmic, labelled 1, 2, 5, 10 … instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415 (an extra)

    panel.set(**{f"{letter}scale": "log"})
    axis = getattr(panel, f"{letter}axis")
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def save_picture(figure: "Figure", folder: Path, name: str) -> list[Path]:
    """Write a picture as PNG and as SVG and return the two files; equal pictures give equal bytes."""
    import matplotlib  # noqa: PLC0415 (an extra)

    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for ending, metadata in {"png": {"Software": None}, "svg": {"Date": None}}.items():
        files.append(folder / f"{name}.{ending}")
        # Without a fixed salt the identifiers in an SVG differ from run to run.
        salt = matplotlib.rc_context({"svg.hashsalt": "armnesia"})
        with atomic_write(files[-1], replace=True) as temporary, salt:
            figure.savefig(temporary, format=ending, metadata=metadata)
    return files
