"""`Log`: the statistics of a source, deletion requests, and the users in it."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import listed
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.logs.values import python_values


@dataclass(frozen=True, eq=False, repr=False)
class Log(ABC):
    """Logged decisions: in each row an action, its reward and, if known, the user it belongs to.

    Made by `read_log`. A log does not change: to forget, subtract a request from the statistics with
    `ArmStatistics.without`, and delete the rows where they are stored.

    >>> from armnesia.logs import read_log
    >>> users = ["ann", "bob", "bob"]
    >>> log = read_log(action=["A", "B", "A"], reward=[1, 0, 0], user=users, actions=["A", "B"])
    >>> log
    <Log of 3 rows, actions 'A', 'B', reward_range (0.0, 1.0), with users>
    >>> log.statistics().counts
    array([2, 1])
    """

    actions: tuple[Hashable, ...]
    reward_range: tuple[float, float]
    has_users: bool

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def statistics(self) -> ArmStatistics:
        """Count the rows and add up the rewards of each action, in exact integers."""

    def request(
        self,
        *,
        user: Hashable = None,
        users: Iterable[Hashable] | None = None,
        rows: Iterable[int] | None = None,
    ) -> DeletionRequest:
        """Collect the records to forget: all rows of one user, of several users, or given rows (from 0).

        >>> from armnesia.logs import read_log
        >>> users = ["ann", "bob", "bob"]
        >>> log = read_log(action=["A", "B", "A"], reward=[1, 0, 0], user=users, actions=["A", "B"])
        >>> log.request(user="bob").counts, log.request(rows=[0]).counts
        (array([1, 1]), array([1, 0]))
        """
        given = [
            name for name, value in (("user", user), ("users", users), ("rows", rows)) if value is not None
        ]
        if len(given) != 1:
            raise InvalidInputError(
                f"a request needs exactly one of user, users and rows; got {' and '.join(given) or 'none'}"
            )
        if rows is not None:
            return self._request_of_rows(_checked_rows(rows, len(self)))
        self._check_has_users()
        return self._request_of_users([user] if users is None else _checked_users(users))

    def users(self, action: Hashable = None) -> dict[Hashable, int]:
        """Count the rows of each user, for one action or for all; most rows first, then by the label's text.

        >>> from armnesia.logs import read_log
        >>> users = ["ann", "bob", "bob"]
        >>> log = read_log(action=["A", "B", "A"], reward=[1, 0, 0], user=users, actions=["A", "B"])
        >>> log.users(), log.users("B")
        ({'bob': 2, 'ann': 1}, {'bob': 1})
        """
        self._check_has_users()
        if action is not None and action not in self.actions:
            raise InvalidInputError(f"action {action!r} is not one of {listed(self.actions)}")
        rows_of_user = self._rows_of_each_user(action)
        return dict(sorted(rows_of_user.items(), key=lambda item: (-item[1], str(item[0]))))

    def __repr__(self) -> str:
        users = "with users" if self.has_users else "without users"
        return (
            f"<Log of {len(self)} rows, actions {listed(self.actions)},"
            f" reward_range {self.reward_range}, {users}>"
        )

    @abstractmethod
    def _request_of_users(self, users: list[Hashable]) -> DeletionRequest: ...

    @abstractmethod
    def _request_of_rows(self, rows: list[int]) -> DeletionRequest: ...

    @abstractmethod
    def _rows_of_each_user(self, action: Hashable) -> dict[Hashable, int]: ...

    def _check_has_users(self) -> None:
        if not self.has_users:
            raise InvalidInputError(
                "the log was read without a user column; name one with read_log(user=...) (--user-column), or"
                " give rows (--rows)"
            )


def _checked_users(users: Iterable[Hashable]) -> list[Hashable]:
    if isinstance(users, str | bytes) or not isinstance(users, Iterable):
        raise InvalidInputError(f"users must be a list of labels (user takes a single one); got {users!r}")
    labels = python_values(users, "users")
    if not labels:
        raise InvalidInputError("users must name at least one user; got none")
    return labels


def _checked_rows(rows: Iterable[int], n_rows: int) -> list[int]:
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise InvalidInputError(f"rows must be a list of row positions, such as [0, 7]; got {rows!r}")
    positions = [row.item() if isinstance(row, np.generic) else row for row in python_values(rows, "rows")]
    if not positions:
        raise InvalidInputError("rows must name at least one row; got none")
    strange = [row for row in positions if not isinstance(row, int) or isinstance(row, bool)]
    if strange:
        raise InvalidInputError(
            f"rows must be whole numbers, the positions of rows; got {listed(strange, 3)}"
        )
    outside = [row for row in positions if not 0 <= row < n_rows]
    if outside:
        raise InvalidInputError(f"rows must lie between 0 and {n_rows - 1}; got {listed(outside, 3)}")
    repeated = [row for row, times in Counter(positions).items() if times > 1]
    if repeated:
        raise InvalidInputError(f"rows must be distinct; got {listed(repeated, 3)} more than once")
    return positions
