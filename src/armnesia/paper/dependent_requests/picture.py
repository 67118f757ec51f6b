"""The picture of requests that depend on rewards, with the insured bound."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armnesia.paper.cells import Row
from armnesia.paper.curve_panels import CurvePanel, draw_curve_panels
from armnesia.paper.dependent_requests.results import SHOWN, insured_excess, rows_of_setting, value

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUND_NAME = "Insured bound: no deletion + h · largest gap"


def picture_of_dependent_requests(rows: Sequence[Row]) -> "Figure":
    """Sub-optimality over ε, with a panel for each way to choose the same number of records."""
    panels: list[CurvePanel | None] = []
    for setting in SHOWN:
        chosen = rows_of_setting(rows, setting)
        title = f"{setting.k} of arm 0: {setting.who}".replace("; ", ";\n")
        epsilons = [row["epsilon"] for row in chosen]
        no_deletion = value(chosen, "oracle", epsilons[0])["suboptimality"]  # the same at every ε
        bound = [
            (float(epsilon), no_deletion + excess)
            for epsilon in np.geomspace(min(epsilons), max(epsilons), 60)
            if (excess := insured_excess(float(epsilon))) is not None
        ]
        panels.append(CurvePanel(chosen, title, "ε, log scale", bound=bound))
    shown = [row for panel in panels if panel for row in panel.rows]
    return draw_curve_panels(
        [panels[:2], panels[2:]],
        shown,
        "Who asks to be forgotten: requests that do and do not depend on rewards",
        legend_columns=4,
        bound_name=BOUND_NAME,
    )
