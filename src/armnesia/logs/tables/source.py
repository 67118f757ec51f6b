"""Decisions in a table of a database, read by a cursor of the database: what all databases have in common."""

import copy
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.messages import listed
from armnesia.logs.columns import Columns, quoted
from armnesia.logs.conditions import Condition, rows_that_satisfy
from armnesia.logs.limits import CHUNK, in_chunks
from armnesia.logs.manifests import FileChanges, Manifest, SourceChanges, TableRange
from armnesia.logs.propensities import Ranges
from armnesia.logs.rows import RawRows, Selection, raw_rows_of
from armnesia.logs.rules import check_found
from armnesia.logs.source import Source
from armnesia.logs.values import label_text, with_decimals_as_written

ABOVE, UP_TO = "\0above", "\0up_to"
"""Stand for parameters in SQL until it is run: no name can have such characters."""


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
        self._names = available
        self._order: str | None = None
        self._highest_known: TableRange | None = None
        self._above: str | int | None = None
        self._up_to: str | int | None = None
        whole, reward = self.reads_whole_rows, self.columns.reward
        self._read = available if whole else list(dict.fromkeys(self.columns.named().values()))
        self._others = sorted(name for name in available if name != reward) if whole else None

    def with_keys(self, names: tuple[str, ...]) -> Self:
        """The same table, of which key columns are read as well."""
        keyed = super().with_keys(names)
        check_found("key", names, self._names)
        keyed._read = list(dict.fromkeys([*self._read, *names]))
        return keyed

    @property
    def description(self) -> Mapping[str, Any]:
        """The URL, without a password, and the table."""
        return {
            "kind": "table",
            "location": self._location,
            "table": self._table,
            "columns": vars(self.columns),
            **self.described_filter(),
            **({} if self._order is None else {"ordered_by": self._order}),
        }

    def filtered(self, where: tuple[Condition, ...]) -> Self:
        """The same table without the rows that do not satisfy these conditions."""
        names = [condition.column for condition in where]
        check_found("where", names, self._names)
        chosen = copy.copy(self)
        chosen.where = (*self.where, *where)
        chosen._read = list(dict.fromkeys([*self._read, *names]))
        return chosen

    def ordered_by(self, column: str) -> Self:
        """The same table, whose later rows have greater values in a column."""
        check_found("ordered-by", [column], self._names)
        ordered = copy.copy(self)
        ordered._order, ordered._highest_known = column, None
        return ordered

    @property
    def needs_order(self) -> bool:
        """Whether nothing says which rows are new."""
        return self._order is None

    def manifest(self) -> TableRange:
        """The highest value of the column that rows are ordered by, when it is first asked for."""
        if self._order is None:
            raise InvalidInputError(
                "a vault that holds no rows needs to know which rows of a table of a database are new: name a"
                " column whose values grow with every row that is added, such as an id or a time, with"
                " ordered_by (--ordered-by)"
            )
        if self._highest_known is None:
            name = f"{self._location}#{self._table}"
            self._highest_known = TableRange(name, self._order, self._highest(self._order))
        return self._highest_known

    def changes_since(self, manifest: Manifest) -> FileChanges:
        """Tell whether there are rows with greater values than were counted.

        Rows that were changed or removed below are not noticed, unless the last one was.
        """
        assert isinstance(manifest, TableRange)
        now = self.manifest()
        if (now.table, now.column) != (manifest.table, manifest.column):
            return FileChanges(recount=f"its rows were ordered by {manifest.column!r}")
        if manifest.highest is None or now.highest == manifest.highest:
            return FileChanges((now.table,) if now.highest != manifest.highest else ())
        if self._between(None, manifest.highest)._highest(now.column) != manifest.highest:
            return FileChanges(recount="the last of the rows that were counted is no longer there")
        return FileChanges((now.table,))

    def counted_part(self, manifest: Manifest, changes: SourceChanges) -> Self:
        """The rows up to the value of a manifest."""
        assert isinstance(manifest, TableRange)
        return self._between(None, manifest.highest)

    def new_part(self, manifest: Manifest, changes: SourceChanges) -> Self:
        """The rows above the value of a manifest, up to the one that is the highest now."""
        assert isinstance(manifest, TableRange)
        return self._between(manifest.highest, self.manifest().highest)

    def _between(self, above: str | int | None, up_to: str | int | None) -> Self:
        """The rows with greater values than one, up to another; without the latter there are none."""
        assert self._order is not None  # there is a manifest
        part, column = copy.copy(self), quoted(self._order)
        limits = [self._compared(column, ">", ABOVE)] if above is not None else []
        limits += [self._compared(column, "<=", UP_TO) if up_to is not None else "1 = 0"]
        part._quoted = f"(SELECT * FROM {self._quoted} WHERE {' AND '.join(limits)}) AS part"
        part._above, part._up_to = above, up_to
        return part

    def n_rows(self) -> int | None:
        """Ask the database, unless there are conditions: it would have to send all rows."""
        if self.where:
            return None
        ((number,),) = next(self._pieces(f"SELECT count(*) FROM {self._quoted}"))
        return int(number)

    def distinct_actions(self) -> Iterable[Any]:
        """Ask the database for the distinct actions, or read them if there are conditions."""
        if self.where:
            for raw in self.raw_rows(CHUNK, None):
                yield from raw.actions
            return
        action = self._selected(self.columns.action)
        for piece in self._pieces(f"SELECT DISTINCT {action} FROM {self._quoted} ORDER BY 1"):
            yield from self._values([label for (label,) in piece])

    def has_several_values(self, name: str) -> bool:
        """Ask the database, unless there are conditions."""
        if self.where:
            return super().has_several_values(name)
        ((number,),) = next(self._pieces(f"SELECT count(DISTINCT {quoted(name)}) FROM {self._quoted}"))
        return int(number) > 1

    def propensity_ranges(self, name: str) -> Iterable[tuple[float | None, float | None]]:
        """Ask the database, for each action and key or, with conditions, for each row."""
        value, keys = self._number(name), self.key_columns
        compared = [condition.column for condition in self.where]
        names = list(dict.fromkeys([self.columns.action, *(key.name for key in keys), *compared]))
        selected = f"{', '.join(map(self._selected, names))} FROM {self._quoted}"
        if self.where:
            query = self._filtered_sql(f"SELECT {value}, {value}, {selected}", "", ())
        else:
            groups = ", ".join(map(quoted, names))
            query = f"SELECT min({value}), max({value}), {selected} GROUP BY {groups}", ()
        ranges = Ranges()
        for rows in in_chunks(self._pieces(*query), CHUNK):
            lows, highs, *columns = map(list, zip(*rows, strict=True))
            values = dict(zip(names, map(self._values, columns), strict=True))
            for place in rows_that_satisfy(self.where, values, range(len(rows))):
                texts = (key.text_of(values[key.name][place]) for key in keys)
                group = (label_text(values[self.columns.action][place]), *texts)
                ranges.include(group, lows[place], highs[place])
        return ranges.values()

    def raw_rows(self, chunk: int, selection: Selection | None) -> Iterator[RawRows]:
        """Stream the rows of one snapshot, in the order of the database; positions count what it returns."""
        sql = f"SELECT {', '.join(map(self._selected, self._read))} FROM {self._quoted}"
        condition, parameters = "", ()
        if selection is not None:
            column = self.columns.named()[selection.role]
            condition, parameters = self._condition(column, selection)
        first = 0
        for rows in in_chunks(self._pieces(*self._filtered_sql(sql, condition, parameters)), chunk):
            positions: Sequence[int] = range(first, first + len(rows))
            columns = (self._values(list(column)) for column in zip(*rows, strict=True))
            values = dict(zip(self._read, columns, strict=True))
            first += len(rows)
            if self.where:
                places = rows_that_satisfy(self.where, values, positions)
                positions = [positions[place] for place in places]
                values = {name: [column[place] for place in places] for name, column in values.items()}
            raw = raw_rows_of(values, self.columns, positions, self._others, self.keys).selected(selection)
            if raw.positions:
                yield raw

    def _filtered_sql(
        self, sql: str, condition: str, parameters: tuple[Any, ...]
    ) -> tuple[str, tuple[Any, ...]]:
        """Add what the database can tell of the conditions, so that it sends fewer rows.

        A row with a value that a condition refuses is sent whatever the later conditions say of it.
        """
        if not self.where:
            return sql + condition, parameters
        parts = []
        for each in self.where:
            satisfied, refused, values = self._satisfied(each, len(parameters) + 1)
            parts.append((satisfied, refused))
            parameters += values
        combined = ""
        for satisfied, refused in reversed(parts):
            combined = f"({satisfied}{f' AND {combined}' if combined else ''})"
            combined = f"({refused} OR {combined})" if refused else combined
        selected = condition.removeprefix(" WHERE ")
        return f"{sql} WHERE {f'({selected}) AND ' if selected else ''}{combined}", parameters

    def _values(self, column: list[Any]) -> list[Any]:
        return with_decimals_as_written(column) if self.decimals_as_written else column

    def _selected(self, name: str) -> str:
        """A column in SQL, as it is read."""
        return quoted(name)

    @abstractmethod
    def _highest(self, column: str) -> str | int | None:
        """The highest value of a column, as a manifest holds it; refuse a missing one, and other types."""

    @abstractmethod
    def _compared(self, column: str, operator: str, value: str) -> str:
        """Compare a quoted column with a value of a manifest, which stands for a parameter."""

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
    def _satisfied(self, condition: Condition, parameter: int) -> tuple[str, str, tuple[Any, ...]]:
        """SQL that holds for every row that satisfies a condition, with values for its parameters.

        The second is SQL that holds for every row whose value the condition refuses, "" if there is none.
        `parameter` is the number of the first parameter.
        """

    @abstractmethod
    def _condition(self, column: str, selection: Selection) -> tuple[str, tuple[Any, ...]]:
        """A condition that holds for every row of a selection.

        An index can answer it, unless other spellings of users are selected too.
        """


def no_order(described: str, values: str) -> InvalidLogError:
    """Refuse a column by which rows cannot be told to be new."""
    return InvalidLogError(
        f"{described} must have a value in every row, and values that can be ordered: integers, text, or on"
        f" PostgreSQL also numeric values, dates and times; got {values}"
    )


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
