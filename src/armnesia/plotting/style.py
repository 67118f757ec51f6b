"""The style of all pictures: colours that colour-blind readers can tell apart, and no global state."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from armnesia.core.errors import InvalidInputError, MissingExtraError
from armnesia.core.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The palette of Okabe and Ito, with black last.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
BEFORE, AFTER = COLOURS[0], COLOURS[5]

STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "figure.dpi": 150,
}


def panel_grid(
    rows: int, columns: int, *, width: float, height: float, **options: Any
) -> tuple["Figure", list[list[Any]]]:
    """Make a figure of the given inches with rows of panels; `options` are those of `Figure.subplots`."""
    try:
        import matplotlib  # noqa: PLC0415 (an extra)
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError.naming("Drawing pictures", "plots") from None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, [list(row) for row in axes]


def save(figure: "Figure", path: Path) -> None:
    """Write a picture in the format of the file's suffix; equal pictures give equal bytes.

    >>> figure, _ = panel_grid(1, 1, width=4, height=3)
    >>> save(figure, Path("picture.txt"))
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: a picture's file must end in .png, .svg, .pdf; got 'picture.txt'
    """
    import matplotlib  # noqa: PLC0415 (an extra)

    varying = {".png": "Software", ".svg": "Date", ".pdf": "CreationDate"}
    if path.suffix not in varying:
        raise InvalidInputError(f"a picture's file must end in {', '.join(varying)}; got {str(path)!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    # Without a fixed salt the identifiers in an SVG differ from run to run.
    settings = matplotlib.rc_context({"svg.hashsalt": "armnesia", "pdf.fonttype": 42})
    with atomic_write(path, replace=True) as temporary, settings:
        figure.savefig(temporary, format=path.suffix[1:], metadata={varying[path.suffix]: None})
