"""What the paper's pictures share: the look of each method, and panels for each model and case."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from armnesia.core.errors import InvalidInputError
from armnesia.plotting.panels import Curve, Look, Panel, curves_of, picture_of_panels
from armnesia.plotting.style import COLOURS
from armnesia.simulation import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, _YELLOW, BLACK = COLOURS


def _look(colour: str, marker: str, line: object, width: float = 1.8, size: float = 5.5) -> dict[str, Any]:
    return {
        "color": colour,
        "marker": marker,
        "linestyle": line,
        "linewidth": width,
        "markersize": size,
        "markeredgecolor": "white" if marker != "." else colour,
        "markeredgewidth": 0.8,
        "zorder": 2.5,
    }


# Algorithm 2 is often identical to rollback: the wide line stays visible below the narrow one.
_BELOW = {"markerfacecolor": "white", "markeredgecolor": BLUE, "markeredgewidth": 1.6, "zorder": 2.0}
METHOD_STYLE: dict[str, tuple[str, Look]] = {
    "oracle": ("Oracle (no deletion)", _look(BLACK, ".", (0, (5, 2)), width=1.5)),
    "rollback": ("Rollback", _look(BLUE, "o", "-", width=3.6, size=7.5) | _BELOW),
    "gaussian": ("Gaussian", _look(ORANGE, "s", (0, (7, 2, 1.5, 2)))),
    "mixing": ("Mixing (k′ = k/2)", _look(GREEN, "^", (0, (1.5, 1.2)))),
    "adaptive": ("Algorithm 2", _look(VERMILION, "D", "-")),
    "multi_source": ("Algorithm 7 (multi-source)", _look(PURPLE, "D", "-")),
    "imitation": ("Imitation", _look(SKY, "v", (0, (3, 1.5)))),
    "gaussian joint": ("Gaussian (joint noise)", _look("#8c6d1f", "s", (0, (7, 2, 1.5, 2, 1.5, 2)))),
    "centred_gaussian": ("Centred Gaussian", _look("#a65628", "X", (0, (3, 1, 1, 1)))),
    "strict_adaptive": ("Strict adaptive", _look("#7f7f7f", "P", (0, (4, 1.5, 1, 1.5)))),
    "frozen_rollback": ("Frozen rollback", _look("#4b3f9e", "v", (0, (6, 1.5)))),
    "tilt": ("Tilt", _look("#b0003a", "*", "-", width=2.2, size=8.5)),
    "tilt retained": ("Tilt, level retained", _look("#e377a2", "h", (0, (2, 1)))),
    # Even steps of the viridis colour map, without its palest end.
    "mixing 0": ("k′/k = 0 (noise only)", _look("#440154", "s", "-")),
    "mixing 0.25": ("k′/k = 0.25", _look("#3b528b", "v", (0, (7, 2)))),
    "mixing 0.5": ("k′/k = 0.5", _look("#21918c", "^", (0, (1.5, 1.2)))),
    "mixing 0.75": ("k′/k = 0.75", _look("#44bf70", "D", (0, (7, 2, 1.5, 2)))),
    "mixing 1": ("k′/k = 1 (rollback)", _look("#c7b60b", "o", "-")),
}
BOUND_LOOK: Look = {"color": "#222222", "linestyle": (0, (1, 1)), "linewidth": 2.6}
"""The look of a bound among the curves of methods."""
_X_NAMES = {
    "N": "data points N",
    "k": "deleted points k",
    "γ": "noise multiplier γ, log scale",
    "ε": "ε, log scale",
}


def name_of(method: str) -> str:
    """A method as the pictures and tables name it.

    >>> name_of("adaptive")
    'Algorithm 2'
    """
    if method not in METHOD_STYLE:
        raise InvalidInputError(f"method must be one of {', '.join(METHOD_STYLE)}; got {method!r}")
    return METHOD_STYLE[method][0]


def panel_of(
    rows: Sequence[Row],
    title: str,
    x_name: str,
    scale_group: str = "",
    *,
    y_name: str = "sub-optimality",
    bound: Curve | None = None,
) -> Panel:
    """A panel with a curve for each method; γ and ε, which span a factor of 40, on a log scale."""
    curves = [*curves_of(rows, "x", METHOD_STYLE), *([bound] if bound else [])]
    log = rows[0]["varied"] in ("γ", "ε")
    return Panel(title, x_name, y_name, curves, x_log=log, scale_group=scale_group)


def picture_of_models(
    rows: Sequence[Row], title: str, row_key: str, column_key: str, *, privacy: str = "γ"
) -> "Figure":
    """A grid of panels by two columns of the rows, titled with model and case; `privacy` is γ or ε."""
    grid = [
        [_model_panel(chosen, privacy) for chosen in split(line, column_key, among=rows)]
        for line in split(rows, row_key)
    ]
    note = note_on_uncertainty(rows).replace("M_f", "$M_f$")
    return picture_of_panels(grid, title=title, note=note, legend_columns=5 if privacy == "γ" else 4)


def _model_panel(rows: Sequence[Row], privacy: str) -> Panel | None:
    if not rows:
        return None
    first = rows[0]
    model, case = first["panel"].split()
    coverage = "" if first["c_star"] is None else f" (C* = {first['c_star']:g})"
    level = first["gamma" if privacy == "γ" else "epsilon"]
    fixed = {"N": f"N = {first['n']}", "k": f"k = {first['k']}", privacy: f"{privacy} = {level:g}"}
    del fixed[first["varied"]]
    x_name = f"{_X_NAMES[first['varied']]}\n({', '.join(fixed.values())})"
    return panel_of(rows, f"${model}${coverage}, {case} case", x_name)


def split(rows: Sequence[Row], key: str, *, among: Sequence[Row] | None = None) -> list[list[Row]]:
    """Split rows by the value of a key, in order of appearance; values that only `among` has get no rows."""
    if not rows:
        raise InvalidInputError("rows must not be empty: there is nothing to draw")
    values = dict.fromkeys(row[key] for row in (rows if among is None else among))
    return [[row for row in rows if row[key] == value] for value in values]


def note_on_uncertainty(rows: Sequence[Mapping[str, Any]]) -> str:
    """A note for below a picture: what the bands mean, and which curves have none.

    >>> note_on_uncertainty([{"standard_error": 0.0, "model": "fixed"}])
    'All curves are exact: they have no sampling error, so there are no bands.'
    """
    sampled = [row for row in rows if row["standard_error"] > 0]
    if not sampled:
        return "All curves are exact: they have no sampling error, so there are no bands."
    datasets = sorted({int(row["datasets"]) for row in sampled})
    shown = " to ".join(f"{number:,}" for number in dict.fromkeys((datasets[0], datasets[-1])))
    note = f"Bands: ± 2 standard errors ({shown} data sets per point), often narrower than the line."
    if len(sampled) == len(rows):
        return note
    if not any(row["model"] == "fixed" for row in sampled):
        return f"{note} The curves under M_f are exact and have none."
    return f"{note} Curves without a band are exact."
