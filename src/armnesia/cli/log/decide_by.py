"""The command `decide --by`: all decisions of a log."""

from pathlib import Path
from typing import Any

import numpy as np

from armnesia.cli import options as opt
from armnesia.cli.output import print_result, table
from armnesia.core.messages import counted
from armnesia.learners import Learner
from armnesia.learners.penalty_warning import warn_of_a_dominating_penalty
from armnesia.logs import Decisions
from armnesia.plotting import margins, picture_of_decisions, save

_SHOWN = 20


def print_decisions(
    log: str, decisions: Decisions, learner: Learner, picture: Path | None, as_json: bool
) -> None:
    """Print the served arm of every decision; as a table, those with the smallest margins first."""
    decision = learner.decide(decisions.statistics)
    warn_of_a_dominating_penalty(decision.scores, decision.no_data, decisions.statistics.reward_range)
    ahead, next_arm = margins(decision)
    if picture is not None:
        save(picture_of_decisions(decisions, decision), picture)
    actions, totals = decision.actions, decisions.statistics.total

    def facts(place: int) -> dict[str, Any]:
        return {
            "key": decisions.key_of(place),
            "action": actions[int(decision.index[place])],
            "runner_up": None if np.isnan(ahead[place]) else actions[int(next_arm[place])],
            "margin": float(ahead[place]),
            "n_rows": int(totals[place]),
        }

    def with_arms(place: int, counts: list[int], means: list[float], scores: list[float]) -> dict[str, Any]:
        arms = zip(actions, counts, means, scores, strict=True)
        names = ("action", "count", "mean", "score")
        return {**facts(place), "arms": [dict(zip(names, arm, strict=True)) for arm in arms]}

    statistics = decisions.statistics
    values = (statistics.counts.tolist(), statistics.means.tolist(), decision.scores.tolist())
    every = map(with_arms, range(len(decisions)), *values) if as_json else ()
    closest = np.argsort(ahead, kind="stable")[:_SHOWN]
    rows = [[*each.pop("key").values(), *each.values()] for each in map(facts, closest.tolist())]
    names = [column.name for column in decisions.columns]
    title = f"{log}: {counted(len(decisions), 'decision')}, smallest margins first"
    more = len(decisions) - len(closest)
    print_result(
        {
            "by": [str(column) for column in decisions.columns],
            "learner": learner.to_dict(),
            "n_rows": decisions.n_rows,
            "decisions": list(every),
            "picture": picture,
        },
        as_json,
        table(title, [*names, "served", "next", "margin", "rows"], rows),
        *([f"{counted(more, 'more decision')}: --json prints all of them."] if more else []),
        *opt.revealed(learner),
    )
