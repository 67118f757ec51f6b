"""The report's section on the phase diagrams."""

from armnesia.paper.phase.diagram import phase_maps
from armnesia.paper.phase.picture import picture_of_phases
from armnesia.paper.pictures import save_picture
from armnesia.paper.run import Run
from armnesia.paper.section import Section


def phase_section(run: Run) -> Section:
    """Two maps of the best method."""
    picture = picture_of_phases(phase_maps(quick=run.plan.quick))
    save_picture(picture, run.pictures, "phase")
    text = (
        "Which of rollback, the Gaussian mechanism and mixing has the least sub-optimality (fixed-sample"
        " model, hard case, exact). Noise on every request is best wherever much is deleted, on both sides of"
        " the thresholds. Algorithm 2 adds noise only if the requested arm was served; where this noise is as"
        " good as rollback, there is the fourth line. The other lines are its thresholds: it adds noise on"
        " the side of larger k, or of weaker privacy."
    )
    return Section("Which method is best, and where Algorithm 2 switches", [text], [picture])
