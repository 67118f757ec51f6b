"""`read_log`: logged decisions of any source as a `Log`."""

import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from armnesia.core.actions import checked_actions
from armnesia.core.errors import InvalidInputError, UndeclaredActionsWarning
from armnesia.core.messages import listed
from armnesia.core.units import checked_reward_range
from armnesia.logs.columns import IF_PRESENT
from armnesia.logs.conditions import Where, conditions
from armnesia.logs.frames.source import ArraySource
from armnesia.logs.key_columns import KeyColumn
from armnesia.logs.log import Log
from armnesia.logs.opening import open_source
from armnesia.logs.propensities import warn_of_propensities
from armnesia.logs.source import Source

_MANY = 100
"""More actions than any log is likely to have."""


def read_log(
    source: Any = None,
    *,
    action: Any = "action",
    reward: Any = "reward",
    user: Any = IF_PRESENT,
    table: str | None = None,
    columns: Mapping[str, Any] | None = None,
    where: Where | None = None,
    actions: Iterable[Hashable] | None = None,
    reward_range: tuple[float, float] = (0.0, 1.0),
) -> Log:
    """Read logged decisions, check every row, and refuse a log with a wrong one.

    `source` is a dataframe (pandas, polars eager or lazy, pyarrow, anything narwhals supports), a mapping
    of columns, the `bandit_feedback` of the Open Bandit Pipeline, the path of CSV or Parquet files (globs
    allowed), which are not loaded but aggregated by DuckDB, a Delta or Iceberg table, `delta:PATH` or
    `iceberg:CATALOG.NAMESPACE.TABLE`, read in the same way, a table of Spark, `spark:CATALOG.DATABASE.TABLE`,
    which adds it up itself, or the URL of an SQLite or PostgreSQL database, with a `table`. `action`,
    `reward` and `user` name its columns; `user` is by default the column named `user`, if there is one, and
    None for no user column. Without a source they are the arrays themselves; `columns` are further arrays by
    name, for `Log.by` and `where`.

    `where` is a condition that a row must satisfy to be read, or several: "country = DE", "age >= 18",
    "page in (home, cart)"; see `Condition`. Other rows are not checked.

    `actions` declares the action set, in order. It is public configuration: if it were taken from the
    data, deleting rows could change it. Left out, it is taken from the log once, with a warning.

    >>> clicks = {"variant": ["A", "B"], "clicked": [1, 0]}
    >>> read_log(clicks, action="variant", reward="clicked", actions=["A", "B", "C"]).statistics()
    ArmStatistics(actions=('A', 'B', 'C'), counts=[1, 1, 0], sums=[1000000000, 0, 0], reward_range=(0.0, 1.0))
    >>> read_log(clicks, action="variant", reward="clicked", actions=["A", "B"], where="variant = A")
    <Log of 1 row, actions 'A', 'B', reward_range (0.0, 1.0), without users>
    >>> stars = read_log(action=["A", "B"], reward=[4.5, 1], actions=["A", "B"], reward_range=(1, 5))
    >>> stars.statistics().means
    array([4.5, 1. ])
    """
    reward_range = checked_reward_range(reward_range)
    declared = None if actions is None else checked_actions(actions)
    named = {"action": action, "reward": reward, "user": user, "table": table}
    if source is None:
        opened: Source = _open_arrays(**named, columns=columns)
        chosen = conditions(where)
        opened = opened.filtered(chosen) if chosen else opened
    elif columns is None:
        opened = open_source(source, **named, where=where, whole_rows=False)
    else:
        raise InvalidInputError(
            f"columns are for arrays without a source, which has its own; got {listed(columns)} with one"
        )
    return read_opened(opened, declared, reward_range, stacklevel=3)


def read_opened(
    opened: Source,
    declared: tuple[Hashable, ...] | None,
    reward_range: tuple[float, float],
    *,
    by: tuple[KeyColumn, ...] = (),
    stacklevel: int = 2,
) -> Log:
    """The part of `read_log` after a source was opened and its options were checked.

    `by` are the keys by which the log will be parted: propensities are compared within each decision.

    >>> source = open_source({"action": ["A"], "reward": [1]}, action="action", reward="reward")
    >>> read_opened(source, ("A", "B"), (0.0, 1.0))
    <Log of 1 row, actions 'A', 'B', reward_range (0.0, 1.0), without users>
    """
    log = opened.read(declared or opened.declared_actions, reward_range)
    if declared is None and opened.declared_actions is None:
        is_id = "; so many different values are probably ids, not actions" if len(log.actions) > _MANY else ""
        warnings.warn(
            f"the actions were taken from the log: {listed(log.actions, 10)}{is_id}; declare them with"
            " actions=[...] (--actions), because deleting rows must not change the action set",
            UndeclaredActionsWarning,
            stacklevel=stacklevel,
        )
    varying = opened.varying_propensity()
    if varying is not None and by:
        varying = opened.keyed_by(by).varying_propensity()
    warn_of_propensities(varying, stacklevel=stacklevel + 1, by_decision=bool(by))
    return log


def _open_arrays(
    action: Any, reward: Any, user: Any, table: str | None, columns: Mapping[str, Any] | None
) -> ArraySource:
    arrays = {"action": action, "reward": reward}
    if user is not None and user is not IF_PRESENT:
        arrays["user"] = user
    for role, values in arrays.items():
        if isinstance(values, str):
            raise InvalidInputError(
                f"{role} must be an array when there is no source; got the column name {values!r}"
            )
    if table is not None:
        raise InvalidInputError(f"table needs the URL of a database as the source; got {table!r} without one")
    taken = [name for name in columns or () if name in ("action", "reward", "user")]
    if taken:
        raise InvalidInputError(
            f"columns must have other names than action, reward and user; got {taken[0]!r}"
        )
    return ArraySource({**arrays, **(columns or {})}, has_users="user" in arrays)
