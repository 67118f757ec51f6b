"""`read_log`: one call for every kind of source."""

import os
import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from armnesia.core.actions import checked_actions
from armnesia.core.errors import InvalidInputError, UndeclaredActionsWarning
from armnesia.core.messages import listed
from armnesia.core.units import checked_reward_range
from armnesia.logs import rules
from armnesia.logs.filelog import FileLog
from armnesia.logs.frames import columns_of_frame, columns_of_mapping, is_bandit_feedback
from armnesia.logs.log import Log
from armnesia.logs.memory import MemoryLog


def read_log(
    source: Any = None,
    *,
    action: Any = "action",
    reward: Any = "reward",
    user: Any = None,
    actions: Iterable[Hashable] | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
) -> Log:
    """Read logged decisions, check every row, and refuse what cannot be used.

    `source` is a dataframe (pandas, polars eager or lazy, pyarrow, anything narwhals supports), a mapping
    of columns, the `bandit_feedback` of the Open Bandit Pipeline, or the path of CSV or Parquet files
    (globs allowed), which are never loaded but aggregated by DuckDB. `action`, `reward` and `user` name
    its columns. Without a source they are the arrays themselves.

    `actions` declares the action set, in order. It is public configuration: if it were taken from the
    data, deleting rows could change it. Left out, it is taken from the log once, with a warning.

    >>> clicks = {"variant": ["A", "B"], "clicked": [1, 0]}
    >>> read_log(clicks, action="variant", reward="clicked", actions=["A", "B", "C"]).statistics()
    ArmStatistics(actions=('A', 'B', 'C'), counts=[1, 1, 0], sums=[1000000000, 0, 0], reward_range=(0.0, 1.0))
    >>> stars = read_log(action=["A", "B"], reward=[4.5, 1], actions=["A", "B"], reward_range=(1, 5))
    >>> stars.statistics().means
    array([4.5, 1. ])
    """
    reward_range = checked_reward_range(reward_range)
    given = {"action": action, "reward": reward} | ({} if user is None else {"user": user})
    if actions is None and is_bandit_feedback(source):
        actions = range(int(source["n_actions"]))
    declared = None if actions is None else checked_actions(actions)
    log: Log
    if isinstance(source, str | os.PathLike):
        log = FileLog.of_files(source, _column_names(given), declared, reward_range)
    else:
        columns = _columns(source, given)
        names = {role: rules.described(role, column) for role, column in given.items()}
        log = MemoryLog.of_columns(columns, names, declared, reward_range)
    if declared is None:
        warnings.warn(
            f"the actions were taken from the log: {listed(log.actions)}; declare them with actions=[...],"
            " because deleting rows must not change the action set",
            UndeclaredActionsWarning,
            stacklevel=2,
        )
    return log


def _columns(source: Any, given: dict[str, Any]) -> dict[str, Any]:
    if source is None:
        for role, column in given.items():
            if isinstance(column, str):
                raise InvalidInputError(
                    f"{role} must be an array when there is no source; got the column name {column!r}"
                )
        return given
    names = _column_names(given)
    return (
        columns_of_mapping(source, names) if isinstance(source, Mapping) else columns_of_frame(source, names)
    )


def _column_names(given: dict[str, Any]) -> dict[str, str]:
    for role, column in given.items():
        if not isinstance(column, str):
            raise InvalidInputError(
                f"{role} must be a column name when there is a source; got {type(column).__name__}"
            )
    return given
