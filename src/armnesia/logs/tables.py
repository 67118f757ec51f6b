"""Decisions in a table of a database, read by a cursor of the database: what all databases have in common."""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Self

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.logs.columns import Columns
from armnesia.logs.frames import raw_rows_of
from armnesia.logs.source import RawRows, Selection, Source


class TableSource(Source):
    """A table or view."""

    def __init__(self, location: str, table: str, columns: Columns, *, whole_rows: bool) -> None:
        self._location = location
        self._table = table
        self._quoted = ".".join(map(quoted, _parts(table)))
        available = self._available()
        whole = whole_rows and columns.id is None
        found = columns.found_in(available)
        super().__init__(found, available if whole else None)
        self._names = available
        self._read = available if whole else found.read()
        self._others = sorted(name for name in available if name != found.reward) if whole else None

    def with_keys(self, names: tuple[str, ...]) -> Self:
        """The same table, of which key columns are read as well."""
        keyed = super().with_keys(names)
        keyed._read = keyed.columns.found_in(self._names).read()
        return keyed

    @property
    def description(self) -> Mapping[str, Any]:
        """The URL, without a password, and the table."""
        return {
            "kind": "table",
            "location": self._location,
            "table": self._table,
            "columns": self.columns.to_dict(),
        }

    def n_rows(self) -> int:
        """Ask the database."""
        ((number,),) = next(self._chunks(f"SELECT count(*) FROM {self._quoted}", (), 1))
        return int(number)

    def distinct_actions(self) -> Iterable[Any]:
        """Ask the database for the distinct actions."""
        action = self._selected(self.columns.action)
        for chunk in self._chunks(f"SELECT DISTINCT {action} FROM {self._quoted} ORDER BY 1", (), 1000):
            yield from (label for (label,) in chunk)

    def raw_rows(self, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
        """Stream the rows of one snapshot, in the order of the database; positions count what it returns."""
        sql = f"SELECT {', '.join(map(self._selected, self._read))} FROM {self._quoted}"
        condition, parameters = "", ()
        if selection is not None:
            column = self.columns.named()[selection.role]
            condition, parameters = self._condition(column, selection.texts)
        first = 0
        for rows in self._chunks(sql + condition, parameters, chunk):
            values = dict(zip(self._read, map(list, zip(*rows, strict=True)), strict=True))
            raw = raw_rows_of(values, self.columns, first, self._others).selected(selection)
            first += len(rows)
            if raw.positions:
                yield raw

    def _selected(self, name: str) -> str:
        """A column in SQL, as it is read."""
        return quoted(name)

    @abstractmethod
    def _available(self) -> list[str]:
        """The names of the table's columns."""

    @abstractmethod
    def _chunks(self, sql: str, parameters: tuple[Any, ...], size: int) -> Iterator[list[tuple[Any, ...]]]:
        """Run a query, and yield its rows in chunks."""

    @abstractmethod
    def _condition(self, column: str, texts: Collection[str]) -> tuple[str, tuple[Any, ...]]:
        """A condition that holds for every row with one of these texts, and that an index can answer."""


def quoted(name: str) -> str:
    """Quote an identifier for SQL.

    >>> print(quoted('my "own" table'))
    "my ""own"" table"
    """
    return '"' + name.replace('"', '""') + '"'


def no_table(table: str, location: str) -> InvalidLogError:
    """Refuse a table that the database does not have."""
    return InvalidLogError(
        f"source {location!r} has no table {table!r}; give the name of one, or schema.table"
    )


def _parts(table: str) -> list[str]:
    parts = table.split(".", 1)
    if not all(parts):
        raise InvalidInputError(f"table must be a name or schema.table; got {table!r}")
    return parts
