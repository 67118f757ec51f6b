"""Decisions in a table of a database, read by a cursor of the database: what all databases have in common."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.messages import listed
from armnesia.logs.columns import Columns
from armnesia.logs.frames import raw_rows_of
from armnesia.logs.limits import in_chunks
from armnesia.logs.source import RawRows, Selection, Source


class TableSource(Source):
    """A table or view."""

    def __init__(self, location: str, columns: Columns, *, table: str | None, whole_rows: bool) -> None:
        if table is None:
            raise InvalidInputError(
                "a database needs the name of a table, such as table='clicks' (--table clicks); got none"
            )
        self._location = location
        self._table = table
        self._quoted = ".".join(map(quoted, _parts(table)))
        available = self._available()
        super().__init__(columns, available, whole_rows=whole_rows)
        whole, named = self.reads_whole_rows, self.columns.named()
        self._read = available if whole else list(dict.fromkeys(named.values()))
        self._others = sorted(name for name in available if name != named["reward"]) if whole else None

    @property
    def description(self) -> Mapping[str, Any]:
        """The URL, without a password, and the table."""
        return {
            "kind": "table",
            "location": self._location,
            "table": self._table,
            "columns": vars(self.columns),
        }

    def n_rows(self) -> int:
        """Ask the database."""
        ((number,),) = next(self._pieces(f"SELECT count(*) FROM {self._quoted}"))
        return int(number)

    def distinct_actions(self) -> Iterable[Any]:
        """Ask the database for the distinct actions."""
        action = self._selected(self.columns.action)
        for piece in self._pieces(f"SELECT DISTINCT {action} FROM {self._quoted} ORDER BY 1"):
            yield from (label for (label,) in piece)

    def propensity_ranges(self, name: str) -> Iterable[tuple[float | None, float | None]]:
        """Ask the database for the lowest and the highest of each action."""
        value, action = self._number(name), quoted(self.columns.action)
        for piece in self._pieces(f"SELECT min({value}), max({value}) FROM {self._quoted} GROUP BY {action}"):
            yield from ((low, high) for low, high in piece)

    def raw_rows(self, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
        """Stream the rows of one snapshot, in the order of the database; positions count what it returns."""
        sql = f"SELECT {', '.join(map(self._selected, self._read))} FROM {self._quoted}"
        condition, parameters = "", ()
        if selection is not None:
            column = self.columns.named()[selection.role]
            condition, parameters = self._condition(column, selection)
        first = 0
        for rows in in_chunks(self._pieces(sql + condition, parameters), chunk):
            values = dict(zip(self._read, map(list, zip(*rows, strict=True)), strict=True))
            raw = raw_rows_of(values, self.columns, first, self._others).selected(selection)
            first += len(rows)
            if raw.positions:
                yield raw

    def _selected(self, name: str) -> str:
        """A column in SQL, as it is read."""
        return quoted(name)

    @abstractmethod
    def _number(self, name: str) -> str:
        """A column as a number in SQL; NULL where it holds none."""

    @abstractmethod
    def _available(self) -> list[str]:
        """The names of the table's columns."""

    @abstractmethod
    def _pieces(self, sql: str, parameters: tuple[Any, ...] = ()) -> Iterator[list[tuple[Any, ...]]]:
        """Run a query, and yield a few of its rows at a time."""

    @abstractmethod
    def _condition(self, column: str, selection: Selection) -> tuple[str, tuple[Any, ...]]:
        """A condition that holds for every row of a selection.

        An index can answer it, unless other spellings of users are selected too.
        """


def quoted(name: str) -> str:
    """Quote an identifier for SQL.

    >>> print(quoted('my "own" table'))
    "my ""own"" table"
    """
    return '"' + name.replace('"', '""') + '"'


def no_table(table: str, location: str, existing: Iterable[str]) -> InvalidLogError:
    """Refuse a table that the database does not have, and list those that it has."""
    return InvalidLogError(
        f"source {location!r} has no table {table!r}; it has {listed(existing, 20) or 'no tables'}"
    )


def _parts(table: str) -> list[str]:
    parts = table.split(".", 1)
    if not all(parts):
        raise InvalidInputError(f"table must be a name or schema.table; got {table!r}")
    return parts
