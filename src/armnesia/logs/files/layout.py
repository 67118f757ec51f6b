"""`layout_log`: the log of Parquet files as one file that is sorted by person."""

import fnmatch
import math
import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.files import output_file
from armnesia.core.messages import listed
from armnesia.logs import rules
from armnesia.logs.columns import quoted
from armnesia.logs.files.duckdb_engine import (
    MEMORY_LIMIT,
    ScratchDatabase,
    checked_memory_limit,
    unreadable,
)
from armnesia.logs.files.duckdb_values import FileColumn
from armnesia.logs.files.formats import FORMATS, PARQUET_COLUMNS, PARQUET_SCHEMAS, LogFiles, open_files
from armnesia.logs.files.parquet_types import durations, has_nanoseconds, is_widened, stored_types

_PARQUET = [suffix for suffix, format_ in FORMATS.items() if format_.delimiter is None]
ROWS_PER_GROUP = 65_536
"""How many rows a row group has at least: what is read to find one person."""
MOST_CHUNKS = 4_000
"""How many columns all row groups have together before these grow: all are listed in what is read first."""
MOST_ROWS_PER_GROUP = 1 << 20
_KIND = re.compile(r"(delta|iceberg|spark):|[a-z0-9+]+://")
"""How names of tables begin, and URLs."""
_VECTOR = 2_048
"""DuckDB makes row groups of a multiple of this many rows."""


