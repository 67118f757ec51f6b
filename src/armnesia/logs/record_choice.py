"""Choosing the records of a deletion request: by user, by users, or by row."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable

import numpy as np

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import listed
from armnesia.core.request import DeletionRequest
from armnesia.logs.conditions import Condition
from armnesia.logs.values import python_values


class RecordChoice(ABC):
    """Logged decisions, from which the records of users or of given rows can be chosen."""

    has_users: bool

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    @abstractmethod
    def where(self) -> tuple[Condition, ...]:
        """The conditions by which the rows were chosen from a source."""

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
            if self.where:
                raise InvalidInputError(
                    "rows are named by their position in the source, and this log has only those that satisfy"
                    f" {' and '.join(map(str, self.where))}; name users, or read the log without where"
                )
            return self._request_of_rows(_checked_rows(rows, self.n_rows))
        self._check_has_users()
        if user is not None and type(user).__hash__ is None:
            raise InvalidInputError(
                f"user must be a single label; got {type(user).__name__}: name several by users=[...]"
            )
        return self._request_of_users([user] if users is None else _checked_users(users))

    @abstractmethod
    def _request_of_users(self, users: list[Hashable]) -> DeletionRequest: ...

    @abstractmethod
    def _request_of_rows(self, rows: list[int]) -> DeletionRequest: ...

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
