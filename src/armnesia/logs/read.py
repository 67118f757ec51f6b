"""`read_log`: logged decisions of any source as a `Log`."""

import warnings
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

from armnesia.core.actions import checked_actions
from armnesia.core.errors import InvalidInputError, UndeclaredActionsWarning
from armnesia.core.messages import listed
from armnesia.core.units import checked_reward_range
from armnesia.logs.arrays import ArraySource, as_mapping
from armnesia.logs.columns import IF_PRESENT, Columns
from armnesia.logs.conditions import Where
from armnesia.logs.counting import actions_of, check_tallies, summed
from armnesia.logs.keys import KeyColumn
from armnesia.logs.log import Log
from armnesia.logs.remarks import warn_of_propensities
from armnesia.logs.source import Source, open_source

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
    delimiter: str | None = None,
) -> Log:
    """Read logged decisions, check every row, and refuse a log with a wrong one.

    `source` is one of these; its rows stay where they are, and are added up there:

    - CSV or Parquet files: a path, a folder or a glob;
    - a dataframe: pandas, polars (eager or lazy), or whatever gives an Arrow stream;
    - a mapping of columns, or the `bandit_feedback` of the Open Bandit Pipeline;
    - a table of a lake: `delta:PATH` or `iceberg:CATALOG.NAMESPACE.TABLE`;
    - a table of Spark: `spark:CATALOG.DATABASE.TABLE`;
    - the URL of an SQLite or PostgreSQL database, with a `table`.

    `action`, `reward` and `user` name the columns. By default `user` is the column of that name, if there is
    one; None means no user column. Without a source they are the arrays themselves; `columns` are further
    arrays by name, for `Log.by` and `where`.

    `where` is a condition that a row must satisfy to be read, or several: "country = DE", "age >= 18",
    "page in (home, cart)"; see `Condition`. Other rows are not checked.

    `actions` declares the action set, in order. It is public configuration: if it were taken from the
    data, deleting rows could change it. Left out, it is taken from the log once, with a warning.

    `delimiter` parts the fields of CSV files; left out, it is a comma, or a semicolon, tab or bar where the
    header has no comma.

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
    if source is not None and columns is not None:
        raise InvalidInputError(
            f"columns are for arrays without a source, which has its own; got {listed(columns)} with one"
        )
    in_memory = as_mapping(source)
    if source is None or isinstance(in_memory, Mapping):
        ArraySource.option_of(table=table, delimiter=delimiter)
    if source is None:
        opened: Source = ArraySource.of_arrays(action, reward, user, columns or {}, where)
    elif isinstance(in_memory, Mapping):
        opened = ArraySource.at(in_memory, Columns(action, reward, user)).filtered(where)
    else:
        opened = open_source(
            source, action=action, reward=reward, user=user, table=table, where=where, delimiter=delimiter
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
    found = opened.tallies(reward_range)
    actions = declared or opened.declared_actions or (actions_of(opened, found) if found else ())
    check_tallies(opened, found, actions, reward_range)
    log = Log(opened, actions, reward_range, summed(found, actions, reward_range))
    if declared is None and opened.declared_actions is None:
        is_id = "; so many different values are probably ids, not actions" if len(actions) > _MANY else ""
        warnings.warn(
            f"the actions were taken from the log: {listed(actions, 10)}{is_id}; declare them with"
            " actions=[...] (--actions), because deleting rows must not change the action set",
            UndeclaredActionsWarning,
            stacklevel=stacklevel,
        )
    varying = (opened.keyed_by(by) if by else opened).varying_propensity()
    if varying is not None:
        warn_of_propensities(varying, stacklevel=stacklevel + 1, by_decision=bool(by))
    return log
