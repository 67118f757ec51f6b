"""Which arms the decisions of a vault offer: public rules, which deletions never change."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

from armnesia.core.errors import InvalidInputError

NewRows: TypeAlias = Literal["count", "refuse"]
"""What happens to new rows of an arm that a decision does not offer."""


@dataclass(frozen=True)
class ArmRule:
    """An arm is offered, or is not, where keys have these values; of several rules the last holds.

    >>> ArmRule("B", offered=False, where=(("country", "DE"),), new_rows="refuse").to_dict()
    {'arm': 'B', 'offered': False, 'where': {'country': 'DE'}, 'new_rows': 'refuse'}
    """

    arm: Hashable
    offered: bool
    where: tuple[tuple[str, str], ...] = ()
    """The names and the values of keys, sorted; none: all decisions."""
    new_rows: NewRows = "count"

    def __post_init__(self) -> None:
        if self.new_rows not in get_args(NewRows):
            raise InvalidInputError(f"new_rows must be 'count' or 'refuse'; got {self.new_rows!r}")

    def to_dict(self) -> dict[str, Any]:
        """The rule as JSON holds it; an offered arm counts its rows."""
        written = {"arm": self.arm, "offered": self.offered, "where": dict(self.where)}
        return written if self.offered else {**written, "new_rows": self.new_rows}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Read what `to_dict` returned."""
        where = tuple(sorted(values["where"].items()))
        return cls(values["arm"], values["offered"], where, values.get("new_rows", "count"))
