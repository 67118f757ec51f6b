"""`Source`: where logged decisions are kept, read in chunks and checked by the rules of `rules.py`.

One class per kind: `files.FileSource`, `frames.FrameSource`, `tables.SqliteSource`,
`tables.PostgresSource`, `tables.SparkSource`, `lakes.DeltaSource` and `lakes.IcebergSource`. `read_log` makes
a `Log` of a source; a vault reads its rows.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from armnesia.core.actions import checked_actions
from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.files import Stamp
from armnesia.core.identifiers import UserType
from armnesia.core.units import checked_reward_range, to_units
from armnesia.logs import rules
from armnesia.logs.array_log import ArrayLog, LabelCodes
from armnesia.logs.columns import Columns, likely_user_columns
from armnesia.logs.conditions import Condition
from armnesia.logs.counting import (
    NOTHING_LEFT_OUT,
    CountedRows,
    FoundRows,
    LeftOut,
    RowRules,
    count_chunks,
    found_in_chunks,
    without,
)
from armnesia.logs.experiments import EXPERIMENT
from armnesia.logs.key_columns import KeyCodes, KeyColumn
from armnesia.logs.limits import CHUNK
from armnesia.logs.log import Log
from armnesia.logs.manifests import Changes, Manifest
from armnesia.logs.occurrences import Occurrences
from armnesia.logs.plain_booleans import with_plain_booleans
from armnesia.logs.propensities import propensity_columns, vary
from armnesia.logs.rows import RawRows, Rows, Selection
from armnesia.logs.user_names import UserNames, first_user_type, with_users
from armnesia.logs.values import arm_of_text, heading, is_missing, label_text, sorted_if_comparable

IN_MEMORY = "frame"
"""The kind, in its description, of a source that cannot be opened again."""


class Source(ABC):
    """Decisions in a file, a dataframe or a table.

    `available` are the names of all columns. With `whole_rows`, rows without an id are told apart by the
    content of all columns.
    """

    declared_actions: tuple[Hashable, ...] | None = None
    """The action set, where the source states it."""
    keys: tuple[str, ...] = ()
    """The key columns, which are read as well; see `with_keys`."""
    key_columns: tuple[KeyColumn, ...] = ()
    """The same with their edges, where they are known; see `keyed_by`."""
    where: tuple[Condition, ...] = ()
    """The conditions that a row must satisfy to be read; see `filtered`."""
    decimals_as_written: bool = False
    """Whether the text of a decimal keeps the zeros at its end; see `with_decimals_as_written`."""
    user_integers_below: int | None = None
    """In a user column of short floats, where whole numbers begin to stand for several integers."""

    def __init__(self, columns: Columns, available: Sequence[str], *, whole_rows: bool) -> None:
        self.columns = columns.found_in(available)
        self.reads_whole_rows = whole_rows and columns.id is None
        self._heading = heading_of(self.columns, available) if self.reads_whole_rows else None
        used = set(self.columns.named().values())
        self._propensities = [name for name in propensity_columns(available) if name not in used]
        self.likely_user_columns = likely_user_columns(name for name in available if name not in used)
        self._has_experiments = EXPERIMENT in available and EXPERIMENT not in used
        self._user_place = place_of_user(self.columns, available) if self.reads_whole_rows else None

    @property
    @abstractmethod
    def description(self) -> Mapping[str, Any]:
        """Where the source is, as JSON without passwords: `reopen_source` opens it again from this."""

    @property
    def can_be_reopened(self) -> bool:
        """Whether `reopen_source` can open it again from its description."""
        return bool(self.description["kind"] != IN_MEMORY)

    @property
    def columns_in_paths(self) -> frozenset[str]:
        """The columns whose values are in the paths of files, which a manifest holds."""
        return frozenset()

    @abstractmethod
    def n_rows(self) -> int | None:
        """Count the rows; None where that would take a whole reading."""

    @abstractmethod
    def distinct_actions(self) -> Iterable[Any]:
        """List the distinct values of the action column, a missing one included."""

    @abstractmethod
    def raw_rows(self, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
        """Read all rows, or those of a selection, in chunks that are not empty."""

    def user_texts(self) -> Iterator[list[str | None]]:
        """Read the user column alone, in chunks; kinds that can do better than reading all override it."""
        for raw in self.raw_rows(CHUNK, None):
            yield raw.users

    def propensity_ranges(self, name: str) -> Iterable[tuple[float | None, float | None]]:
        """Give the lowest and the highest propensity of each action; kinds that cannot say give none.

        With key columns, of each action in each decision: what the policy looked at may be their keys.
        """
        return ()

    def described(self, role: str) -> str:
        """Name a column in a message."""
        return self.columns.described(role)

    def varying_propensity(self) -> str | None:
        """Find a column of propensities that differ among rows of the same action, and of the same decision.

        >>> from armnesia.logs import open_source
        >>> log = {"action": ["A", "A"], "reward": [1, 0], "pscore": [0.2, 0.7]}
        >>> open_source(log, action="action", reward="reward").varying_propensity()
        'pscore'
        >>> log |= {"country": ["DE", "FR"]}
        >>> source = open_source(log, action="action", reward="reward")
        >>> source.keyed_by((KeyColumn("country"),)).varying_propensity() is None
        True
        """
        return next((name for name in self._propensities if vary(self.propensity_ranges(name))), None)

    def mixes_experiments(self) -> bool:
        """Whether there is a column `experiment` with several values, which is no key and nothing else.

        >>> from armnesia.logs import open_source
        >>> log = {"action": ["A", "A"], "reward": [1, 0], "experiment": ["checkout", "search"]}
        >>> open_source(log, action="action", reward="reward").mixes_experiments()
        True
        """
        parted = EXPERIMENT in self.keys
        return self._has_experiments and not parted and self.has_several_values(EXPERIMENT)

    def has_several_values(self, name: str) -> bool:
        """Whether a column has more than one value; kinds that can do better than reading it override it."""
        found: set[str | None] = set()
        for raw in self.with_keys((name,)).raw_rows(CHUNK, None):
            found |= {label_text(value) for value in raw.keys[0]} - {None}
            if len(found) > 1:
                return True
        return False

    def action_labels(self) -> list[Hashable]:
        """List the actions, distinct by their text: the declared ones, or else those that occur, sorted."""
        if self.declared_actions is not None:
            return list(self.declared_actions)
        found: dict[str | None, Any] = {}
        for value in self.distinct_actions():
            found.setdefault(label_text(value), value)
        if not found:
            raise rules.empty_log(self.where)
        if None in found:
            raise rules.missing_actions(self.described("action"), self._missing_actions())
        return sorted_if_comparable(found.values())

    def read(self, actions: tuple[Hashable, ...] | None, reward_range: tuple[float, float]) -> Log:
        """Check every row and make a log; without declared `actions`, they are taken from the source.

        This reads the source once and keeps three integers per row; kinds that can do better override it.
        """
        declared = checked_actions(self.action_labels()) if actions is None else actions
        return self.read_keyed(declared, reward_range, ())[0]

    def filtered(self, where: tuple[Condition, ...]) -> Self:
        """The same source without the rows that do not satisfy these conditions; kinds override it.

        A condition on numbers refuses a value that is no number, in the rows that satisfy those before it.
        """
        raise UnsupportedError(f"rows of a {type(self).__name__} cannot be chosen by where")

    def with_decimals_as_written(self) -> Self:
        """The same source, for a vault that holds decimals by a text with the zeros at their end.

        To be called before `filtered`, whose conditions compare texts.
        """
        written = copy.copy(self)
        written.decimals_as_written = True
        return written

    def described_filter(self) -> dict[str, list[str]]:
        """What `description` says of the conditions; nothing if there are none."""
        return {"where": list(map(str, self.where))} if self.where else {}

    def with_keys(self, names: tuple[str, ...]) -> Self:
        """The same source, of which key columns are read as well."""
        self.columns.check_keys(names)
        keyed = copy.copy(self)
        keyed.keys = names
        return keyed

    def keyed_by(self, keys: tuple[KeyColumn, ...]) -> Self:
        """The same source, whose rows have the values of key columns."""
        if not keys:
            return self
        keyed = self.with_keys(tuple(key.name for key in keys))
        keyed.key_columns = keys
        return keyed

    def read_keyed(
        self, actions: tuple[Hashable, ...], reward_range: tuple[float, float], keys: Sequence[KeyCodes]
    ) -> tuple[ArrayLog, list[IntArray]]:
        """Check every row and make a log, with the code of each row's value in each key column."""
        user_codes, arms, units, users = LabelCodes(), [], [], []
        codes: list[list[IntArray]] = [[] for _ in keys]
        for rows in self.rows(actions, reward_range):
            if len(rows.keys) != len(keys):
                raise UnsupportedError(f"a {type(self).__name__} cannot be parted into decisions by keys")
            for code, key, values in zip(codes, keys, rows.keys, strict=True):
                code.append(key.encode(values, rows.positions))
            arms.append(np.array(rows.arms, np.int64))
            units.append(np.array(rows.units, np.int64))
            users.append(user_codes.encode(rows.users, "user"))
        if not arms:
            raise rules.empty_log(self.where)
        log = ArrayLog(
            actions,
            checked_reward_range(reward_range),
            self.columns.user is not None,
            joined(arms),
            joined(units),
            joined(users),
            tuple(user_codes.labels),
            users_by_text=True,
            source=self,
        )
        return log, list(map(joined, codes))

    def rows(
        self,
        actions: Sequence[Hashable],
        reward_range: tuple[float, float],
        *,
        chunk: int = CHUNK,
        users: Collection[str] | None = None,
        ids: Collection[str] | None = None,
        user_names: UserNames | None = None,
        every_spelling: bool = True,
        plain_booleans: bool = False,
    ) -> Iterator[Rows]:
        """Read all rows, or those of given users or with given ids, in chunks; refuse the first wrong row.

        Users and ids are given as text (`label_text`). Memory does not grow with the source. An id that
        stands for two different decisions is refused, among the rows that are read. `user_names` says how
        users are spelled in the rows, by default as in the source; rows of given users are then found in
        every spelling, or with `every_spelling=False` only in this one, which an index may answer. With
        `plain_booleans`, all spellings of true and false are one value in the contents of rows.
        """
        if chunk < 1:
            raise InvalidInputError(f"chunk must be at least 1; got {chunk!r}")
        selection = self._selection(users, ids)
        if selection is not None and user_names is not None and every_spelling:
            selection = selection._replace(user_type=user_names.type)
        check = _Check(self, tuple(actions), checked_reward_range(reward_range), user_names, plain_booleans)
        return self._checked(check, chunk, selection)

    # What was counted of a source, and whether what came since can be added to it.

    def ordered_by(self, column: str) -> Self:
        """The same table, whose later rows have greater values in a column; other kinds need none."""
        raise InvalidInputError(
            "ordered_by (--ordered-by) is for tables of databases; files and tables of lakes tell by"
            f" themselves what is new: leave it out; got {column!r}"
        )

    @property
    def needs_order(self) -> bool:
        """Whether `ordered_by` has to be said before there is a manifest."""
        return False

    def manifest(self) -> Manifest:
        """What is counted when all rows are; refused by kinds that cannot tell later what has changed."""
        raise UnsupportedError(f"a {type(self).__name__} cannot tell what was counted of it")

    @staticmethod
    def manifest_from(values: Mapping[str, Any]) -> Manifest:
        """Read a manifest of this kind of source from its JSON."""
        raise UnsupportedError("this kind of source cannot tell what was counted of it")

    def changes_since(self, manifest: Manifest) -> Changes:
        """Tell whether there are rows besides those of a manifest, or all must be counted again."""
        raise UnsupportedError(f"a {type(self).__name__} cannot tell what was counted of it")

    def counted_part(self, manifest: Manifest, changes: Changes) -> Self:
        """The same source with the rows that a manifest counted, if none of them has changed."""
        raise UnsupportedError(f"a {type(self).__name__} cannot tell what was counted of it")

    def check_still_counted(self, manifest: Manifest) -> None:  # noqa: B027 (only tables have to look again)
        """Refuse a counted part that has changed while it was read, with `ChangedSourceError`.

        Here nothing is done: files, and versions of a lake's table, are compared whenever they are read.
        """

    def as_counted(self, manifest: Manifest) -> Self:
        """The same source with the rows of a manifest that was made just now, whatever has come since."""
        return self.counted_part(manifest, self.changes_since(manifest))

    def manifest_after(self, counted: Manifest, replaced: Mapping[str, Stamp]) -> Manifest:
        """The manifest of the rows that were counted, after rows of others were erased at the source.

        `replaced` are the files that others have taken the place of, by path, and the stamps of the new ones.
        """
        raise UnsupportedError(f"a {type(self).__name__} cannot tell what was counted of it")

    def new_part(self, manifest: Manifest, changes: Changes) -> Self:
        """The same source with the rows that came since a manifest."""
        raise UnsupportedError(f"a {type(self).__name__} cannot tell what was counted of it")

    # What a vault without rows asks; kinds that can do better than reading all rows override it.

    def count_rows(
        self, row_rules: RowRules, left_out: LeftOut = NOTHING_LEFT_OUT, *, checked_before: bool = False
    ) -> CountedRows:
        """Check every row that is not left out, and add them up by key and arm.

        Of rows that were `checked_before`, names and ids need not be looked at again.
        """
        n_read: list[int] = []
        chunks = self._raw_and_checked(row_rules, None, left_out, n_read)
        return count_chunks(chunks, self.key_columns, n_read, self.columns.user is not None)

    def found_rows(
        self, role: str, texts: Collection[str], row_rules: RowRules, *, every_spelling: bool, with_ids: bool
    ) -> list[FoundRows]:
        """Add up the rows of given users, or with given ids, by user, key and arm, and `with_ids` by id.

        Users are found in every spelling, or only as they are given, which an index may answer.
        """
        selection = Selection(role, frozenset(texts))
        if every_spelling and role == "user":
            selection = selection._replace(user_type=row_rules.names.type)
        chunks = self._raw_and_checked(row_rules, selection, NOTHING_LEFT_OUT, [])
        return found_in_chunks(chunks, self.key_columns, with_ids=with_ids)

    def labels_like(self, role: str, texts: Collection[str], user_type: UserType) -> set[str]:
        """The users or ids that are among these texts, or may be one of them in another spelling.

        All rows are read for it, by neither an index nor statistics of a file.
        """
        wanted = Selection(role, frozenset(texts), user_type)
        found: set[str] = set()
        for raw in self.raw_rows(CHUNK, None):
            labels = raw.users if role == "user" else raw.ids or []
            found |= {each for each in set(labels) if each is not None and _is_like(each, wanted)}
        return found

    def distinct_labels(self, role: str) -> Iterator[Collection[str]]:
        """The users or ids of all rows, in chunks; one may be in several."""
        for raw in self.raw_rows(CHUNK, None):
            yield {each for each in (raw.users if role == "user" else raw.ids or []) if each is not None}

    def holds_bytes(self, role: str) -> bool:
        """Whether the users or ids are bytes, of which only a reading of all tells what texts they are."""
        return False

    def user_type(self) -> UserType | None:
        """How the users are named; None if there are none."""
        return first_user_type(self.user_texts())

    def _raw_and_checked(
        self, row_rules: RowRules, selection: Selection | None, left_out: LeftOut, n_read: list[int]
    ) -> Iterator[tuple[RawRows, Rows]]:
        """Chunks as they are read and checked; their sizes, with rows that are left out, go to `n_read`."""
        check = _Check(self, *row_rules, plain_booleans=False)
        for raw in self.raw_rows(CHUNK, selection):
            n_read.append(len(raw.positions))
            kept = without(raw, left_out)
            if kept.positions:
                yield kept, check.rows(kept)

    def _selection(self, users: Collection[str] | None, ids: Collection[str] | None) -> Selection | None:
        given = [(role, texts) for role, texts in (("user", users), ("id", ids)) if texts is not None]
        if not given:
            return None
        if len(given) > 1:
            raise InvalidInputError("rows are selected by users or by ids; got both")
        ((role, texts),) = given
        if isinstance(texts, str):
            raise InvalidInputError(f"{role}s must be a set of texts; got the text {texts!r}")
        if role not in self.columns.named():
            raise InvalidInputError(f"rows of given {role}s need the {role} column; the source has none")
        return Selection(role, frozenset(texts))

    def _checked(self, check: "_Check", chunk: int, selection: Selection | None) -> Iterator[Rows]:
        occurrences = Occurrences()
        for raw in self.raw_rows(chunk, selection):
            rows = check.rows(raw)
            if rows.ids is not None:
                keys = (map(repr, values) for values in rows.keys)  # values need not be hashable
                decisions = zip(rows.arms, rows.units, rows.users, *keys, strict=True)
                ordinals, contradiction = occurrences.number_decisions(rows.ids, decisions, rows.positions)
                if self.columns.id == self.columns.user and any(ordinals):
                    second = next(place for place, earlier in enumerate(ordinals) if earlier)
                    raise rules.repeated_user_ids(self.described("id"), rows.positions[second])
                if contradiction is not None:
                    raise rules.contradicting_ids(self.described("id"), contradiction)
                rows = replace(rows, ordinals=ordinals)
            elif rows.contents is not None:
                rows = replace(rows, ordinals=occurrences.number(rows.contents))
            yield rows

    def _missing_actions(self) -> Iterator[tuple[int, Any]]:
        for raw in self.raw_rows(CHUNK, None):
            for position, action in zip(raw.positions, raw.actions, strict=True):
                if is_missing(action):
                    yield position, None