@dataclass(frozen=True)
class LaidOut:
    """The result of `layout_log`: what was written."""

    out: Path
    user_column: str
    rows: int
    """As many as were read."""
    files: int
    """How many files were read."""
    row_groups: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Write as JSON holds it."""
        return {**asdict(self), "out": str(self.out)}


def layout_log(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    user: str = "user",
    replace: bool = False,
    memory_limit: str = MEMORY_LIMIT,
) -> LaidOut:
    """Write the log of Parquet files as one Parquet file that is sorted by person.

    All columns are written, with their types and values. The rows of a person follow each other, in the order
    that they had, so that the statistics of the file say where they are: a request reads a few row groups,
    however many rows there are. `source` is a path, folder or glob, `user` the column of the user, and `out`
    a new file, there when it is complete. DuckDB sorts within `memory_limit`, and on the disk of `out` what
    does not fit in. Before the file gets its name, its rows are compared with those of the source: their
    number, and a checksum of all values.

    >>> import tempfile
    >>> import pyarrow, pyarrow.parquet
    >>> from armnesia.logs import read_log
    >>> folder = tempfile.TemporaryDirectory()
    >>> log, sorted_log = (Path(folder.name) / name for name in ("log.parquet", "by-user.parquet"))
    >>> rows = {"action": ["A", "B", "A"], "reward": [1, 0, 0], "user": ["bob", "ann", "bob"]}
    >>> pyarrow.parquet.write_table(pyarrow.table(rows), log)
    >>> layout_log(log, sorted_log).rows
    3
    >>> read_log(sorted_log, actions=["A", "B"]).request(user="bob").counts
    array([2, 0])
    >>> pyarrow.parquet.read_table(sorted_log)["user"].to_pylist()
    ['ann', 'bob', 'bob']
    >>> folder.cleanup()
    """
    checked_memory_limit(memory_limit)
    target = Path(out)
    if not target.name.lower().endswith(tuple(_PARQUET)):
        raise InvalidInputError(f"out must end in one of {listed(_PARQUET)}; got {target.name!r}")
    with output_file(target, replace=replace) as temporary:
        layout = _Layout.of(source, user, target)
        folder = target.absolute().parent
        with ScratchDatabase.opened(folder, memory_limit=memory_limit) as database:
            return layout.write(database, temporary)


@dataclass(frozen=True)
class _Layout:
    """A layout that is about to be written."""

    files: LogFiles
    user: str
    place: int
    """Where the user column is among the columns."""
    out: Path

    @classmethod
    def of(cls, source: str | os.PathLike[str], user: str, out: Path) -> "_Layout":
        """Open the files and check the columns."""
        _refuse_other_kinds(source)
        files = open_files(source, None)
        files.partitions.check(files.partitions.refused)  # all columns are written
        if files.format.delimiter is not None:
            raise InvalidInputError(
                "a log is laid out from Parquet files, whose columns have types;"
                f" got {os.path.basename(files.paths[0])!r}"
            )
        _refuse_among_source(source, files, out)
        files.check_names([user])
        names = [name for name, _ in files.columns]
        rules.check_found("user", [user], names)
        place = names.index(user)
        column = FileColumn(
            f"c{place}", files.columns[place][1], is_text=False, is_rounded=user in files.rounded
        )
        column.check("user", rules.described("user", user))
        return cls(files, user, place, out)

    def write(self, database: ScratchDatabase, temporary: Path) -> LaidOut:
        """Sort the rows, write them, and compare what was written."""
        self.files.check_unchanged()
        self._check_names(database)
        failed = f"{str(self.out)!r} cannot be written"
        # COPY takes no parameter for its target, so a quote in the path is doubled, as in any SQL string.
        target = str(temporary).replace("'", "''")
        names = ", ".join(f"c{at} AS {quoted(name)}" for at, (name, _) in enumerate(self.files.columns))
        parameters = self.files.parameters_of("files")
        if self.files.parts:
            parameters["first_rows"] = self.files.first_rows
        database.run("SET preserve_insertion_order = true", {}, failed=failed)
        database.run(
            f"COPY (SELECT {names} FROM {self.files.table} ORDER BY c{self.place}, {self.files.position})"
            f" TO '{target}' (FORMAT parquet, ROW_GROUP_SIZE {self._rows_per_group()}, USE_TMP_FILE false)",
            parameters,
            failed=failed,
        )
        # Columns in the names of folders are in the file then.
        written = LogFiles((str(temporary),), self.files.format, self.files.columns, self.files.n_rows, ())
        self._check_types(database, written, failed)
        self._check_stored_types(database, written, failed)
        if self._checksum(database, self.files) != self._checksum(database, written):
            raise InvalidLogError(
                f"{failed}: it would have other rows than the source; the source may have changed meanwhile"
            )
        self.files.check_unchanged()
        ((row_groups,),) = database.run(
            "SELECT num_row_groups FROM parquet_file_metadata($files)",
            {"files": written.escaped_paths()},
            failed=failed,
        )
        n_files = len(self.files.paths)
        size = temporary.stat().st_size
        return LaidOut(self.out, self.user, self.files.n_rows, n_files, row_groups, size)

    def _rows_per_group(self) -> int:
        """As few as possible, unless the list of all row groups becomes long."""
        few = math.ceil(self.files.n_rows * len(self.files.columns) / MOST_CHUNKS)
        wanted = min(max(ROWS_PER_GROUP, few), MOST_ROWS_PER_GROUP)
        return math.ceil(wanted / _VECTOR) * _VECTOR

    def _check_names(self, database: ScratchDatabase) -> None:
        """Refuse names of columns that differ in case only: DuckDB would write other ones."""
        found = database.run(
            "SELECT name FROM parquet_schema($files)",
            {"files": self.files.escaped_paths()},
            failed=self._unreadable,
        )
        renamed = [name for name, _ in self.files.own_columns if (name,) not in set(found)]
        if renamed:
            raise InvalidLogError(
                f"{self._unreadable} without change: the names of two columns differ in case only, and one"
                f" would become {renamed[0]!r}; rename it"
            )
        own = {name.casefold(): name for name, _ in self.files.own_columns}
        for name in sorted(self.files.partition_names):
            other = own.setdefault(name.casefold(), name)
            if other != name:
                raise InvalidLogError(
                    f"{self._unreadable} without change: columns {other!r} and {name!r}, which is in the"
                    " names of folders, differ in case only; rename one of them"
                )

    def _check_types(self, database: ScratchDatabase, written: LogFiles, failed: str) -> None:
        """Refuse a file that has columns of other types."""
        found = database.run(
            PARQUET_COLUMNS,
            {"files": written.escaped_paths()},
            failed=failed,
        )
        for (name, type_), (_, other, *_) in zip(self.files.columns, found, strict=True):
            if type_ != other:
                raise InvalidLogError(
                    f"{failed}: column {name!r} of type {type_} would become {other}; leave it out"
                )

    def _stored_types(self, database: ScratchDatabase, files: LogFiles) -> dict[str, set[tuple[str, ...]]]:
        """By column: the types that the files state, which may differ from file to file."""
        found: dict[str, set[tuple[str, ...]]] = {}
        schemas = database.run(PARQUET_SCHEMAS, {"files": files.escaped_paths()}, failed=self._unreadable)
        for _, fields in schemas:
            for name, types in stored_types(fields).items():
                found.setdefault(name, set()).add(types)
        return found

    def _check_stored_types(self, database: ScratchDatabase, written: LogFiles, failed: str) -> None:
        """Refuse a file that cannot hold the values of the source, though DuckDB sees no difference."""
        before, after = (self._stored_types(database, files) for files in (self.files, written))
        for name, each in before.items():
            (other,) = after[name]
            for types in sorted(each):
                if not is_widened(types, other) or (
                    "INT96" in types and any(has_nanoseconds(path, name) for path in self.files.paths)
                ):
                    self._refuse_type(name, ", ".join(types), ", ".join(other), failed)
        for path in self.files.paths:
            for name, type_ in durations(path).items():
                self._refuse_type(name, type_, "an integer", failed)

    def _refuse_type(self, name: str, type_: str, other: str, failed: str) -> NoReturn:
        raise InvalidLogError(
            f"{failed}: column {name!r} of type {type_} would become {other}, which DuckDB writes in its"
            " place; leave it out, or write it as another type first"
        )

    def _checksum(self, database: ScratchDatabase, files: LogFiles) -> list[tuple[Any, ...]]:
        """The number of rows, and a sum over all of them that any other value changes."""
        columns = ", ".join(f"c{at}" for at in range(len(files.columns)))
        return database.run(
            f"SELECT count(*), sum(CAST(hash({columns}) AS HUGEINT)) FROM {files.table}",
            files.parameters_of("files"),
            failed=self._unreadable,
        )

    @property
    def _unreadable(self) -> str:
        return unreadable(self.files.paths[0], self.files.format.name)


def _refuse_other_kinds(source: str | os.PathLike[str]) -> None:
    """Refuse the name of a table: its rows are not all that is in its files."""
    kind = _KIND.match(os.fspath(source))
    if kind is not None and not os.path.exists(source):
        raise InvalidInputError(
            f"a log is laid out from Parquet files: give a path, folder or glob of them; got a source that"
            f" begins with {kind[0]!r}, whose rows another program has to write to Parquet files first"
        )


def _refuse_among_source(source: str | os.PathLike[str], files: LogFiles, out: Path) -> None:
    """Refuse a file that is read, or that would be read with the others the next time."""
    pattern = os.path.abspath(os.path.expanduser(os.fspath(source)))
    for path in files.paths:
        if out.exists() and os.path.samefile(out, path):
            raise InvalidInputError(f"out must not be a file that is read; {str(out)!r} is {path!r}")
    below = os.path.isdir(pattern) and Path(pattern) in out.absolute().parents
    if below or (not os.path.isfile(pattern) and _matches(out.absolute().parts, Path(pattern).parts)):
        raise InvalidInputError(
            f"out must not be among the files of the source, where its rows would be read twice; {str(out)!r}"
            f" is {'below' if below else 'matched by'} {os.fspath(source)!r}"
        )


def _matches(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Whether a glob would find a path, both by their parts.

    >>> path = ["logs", "2026", "log.parquet"]
    >>> _matches(path, ["logs", "**", "*.parquet"]), _matches(path, ["logs", "*.parquet"])
    (True, False)
    """
    if not path or not pattern:
        return not path and not pattern
    if pattern[0] == "**":
        return any(_matches(path[at:], pattern[1:]) for at in range(len(path) + 1))
    return fnmatch.fnmatchcase(path[0], pattern[0]) and _matches(path[1:], pattern[1:])
