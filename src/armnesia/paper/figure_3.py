"""Figure 3: multi-source deletion of k records of each of two arms, over γ, for several N."""

from armnesia.paper.pictures import note_on_uncertainty, panel_of, split
from armnesia.paper.run import Run
from armnesia.paper.section import Section
from armnesia.paper.settings import ARMS_OF_MULTI_CASE, Plan
from armnesia.plotting.panels import picture_of_panels
from armnesia.simulation import Cell

METHODS = ("oracle", "rollback", "gaussian", "multi_source")


def figure_3_cells(plan: Plan) -> list[Cell]:
    """Arms 0 and 1 (hard), or 2 and 3 (easy)."""
    return [
        plan.cell(("3", f"{case} k={k} N={n}", "γ", gamma), n, dict.fromkeys(arms, k), METHODS, gamma=gamma)
        for case, arms in ARMS_OF_MULTI_CASE.items()
        for k in (40, 80)
        for n in (2000, 3000, 4000)
        for gamma in plan.gammas
    ]


def figure_3_section(run: Run) -> Section:
    """A row of panels for each case and k, a column for each N."""
    rows = run.evaluate_and_record(figure_3_cells(run.plan))
    panels = []
    for chosen in split(rows, "panel"):
        case, arms = chosen[0]["panel"].split()[0], chosen[0]["arms"].replace(" ", ", ")
        title = f"arms {{{arms}}} ({case}), k = {chosen[0]['k']}, N = {chosen[0]['n']}"
        panels.append(panel_of(chosen, title, "noise multiplier γ (log scale)", scale_group=case))
    grid = [panels[first : first + 3] for first in range(0, len(panels), 3)]
    title = "Figure 3: Algorithm 7 and its baselines, k points of each of two arms"
    picture = picture_of_panels(grid, title=title, note=note_on_uncertainty(rows))
    text = (
        "k records of each of two arms are deleted: arms 0 and 1 (hard), or 2 and 3 (easy). The Gaussian"
        " baseline is the paper's, with noise calibrated for each arm alone. Jointly its γ is smaller by a"
        " factor √2."
    )
    return Section("Figure 3: several arms", [text], {"figure-3": picture})
