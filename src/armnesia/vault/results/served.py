"""Which arms are served."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from armnesia.unlearners.stream import Stream
from armnesia.vault.ledger.ledger import Head


@dataclass(frozen=True)
class Served:
    """The served arm, what chose it ("default", "learner", "release"), and the head of the ledger."""

    action: Any
    by: str
    head: Head
    key: Mapping[str, str] | None = None
    """The key of the decision, in a vault that has many."""

    def to_dict(self) -> dict[str, Any]:
        """The keys `action`, `by` and `head`, and in a vault with many decisions `key`."""
        key = {} if self.key is None else {"key": dict(self.key)}
        return {**key, "action": self.action, "by": self.by, "head": str(self.head)}


@dataclass(frozen=True)
class ServedDecisions:
    """The served arms of decisions, all or some, in the order in which the decisions appeared."""

    by: tuple[str, ...]
    """The key columns."""
    keys: tuple[Mapping[str, str], ...]
    actions: tuple[Any, ...]
    chosen_by: tuple[str, ...]
    """What chose each arm: "default", "learner" or "release"."""
    head: Head
    stream: Stream | None = None
    """The records of these decisions, if the operator asked for them."""
    total: int = 0
    """How many decisions there are, also where some were asked for."""

    def __len__(self) -> int:
        return len(self.keys)

    def to_dict(self) -> dict[str, Any]:
        """The keys `by`, `head` and `decisions`, with `key`, `action` and `by` of each."""
        each = zip(self.keys, self.actions, self.chosen_by, strict=True)
        return {
            "by": list(self.by),
            "head": str(self.head),
            "decisions": [{"key": dict(key), "action": action, "by": by} for key, action, by in each],
        }
