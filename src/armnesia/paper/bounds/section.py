"""The report's section on the bounds."""

from armnesia.paper.bounds.curves import bound_curves
from armnesia.paper.bounds.picture import picture_of_bounds
from armnesia.paper.pictures import save_picture
from armnesia.paper.run import Run
from armnesia.paper.section import Section


def bounds_section(run: Run) -> Section:
    """Bounds and exact values in four settings."""
    picture = picture_of_bounds(bound_curves(quick=run.plan.quick))
    save_picture(picture, run.pictures, "bounds")
    text = (
        "The paper's bounds, with the constants that their proofs give (upper bounds: derived, lower"
        " bounds: with exact divergences), beside exact values. In the paper's own setting every upper"
        " bound exceeds the largest possible loss and is vacuous; with large gaps they are not. The lower"
        " bound is compared with exact values on the two instances of its proof."
    )
    return Section("Bounds and exact values", [text], [picture])
