"""Plans of erasures at a source that a vault keeps, with what was counted of the source."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from armnesia.logs.erasing import ErasurePlan


@dataclass(frozen=True)
class KeptPlans:
    """The plans of a source that have to be known again, by the column whose people they are about.

    They name files and versions of the source, and nobody.
    """

    under_way: Mapping[str, ErasurePlan] = field(default_factory=dict)
    """Stored before the source is touched; the erasure is finished by it, or planned again."""
    applied: Mapping[str, ErasurePlan] = field(default_factory=dict)
    """The last ones that deleted rows, which earlier versions of a table may still have."""

    def to_dict(self) -> dict[str, Any]:
        """The plans as JSON."""
        return {
            name: {role: plan.to_dict() for role, plan in plans.items()} for name, plans in vars(self).items()
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "KeptPlans":
        """Read what `to_dict` has written.

        >>> KeptPlans.from_dict(KeptPlans().to_dict()) == KeptPlans()
        True
        """
        read = {
            name: {role: ErasurePlan.from_dict(plan) for role, plan in values[name].items()}
            for name in ("under_way", "applied")
        }
        return cls(**read)

    def begun(self, role: str, plan: ErasurePlan) -> "KeptPlans":
        """With a plan that is about to be applied."""
        return KeptPlans({**self.under_way, role: plan}, self.applied)

    def done(self, role: str, plan: ErasurePlan | None) -> "KeptPlans":
        """Without the plan under way, which was applied; None if it need not be known again."""
        under_way, applied = dict(self.under_way), dict(self.applied)
        for plans in (under_way, applied):
            plans.pop(role, None)
        return KeptPlans(under_way, applied | ({} if plan is None else {role: plan}))
