"""One look for all pictures: colours for colour-blind readers too, named axes, no global state."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from armnesia.core.errors import InvalidInputError, MissingExtraError
from armnesia.core.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's palette, black last.
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


def panels(n: int, *, width: float, height: float, **options: Any) -> tuple["Figure", list[Any]]:
    """Make a figure with n panels side by side, in the house style."""
    try:
        import matplotlib  # noqa: PLC0415 (an extra)
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise MissingExtraError.naming("Drawing pictures", "plots") from None
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        axes = figure.subplots(1, n, squeeze=False, **options)[0]
    return figure, list(axes)


def save(figure: "Figure", path: Path) -> None:
    """Write the picture, in the format that the file's ending names."""
    endings = (".png", ".svg", ".pdf")
    if path.suffix not in endings:
        raise InvalidInputError(f"a picture's file must end in {', '.join(endings)}; got {str(path)!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path, replace=True) as temporary:
        figure.savefig(temporary, format=path.suffix.removeprefix("."))
