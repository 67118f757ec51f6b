"""Checking guarantees exactly: against an unlearner's own reference, and against every possible one."""

from armnesia.auditing.against_reference import Audit, audit
from armnesia.auditing.comparison import Recommendation, recommend
from armnesia.auditing.feasible import Feasibility, Witness, feasible_reference
from armnesia.auditing.small_worlds import small_worlds

__all__ = [
    "Audit",
    "Feasibility",
    "Recommendation",
    "Witness",
    "audit",
    "feasible_reference",
    "recommend",
    "small_worlds",
]
