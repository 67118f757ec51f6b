"""Changes of the policy and of the arms."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from armnesia.vault.arm_rules import ArmRule, NewRows
from armnesia.vault.configuration import Policy
from armnesia.vault.ledger.ledger import Head


@dataclass(frozen=True)
class PolicyChange:
    """The policy in force, and whether it was changed."""

    policy: Policy
    changed: bool
    head: Head

    def to_dict(self) -> dict[str, Any]:
        """The policy's keys, `changed` and `head`."""
        return {**self.policy.to_dict(), "changed": self.changed, "head": str(self.head)}


@dataclass(frozen=True)
class OfferedArm:
    """An arm, and in how many decisions it is offered."""

    action: Any
    decisions: int


@dataclass(frozen=True)
class OfferedArms:
    """Every arm that the vault has records of or ever offered, and where it is offered now."""

    by: tuple[str, ...]
    """The key columns; none in a vault with one decision."""
    arms: tuple[OfferedArm, ...]
    decisions: int
    """How many decisions were asked about."""
    rules: tuple[ArmRule, ...]
    """Which arms were added and retired; of the rules that match a decision, the last holds."""
    head: Head

    @property
    def offered(self) -> tuple[Any, ...]:
        """The arms that at least one decision offers."""
        return tuple(arm.action for arm in self.arms if arm.decisions)

    def to_dict(self) -> dict[str, Any]:
        """The keys `arms`, `rules` and `head`; `decisions`, of each arm and of all, where there are keys."""
        rules, head = [rule.to_dict() for rule in self.rules], str(self.head)
        if not self.by:
            arms = [{"action": arm.action, "offered": arm.decisions > 0} for arm in self.arms]
            return {"arms": arms, "rules": rules, "head": head}
        return {
            "by": list(self.by),
            "decisions": self.decisions,
            "arms": [asdict(arm) for arm in self.arms],
            "rules": rules,
            "head": head,
        }


@dataclass(frozen=True)
class ArmChange:
    """An arm that was added or retired, and where; `new_rows` says what happens to rows of a retired one."""

    action: Any
    offered: bool
    where: Mapping[str, str]
    new_rows: NewRows | None
    decisions: int | None
    """How many decisions offer other arms than before; None in a vault without key columns."""
    served: Any
    head: Head

    def to_dict(self) -> dict[str, Any]:
        """All fields; `decisions` where there are keys, and `served` where there are none."""
        left_out = "served" if self.decisions is not None else "decisions"
        fields = {name: value for name, value in vars(self).items() if name != left_out}
        return {**fields, "where": dict(self.where), "head": str(self.head)}
