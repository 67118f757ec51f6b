"""`init --like LOG`: what a log proposes for a vault of its rows."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

from armnesia import datasets
from armnesia.cli import options as opt
from armnesia.core.errors import UndeclaredActionsWarning
from armnesia.core.identifiers import UserType
from armnesia.core.messages import counted, listed
from armnesia.learners import KLLCB, LCB, Learner
from armnesia.learners.penalty_warning import are_dominated
from armnesia.logs import Log, read_opened
from armnesia.logs.keys import checked_keys
from armnesia.vault import Configuration


@dataclass(frozen=True)
class Proposal:
    """A log that was looked at, with the actions and the range that were given or found."""

    name: str
    log: Log
    user_type: UserType | None
    by: Sequence[str]

    @classmethod
    def of(cls, name: str, options: opt.LogOptions, by: Sequence[str]) -> "Proposal":
        """Look at the log."""
        path, own = name, "columns: leave --action-column and the like out"
        if opt.is_bundled(name, by_default=options.columns == opt.LogOptions(), own=own):
            columns = {f"{role}_column": column for role, column in datasets.FLIGHTS_COLUMNS.items()}
            path, options = str(datasets.flights_path()), replace(options, **columns)
        declared, given = options.declared_actions(), options.declared_range()
        source = options.open(path, with_users=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UndeclaredActionsWarning)  # from now on they are declared
            found = given or range_of(source.ranges("reward"))
            log = read_opened(source, declared, found, by=checked_keys(by) if by else ())
        with source.reading() as reading:
            return cls(name, log, reading.user_type(), by)

    def learner(self, parameters: Mapping[str, Any]) -> type[Learner]:
        """The default, or the one for rare rewards where the penalty would outweigh the means."""
        found = self.log.by(*self.by).statistics if self.by else self.log.statistics()
        decision = LCB(**parameters).bind(found).decide(found)
        return KLLCB if are_dominated(decision.scores, decision.no_data, found.reward_range).any() else LCB

    def lines(self, made: Configuration, *, for_rare: bool) -> list[str]:
        """What was chosen, given or taken from the log, in words."""
        low, high = made.reward_range
        return [
            f"Like {self.name}, {counted(len(self.log), 'row')}: {counted(len(self.log.actions), 'action')}"
            f" ({listed(self.log.actions, 10)}), rewards from {low:g} to {high:g}, user type"
            f" {made.user_type or 'as the first ingest finds'}, learner {made.learner}"
            f"{' (rewards are rare for so few rows)' if for_rare else ''}.",
            "Actions and range must cover what is possible, not only what has occurred. To choose otherwise:"
            " --actions, --reward-range, --user-type, --learner.",
        ]


def range_of(found: Sequence[tuple[float | None, float | None]]) -> tuple[float, float]:
    """A plain range that holds all rewards: [0, 1] if it does, or the lowest and highest, rounded outwards.

    >>> range_of([(0.0, 1.0), (None, None)]), range_of([(1.0, 4.5)]), range_of([(-3.27, 1238.9)])
    ((0.0, 1.0), (1.0, 5.0), (-100.0, 1300.0))
    """
    low = min((each for each, _ in found if each is not None), default=0.0)
    high = max((each for _, each in found if each is not None), default=1.0)
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    width = (Decimal(high) - Decimal(low)) or abs(Decimal(high))
    step = Decimal(1).scaleb(width.adjusted() - (width >= 10))
    down = (Decimal(repr(low)) / step).to_integral_value(ROUND_FLOOR) * step
    up = (Decimal(repr(high)) / step).to_integral_value(ROUND_CEILING) * step
    return float(down), float(up if up > down else down + step)
