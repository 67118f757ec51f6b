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
        "Which of rollback, the Gaussian mechanism and mixing gives up least (fixed-sample model, hard"
        " case, exact). Always-on noise wins wherever much is deleted, whatever the thresholds say."
        " Algorithm 2's own noise, added only if the requested arm was served, beats rollback on one"
        " side of the fourth line. And the thresholds: Algorithm 2 adds noise on the side of larger k,"
        " or of weaker privacy, of its line."
    )
    return Section("Which method is best, and where Algorithm 2 switches", [text], [picture])
