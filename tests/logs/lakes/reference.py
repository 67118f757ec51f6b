"""What a source must give, computed by pandas from the rows that the table's own library reads."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from armnesia.core.statistics import ArmStatistics
from armnesia.logs import Log, open_source, read_log

ACTIONS = ("A", "B", "C")


def assert_reads(name: str, frame: pd.DataFrame, **columns: Any) -> Log:
    """Compare statistics, users, requests and single rows of a table with those of a frame."""
    columns = {"action": "action", "reward": "reward", "user": "user", **columns}
    log = read_log(name, **columns, actions=ACTIONS)
    named = frame.rename(columns={column: role for role, column in columns.items()})
    assert len(log) == len(named)
    assert log.statistics() == statistics(named)
    users = named["user"].dropna()
    assert log.users() == users.value_counts().to_dict()
    for user in users.unique():
        assert log.request(user=user).records == statistics(named[named["user"] == user])
    assert rows_of(name, **columns) == sorted(map(tuple, _rows(named)))
    return log


def statistics(frame: pd.DataFrame) -> ArmStatistics:
    """The statistics of a frame."""
    return ArmStatistics.from_rewards(
        {action: frame.loc[frame["action"] == action, "reward"].tolist() for action in ACTIONS}
    )


def rows_of(name: str, **columns: Any) -> Sequence[tuple[str, int, str]]:
    """The rows of a source in any order: action, units and user."""
    found: list[tuple[str, int, str]] = []
    for rows in open_source(name, **columns).rows(ACTIONS, (0, 1), chunk=3):
        users = [user or "" for user in rows.users]
        found += zip([ACTIONS[arm] for arm in rows.arms], rows.units, users, strict=True)
    return sorted(found)


def _rows(frame: pd.DataFrame) -> Any:
    for action, reward, user in frame[["action", "reward", "user"]].itertuples(index=False):
        text = "" if pd.isna(user) else str(int(user)) if isinstance(user, float) else str(user)
        yield action, round(reward * 10**9), text
