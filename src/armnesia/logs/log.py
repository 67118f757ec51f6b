"""`read_log`, and what it gives: a `Log` with its statistics, deletion requests, users and `Decisions`.

A log keeps the sums of its rows, and asks the source again for each request.
"""

import math
import warnings
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from armnesia.core.actions import checked_actions
from armnesia.core.errors import (
    ConfoundedLogWarning,
    InvalidInputError,
    InvalidLogError,
    UndeclaredActionsWarning,
)
from armnesia.core.identifiers import is_plain_integer
from armnesia.core.messages import counted, listed
from armnesia.core.request import DeletionRequest
from armnesia.core.statistics import ArmStatistics
from armnesia.core.units import checked_reward_range
from armnesia.logs.columns import IF_PRESENT, Columns
from armnesia.logs.conditions import Where, conditions
from armnesia.logs.frames import ArraySource, actions_of_feedback
from armnesia.logs.keys import KeyColumn, checked_keys
from armnesia.logs.source import IN_MEMORY, Source, open_source
from armnesia.logs.statements import Chosen, Tally
from armnesia.logs.values import arm_of_text, label_text, number_of, python_values

_MOST_DECISIONS = 1_000_000
"""How many decisions the keys of a log may make."""


@dataclass(frozen=True, eq=False, repr=False)
class RecordChoice:
    """Logged decisions, from which the records of users or of given rows can be chosen."""

    source: Source
    actions: tuple[Hashable, ...]
    reward_range: tuple[float, float]
    totals: ArmStatistics
    """The sums of the rows; of `Decisions`, by decision."""
    places: Mapping[tuple[str, ...], int] | None = None
    """The place of each decision by its key; None of one decision."""

    @property
    def has_users(self) -> bool:
        """Whether a column names the user of each row."""
        return self.source.columns.user is not None

    @property
    def n_rows(self) -> int:
        """The number of rows, of all decisions."""
        return int(self.totals.counts.sum())

    def request(
        self,
        *,
        user: Hashable = None,
        users: Iterable[Hashable] | None = None,
        rows: Iterable[int] | None = None,
    ) -> DeletionRequest:
        """Collect the records to forget: all rows of one user, of several users, or given rows (from 1).

        Users are known by their text: 7 and "7" are the same.

        >>> from armnesia.logs import read_log
        >>> users = ["ann", "bob", "bob"]
        >>> log = read_log(action=["A", "B", "A"], reward=[1, 0, 0], user=users, actions=["A", "B"])
        >>> log.request(user="bob").counts, log.request(rows=[1]).counts
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
            return self._summed(self._of_rows(rows))
        self._check_has_users()
        if user is not None and type(user).__hash__ is None:
            raise InvalidInputError(
                f"user must be a single label; got {type(user).__name__}: name several by users=[...]"
            )
        wanted = {label_text(each): each for each in ([user] if users is None else _checked_users(users))}
        found = self._of_users([text for text in wanted if text is not None])
        held = {each.user for each in found}
        unknown = [each for text, each in wanted.items() if text not in held]
        if unknown:
            raise InvalidInputError(f"the log has no rows of user {listed(unknown, at_most=3)}")
        return self._summed(found)

    def _of_users(self, texts: Sequence[str]) -> list[Tally]:
        if self.source.version() is not None:
            return self.source.tallies(self.reward_range, chosen=Chosen(texts), by=["user"])
        # All rows are added up again, in one statement: a request must consist of rows that are counted.
        found = self.source.tallies(self.reward_range, chosen=Chosen(texts), others=True, by=["user"])
        self._check_unchanged(found)
        return [each for each in found if each.chosen]

    def _of_rows(self, rows: Iterable[int]) -> list[Tally]:
        is_versioned = self.source.version() is not None
        is_ordered = is_versioned or self.source.location.startswith((IN_MEMORY, "sqlite:"))
        if self.source.where or not is_ordered:
            raise InvalidInputError(
                "rows are named by their position in the source, and this log has rows in no fixed order, or"
                " only those that satisfy conditions (where): name users"
            )
        positions = _checked_rows(rows, self.n_rows)
        if not is_versioned:
            self._check_unchanged(self.source.tallies(self.reward_range))
        return self.source.tallies(self.reward_range, positions=positions)

    def _check_unchanged(self, found: Sequence[Tally]) -> None:
        try:
            self.source.check_tallies(found, self.actions, self.reward_range)
            unchanged = self._statistics_of(found) == self.totals
        except (InvalidInputError, KeyError):
            unchanged = False
        if not unchanged:
            raise InvalidLogError("the source has changed since the log was read; read it again")

    def _summed(self, found: Sequence[Tally]) -> DeletionRequest:
        return DeletionRequest(self._statistics_of(found), all(each.is_binary for each in found))

    def _statistics_of(self, found: Iterable[Tally]) -> ArmStatistics:
        return summed(found, self.actions, self.reward_range, self.places)

    def _check_has_users(self) -> None:
        if not self.has_users:
            raise InvalidInputError(
                "the log was read without a user column; name one with read_log(user=...) (--user-column), or"
                " give rows (--rows)"
            )


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

    def __len__(self) -> int:
        return self.n_rows

    def statistics(self) -> ArmStatistics:
        """The number of rows and the sum of the rewards of each action, in exact integers."""
        return self.totals

    def users(self, action: Hashable = None) -> dict[str, int]:
        """Count the rows of each user, for one action or for all; most rows first, then by name.

        >>> from armnesia.logs import read_log
        >>> users = ["ann", "bob", "bob"]
        >>> log = read_log(action=["A", "B", "A"], reward=[1, 0, 0], user=users, actions=["A", "B"])
        >>> log.users(), log.users("B")
        ({'bob': 2, 'ann': 1}, {'bob': 1})
        """
        self._check_has_users()
        if action is not None and label_text(action) not in map(label_text, self.actions):
            raise InvalidInputError(f"action {action!r} is not one of {listed(self.actions)}")
        found = self.source.tallies(self.reward_range, by=["user"])
        self._check_unchanged(found)
        rows_of: Counter[str] = Counter()
        for each in found:
            if each.user is not None and (action is None or each.action == label_text(action)):
                rows_of[each.user] += each.number
        return dict(sorted(rows_of.items(), key=lambda item: (-item[1], item[0])))

    def by(self, *keys: str | KeyColumn) -> "Decisions":
        """Part the rows into decisions: one for each combination of values of the key columns that occurs.

        A key is the name of a column, or of a column of numbers with edges behind a colon. Values are known
        by their text, as users are; every row needs one. The keys of decisions are public, like the actions.
        More than a million decisions are refused.

        >>> from armnesia.logs import read_log
        >>> visits = {"action": ["A", "B", "A"], "reward": [1, 0, 1], "country": ["DE", "FR", "DE"],
        ...     "age": [17, 44, 30]}
        >>> log = read_log(visits, actions=["A", "B"])
        >>> log.by("country", "age:18,30").keys
        (('DE', '<18'), ('DE', '>=30'), ('FR', '>=30'))
        """
        columns = checked_keys(keys)
        source = self.source.keyed_by(columns)
        found = source.tallies(self.reward_range)
        source.check_tallies(found, self.actions, self.reward_range)
        self._check_unchanged(found)
        number = len({each.key for each in found})
        if number > _MOST_DECISIONS:
            raise InvalidInputError(
                f"the keys {listed([each.name for each in columns])} make {number} decisions, and the limit"
                f" is {_MOST_DECISIONS}: give a number edges, as in age:18,30,50, or leave a key out"
            )
        texts = in_order(columns, {tuple(map(str, each.key)) for each in found})
        places = {key: place for place, key in enumerate(texts)}
        totals = summed(found, self.actions, self.reward_range, places)
        return Decisions(source, self.actions, self.reward_range, totals, places)

    def __repr__(self) -> str:
        users = "with users" if self.has_users else "without users"
        return (
            f"<Log of {counted(len(self), 'row')}, actions {listed(self.actions)},"
            f" reward_range {self.reward_range}, {users}>"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(RecordChoice):
    """The decisions of a log, one for each combination of keys that occurs, in the order of the keys.

    Made by `Log.by`. The first axis of `statistics` and of a request is the decisions, the last is the arms.

    >>> from armnesia import LCB
    >>> from armnesia.logs import read_log
    >>> visits = {"action": ["A", "B"] * 50, "reward": [1, 0, 0, 1] * 25, "user": ["u1", "u2"] * 50,
    ...     "country": ["DE", "DE", "FR", "FR"] * 25}
    >>> decisions = read_log(visits, actions=["A", "B"]).by("country")
    >>> decisions
    <2 decisions by country, actions 'A', 'B', 100 rows, with users>
    >>> decisions.statistics.counts
    array([[25, 25], [25, 25]])
    >>> LCB().bind(decisions.pooled).decide(decisions.statistics).action
    ['A', 'B']
    >>> decisions.request(user="u1").counts
    array([[25,  0], [25,  0]])
    """

    @cached_property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """One text per key column: the value, or the interval between two edges."""
        return tuple(self.places or ())

    @property
    def statistics(self) -> ArmStatistics:
        """The statistics of each decision: its place is on the first axis."""
        return self.totals

    @property
    def columns(self) -> tuple[KeyColumn, ...]:
        """The key columns."""
        return self.source.keys

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def pooled(self) -> ArmStatistics:
        """The statistics of all decisions together: those of the log."""
        totals = self.totals
        counts, sums = totals.counts.sum(axis=0), totals.sums.astype(object).sum(axis=0)
        products = None if totals.products is None else totals.products.astype(object).sum(axis=0)
        return ArmStatistics(totals.actions, counts, sums, totals.reward_range, products)

    def key_of(self, index: int) -> dict[str, str]:
        """The key of a decision, as JSON holds it: each column's name with its value.

        >>> from armnesia.logs import read_log
        >>> visits = {"action": ["A", "B"], "reward": [1, 0], "country": ["DE", "FR"]}
        >>> read_log(visits, actions=["A", "B"]).by("country").key_of(1)
        {'country': 'FR'}
        """
        return dict(zip((column.name for column in self.columns), self.keys[index], strict=True))

    def __repr__(self) -> str:
        return (
            f"<{counted(len(self), 'decision')} by {', '.join(map(str, self.columns))},"
            f" actions {listed(self.actions)}, {counted(self.n_rows, 'row')},"
            f" {'with' if self.has_users else 'without'} users>"
        )


def read_log(
    source: Any = None,
    *,
    action: Any = "action",
    reward: Any = "reward",
    user: Any = IF_PRESENT,
    table: str | None = None,
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
    one; None means no user column. Without a source they are the arrays themselves.

    `where` is a condition that a row must satisfy to be read, or several: "country = DE", "age >= 18",
    "page in (home, cart)"; see `Condition`. Other rows are not checked. Arrays and mappings need DuckDB then.

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
    if source is None:
        source = {"action": action, "reward": reward, "user": user}
        if user is None or user is IF_PRESENT:
            del source["user"]
        action, reward, user = "action", "reward", IF_PRESENT
    if isinstance(source, Mapping) and declared is None and action == "action":
        declared = actions_of_feedback(source)
    if isinstance(source, Mapping) and not conditions(where):
        ArraySource.option_of(table=table, delimiter=delimiter)
        opened: Source = ArraySource.at(source, Columns(action, reward, user))
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
    actions = declared or (actions_of(found))
    opened.check_tallies(found, actions, reward_range)
    log = Log(opened, actions, reward_range, summed(found, actions, reward_range))
    if declared is None:
        warnings.warn(
            f"the actions were taken from the log: {listed(actions, 10)}; declare them with"
            " actions=[...] (--actions), because deleting rows must not change the action set",
            UndeclaredActionsWarning,
            stacklevel=stacklevel,
        )
    varying = (opened.keyed_by(by) if by else opened).varying_propensity()
    if varying is not None:
        warn_of_propensities(varying, stacklevel=stacklevel + 1, by_decision=bool(by))
    return log


def actions_of(found: Iterable[Tally]) -> tuple[Hashable, ...]:
    """The actions that occur, where none are declared: integers and booleans as such, others as text.

    >>> actions_of([Tally(action, (), None, None, True, 1, 0, 1, 0) for action in ("10", "9", None)])
    (9, 10)
    """
    texts = {each.action for each in found if each.action is not None}
    if texts and texts <= {"False", "True"}:
        return tuple(text == "True" for text in sorted(texts))
    if all(map(is_plain_integer, texts)):
        return tuple(sorted(map(int, texts)))
    return tuple(sorted(texts))


def warn_of_propensities(name: str | None, stacklevel: int, *, by_decision: bool = False) -> None:
    """Name the assumption that decisions make, if a column of propensities (`name`) speaks against it.

    With `by_decision`, the rows were compared within each decision.
    """
    if name is not None:
        parted = " and decision" if by_decision else ""
        warnings.warn(
            f"column {name!r} holds propensities that differ among rows of the same action{parted}, and they"
            " are not used: decisions assume that rewards are independent of who was shown which arm"
            ' (docs/data.md, "Is my log fit for this?")',
            ConfoundedLogWarning,
            stacklevel=stacklevel,
        )


def summed(
    found: Iterable[Tally],
    actions: tuple[Hashable, ...],
    reward_range: tuple[float, float],
    place_of: Mapping[Any, int] | None = None,
) -> ArmStatistics:
    """Add tallies up by arm, and with `place_of` by the place of their key.

    >>> tallies = [Tally("A", (), user, None, True, 2, 10**9, 2, 0) for user in ("ann", "bob")]
    >>> summed(tallies, ("A", "B"), (0.0, 1.0)).counts
    array([4, 0])
    """
    arm_of = arm_of_text(actions)
    shape = (len(actions),) if place_of is None else (len(place_of), len(actions))
    counts, units, products = (np.zeros(shape, dtype=object) for _ in range(3))
    for each in found:
        arm = arm_of[str(each.action)]
        at = (arm,) if place_of is None else (place_of[each.key], arm)
        counts[at] += each.number
        units[at] += each.units
        products[at] += each.products
    return ArmStatistics(actions, counts.astype(np.int64), units, reward_range, products)


def in_order(columns: Sequence[KeyColumn], keys: Iterable[tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """Keys in order: intervals and numbers in rising order, then other values by their text.

    >>> in_order([KeyColumn("hour")], [("10",), ("9",)])
    (('9',), ('10',))
    """

    def rank(column: KeyColumn, text: str) -> tuple[float, str]:
        number = float(column.intervals.index(text)) if column.edges else number_of(text)
        return (math.inf if number is None or math.isnan(number) else number, text)

    return tuple(sorted(keys, key=lambda key: [rank(*pair) for pair in zip(columns, key, strict=True)]))


def _checked_users(users: Iterable[Hashable]) -> list[Hashable]:
    if isinstance(users, str | bytes) or not isinstance(users, Iterable):
        raise InvalidInputError(f"users must be a list of labels (user takes a single one); got {users!r}")
    labels = python_values(users, "users")
    if not labels:
        raise InvalidInputError("users must name at least one user; got none")
    return labels


def _checked_rows(rows: Iterable[int], n_rows: int) -> list[int]:
    if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise InvalidInputError(f"rows must be a list of row positions, such as [1, 8]; got {rows!r}")
    positions = [row.item() if isinstance(row, np.generic) else row for row in python_values(rows, "rows")]
    wrong = [row for row in positions if type(row) is not int or not 1 <= row <= n_rows]
    repeated = [] if wrong else [row for row, times in Counter(positions).items() if times > 1]
    if not positions or wrong or repeated:
        got = listed(wrong or repeated, 3) if positions else "none"
        raise InvalidInputError(f"rows must be different whole numbers from 1 to {n_rows}; got {got}")
    return positions