def _is_like(label: str, wanted: Selection) -> bool:
    """Whether a label is one of the wanted texts, or is not written as names usually are."""
    if label in wanted.texts:
        return True
    return wanted.plain is not None and wanted.user_type.normalised(label) != label


def place_of_user(columns: Columns, names: Sequence[str]) -> int | None:
    """Where the user stands in the content of a row, after the reward: columns are sorted by name."""
    if "user" not in columns.named():
        return None
    others = sorted(names)
    others.remove(columns.reward)
    return others.index(columns.named()["user"])


def joined(parts: list[IntArray]) -> IntArray:
    """Join arrays and empty their list, so that they are in memory twice for a moment only."""
    whole = np.concatenate(parts)
    parts.clear()
    return whole


def heading_of(columns: Columns, names: Iterable[str]) -> str:
    """Begin the contents of rows whose columns have these names."""
    others = list(names)
    others.remove(columns.reward)
    return heading(columns.reward, others)


class _Check:
    """The checks of one reading, against the declared actions and range."""

    def __init__(
        self,
        source: Source,
        actions: tuple[Hashable, ...],
        reward_range: tuple[float, float],
        user_names: UserNames | None,
        plain_booleans: bool,
    ) -> None:
        self._source, self._user_names, self._plain_booleans = source, user_names, plain_booleans
        self._described = source.described
        self._has_users = source.columns.user is not None
        self._heading = source._heading
        self._actions = actions
        self._arm_of = arm_of_text(actions)
        self._range = reward_range

    def rows(self, raw: RawRows) -> Rows:
        """Turn a chunk into arms and units; of several faults, the first of these checks reports its own."""
        raw = self._with_normalised_users(raw)
        arms = self._arms(raw)
        what = self._described("reward")
        rewards = rules.reward_numbers(raw.rewards, what, raw.positions)
        rules.check_rewards(rewards, what, self._range, raw.positions)
        units = to_units(rewards, self._range).tolist()
        if self._has_users:
            rules.check_label_lengths(raw.users, self._described("user"), raw.positions)
        contents = None
        if raw.others is not None:
            rules.check_contents(raw.others, raw.positions)
            others = raw.others
            if self._plain_booleans:
                others = with_plain_booleans(others, self._source._user_place)
            contents = [f"{self._heading}{u};{other}" for u, other in zip(units, others, strict=True)]
        return Rows(raw.positions, arms, units, raw.users, self._ids(raw), contents, keys=raw.keys)

    def _with_normalised_users(self, raw: RawRows) -> RawRows:
        source, names = self._source, self._user_names
        if names is None or "user" not in source.columns.named():
            return raw
        what, below = self._described("user"), source.user_integers_below
        users = names.normalise(raw.users, raw.positions, what, below)
        if users is raw.users:
            return raw
        others = raw.others
        if others is not None and source._user_place is not None:
            others = with_users(others, source._user_place, raw.users, users)
        ids = users if source.columns.id == source.columns.user else raw.ids  # one spelling for both
        return replace(raw, users=users, ids=ids, others=others)

    def _arms(self, raw: RawRows) -> list[int]:
        what = self._described("action")
        texts: list[Any] = rules.label_texts(raw.actions, what, raw.positions)
        rules.check_label_lengths(texts, what, raw.positions)
        arms = [self._arm_of.get(text, -1) for text in texts]
        if -1 in arms:
            wrong = [row for row, arm in enumerate(arms) if arm < 0]
            missing = [(raw.positions[row], None) for row in wrong if texts[row] is None]
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
            raise rules.missing_ids(self._described("id"), missing)
        rules.check_label_lengths(ids, self._described("id"), raw.positions)
        return ids
