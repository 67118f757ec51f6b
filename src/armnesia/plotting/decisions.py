"""A picture of many decisions: the served arm of each, and its margin over the next one."""

from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.core.arrays import FloatArray, IntArray
from armnesia.learners import Decision
from armnesia.logs import Decisions
from armnesia.logs.log import in_order
from armnesia.plotting.style import COLOURS, panel_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BARS, MOST_CELLS = 40, 24
"""The decisions in a list, and the values of each of two keys in a grid."""


def margins(decision: Decision) -> tuple[FloatArray, IntArray]:
    """How far the served arm of each decision is ahead, and of which arm; NaN if there is one arm only.

    >>> from armnesia import LCB, ArmStatistics
    >>> statistics = ArmStatistics(("A", "B"), np.array([[9, 9]]), np.array([[5, 4]]) * 10**9)
    >>> margins(LCB(confidence=0.1).decide(statistics))
    (array([0.11111111]), array([1]))
    """
    others = decision.scores.copy()
    served = decision.index[..., None]
    np.put_along_axis(others, served, -np.inf, axis=-1)
    ahead = np.take_along_axis(decision.scores, served, -1)[..., 0] - others.max(axis=-1)
    return np.where(np.isfinite(ahead), ahead, np.nan), np.asarray(np.argmax(others, axis=-1))


def picture_of_decisions(decisions: Decisions, decision: Decision) -> "Figure":
    """Draw a grid if there are two keys with few values, and else a list of the decisions with least margin.

    >>> from armnesia import LCB
    >>> from armnesia.logs import read_log
    >>> visits = {"action": ["A", "B"] * 4, "reward": [1, 0] * 4, "day": [1, 1, 2, 2] * 2}
    >>> log = read_log(visits, actions=["A", "B"])
    >>> decisions = log.by("day")
    >>> figure = picture_of_decisions(decisions, LCB(confidence=0.1).decide(decisions.statistics))
    >>> [text.get_text() for text in figure.axes[0].get_yticklabels()]
    ['1', '2']
    """
    ahead, _ = margins(decision)
    sides = []
    for at, column in enumerate(decisions.columns):
        values = in_order([column], {(key[at],) for key in decisions.keys})
        sides.append([value for (value,) in values])
    if len(sides) == 2 and max(map(len, sides)) <= MOST_CELLS:
        return _grid(decisions, decision, ahead, sides)
    return _bars(decisions, decision, ahead)


def _bars(decisions: Decisions, decision: Decision, ahead: FloatArray) -> "Figure":
    order = np.argsort(ahead, kind="stable")[:MOST_BARS]
    figure, [[axis]] = panel_grid(1, 1, width=8, height=1.4 + 0.26 * len(order))
    for arm, action in enumerate(decision.actions):
        places = np.flatnonzero(decision.index[order] == arm)
        if places.size:
            colour = COLOURS[arm % len(COLOURS)]
            axis.barh(places, ahead[order][places], color=colour, height=0.7, label=str(action))
    axis.set_yticks(range(len(order)), [", ".join(decisions.keys[row]) for row in order])
    axis.invert_yaxis()
    axis.set_xlabel("margin of the served arm's score over the next one")
    shown = f"the {len(order)} smallest margins of {len(decisions)}" if len(order) < len(decisions) else ""
    axis.set_title(f"Decisions by {_names(decisions)}" + (f": {shown}" if shown else ""), loc="left")
    figure.legend(loc="outside lower left", ncols=6, frameon=False, title="served")
    return figure


def _grid(decisions: Decisions, decision: Decision, ahead: FloatArray, sides: list[list[str]]) -> "Figure":
    rows, columns = sides
    figure, [[axis]] = panel_grid(1, 1, width=2 + 0.9 * len(columns), height=1.6 + 0.45 * len(rows))
    largest = float(np.nanmax(ahead, initial=1e-300))
    for place, (row, column) in enumerate(decisions.keys):
        arm = int(decision.index[place])
        at = columns.index(column), rows.index(row)
        strength = 0.25 + 0.75 * (float(ahead[place]) / largest if np.isfinite(ahead[place]) else 1.0)
        corner = (at[0] - 0.5, at[1] - 0.5)
        axis.add_patch(_square(corner, COLOURS[arm % len(COLOURS)], strength))
        axis.text(*at, f"{decision.actions[arm]}\n{ahead[place]:.3g}", ha="center", va="center", fontsize=7)
    axis.set_xticks(range(len(columns)), columns)
    axis.set_yticks(range(len(rows)), rows)
    axis.set_xlim(-0.5, len(columns) - 0.5)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.grid(False)
    axis.set_xlabel(decisions.columns[1].name)
    axis.set_ylabel(decisions.columns[0].name)
    axis.set_title(f"Served arm and margin by {_names(decisions)}", loc="left")
    return figure


def _square(corner: tuple[float, float], colour: str, strength: float) -> Any:
    from matplotlib.patches import Rectangle  # noqa: PLC0415 (an extra)

    return Rectangle(corner, 1, 1, facecolor=colour, alpha=strength, edgecolor="white")


def _names(decisions: Decisions) -> str:
    return ", ".join(column.name for column in decisions.columns)
