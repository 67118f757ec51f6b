"""Which arms the decisions of a vault offer: public rules, which deletions never change."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
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


class ArmRules:
    """The rules of a vault, found by the key of a decision: under one of their values, as there may be many.

    >>> rules = ArmRules(("A", "B"), ("country",), [ArmRule("B", False, (("country", "DE"),))])
    >>> rules.offered(("DE",)), rules.offered(("FR",))
    ((True, False), (True, True))
    """

    def __init__(self, actions: Sequence[Hashable], names: Sequence[str], rules: Iterable[ArmRule]) -> None:
        self._actions, self._names = actions, names
        self._by_value: defaultdict[tuple[str, str] | None, list[tuple[int, ArmRule]]] = defaultdict(list)
        for numbered in enumerate(rules):
            self._by_value[next(iter(numbered[1].where), None)].append(numbered)

    def _last(self, key: Sequence[str]) -> dict[Hashable, ArmRule]:
        """By arm, the rule that holds in the decision with this key; no rule: the arm is offered."""
        values = set(zip(self._names, key, strict=True))
        found = [each for value in (None, *values) for each in self._by_value.get(value, ())]
        return {
            rule.arm: rule for _, rule in sorted(found, key=itemgetter(0)) if values.issuperset(rule.where)
        }

    def offered(self, key: Sequence[str]) -> tuple[bool, ...]:
        """Of each arm, whether the decision with this key offers it."""
        rules = self._last(key)
        return tuple(arm not in rules or rules[arm].offered for arm in self._actions)

    def refused(self, key: Sequence[str]) -> frozenset[int]:
        """The arms whose new rows the decision with this key refuses."""
        rules = self._last(key)
        return frozenset(
            place
            for place, arm in enumerate(self._actions)
            if arm in rules and not rules[arm].offered and rules[arm].new_rows == "refuse"
        )


def with_rule(rules: Sequence[ArmRule], new: ArmRule) -> tuple[ArmRule, ...]:
    """The rules with a new one; earlier ones of the same arm that can hold no longer are left out.

    >>> before = [ArmRule("B", False, (("country", "DE"),)), ArmRule("A", False, (("country", "DE"),))]
    >>> [rule.arm for rule in with_rule(before, ArmRule("B", True))]
    ['A', 'B']
    """
    kept = [rule for rule in rules if rule.arm != new.arm or not set(new.where) <= set(rule.where)]
    return (*kept, new)
