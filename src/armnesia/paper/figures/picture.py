"""The pictures of Figures 1 to 3."""

from typing import TYPE_CHECKING

from armnesia.paper.curve_panels import CurvePanel, Rows, draw_curve_panels, model_panel, split_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture_of_figure_1(rows: Rows) -> "Figure":
    """Figure 1: a row of panels for each varied parameter (N, k, γ), a column for each model and case."""
    grid = [
        [model_panel(chosen) for chosen in split_rows(of_sweep, "panel", among=rows)]
        for of_sweep in split_rows(rows, "varied")
    ]
    title = "Figure 1: Algorithm 2 and its baselines, one arm"
    return draw_curve_panels(grid, rows, title, legend_columns=5)


def picture_of_figure_2(rows: Rows) -> "Figure":
    """Figure 2, mixing: a row of panels for each model, a column for each varied parameter."""
    grid = [
        [model_panel(chosen) for chosen in split_rows(of_model, "varied", among=rows)]
        for of_model in split_rows(rows, "panel")
    ]
    title = "Figure 2: mixing, from pure noise to pure rollback"
    return draw_curve_panels(grid, rows, title, legend_columns=5)


def picture_of_figure_3(rows: Rows) -> "Figure":
    """Figure 3, two arms: a row of panels for each case and k, a column for each N."""
    cases = [{**row, "case": row["panel"].split()[0]} for row in rows]
    grid = [
        [_two_arms_panel(chosen) for chosen in split_rows(of_k, "n", among=cases)]
        for of_case in split_rows(cases, "case")
        for of_k in split_rows(of_case, "k")
    ]
    title = "Figure 3: Algorithm 7 and its baselines, k points of each of two arms"
    return draw_curve_panels(grid, rows, title, legend_columns=4)


def _two_arms_panel(rows: Rows) -> CurvePanel | None:
    if not rows:
        return None
    first = rows[0]
    title = (
        f"arms {{{first['arms'].replace(' ', ', ')}}} ({first['case']}), k = {first['k']}, N = {first['n']}"
    )
    return CurvePanel(rows, title, "noise multiplier γ (log scale)", scale_group=first["case"])
