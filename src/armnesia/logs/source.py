"""`Source`: where logged decisions are, and how they become one relation; `open_source` finds the kind.

A kind of source says how it is opened (`at`) and what its columns are selected from (`scan`). If it can, it
says which version of the rows was counted (`version`), what came since (`new_since`), and who deletes rows
there (`erased_by`). `reading` and the statements over it are the same for all kinds. A new kind is one file
with a subclass, and a line in `_KINDS`.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

from armnesia.core.errors import InvalidInputError, InvalidLogError, UndeclaredActionError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.core.messages import listed
from armnesia.core.urls import is_remote, may_hold_password, redacted
from armnesia.logs import refusals
from armnesia.logs.columns import IF_PRESENT, Columns, IfPresent, likely_user_columns, propensity_columns
from armnesia.logs.conditions import Condition, Where, conditions
from armnesia.logs.engine import Connection, check_scheme, connected
from armnesia.logs.keys import KeyColumn
from armnesia.logs.sql import Column
from armnesia.logs.statements import Reading, Tally
from armnesia.logs.values import arm_of_text

if TYPE_CHECKING:
    from armnesia.logs.erase.eraser import Eraser

IN_MEMORY = "dataframe"
"""The location of what is in the memory of this process."""
_FEW_DIGITS = 1e-6
"""Propensities that differ by a smaller part are equal: they may have been written with few digits."""
Version = Mapping[str, Any]
"""What a source was when it was counted, as JSON holds it."""


@dataclass(frozen=True)
class Scan:
    """All columns of a source: what they are selected from, as `stored` in SQL, and each by its name."""

    table: str
    columns: Mapping[str, Column]
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Source(ABC):
    """Where rows are, which of their columns are read, and which rows."""

    location: str
    columns: Columns
    table: str | None = None
    where: tuple[Condition, ...] = ()
    keys: tuple[KeyColumn, ...] = ()
    whole_rows: bool = False
    """Whether rows without an id are known by all their columns, which are read then."""
    user_type: UserType | None = None
    """In whose normal form users are read, and those named of whom rows are wanted; None: as they are."""

    option: ClassVar[str] = ""
    """What is told of a source of this kind beside its location: "table" or "delimiter"."""
    erased_by: ClassVar[tuple[str, ...]] = ()
    """The module in `erase/` and the class of the eraser, if rows can be deleted at such a source."""
    position: ClassVar[str] = "row_number() OVER ()"
    """The position of a row in SQL, from 1."""

    @classmethod
    @abstractmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> Self:
        """The source at a place, as a caller names it; see `option`."""

    @classmethod
    def option_of(cls, **given: str | None) -> str | None:
        """The option that is for this kind; refuse any other."""
        for option, value in given.items():
            if value is not None and option != cls.option:
                raise InvalidInputError(
                    f"{option} is for {_OPTIONS[option]}; got {value!r} for another source"
                )
        return given.get(cls.option)

    @abstractmethod
    def scan(self, connection: Connection) -> Scan:
        """All columns, as they are stored."""

    def version(self) -> Version | None:
        """What the source is now; None if nothing tells, so that it has to be counted again each time.

        With a version, a second reading finds the same rows in the same order, or refuses.
        """
        return None

    def new_since(self, version: Version) -> "Source | None":
        """The rows that came since a version; None if the source has to be counted again."""
        return None

    def eraser(self) -> "Eraser":
        """What deletes rows of this source."""
        if not self.erased_by:
            raise UnsupportedError(f"rows of source {self.location!r} cannot be erased by armnesia")
        module, name = self.erased_by
        made: Eraser = getattr(import_module(f"armnesia.logs.erase.{module}"), name)(self)
        return made

    @contextmanager
    def reading(self, further: Mapping[str, str] | None = None) -> Iterator[Reading]:
        """Lend a reading of all rows, as one table in SQL with typed columns that are named by their roles.

        `further` are expressions over the scan's columns, and the names that they have in the table.
        """
        with self.connection() as connection:
            scan = self.scan(connection)
            named = self._named(scan.columns)
            columns = {role: self.typed(role, name, scan.columns) for role, name in named.items()}
            selected = [f"{column.sql} AS log_{role}" for role, column in columns.items()]
            selected += [f"{sql} AS {name}" for name, sql in (further or {}).items()]
            typed = {role: column.named(f"log_{role}") for role, column in columns.items()}
            if self.user_type is not None:
                for role, name in named.items():
                    if name == self.columns.user and role.startswith(("user", "other_")):
                        typed[role] = typed[role].as_name(self.user_type)
            table = f"(SELECT {', '.join(selected)} FROM {scan.table} AS stored) AS log"
            compared = {f"where_{place}": list(each.values) for place, each in enumerate(self.where)}
            parameters = {**scan.parameters, **compared}
            yield Reading(connection, table, typed, parameters, self.where, self.keys, self.position)

    def column_names(self) -> list[str]:
        """The names of all columns."""
        with self.connection() as connection:
            return list(self.scan(connection).columns)

    @property
    def partitions(self) -> frozenset[str]:
        """Columns that are part of a row only where they have a role: files may move to other folders."""
        return frozenset()

    def _named(self, available: Collection[str]) -> dict[str, str]:
        """By its role, the name of each column that is read."""
        named = self.columns.named()
        keys = {f"key_{at}": key.name for at, key in enumerate(self.keys)}
        if self.whole_rows and self.columns.id is None:
            moved = self.partitions - {*named.values(), *keys.values()}
            others = sorted(set(available) - {self.columns.reward} - moved)
            named |= {f"other_{at}": name for at, name in enumerate(others)}
        named |= keys
        return named | {f"where_{at}": each.column for at, each in enumerate(self.where)}

    def typed(self, role: str, name: str, available: Mapping[str, Column]) -> Column:
        """The column of a role, of a type that fits."""
        kind = role.partition("_")[0]
        if name not in available:
            raise refusals.missing_column(kind, name, list(available))
        is_number = kind == "reward" or (kind == "key" and bool(self.keys[int(role[4:])].edges))
        available[name].check("reward" if is_number else kind, f"{kind} column {name!r}")
        return available[name]

    def connection(self) -> AbstractContextManager[Connection]:
        """What runs statements over the rows."""
        return connected(self.location)

    def tallies(self, reward_range: tuple[float, float], *args: Any, **choice: Any) -> list[Tally]:
        """Add up the rows; see `Reading.tallies`."""
        with self.reading() as reading:
            return reading.tallies(reward_range, *args, **choice)

    def first_wrong(self, role: str, *args: Any, **given: Any) -> list[tuple[int, Any]]:
        """The first rows with a wrong value in a column; see `Reading.first_wrong`."""
        with self.reading() as reading:
            return reading.first_wrong(role, *args, **given)

    def wrong_names(self, role: str) -> list[tuple[int, Any]]:
        """The first rows with a user, or an id, that cannot be one; see `Reading.wrong_names`."""
        with self.reading() as reading:
            return reading.wrong_names(role)

    def ranges(self, role: str) -> list[tuple[float, float]]:
        """The lowest and the highest number of a column, for each action and key; see `Reading.ranges`."""
        with self.reading() as reading:
            return reading.ranges(role)

    def check_tallies(
        self, found: Sequence[Tally], actions: tuple[Hashable, ...], reward_range: tuple[float, float]
    ) -> None:
        """Refuse rows that are not as a log must be, by what they add up to; messages name the first ones."""
        if not found:
            raise refusals.empty_log(self.where)
        if any(each.action is None for each in found):
            raise self._wrong_rows("action", "must name an action in every row")
        undeclared = sorted({str(each.action) for each in found} - arm_of_text(actions).keys())
        if undeclared:
            rule = f"must hold declared actions only, {listed(actions)}"
            raise self._wrong_rows("action", rule, kind=UndeclaredActionError, texts=undeclared)
        for place, key in enumerate(self.keys):
            if any(each.key[place] is None for each in found):
                rule = "must have a value in every row"
                if key.edges:
                    rule = "has edges, so it must hold a number in every row"
                raise self._wrong_rows(f"key_{place}", rule)
        if any(each.valid < each.number for each in found):
            self._check_names()
            low, high = reward_range
            rule = f"must hold a number from {low!r} to {high!r}, the reward range, in every row"
            only_rewards = f"{self.columns.reward} is not null"
            remedy = (
                f": where={only_rewards!r} (--where) leaves rows without one out, and reward_range=…"
                " (--reward-range) declares another range, in a vault at init"
            )
            raise self._wrong_rows("reward", rule, remedy, reward_range=reward_range)

    def _check_names(self) -> None:
        """Refuse users and ids that can name nobody."""
        for role in ("user", "id"):
            rule = "must hold no floats from 2**53 (2**24 in 32 bits) on"
            remedy = ": one may stand for several integers; write them as integers or text"
            if role == "user" and self.user_type is UserType.INTEGER:
                rule = "must hold integers, by which this vault names people"
                remedy = (
                    ": init --user-type text makes a vault that names them by text; floats are integers"
                    " below 2**53 (2**24 in 32 bits) only, from where one may stand for several"
                )
            strangers = self.wrong_names(role)
            if strangers:
                raise refusals.refused(self.described(role), rule, strangers, remedy)

    def _wrong_rows(
        self,
        role: str,
        rule: str,
        remedy: str = "",
        *,
        kind: type[InvalidLogError] = InvalidLogError,
        **given: Any,
    ) -> InvalidLogError:
        """Name the first rows with a fault; without values, if the column seems to hold people."""
        offences = self.first_wrong(role, **given)
        hidden = bool(likely_user_columns([self._named(())[role]]))
        return refusals.refused(self.described(role), rule, offences, remedy, hidden=hidden, kind=kind)

    def keyed_by(self, keys: tuple[KeyColumn, ...]) -> Self:
        """The same source with key columns, which are neither the action, the reward nor the user."""
        self.columns.check_keys([key.name for key in keys])
        return replace(self, keys=keys)

    def named_by(self, user_type: UserType | None) -> Self:
        """The same source, whose users are read in the normal form of a vault."""
        return replace(self, user_type=user_type)

    def described(self, role: str) -> str:
        """Name a column in a message."""
        return f"{role.partition('_')[0]} column {self._named(())[role]!r}"

    def varying_propensity(self) -> str | None:
        """A column of propensities that differ among the rows of an action and key; None if there is none.

        Values that are no probabilities are no propensities, whatever their column is called.
        """
        for name in propensity_columns(self.column_names()):
            if name not in self.columns.named().values():
                asked = replace(self, where=(*self.where, Condition(name, "is not null", ())))
                ranges = asked.ranges(f"where_{len(self.where)}")
                are_shares = all(low >= 0 and high <= 1 for low, high in ranges)
                if are_shares and any(high - low > _FEW_DIGITS * high for low, high in ranges):
                    return name
        return None

    def address(self) -> dict[str, Any]:
        """What `reopen` opens it by, as JSON holds it; without a password."""
        return {
            "source": self.location,
            "table": self.table,
            **vars(self.columns),
            "where": [str(each) for each in self.where],
            "delimiter": getattr(self, "delimiter", None),
        }


def reopen(address: Mapping[str, Any]) -> Source:
    """Open a source again, from its `address`."""
    if address["source"] == IN_MEMORY:
        raise InvalidInputError("a dataframe cannot be opened again: give it once more, or a file or table")
    return open_source(
        address["source"], **{name: given for name, given in address.items() if name != "source"}
    )


def open_source(
    source: Any,
    *,
    action: str = "action",
    reward: str = "reward",
    user: str | IfPresent | None = IF_PRESENT,
    id: str | None = None,  # noqa: A002 (the name of the role)
    table: str | None = None,
    where: Where | None = None,
    whole_rows: bool = False,
    delimiter: str | None = None,
) -> Source:
    """Find out what a source is, and check that it has the columns; see `read_log` for what can be read.

    >>> open_source({"action": ["A"], "reward": [1]}).columns
    Columns(action='action', reward='reward', user=None, id=None)
    """
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    columns = Columns(action, reward, user, id)
    made = source_at(source, columns, table, delimiter)
    found = columns.found_in(made.column_names())
    made = replace(made, columns=found, where=conditions(where), whole_rows=whole_rows)
    with made.reading() as reading:  # it checks the columns
        reading.check_conditions()
    return made


_OPTIONS = {"table": "databases, such as sqlite:///file.db", "delimiter": "CSV files"}
"""What the options of kinds are for."""
_KINDS = {
    "sqlite": ("databases", "SQLiteSource"),
    "postgresql": ("databases", "PostgresSource"),
    "postgres": ("databases", "PostgresSource"),
    "delta": ("lakes", "DeltaSource"),
    "iceberg": ("lakes", "IcebergSource"),
    "spark": ("spark", "SparkSource"),
}
"""The module and class of each kind that a name begins with; other names are of files."""


def source_at(
    source: Any, columns: Columns, table: str | None = None, delimiter: str | None = None
) -> Source:
    """The source with its kind; each kind is imported when it is needed."""
    module, name = ("frames", "FrameSource")
    if isinstance(source, str):
        module, name = _KINDS.get(source.partition(":")[0], ("files", "FileSource"))
        if name == "FileSource" and is_remote(source):
            check_scheme(source)
        if name in ("FileSource", "SQLiteSource") and may_hold_password(source.partition("://")[2] or source):
            raise InvalidInputError(
                "source must be the path of CSV or Parquet files, or the URL of a database, and only that of"
                f" a PostgreSQL server may have a password in it; got {redacted(source)!r}"
            )
    kind: type[Source] = getattr(import_module(f"armnesia.logs.{module}"), name)
    return kind.at(source, columns, kind.option_of(table=table, delimiter=delimiter))
