"""Checking guarantees exactly: against an unlearner's own reference, and against every possible one."""

from armnesia.auditing.against_reference import Audit, audit
from armnesia.auditing.comparison import Comparison, compare
from armnesia.auditing.feasible import Feasibility, Witness, feasible_reference
from armnesia.auditing.small_worlds import small_worlds

__all__ = [
    "Audit",
    "Comparison",
    "Feasibility",
    "Witness",
    "audit",
    "compare",
    "feasible_reference",
    "small_worlds",
]
