"""Pictures of the results beyond the paper, and the rows that they show."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from armnesia.paper.beyond.cells import ONE_ARM_METHODS, WITHOUT_BUDGET
from armnesia.paper.beyond.results import COMPARED_METHODS, SettingResults
from armnesia.paper.cells import Row
from armnesia.paper.curve_panels import CurvePanel, Rows, draw_curve_panels, model_panel, split_rows
from armnesia.paper.settings import BASE_K, BASE_N

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN_EPSILON = 1.0
SHOWN_SETTINGS = {
    "M_f hard": [(1000, "80 of arm 0"), (3000, "500 of arm 0"), (1000, "80 each of arms 0, 1")],
    "M_f easy": [(3000, "500 of arm 2")],
    "M_d hard": [(1000, "80 of arm 0"), (1000, "80 each of arms 0, 1")],
    "M_f people": [(2000, "160 of arm 0, 20 each of the others"), (2000, "48 each of arms 0, 1, 2, 3, 4")],
    "M_d people": [(2000, "240 of random people")],
}
"""The settings of the picture of distances and of the table of values, as (N, request)."""


def picture_of_beyond(rows: Rows) -> "Figure":
    """As Figure 1 at a fixed (ε, δ): a row for each varied parameter, a column for each model and case."""
    grid = [
        [model_panel(chosen, privacy="ε") for chosen in split_rows(of_sweep, "panel", among=rows)]
        for of_sweep in split_rows(rows, "varied")
    ]
    title = "Figure 1's settings at the same exact (ε, δ): the paper's methods and ours"
    return draw_curve_panels(grid, rows, title, legend_columns=4)


def picture_of_distances(rows: Rows) -> "Figure":
    """Sub-optimality divided by that of no deletion, over ε; a panel for each `title` among the rows."""
    panels = [CurvePanel(chosen, chosen[0]["title"], "ε, log scale") for chosen in split_rows(rows, "title")]
    grid: list[list[CurvePanel | None]] = [[*panels[first : first + 3]] for first in range(0, len(panels), 3)]
    grid[-1] += [None] * (len(grid[0]) - len(grid[-1]))
    title = "Distance to no deletion at δ = 10⁻⁵: 1 means that the deletion costs nothing"
    return draw_curve_panels(grid, rows, title, legend_columns=5, y_name="times no deletion")


def is_shown(setting: SettingResults) -> bool:
    """Whether a setting has a panel in the picture of distances and a row in the table of values."""
    return (setting.n, setting.request) in SHOWN_SETTINGS.get(setting.panel, [])


def rows_of_figure(rows: Iterable[Row]) -> list[Row]:
    """Rows for the layout of Figure 1: over N and k at one ε, and over ε at the paper's N and k."""
    methods = ("oracle", *(name for name in COMPARED_METHODS if name in (*WITHOUT_BUDGET, *ONE_ARM_METHODS)))
    one_arm = [row for row in rows if str(row["arms"]).isdigit() and row["method"] in methods]
    at_one = [
        {**row, "epsilon": SHOWN_EPSILON}
        for row in one_arm
        if row["method"] in WITHOUT_BUDGET or row["epsilon"] == SHOWN_EPSILON
    ]
    at_base = [row for row in one_arm if (row["varied"], row["n"], row["k"]) == ("N", BASE_N, BASE_K)]
    epsilons = sorted({row["epsilon"] for row in at_base})
    over_epsilon = [
        {**row, "varied": "ε", "x": epsilon}
        for row in at_base
        for epsilon in (epsilons if row["method"] in WITHOUT_BUDGET else [row["epsilon"]])
    ]
    return sorted([*at_one, *over_epsilon], key=lambda row: methods.index(row["method"]))


def rows_of_distances(settings: Iterable[SettingResults]) -> list[Row]:
    """Rows for the picture of distances: the shown settings over ε, with the distance as value."""
    rows = []
    for setting in filter(is_shown, settings):
        if len(setting.epsilons) < 2:
            continue  # a curve needs two points
        model, case = setting.panel.split()
        title = f"${model}$, {case}, N = {setting.n}\n{setting.request}"
        for method in COMPARED_METHODS:
            for epsilon in setting.epsilons:
                row, distance = setting.row(method, epsilon), setting.distance(method, epsilon)
                if row is not None and distance is not None:
                    value = {"suboptimality": distance.value, "standard_error": distance.error}
                    rows.append({**row, **value, "varied": "ε", "x": epsilon, "title": title})
    return sorted(rows, key=lambda row: COMPARED_METHODS.index(row["method"]))
