"""`Source`: where logged decisions are, and how they become one relation; `open_source` finds the kind.

A kind of source says how it is opened (`at`) and what its columns are selected from (`scan`). If it can, it
says which version of the rows was counted (`version`), what came since (`new_since`), and who deletes rows
there (`erased_by`). `relation` and the statements over it are the same for all kinds. A new kind is one file
with a subclass, and a line in `_KINDS`.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

from armnesia.core.errors import InvalidInputError, UnsupportedError
from armnesia.core.identifiers import UserType
from armnesia.core.urls import may_hold_password, redacted
from armnesia.logs import refusals
from armnesia.logs.columns import IF_PRESENT, Columns, IfPresent
from armnesia.logs.conditions import Condition, Where, conditions
from armnesia.logs.engine import Connection, connected
from armnesia.logs.keys import KeyColumn
from armnesia.logs.remarks import EXPERIMENT, propensity_columns, vary
from armnesia.logs.sql import INTEGERS, Column, NameColumn
from armnesia.logs.statements import Chosen, Reading, Relation, Tally, Wrong
from armnesia.logs.stores import check_scheme, is_remote

if TYPE_CHECKING:
    from armnesia.logs.erase.eraser import Eraser

IN_MEMORY = "dataframe"
"""The location of what is in the memory of this process."""
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
    declared_actions: tuple[Any, ...] | None = None
    """Where the source itself says which actions there are."""

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
        """What the source is now; None if nothing tells, so that it has to be counted again each time."""
        return None

    @property
    def holds_still(self) -> bool:
        """Whether a second reading finds the same rows, or refuses."""
        return self.version() is not None

    @property
    def ordered(self) -> bool:
        """Whether rows are in the same order at each reading."""
        return True

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

    def relation(self, connection: Connection, further: Mapping[str, str] | None = None) -> Relation:
        """The rows as one table in SQL, with typed columns that are named by their roles.

        `further` are expressions over the scan's columns, and the names that they have in the table.
        """
        scan = self.scan(connection)
        named = self._named(scan.columns)
        columns = {role: self.typed(role, name, scan.columns) for role, name in named.items()}
        selected = [f"{column.sql} AS log_{role}" for role, column in columns.items()]
        selected += [f"{sql} AS {name}" for name, sql in (further or {}).items()]
        typed = {role: column.named(f"log_{role}") for role, column in columns.items()}
        if self.user_type is not None:
            for role, name in named.items():
                if name == self.columns.user and role.startswith(("user", "other_")):
                    typed[role] = NameColumn.of(typed[role], self.user_type)
        table = f"(SELECT {', '.join(selected)} FROM {scan.table} AS stored) AS log"
        return Relation(table, typed, scan.parameters)

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

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        """Lend a reading of all rows."""
        with self.connection() as connection:
            relation = self.relation(connection)
            yield Reading(connection, relation, self.where, self.keys, self.position)

    def connection(self) -> AbstractContextManager[Connection]:
        """What runs statements over the rows."""
        return connected(self.location)

    def tallies(
        self,
        reward_range: tuple[float, float],
        *,
        chosen: Chosen | None = None,
        others: bool = False,
        by: Collection[str] = (),
        positions: Sequence[int] = (),
    ) -> list[Tally]:
        """Add up the rows; see `Reading.tallies`."""
        with self.reading() as reading:
            return reading.tallies(reward_range, chosen=chosen, others=others, by=by, positions=positions)

    def first_wrong(
        self,
        role: str,
        fault: Wrong,
        reward_range: tuple[float, float] = (0.0, 1.0),
        texts: Collection[str] = (),
    ) -> list[tuple[int, Any]]:
        """The first rows with a fault in a column, and the value there; see `Wrong`."""
        with self.reading() as reading:
            return reading.first_wrong(role, fault, reward_range, texts)

    def type_of(self, role: str) -> str:
        """What a column holds: "integer", "boolean" or "other"."""
        with self.connection() as connection:
            column = self.relation(connection).columns[role]
        if column.is_text:
            return "other"
        return "integer" if column.type in INTEGERS else "boolean" if column.type == "BOOLEAN" else "other"

    def keyed_by(self, keys: tuple[KeyColumn, ...]) -> Self:
        """The same source with key columns, which are neither the action, the reward nor the user."""
        self.columns.check_keys([key.name for key in keys])
        return replace(self, keys=keys)

    def named_by(self, user_type: UserType | None) -> Self:
        """The same source, whose users are read in the normal form of a vault."""
        return replace(self, user_type=user_type)

    def user_type_of_rows(self) -> UserType | None:
        """How the users of the rows are named: what a vault takes from its first source."""
        with self.reading() as reading:
            return reading.user_type()

    def described(self, role: str) -> str:
        """Name a column in a message."""
        return self.columns.described(role)

    def varying_propensity(self) -> str | None:
        """A column of propensities that differ among the rows of an action and key; None if there is none."""
        with self.connection() as connection:
            names = propensity_columns(self.scan(connection).columns)
        for name in names:
            if name not in self.columns.named().values():
                asked = replace(self, where=(*self.where, Condition(name, "is not null", ())))
                with asked.reading() as reading:
                    column = reading.relation.several("where")[-1]
                    if vary(reading.ranges(column)):
                        return name
        return None

    def mixes_experiments(self) -> bool:
        """Whether rows of several experiments are read as one decision."""
        if EXPERIMENT in {key.name for key in self.keys}:
            return False
        with self.connection() as connection:
            if EXPERIMENT not in self.scan(connection).columns:
                return False
        with self.keyed_by((KeyColumn(EXPERIMENT),)).reading() as reading:
            return len(set().union(*reading.labels("key_0"))) > 1

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
    with made.connection() as connection:
        found = columns.found_in(list(made.scan(connection).columns))
        made = replace(made, columns=found, where=conditions(where), whole_rows=whole_rows)
        made.relation(connection)  # it checks the columns
    if made.where:
        with made.reading() as reading:
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
