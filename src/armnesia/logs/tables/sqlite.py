"""Decisions in a table of an SQLite file."""

import os
import re
import shlex
import sqlite3
import urllib.parse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from armnesia.core.errors import InterruptedWriteError, InvalidInputError, InvalidLogError
from armnesia.core.identifiers import UserType
from armnesia.logs.columns import Columns, quoted
from armnesia.logs.conditions import Condition
from armnesia.logs.manifests import source_name
from armnesia.logs.rows import Selection
from armnesia.logs.rules import described
from armnesia.logs.tables.source import TableSource, no_order, no_table, table_parts
from armnesia.logs.urls import may_hold_password, redacted

_MOST_PARAMETERS = 30_000
"""SQLite takes 32,766 in one statement."""
_NOT_PLAIN = {
    UserType.INTEGER: ("*[^0-9]*", "0?*"),
    UserType.TEXT: ("*[^ -~]*", " *", "* "),
}
"""Patterns of names that are not plain; one of them matches whatever `Selection.plain` does not."""
_LONGEST_VALUE = 1 << 20
"""The most bytes of a value that SQLite hands over; a shorter one is checked with its row and column."""
_READS_INDEX = re.compile(r" USING (COVERING )?INDEX ")
"""A step of a plan that reads an index of the file, and not one that SQLite makes for the statement."""
_HOT_JOURNAL = "SQLITE_READONLY_ROLLBACK"
"""What SQLite says of a journal that has to be rolled back, which needs a connection that may write."""
_PIECE = 64
"""How many rows become Python values at a time."""


