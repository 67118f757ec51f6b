"""Exact audits of a guarantee: against the unlearner's own reference, and against every possible one."""

from armnesia.auditing.audit import Audit, audit
from armnesia.auditing.comparison import Comparison, compare
from armnesia.auditing.feasible_reference import Feasibility, Witness, feasible_reference
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
