"""What the paper's pictures share: the look of each method, and panels for each model and case."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from armnesia.plotting.panels import Look, Panel, curves_of, look, picture_of_panels
from armnesia.plotting.style import COLOURS
from armnesia.simulation import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, _YELLOW, BLACK = COLOURS


def _styled(name: str, color: str, marker: str, linestyle: object, **more: Any) -> tuple[str, Look]:
    return name, look(0, color=color, marker=marker, linestyle=linestyle, **more)


# Algorithm 2 is often identical to rollback: the wide line stays visible below the narrow one.
_BELOW = {"linewidth": 3.6, "markersize": 7.5, "markerfacecolor": "white", "zorder": 1.9}
METHOD_STYLE: dict[str, tuple[str, Look]] = {
    "oracle": _styled("Oracle (no deletion)", BLACK, ".", (0, (5, 2)), linewidth=1.5, markeredgecolor=BLACK),
    "rollback": _styled("Rollback", BLUE, "o", "-", markeredgecolor=BLUE, markeredgewidth=1.6, **_BELOW),
    "gaussian": _styled("Gaussian", ORANGE, "s", (0, (7, 2, 1.5, 2))),
    "mixing": _styled("Mixing (k′ = k/2)", GREEN, "^", (0, (1.5, 1.2))),
    "adaptive": _styled("Algorithm 2", VERMILION, "D", "-"),
    "multi_source": _styled("Algorithm 7 (multi-source)", PURPLE, "D", "-"),
    "imitation": _styled("Imitation", SKY, "v", (0, (3, 1.5))),
    "gaussian joint": _styled("Gaussian (joint noise)", "#8c6d1f", "s", (0, (7, 2, 1.5, 2, 1.5, 2))),
    "centred_gaussian": _styled("Centred Gaussian", "#a65628", "X", (0, (3, 1, 1, 1))),
    "strict_adaptive": _styled("Strict adaptive", "#7f7f7f", "P", (0, (4, 1.5, 1, 1.5))),
    "frozen_rollback": _styled("Frozen rollback", "#4b3f9e", "v", (0, (6, 1.5))),
    "tilt": _styled("Tilt", "#b0003a", "*", "-", linewidth=2.2, markersize=8.5),
    "tilt retained": _styled("Tilt, level retained", "#e377a2", "h", (0, (2, 1))),
    # Even steps of the viridis colour map, without its palest end.
    "mixing 0": _styled("k′/k = 0 (noise only)", "#440154", "s", "-"),
    "mixing 0.25": _styled("k′/k = 0.25", "#3b528b", "v", (0, (7, 2))),
    "mixing 0.5": _styled("k′/k = 0.5", "#21918c", "^", (0, (1.5, 1.2))),
    "mixing 0.75": _styled("k′/k = 0.75", "#44bf70", "D", (0, (7, 2, 1.5, 2))),
    "mixing 1": _styled("k′/k = 1 (rollback)", "#c7b60b", "o", "-"),
}
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
    return METHOD_STYLE[method][0]


def panel_of(
    rows: Sequence[Row],
    title: str,
    x_name: str,
    scale_group: str = "",
    *,
    y_name: str = "sub-optimality",
) -> Panel:
    """A panel with a curve for each method; γ and ε, which span a factor of 40, on a log scale."""
    log = rows[0]["varied"] in ("γ", "ε")
    curves = curves_of(rows, "x", METHOD_STYLE)
    return Panel(title, x_name, y_name, curves, x_log=log, scale_group=scale_group)


def picture_of_models(
    rows: Sequence[Row], title: str, row_key: str, column_key: str, *, privacy: str = "γ"
) -> "Figure":
    """A grid of panels by two columns of the rows, titled with model and case; `privacy` is γ or ε."""
    grid = [
        [_model_panel(chosen, privacy) if chosen else None for chosen in split(line, column_key, among=rows)]
        for line in split(rows, row_key)
    ]
    columns = 5 if privacy == "γ" else 4
    return picture_of_panels(grid, title=title, note=note_on_uncertainty(rows), legend_columns=columns)


def _model_panel(rows: Sequence[Row], privacy: str) -> Panel:
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
    values = dict.fromkeys(row[key] for row in among or rows)
    return [[row for row in rows if row[key] == value] for value in values]


def note_on_uncertainty(rows: Sequence[Mapping[str, Any]]) -> str:
    """A note for below a picture: what the bands mean, and which curves have none.

    >>> note_on_uncertainty([{"standard_error": 0.0}])
    'All curves are exact: they have no sampling error, so there are no bands.'
    """
    datasets = sorted({int(row["datasets"]) for row in rows if row["standard_error"] > 0})
    if not datasets:
        return "All curves are exact: they have no sampling error, so there are no bands."
    shown = " to ".join(f"{number:,}" for number in dict.fromkeys((datasets[0], datasets[-1])))
    note = f"Bands: ± 2 standard errors ({shown} data sets per point), often narrower than the line."
    return note if all(row["standard_error"] for row in rows) else f"{note} Curves without a band are exact."
