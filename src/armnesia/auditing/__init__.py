"""Checking guarantees exactly: against an unlearner's own reference, and against every possible one."""

from armnesia.auditing.against_reference import Audit, audit
from armnesia.auditing.feasible import Feasibility, Witness, feasible_reference
from armnesia.auditing.small_worlds import small_worlds

__all__ = ["Audit", "Feasibility", "Witness", "audit", "feasible_reference", "small_worlds"]