class SqliteSource(TableSource):
    """A table or view in an SQLite file, which is opened read-only."""

    _parameter_mark = "?{}"

    def __init__(self, url: str, columns: Columns, *, table: str | None, whole_rows: bool) -> None:
        path = url.removeprefix("sqlite:///")
        if path == url or not path or may_hold_password(path):
            raise InvalidInputError(
                f"the URL of an SQLite source must be sqlite:///FILE; got {redacted(url)!r}"
            )
        self._path = os.path.abspath(path)
        self._checked_files = set[str]()  # parts of the table, which are copies of this source, share it
        super().__init__(f"sqlite:///{self._path}", columns, table=table, whole_rows=whole_rows)

    @property
    def path(self) -> str:
        """The file of the database."""
        return self._path

    def _available(self) -> list[str]:
        with self._connected() as connection:
            try:
                cursor = connection.execute(f"SELECT * FROM {self._quoted} LIMIT 0")
            except sqlite3.OperationalError as error:
                if name_in_catalogue(connection, self._table) is not None:
                    raise InvalidLogError(
                        f"source {self._path!r} has a table or view {self._table!r} that SQLite cannot read:"
                        " what a view is made of may be gone"
                    ) from None
                if "no such table" in str(error) or "unknown database" in str(error):
                    raise no_table(self._table, self._path, _tables(connection)) from None
                raise
            return [name for name, *_ in cursor.description]

    def _number(self, name: str) -> str:
        return f"CASE WHEN typeof({quoted(name)}) IN ('integer', 'real') THEN {quoted(name)} END"

    def _mark(self, number: int) -> str:
        return f"?{number}"

    def _float(self, name: str) -> str:
        return (
            f"CASE WHEN typeof({quoted(name)}) IN ('integer', 'real') THEN CAST({quoted(name)} AS REAL) END"
        )

    def _rounded(self, number: str) -> str:
        # SQLite's own round takes ties away from 0. Numbers below 2**53 have an exact rest.
        whole = f"CAST({number} AS INTEGER)"
        rest = f"({number} - {whole})"
        return (
            f"CASE WHEN {rest} > 0.5 OR ({rest} = 0.5 AND {whole} % 2 = 1) THEN {whole} + 1 ELSE {whole} END"
        )

    def selected(self, name: str) -> str:
        """A column in SQL, compared by its bytes."""
        return f"{quoted(name)} COLLATE BINARY"  # to other collations, different texts may be equal

    def told_apart(self, name: str) -> str:
        """A column in SQL, with its type: 2**53 and 2.0**53 are equal and have two texts."""
        return f"{self.selected(name)}, typeof({quoted(name)})"

    def _check_types(self) -> None:
        labels = [*self.columns.named().items(), *(("key", name) for name in self.keys)]
        labels += [("where", each.column) for each in self.where if not each.compares_numbers]
        for role, name in labels:
            if role == "reward":
                continue
            types = f"SELECT count(DISTINCT typeof({quoted(name)})) FROM {self._quoted}"
            ((mixed,),) = next(self._pieces(f"{types} WHERE typeof({quoted(name)}) IN ('integer', 'real')"))
            if mixed > 1:
                raise InvalidLogError(
                    f"{described(role, name)} must not hold both integers and floats to be added up by"
                    " SQLite, which takes 7 and 7.0 for equal"
                )

    def _size(self, name: str) -> str:
        return f"length(CAST({quoted(name)} AS BLOB))"

    def _pieces(
        self, sql: str, parameters: tuple[Any, ...] = (), *, by_index: bool = False
    ) -> Iterator[list[tuple[Any, ...]]]:
        n_read = 0
        sql, parameters = self._bounded(sql, parameters)
        with self._connected() as connection:
            self.check_indexes(connection, sql, parameters)
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
            try:
                cursor = connection.execute(sql, parameters)
                while rows := cursor.fetchmany(_PIECE):
                    yield rows
                    n_read += len(rows)
            except sqlite3.DataError:
                raise InvalidLogError(
                    f"source {self._path!r} cannot be read as SQLite: one of the rows from {n_read} on has a"
                    f" value of more than {_LONGEST_VALUE:,} bytes in a column that is read; shorten it, or"
                    " name a column of ids with id=... (--id-column)"
                ) from None

    def named_to_read(self) -> str:
        """The table in SQL, of which no index is read."""
        return f"{self._named} NOT INDEXED"

    def check_indexes(
        self, connection: sqlite3.Connection, sql: str, parameters: tuple[Any, ...] = ()
    ) -> None:
        """Refuse a statement that reads a damaged index; a file is checked once.

        NOT INDEXED does not reach the tables of a view, nor searches in a table WITHOUT ROWID.
        """
        plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)
        reads_index = any(_READS_INDEX.search(step) for *_, step in plan)
        if not reads_index or self._path in self._checked_files:
            return
        if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise InvalidLogError(
                f"source {self._path!r} cannot be read without its indexes, of which one may be damaged:"
                " SQLite's integrity_check finds a fault in the file; run REINDEX on it, or restore it"
            )
        self._checked_files.add(self._path)

    def _own_names(self) -> tuple[str, str | None]:
        with self._connected() as connection:
            name = name_in_catalogue(connection, self._table)
        if name is None:
            raise InvalidLogError(
                f"source {self._path!r} has no table or view {self._table!r} in its catalogue: what was"
                " counted of it cannot be told later"
            )
        return source_name({"location": f"sqlite:///{os.path.realpath(self._path)}", "table": name}), None

    def _stored_value(self, column: str, highest: str) -> str:
        return highest

    def _order_faults(self, column: str) -> tuple[str, ...]:
        return f"min(typeof({quoted(column)}))", f"max(typeof({quoted(column)}))"

    def _refuse_order(self, column: str, *faults: Any) -> None:
        first, last = faults
        if first != last or first not in ("integer", "text"):
            raise no_order(
                described("ordered-by", column),
                "a missing value" if "null" in faults else f"values of type {first}",
            )

    def _compared(self, column: str, operator: str, value: str) -> str:
        return f"{column} {operator} {value}"

    def _condition(
        self, column: str, selection: Selection, parameter: int = 1
    ) -> tuple[str, tuple[Any, ...]]:
        # One column may hold text, numbers and bytes; a comparison finds values of one of these types only.
        alternatives = [value for text in selection.texts for value in _values_of(text)]
        if len(alternatives) > _MOST_PARAMETERS:
            return "1 = 1", ()
        marks = _marks(parameter, len(alternatives))
        # The sign keeps indexes out, also those of a view's tables; no type of a column has to be applied.
        name = f"+{self.selected(column)}"
        others = ""
        if selection.plain is not None:
            patterns = "".join(f" OR {name} GLOB '{each}'" for each in _NOT_PLAIN[selection.user_type])
            # GLOB and length end at a NUL character; bytes are also more than characters outside ASCII.
            others = f"{patterns} OR length(CAST({name} AS BLOB)) > length({name})"
        return f"{name} IN ({marks}) OR {name} >= x''{others}", tuple(alternatives)

    def _satisfied(self, condition: Condition, parameter: int) -> tuple[str, str, tuple[Any, ...]]:
        name, values = quoted(condition.column), tuple(condition.values)
        is_text, present = f"typeof({name}) IN ('text', 'blob')", f"{name} IS NOT NULL"
        refused = is_text if condition.compares_numbers else ""
        if condition.operator == "in" or (condition.operator == "=" and not condition.compares_numbers):
            if not condition.compares_numbers:
                values = tuple(value for text in values for value in _values_of(str(text)))
            if len(values) > _MOST_PARAMETERS // 10:
                return present, refused, ()
            others = "" if condition.compares_numbers else f" OR {name} >= x''"
            return f"({name} IN ({_marks(parameter, len(values))}){others})", refused, values
        if not condition.compares_numbers:
            return present, "", ()
        return f"{name} {condition.operator} ?{parameter}", refused, values

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        if not os.path.isfile(self._path):
            raise InvalidLogError(f"source {self._path!r} is not a file; give the path of an SQLite database")
        connection = None
        try:
            address = f"file:{urllib.parse.quote(self._path)}?mode=ro"
            connection = sqlite3.connect(address, uri=True, isolation_level=None)
            yield connection
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorname", "") == _HOT_JOURNAL:
                raise _interrupted_write(self._path) from None
            # SQLite's own message may quote a value, and a row of a log is personal data.
            reason = "it holds text that is not UTF-8" if "decode" in str(error) else str(error)
            raise InvalidLogError(f"source {self._path!r} cannot be read as SQLite: {reason}") from None
        finally:
            if connection is not None:
                connection.close()


