"""Rows of a source: which are wanted, how they are read, and how they are once they were checked."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from armnesia.core.identifiers import PLAIN, UserType, looks_like_float
from armnesia.logs import rules
from armnesia.logs.columns import Columns
from armnesia.logs.values import joined_texts


class Selection(NamedTuple):
    """The rows of given users, or with given ids."""

    role: str
    """The column that is compared: "user" or "id"."""
    texts: frozenset[str]
    user_type: UserType = UserType.EXACT
    """How users are named: all spellings of a name are selected."""

    @property
    def plain(self) -> str | None:
        """Other spellings of the texts do not match this regular expression; None if there are none."""
        return PLAIN.get(self.user_type) if self.role == "user" else None

    def matches(self, label: str | None) -> bool:
        """Whether a label is one of the texts, in any spelling."""
        if label in self.texts:
            return True
        return label is not None and self.plain is not None and self.user_type.normalised(label) in self.texts


@dataclass(frozen=True)
class RawRows:
    """A chunk of a source, unchecked; users and ids are text, actions and rewards are as in the source."""

    positions: Sequence[int]
    actions: list[Any]
    rewards: list[Any]
    users: list[str | None]
    ids: list[str | None] | None
    others: list[str] | None
    """The text of all columns but the reward, where a row is known by its content."""
    keys: tuple[list[Any], ...] = ()
    """The values of each key column, as in the source."""

    def selected(self, selection: Selection | None) -> "RawRows":
        """Keep the rows of a selection.

        >>> raw = RawRows(range(5, 7), ["A", "B"], [1, 0], ["ann", "bob"], None, None)
        >>> raw.selected(Selection("user", frozenset(["bob", "eve"]))).positions
        [6]
        """
        if selection is None:
            return self
        labels = (self.users if selection.role == "user" else self.ids) or []
        places = [place for place, label in enumerate(labels) if selection.matches(label)]
        return self.at(places)

    def at(self, places: Sequence[int]) -> "RawRows":
        """The rows at these places of the chunk."""
        return RawRows(
            [self.positions[place] for place in places],
            [self.actions[place] for place in places],
            [self.rewards[place] for place in places],
            [self.users[place] for place in places],
            None if self.ids is None else [self.ids[place] for place in places],
            None if self.others is None else [self.others[place] for place in places],
            tuple([values[place] for place in places] for values in self.keys),
        )


def raw_rows_of(
    values: Mapping[str, list[Any]],
    columns: Columns,
    positions: Sequence[int],
    others: list[str] | None,
    keys: Iterable[str] = (),
) -> RawRows:
    """Put Python values of a chunk together; `others` are the columns of a content, besides the reward.

    >>> raw_rows_of({"a": ["A"], "r": [1], "u": [7.0]}, Columns("a", "r", "u"), range(100, 101), ["a", "u"])
    RawRows(positions=range(100, 101), actions=['A'], rewards=[1], users=['7'], ids=None, others=['1:A1:7'],
            keys=())
    """
    names = columns.named()
    users, ids = (
        rules.label_texts(values[names[role]], columns.described(role), positions) if role in names else None
        for role in ("user", "id")
    )
    return RawRows(
        positions,
        values[columns.action],
        values[columns.reward],
        [None] * len(positions) if users is None else users,
        ids,
        None if others is None else joined_texts([values[name] for name in others]),
        tuple(values[name] for name in keys),
    )


@dataclass(frozen=True)
class Rows:
    """A chunk of a source, checked."""

    positions: Sequence[int]
    """Where each row stands in the source, from 0. A table has no order: there, the order of reading."""
    arms: list[int]
    units: list[int]
    users: list[str | None]
    ids: list[str] | None
    contents: list[str] | None
    """Without ids: the text of the whole row, all columns of the source by their names."""
    ordinals: Sequence[int] = ()
    """How many earlier rows of the same reading have the same id, or without ids the same content."""
    keys: tuple[list[Any], ...] = ()
    """The values of each key column, unchecked."""

    def __len__(self) -> int:
        return len(self.arms)

    @cached_property
    def float_ids(self) -> dict[int, str]:
        """By place, the ids that look like integers that became floats.

        >>> Rows(range(3), [0] * 3, [5] * 3, [None] * 3, ["17", "17.0", "a.b"], None).float_ids
        {1: '17.0'}
        """
        return {
            place: id_ for place, id_ in enumerate(self.ids or ()) if "." in id_ and looks_like_float(id_)
        }
