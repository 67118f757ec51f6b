"""Exact audits of a guarantee: against the unlearner's own reference, and against every possible one."""

from armnesia.auditing.audit import Audit, audit
from armnesia.auditing.comparison import Comparison, compare
from armnesia.auditing.feasible_reference import Feasibility, Witness, feasible_reference
from armnesia.auditing.joint import JointAudit, JointComparison, audit_jointly, compare_jointly
from armnesia.auditing.small_worlds import small_worlds

__all__ = [
    "Audit",
    "Comparison",
    "Feasibility",
    "JointAudit",
    "JointComparison",
    "Witness",
    "audit",
    "audit_jointly",
    "compare",
    "compare_jointly",
    "feasible_reference",
    "small_worlds",
]
