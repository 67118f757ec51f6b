"""What a source of decisions is: rows in chunks, each checked by the rules and in the words of `logs`."""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from armnesia.core.actions import checked_actions
from armnesia.core.errors import InvalidInputError
from armnesia.core.units import checked_reward_range, to_units
from armnesia.logs import rules
from armnesia.logs.columns import is_missing, sorted_if_comparable
from armnesia.logs.memory import check_rewards, reward_numbers
from armnesia.logs.repeated_ids import RepeatedIds
from armnesia.logs.values import arm_of_text, label_text, storable_label

CHUNK = 50_000
"""How many rows are read at once."""


@dataclass(frozen=True)
class Columns:
    """The names of the columns that mean something to the vault."""

    action: str
    reward: str
    user: str | None = None
    id: str | None = None

    def __post_init__(self) -> None:
        for role, name in (("action", self.action), ("reward", self.reward), *self.labels().items()):
            if not isinstance(name, str):
                raise InvalidInputError(f"{role} must be a column name; got {type(name).__name__}")
        if self.user in (self.action, self.reward):  # actions are public, and for good: people must not be
            raise InvalidInputError(
                f"user must be another column than action and reward; got {self.user!r} for both"
            )
        if self.id is not None and self.id == self.user:  # rows of one user that agree would be one row
            raise InvalidInputError(
                f"id must tell rows apart, by another column than user; got {self.id!r} for both"
            )

    def labels(self) -> dict[str, str]:
        """The columns of labels by their role: all but the reward."""
        named = {"action": self.action, "user": self.user, "id": self.id}
        return {role: name for role, name in named.items() if name is not None}

    def named(self) -> dict[str, str]:
        """All columns by their role."""
        return self.labels() | {"reward": self.reward}

    def described(self, role: str) -> str:
        """Name a column in a message."""
        return rules.described(role, self.named()[role])


@dataclass(frozen=True)
class RawRows:
    """A chunk of a source as it stands there; labels are text already, except actions."""

    positions: Sequence[int]
    actions: list[Any]
    rewards: list[Any]
    users: list[str | None]
    ids: list[str | None] | None
    others: list[str] | None
    """The text of all columns but the reward, if there is no id."""


@dataclass(frozen=True)
class Rows:
    """A chunk of a source, checked."""

    positions: Sequence[int]
    """Where each row stands in the source, from 0. A table has no order: there, as it was read."""
    arms: list[int]
    units: list[int]
    users: list[str | None]
    ids: list[str] | None
    contents: list[str] | None
    """If there is no id: the canonical text of the whole row, all columns of the source by their names."""

    def __len__(self) -> int:
        return len(self.arms)

    @property
    def first(self) -> int:
        """The position of the first row."""
        return self.positions[0]

    def only(self, places: Sequence[int]) -> "Rows":
        """The rows at these places of the chunk.

        >>> Rows(range(5, 8), [0, 1, 0], [9, 8, 7], ["ann", "bob", "ann"], None, ["x", "y", "z"]).only([0, 2])
        Rows(positions=[5, 7], arms=[0, 0], units=[9, 7], users=['ann', 'ann'], ids=None, contents=['x', 'z'])
        """
        return Rows(
            [self.positions[place] for place in places],
            [self.arms[place] for place in places],
            [self.units[place] for place in places],
            [self.users[place] for place in places],
            None if self.ids is None else [self.ids[place] for place in places],
            None if self.contents is None else [self.contents[place] for place in places],
        )


