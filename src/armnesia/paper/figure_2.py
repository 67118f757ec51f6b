"""Figure 2: mixing with k′/k from 0 (noise) to 1 (rollback), hard case, both models."""

from armnesia.paper.figure_1 import one_arm_cells
from armnesia.paper.pictures import picture_of_models
from armnesia.paper.run import Run
from armnesia.paper.section import Section
from armnesia.paper.settings import HARD, RATIOS, Plan
from armnesia.simulation import Cell


def figure_2_cells(plan: Plan) -> list[Cell]:
    """The sweeps of Figure 1."""
    return one_arm_cells(plan, "2", (HARD,), RATIOS)


def figure_2_section(run: Run) -> Section:
    """A row of panels for each model."""
    rows = run.evaluate_and_record(figure_2_cells(run.plan))
    title = "Figure 2: mixing, from pure noise to pure rollback"
    text = "Mixing rolls back k′ of the k deleted records and hides the rest behind noise; hard case."
    pictures = {"figure-2": picture_of_models(rows, title, "panel", "varied")}
    return Section("Figure 2: mixing", [text], pictures)
