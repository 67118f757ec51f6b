"""`Log`: the statistics of a source, deletion requests, and the users in it."""

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import counted, listed
from armnesia.core.statistics import ArmStatistics
from armnesia.logs.decisions import Decisions
from armnesia.logs.key_columns import MOST_DECISIONS, KeyColumn, checked_keys
from armnesia.logs.record_choice import RecordChoice


@dataclass(frozen=True, eq=False, repr=False)
class Log(RecordChoice):
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

    @property
    def n_rows(self) -> int:
        """The number of rows, as `len` gives it."""
        return len(self)

    @abstractmethod
    def statistics(self) -> ArmStatistics:
        """Count the rows and add up the rewards of each action, in exact integers."""

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
            f"<Log of {counted(len(self), 'row')}, actions {listed(self.actions)},"
            f" reward_range {self.reward_range}, {users}>"
        )

    def by(self, *keys: str | KeyColumn, at_most: int = MOST_DECISIONS) -> Decisions:
        """Part the rows into decisions: one for each combination of values of the key columns that occurs.

        A key is the name of a column, or of a column of numbers with edges behind a colon. Values are known
        by their text, as users are; every row needs one. The keys of decisions are public, like the actions.
        More than `at_most` decisions are refused.

        >>> from armnesia.logs import read_log
        >>> visits = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "country": ["DE", "FR", "DE"],
        ...     "age": [17, 44, 30]}
        >>> log = read_log(visits, actions=["A", "B"])
        >>> log.by("country", "age:18,30").keys
        (('DE', '<18'), ('DE', '>=30'), ('FR', '>=30'))
        """
        if not (isinstance(at_most, int) and at_most >= 1):
            raise InvalidInputError(f"at_most must be a whole number, 1 or more; got {at_most!r}")
        return self._decisions(checked_keys(keys), at_most)

    @abstractmethod
    def _decisions(self, keys: tuple[KeyColumn, ...], at_most: int) -> Decisions: ...

    @abstractmethod
    def _rows_of_each_user(self, action: Hashable) -> dict[Hashable, int]: ...
