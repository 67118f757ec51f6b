"""The table of what a decision was made from."""

from typing import Any

from armnesia.cli.output import table
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Decision

_MOST_ARMS, _ARMS_SHOWN = 100, 10


def arm_table(title: str, statistics: ArmStatistics, decision: Decision) -> list[Any]:
    """What a decision was made from, the served arm marked; of very many arms, a few and their number."""
    rows = [
        [*row.values(), "← served" if row["action"] == decision.action else ""]
        for row in decision.to_dict(statistics)["arms"]
    ]
    if len(rows) <= _MOST_ARMS:
        return [table(title, ["action", "count", "mean", "score", ""], rows)]
    shown = rows[:_ARMS_SHOWN] + [row for row in rows[_ARMS_SHOWN:] if row[-1]]
    return [
        table(title, ["action", "count", "mean", "score", ""], shown),
        f"{len(rows)} actions, of which the first {_ARMS_SHOWN} and the served one are shown; so many"
        " different values are probably ids: is --action-column right?",
    ]
