"""A picture of a deletion: the scores before and after it, and the release of each unlearner."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.learners import Learner
from armnesia.plotting.style import AFTER, BEFORE, COLOURS, panel_grid
from armnesia.unlearners import Release

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture_of_forgetting(
    learner: Learner,
    statistics: ArmStatistics,
    request: DeletionRequest,
    releases: Mapping[str, Release],
    title: str = "",
) -> "Figure":
    """Draw each arm's mean and score before and after (left) and the exact release probabilities (right).

    >>> from armnesia import LCB, Budget, Rollback
    >>> log = ArmStatistics.from_rewards({"A": [1] * 40, "B": [0, 1] * 20})
    >>> request = DeletionRequest.from_rewards({"A": [1] * 30, "B": []})
    >>> learner = LCB().bind(log)
    >>> release = Rollback().release(learner, log, request, Budget(epsilon=1.0, delta=1e-5))
    >>> figure = picture_of_forgetting(learner, log, request, {"rollback": release})
    >>> [axis.get_title(loc="left") for axis in figure.axes]
    ['Score and mean of each arm', 'The arm released afterwards']
    """
    height = 1.6 + 0.45 * max(len(statistics.actions), len(releases) + 1)
    figure, [[scores, chances]] = panel_grid(1, 2, width=10, height=height, width_ratios=[3, 2])
    _draw_scores(scores, learner, statistics, request)
    _draw_releases(chances, statistics, releases)
    figure.legend(*scores.get_legend_handles_labels(), loc="outside lower left", ncols=4, frameon=False)
    if title:
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold")
    return figure


def _draw_scores(axis: Any, learner: Learner, statistics: ArmStatistics, request: DeletionRequest) -> None:
    rows = np.arange(statistics.n_actions)
    for data, colour, offset, label in (
        (statistics, BEFORE, -0.15, "before"),
        (statistics.without(request), AFTER, 0.15, "after rollback"),
    ):
        decision = learner.decide(data)
        axis.hlines(rows + offset, decision.scores, data.means, color=colour, linewidth=2, alpha=0.5)
        axis.plot(
            decision.scores, rows + offset, "|", color=colour, markersize=12, markeredgewidth=3, label=label
        )
        axis.plot(data.means, rows + offset, "o", color=colour, markersize=4)
        best = int(decision.index)
        axis.plot(
            decision.scores[best], best + offset, "*", color=colour, markersize=13, label=f"served {label}"
        )
    names = [
        f"{action}\n−{deleted:,} of {count:,}" if deleted else f"{action}\n{count:,}"
        for action, deleted, count in zip(
            statistics.actions, request.counts.tolist(), statistics.counts.tolist(), strict=True
        )
    ]
    axis.set_yticks(rows, names)
    axis.invert_yaxis()
    axis.set_xlabel("reward: lower confidence bound | to mean ●")
    axis.set_title("Score and mean of each arm", loc="left")


def _draw_releases(axis: Any, statistics: ArmStatistics, releases: Mapping[str, Release]) -> None:
    left = np.zeros(len(releases))
    rows = np.arange(len(releases))
    stacked = np.array([release.probabilities for release in releases.values()])
    for arm, action in enumerate(statistics.actions):
        share = stacked[:, arm]
        if share.max(initial=0) < 5e-4:
            continue
        colour = COLOURS[arm % len(COLOURS)]
        axis.barh(rows, share, left=left, color=colour, label=str(action), height=0.55)
        for row in rows[share > 0.08]:
            axis.text(
                left[row] + share[row] / 2,
                row,
                f"{action} {share[row]:.2f}",
                ha="center",
                va="center",
                color="white",
                fontweight="bold",
                fontsize=9,
            )
        left = left + share
    axis.set_yticks(rows, list(releases))
    axis.invert_yaxis()
    axis.set_xlim(0, 1)
    axis.grid(False)
    axis.set_xlabel("probability, exact")
    axis.set_title("The arm released afterwards", loc="left")