def roll_back_interrupted_write(url: str) -> None:
    """Let SQLite take back a write that was cut short in the file of a URL; do nothing if there was none.

    Any program that opens the file for writing does the same. Killed meanwhile, it can be done again.
    """
    path = url.removeprefix("sqlite:///")
    if path == url or not os.path.exists(f"{path}-journal"):
        return
    address = f"file:{urllib.parse.quote(path)}?mode=rw"
    try:
        with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        reason = getattr(error, "sqlite_errorname", type(error).__name__)
        raise InterruptedWriteError(
            f"source {path!r} has a journal of a write that was cut short, and SQLite cannot roll it back"
            f" ({reason}): see that the file, its folder and {path + '-journal'!r} can be written"
        ) from None


def _interrupted_write(path: str) -> InterruptedWriteError:
    command = shlex.join(["sqlite3", path, "PRAGMA quick_check"])
    return InterruptedWriteError(
        f"source {path!r} cannot be read before a write that was cut short is rolled back from its journal"
        f" {path + '-journal'!r}: if armnesia was erasing rows there, run armnesia erase; otherwise open the"
        f" file once for writing, as {command} does"
    )


def _marks(first: int, number: int) -> str:
    """So many parameters, from the first on.

    >>> _marks(6, 3)
    '?6, ?7, ?8'
    """
    return ", ".join(f"?{at}" for at in range(first, first + number))


def _tables(connection: sqlite3.Connection) -> list[str]:
    """The names of all tables and views."""
    sql = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
    return [name for (name,) in connection.execute(sql) if not name.startswith("sqlite_")]


def name_in_catalogue(connection: sqlite3.Connection, table: str) -> str | None:
    """The name that SQLite has stored of a table or view, which may be spelled in any case and with a schema.

    >>> connection = sqlite3.connect(":memory:")
    >>> _ = connection.execute("CREATE TABLE Clicks (user)")
    >>> name_in_catalogue(connection, "main.CLICKS"), name_in_catalogue(connection, "log")
    ('Clicks', None)
    """
    sql = "SELECT name FROM main.sqlite_master WHERE type IN ('table', 'view') AND name = ? COLLATE NOCASE"
    found = connection.execute(sql, (table_parts(table)[-1],)).fetchone()
    return None if found is None else str(found[0])


def _values_of(text: str) -> Iterator[str | float | int]:
    """The values other than bytes that may have this text.

    >>> list(_values_of("7")), list(_values_of("ann"))
    (['7', 7.0, 7], ['ann'])
    """
    yield text
    try:
        yield float(text)
        number = int(text)
    except ValueError:
        return
    if -(2**63) <= number < 2**63:
        yield number
