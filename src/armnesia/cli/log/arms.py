"""Arms as the commands on a log show them: those of a decision, and the likely ones of a release."""

from collections.abc import Hashable, Sequence
from typing import Any

from armnesia.cli.output import table
from armnesia.core.arrays import FloatArray
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Decision

_MOST_ARMS, _ARMS_SHOWN = 100, 10
_MOST_LIKELY, _LEAST_PROBABILITY = 3, 0.0005


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


def likely_arms(actions: Sequence[Hashable], probabilities: FloatArray) -> str:
    """The most likely arms of a release with their probabilities, one per line.

    >>> import numpy as np
    >>> print(likely_arms(("A", "B", "C"), np.array([0.25, 0.75, 0.0])))
    B 0.750
    A 0.250
    """
    chances = sorted(zip(probabilities.tolist(), map(str, actions), strict=True), reverse=True)
    return "\n".join(
        f"{action} {chance:.3f}" for chance, action in chances[:_MOST_LIKELY] if chance >= _LEAST_PROBABILITY
    )
