"""The parts of the reproduction by the key that selects them, in the order of the report.

A new part is one folder with a function that makes its section, and one line here. The key is the name of the
folder; the figures and the table of the paper share one.
"""

from collections.abc import Callable
from typing import NamedTuple

from armnesia.paper.beyond.section import beyond_section
from armnesia.paper.bounds.section import bounds_section
from armnesia.paper.claims.section import claims_section
from armnesia.paper.dependent_requests.section import dependent_requests_section
from armnesia.paper.figures.section import (
    figure_1_section,
    figure_2_section,
    figure_3_section,
    table_2_section,
)
from armnesia.paper.level_costs.section import level_costs_section
from armnesia.paper.many_decisions.section import many_decisions_section
from armnesia.paper.phase.section import phase_section
from armnesia.paper.run import Run
from armnesia.paper.section import Section
from armnesia.paper.tradeoff.section import tradeoff_section
from armnesia.paper.year.section import year_section


class Part(NamedTuple):
    """The label for the progress bar, and the function that computes and describes the part."""

    label: str
    make_section: Callable[[Run], Section]


PARTS: dict[str, Part] = {
    "1": Part("Figure 1", figure_1_section),
    "2": Part("Figure 2", figure_2_section),
    "3": Part("Figure 3", figure_3_section),
    "table2": Part("Table 2", table_2_section),
    "bounds": Part("bounds", bounds_section),
    "phase": Part("phase", phase_section),
    "dependent_requests": Part("dependent requests", dependent_requests_section),
    "claims": Part("claims", claims_section),
    "beyond": Part("beyond", beyond_section),
    "level_costs": Part("level costs", level_costs_section),
    "tradeoff": Part("tradeoff", tradeoff_section),
    "year": Part("year", year_section),
    "many_decisions": Part("many decisions", many_decisions_section),
}

OLD_KEYS = {"requests": "dependent_requests", "stream": "year"}
"""The keys in 0.1.0, which still work."""