class Source(ABC):
    """Decisions in a file, a dataframe or a table, read in chunks."""

    columns: Columns
    heading: str | None
    """The beginning of every row's canonical text; None if rows have an id."""

    @property
    @abstractmethod
    def description(self) -> Mapping[str, Any]:
        """Where it is, in JSON, without passwords: enough to open it again, unless it is a dataframe."""

    @abstractmethod
    def n_rows(self) -> int | None:
        """How many rows there are, where that is cheap to know."""

    @abstractmethod
    def raw_rows(self, chunk: int, user: str | None) -> Iterator[RawRows]:
        """Read the rows in chunks, all of them or one user's, unchecked."""

    @abstractmethod
    def action_labels(self) -> Iterable[Any]:
        """List the different values of the action column, a missing one included."""

    def labels(self) -> list[Hashable]:
        """List the actions that occur, sorted if they can be compared: for a vault that declares none.

        Labels that JSON cannot hold are given as their text.
        """
        found = list(self.action_labels())
        if not found:
            raise rules.empty_log()
        if any(map(is_missing, found)):
            raise rules.missing_actions(self.columns.described("action"), self._missing_actions())
        return list(checked_actions(sorted_if_comparable(list(dict.fromkeys(map(storable_label, found))))))

    def rows(
        self,
        actions: Sequence[Hashable],
        reward_range: tuple[float, float],
        *,
        chunk: int = CHUNK,
        user: str | None = None,
    ) -> Iterator[Rows]:
        """Read all rows, or those of one user, in chunks; the first wrong row ends it with a refusal.

        Memory does not grow with the source. An id that stands for two different decisions is found at the
        end, when all rows are known; not when only one user's are read.
        """
        if user is not None and self.columns.user is None:
            raise InvalidInputError("rows of one user need a user column; the source was opened without one")
        if chunk < 1:
            raise InvalidInputError(f"chunk must be at least 1; got {chunk!r}")
        check = _Check(self, tuple(actions), checked_reward_range(reward_range))
        return self._checked(check, chunk, user)

    def _checked(self, check: "_Check", chunk: int, user: str | None) -> Iterator[Rows]:
        with ExitStack() as stack:
            whole = self.columns.id is not None and user is None
            seen = stack.enter_context(RepeatedIds()) if whole else None
            for raw in self.raw_rows(chunk, user):
                rows = check.rows(raw)
                if seen is not None and rows.ids is not None:
                    seen.note(rows.ids, zip(rows.arms, rows.units, rows.users, strict=True), rows.positions)
                yield rows
            contradiction = None if seen is None else seen.first_contradiction()
        if contradiction is not None:
            raise rules.contradicting_ids(self.columns.described("id"), contradiction)

    def _missing_actions(self) -> Iterator[tuple[int, Any]]:
        for raw in self.raw_rows(CHUNK, None):
            for position, action in zip(raw.positions, raw.actions, strict=True):
                if is_missing(action):
                    yield position, None


class _Check:
    """The checks of one reading, against the declared actions and range."""

    def __init__(
        self, source: Source, actions: tuple[Hashable, ...], reward_range: tuple[float, float]
    ) -> None:
        self._columns = source.columns
        self._heading = source.heading
        self._actions = actions
        self._arm_of = arm_of_text(actions)
        self._range = reward_range

    def rows(self, raw: RawRows) -> Rows:
        """Check a chunk, the gravest fault first, and turn it into arms and units."""
        arms = self._arms(raw)
        what = self._columns.described("reward")
        rewards = reward_numbers(raw.rewards, what, raw.positions)
        check_rewards(rewards, what, self._range, raw.positions)
        units = to_units(rewards, self._range).tolist()
        contents = None
        if raw.others is not None:
            contents = [f"{self._heading}{u};{other}" for u, other in zip(units, raw.others, strict=True)]
        return Rows(raw.positions, arms, units, raw.users, self._ids(raw), contents)

    def _arms(self, raw: RawRows) -> list[int]:
        texts: Iterable[Any] = raw.actions
        if set(map(type, raw.actions)) != {str}:
            texts = map(label_text, raw.actions)
        arms = [self._arm_of.get(text, -1) for text in texts]
        if -1 in arms:
            what = self._columns.described("action")
            wrong = [row for row, arm in enumerate(arms) if arm < 0]
            missing = [(raw.positions[row], None) for row in wrong if is_missing(raw.actions[row])]
            if missing:
                raise rules.missing_actions(what, missing)
            offences = ((raw.positions[row], raw.actions[row]) for row in wrong)
            raise rules.undeclared_actions(what, offences, self._actions)
        return arms

    def _ids(self, raw: RawRows) -> list[str] | None:
        if raw.ids is None:
            return None
        ids = [id_ for id_ in raw.ids if id_ is not None]
        if len(ids) < len(raw.ids):
            missing = ((raw.positions[row], None) for row, id_ in enumerate(raw.ids) if id_ is None)
            raise rules.missing_ids(self._columns.described("id"), missing)
        return ids
