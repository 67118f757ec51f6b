"""The files of a path, folder or glob: format, columns, and how DuckDB reads them as one table."""

import csv
import glob
import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import IO, Any, NamedTuple

from armnesia.core.errors import InvalidLogError
from armnesia.core.files import Stamp, stamp_of
from armnesia.core.messages import listed
from armnesia.logs.files.csv_records import CsvFault, scan_csv
from armnesia.logs.files.duckdb_engine import query, stream
from armnesia.logs.files.duckdb_values import MOST_DIGITS
from armnesia.logs.files.folders import files_below, refuse_same_files, refuse_tables
from armnesia.logs.files.partitions import Partitions
from armnesia.logs.rules import sqlite_url
from armnesia.logs.urls import redacted


@dataclass(frozen=True)
class Format:
    """How files with a certain suffix are read. No delimiter: Parquet."""

    delimiter: str | None = None
    compression: str = "none"

    @property
    def name(self) -> str:
        """The format's name in messages."""
        return "Parquet" if self.delimiter is None else "CSV"


FORMATS = {
    ".csv": Format(","),
    ".csv.gz": Format(",", "gzip"),
    ".tsv": Format("\t"),
    ".tsv.gz": Format("\t", "gzip"),
    ".parquet": Format(),
    ".pq": Format(),
    ".parquet.zst": Format(),  # compressed inside, as every Parquet file; PostHog names them so
}


LARGEST_EXPANDED, MOST_EXPANSION = 1 << 30, 100
"""The most bytes of a column in a Parquet row group, if they are compressed more than so many times."""


@dataclass(frozen=True)
class LogFiles:
    """The files of one log, in order, as they were when the log was opened."""

    paths: tuple[str, ...]
    format: Format
    columns: tuple[tuple[str, str], ...]
    """Name and DuckDB type of each column of the first file, then of each partition; CSV is all text."""
    n_rows: int
    """How many rows the files have, counted independently of the reading."""
    stamps: tuple[Stamp, ...]
    """Size and time of change of each file."""
    mixed_line_ends: bool = False
    """Whether a CSV file has lines that end in LF and lines that end in CR LF."""
    parts: tuple["LogFiles", ...] = ()
    """Each file for itself, if there are several."""
    largest_chunks: Mapping[str, int] = field(default_factory=dict, compare=False)
    """By column of a single Parquet file: the most bytes that it has in a row group, uncompressed."""
    signed_bounds: frozenset[str] = frozenset()
    """Columns whose lowest and highest values a Parquet file has in the order of signed bytes only.

    Writers of old did so (parquet-mr before 1.10). DuckDB takes them to be in the order of unsigned bytes,
    and would leave out rows with other names than ASCII, and rows beside them.
    """
    rounded: frozenset[str] = frozenset()
    """Columns of decimals with more digits than DuckDB has: it reads floats, and several values as one."""
    stored_names: tuple[str, ...] = ()
    """Of a single Parquet file: its columns as it spells them; DuckDB gives names that are alike a number."""
    partitions: Partitions = field(default_factory=Partitions)
    """What the names of folders say; `columns` ends with these columns, which are text."""

    @property
    def shown(self) -> str:
        """The source in messages of DuckDB."""
        return self.paths[0]

    @property
    def table(self) -> str:
        """The files as a table in SQL, with the parameter $files and columns c0, c1, … by position."""
        return self.table_of("files")

    def table_of(self, parameter: str) -> str:
        """The files as a table in SQL, with the parameters `parameters_of`.

        Numbers instead of names: nothing to quote, and no trouble with names that differ only in case.
        CSV is read by fixed rules, without DuckDB's guessing of delimiters, types and header.
        """
        stored, folders = self._stored_table(parameter), self.partitions.columns
        if not folders and (not self.parts or not self.knows_positions):
            return stored
        own = len(self.own_columns)
        # Named one by one: other files than the first may have further columns, of any name.
        columns = [f"c{position}" for position in range(own)]
        columns += [
            f"CAST(${parameter}_folders_{at} AS VARCHAR[])[CAST(file_index AS BIGINT) + 1] AS c{own + at}"
            for at in range(len(folders))
        ]
        columns += ["file_index", "file_row_number"] if self.knows_positions else ["file_index"]
        return f"(SELECT {', '.join(columns)} FROM {stored}) AS t"

    def _stored_table(self, parameter: str) -> str:
        """The rows as they are in the files."""
        numbered = [f"c{position}" for position in range(len(self.own_columns))]
        if self.format.delimiter is None:
            # The statistics in a Parquet file leave NaN out; by default DuckDB concludes from them that there
            # is none, and a NaN reward would pass every comparison.
            options = "can_have_nan = true, hive_partitioning = false"
            if self.parts:  # for one file it would only copy every text
                options += ", union_by_name = true"
            return f"read_parquet(${parameter}, {options}) AS t({', '.join(numbered)})"
        types = ", ".join(f"{name}: 'VARCHAR'" for name in numbered)
        options = f"delim = '{self.format.delimiter}', compression = '{self.format.compression}'"
        options += ", hive_partitioning = false"  # a folder c0=1 would replace the column
        if self.mixed_line_ends:
            options += ", strict_mode = false"
        rules_of_csv = """auto_detect = false, header = true, quote = '"', escape = '"'"""
        return f"read_csv(${parameter}, {rules_of_csv}, {options}, columns = {{{types}}})"

    def parameters_of(self, parameter: str) -> dict[str, Any]:
        """The parameters of `table_of`: the paths, and for each partition its value in each file."""
        values = [list(partition.values) for partition in self.partitions.columns]
        return {
            parameter: self.escaped_paths(),
            **{f"{parameter}_folders_{at}": each for at, each in enumerate(values)},
        }

    @property
    def own_columns(self) -> tuple[tuple[str, str], ...]:
        """The columns that are in the files."""
        return self.columns[: len(self.columns) - len(self.partitions.columns)]

    @property
    def partition_names(self) -> frozenset[str]:
        """The columns that are in the names of folders."""
        return frozenset(partition.name for partition in self.partitions.columns)

    def check_names(self, wanted: Iterable[str]) -> None:
        """Refuse columns of which a Parquet file has several, or which DuckDB cannot tell from others."""
        for name in sorted(wanted):
            for file in self.parts or (self,):
                shown = f"column {name!r} of source {file.shown!r}"
                if file.stored_names.count(name) > 1:
                    raise InvalidLogError(f"{shown} is there more than once; name each column once")
                if name in file.stored_names and name not in dict(file.columns):
                    others = (each for each in file.stored_names if each.casefold() == name.casefold())
                    raise InvalidLogError(
                        f"{shown} cannot be told from {next(others)!r}, which differs from it in upper and"
                        " lower case only; rename one of them"
                    )

    def stored_as(self, name: str) -> list[tuple[str, tuple[str, ...]]]:
        """What Parquet files call a column, and which of them do; the type is the same in these."""
        return [(name, self.paths)] if name in dict(self.own_columns) else []

    def is_text(self, place: int) -> bool:
        """Whether a column has texts for values of any kind, as in CSV files and names of folders."""
        return self.format.delimiter is not None or place >= len(self.own_columns)

    def with_partitions(self, partitions: Partitions) -> "LogFiles":
        """The same files with columns that are in the names of their folders."""
        if partitions == self.partitions:
            return self
        names = [partition.name for partition in partitions.columns]
        columns = (*self.own_columns, *((name, "VARCHAR") for name in names))
        parts = tuple(part.with_partitions(partitions.of_file(at)) for at, part in enumerate(self.parts))
        return replace(self, columns=columns, parts=parts, partitions=partitions)

    @property
    def knows_positions(self) -> bool:
        """Whether the position of a row is known without numbering all of them: in Parquet files."""
        return self.format.delimiter is None

    @property
    def position(self) -> str:
        """The position of a row of Parquet files, in SQL; of several files, with the parameter $first_rows.

        Unlike numbering, this leaves it to DuckDB which parts of the files are read.
        """
        first = "CAST($first_rows AS BIGINT[])[CAST(file_index AS BIGINT) + 1]"
        return f"{first} + file_row_number" if self.parts else "file_row_number"

    @property
    def first_rows(self) -> list[int]:
        """The position of the first row of each file."""
        return list(accumulate((part.n_rows for part in self.parts[:-1]), initial=0))

    def query(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run SQL over the files; refuse files that have changed since the log was read."""
        self.check_unchanged()
        rows = query(sql, self._parameters(parameters), shown=self.shown, format_name=self.format.name)
        self.check_unchanged()
        return rows

    def stream(
        self, sql: str, size: int, *, in_order: bool = True, **parameters: Any
    ) -> Iterator[list[tuple[Any, ...]]]:
        """Run SQL over the files and yield the rows in chunks; refuse files that change meanwhile."""
        self.check_unchanged()
        yield from stream(
            sql,
            self._parameters(parameters),
            size=size,
            shown=self.shown,
            format_name=self.format.name,
            in_order=in_order,
        )
        self.check_unchanged()

    def check_count(self, n_read: int, n_rows: int | None = None) -> None:
        """Refuse files of which not every row was read, or not each of `n_rows` rows."""
        n_rows = self.n_rows if n_rows is None else n_rows
        if n_read != n_rows:
            others = f" and {len(self.paths) - 1} more files" if self.parts else ""
            quotes = ", with every field of text in quotes" if self.format.delimiter else ""
            raise InvalidLogError(
                f"source {self.shown!r}{others} cannot be read as {self.format.name}: {n_read} rows were"
                f" read where there are {n_rows}; write it again{quotes}"
            )

    def _parameters(self, others: dict[str, Any]) -> dict[str, Any]:
        return {**self.parameters_of("files"), **others}

    def escaped_paths(self) -> list[str]:
        """The paths as DuckDB takes them, which would read "a1.csv" for "a[1].csv"."""
        return [glob.escape(path) for path in self.paths]

    def check_unchanged(self) -> None:
        """Refuse files that have changed since the log was read."""
        changed = [
            path for path, stamp in zip(self.paths, self.stamps, strict=True) if stamp_of_log(path) != stamp
        ]
        if changed:
            raise InvalidLogError(f"source {changed[0]!r} has changed since the log was read; read it again")


def open_files(
    source: str | os.PathLike[str], wanted: set[str] | None, only: Sequence[str] | None = None
) -> LogFiles:
    """Find the files of a path, folder or glob, and check that they agree in format and in their columns.

    Parquet files need to agree only in the `wanted` columns; None stands for all. With `only`, these files
    are opened, and others that the glob matches are not looked at.
    """
    paths = _paths_of_no_table(source) if only is None else list(only)
    files = _open_alike(paths, wanted)
    return files.with_partitions(Partitions.of(paths, (name for name, _ in files.columns)))


def _paths_of_no_table(source: str | os.PathLike[str]) -> list[str]:
    """Find files; refuse those of a table of a lake, also where a folder has none that could be read."""
    folder = os.path.abspath(os.path.expanduser(os.fspath(source)))
    if os.path.isdir(folder):
        refuse_tables([os.path.join(folder, "any")])
    paths = find_paths(source)
    refuse_tables(paths)
    return paths


def _open_alike(paths: Sequence[str], wanted: set[str] | None) -> LogFiles:
    """Open files, and check that they agree."""
    formats = set(map(_format, paths))
    if len(formats) > 1:
        raise InvalidLogError(
            f"source must match files of one format; got {listed(map(os.path.basename, paths))}"
        )
    (format_,) = formats
    is_csv = format_.delimiter is not None
    files = [_open_csv(path, format_) for path in paths] if is_csv else _open_parquet(paths, format_, wanted)
    mixed = any(file.mixed_line_ends for file in files)
    if mixed and len(files) > 1:  # all are read in the lenient mode, so all must be fit for it
        files = [_open_csv(path, format_, lenient=True) for path in paths]
    first, *others = files
    for file in files:
        file.check_names(wanted or ())
    for other in others:
        # CSV columns are read by position, Parquet columns by name.
        left, right = (
            file.columns if is_csv else {c for c in file.columns if wanted is None or c[0] in wanted}
            for file in (first, other)
        )
        if left != right:
            one, another = _told_apart(first, other)
            raise InvalidLogError(
                f"source must match files with the same columns; {one!r} has {_with_types(first)},"
                f" {another!r} has {_with_types(other)}"
            )
    if not others:
        return first
    if not is_csv:
        _refuse_hidden_places(first, others)
    stamps = tuple(stamp for file in files for stamp in file.stamps)
    n_rows = sum(file.n_rows for file in files)
    return LogFiles(
        tuple(paths),
        format_,
        first.columns,
        n_rows,
        stamps,
        mixed,
        tuple(files),
        signed_bounds=frozenset[str]().union(*(file.signed_bounds for file in files)),
        rounded=frozenset[str]().union(*(file.rounded for file in files)),
    )


def _refuse_hidden_places(first: LogFiles, others: Sequence[LogFiles]) -> None:
    """Refuse further columns that would be taken for what `table_of` names itself: columns of the first file.

    DuckDB takes names that differ in case only for one.
    """
    known = {name.casefold() for name, _ in first.columns}
    taken = {"file_index", "file_row_number", *(f"c{at}" for at in range(len(first.columns)))} - known
    for other in others:
        for name, _ in other.columns:
            if name.casefold() in taken:
                lacking, having = _told_apart(first, other)
                raise InvalidLogError(
                    f"source must match files with the same columns if one is named {name!r}; {lacking!r} has"
                    f" no such column, {having!r} has"
                )


def _told_apart(*files: LogFiles) -> list[str]:
    """The names of files, with the folders in which they differ."""
    paths = [file.paths[0] for file in files]
    common = os.path.commonpath(map(os.path.dirname, paths))
    return [os.path.relpath(path, common) for path in paths]


def find_paths(source: str | os.PathLike[str]) -> list[str]:
    """The files of a folder or glob in sorted order, so that row positions are the same on every machine."""
    path = os.path.expanduser(os.fspath(source))
    if os.path.isfile(path):
        found = [path]
    elif os.path.isdir(path):
        found = sorted(files_below(path, tuple(FORMATS)))
    else:
        found = sorted(set(filter(os.path.isfile, glob.glob(path, recursive=True))))
        refuse_same_files(path, found)
    if not found:
        nothing = f"has no files that end in one of {listed(FORMATS)}" if os.path.isdir(path) else ""
        raise InvalidLogError(
            f"source {redacted(path)!r} {nothing or 'is not a file and matches none'};"
            " give the path of a CSV or Parquet file, or a folder or glob of such files"
        )
    return [os.path.abspath(name) for name in found]


def _format(path: str) -> Format:
    for suffix, format_ in FORMATS.items():
        if path.lower().endswith(suffix):
            return format_
    url = sqlite_url(os.path.basename(path))
    table = f"; a table of a database is {url} with table (--table)" if url else ""
    raise InvalidLogError(
        f"source must end in one of {listed(FORMATS)}; got {os.path.basename(path)!r}{table}"
    )


def stamp_of_log(path: str) -> Stamp:
    """Size and time of change of a file; refuse one that is not there."""
    try:
        return stamp_of(path)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None


def _open_parquet(paths: Sequence[str], format_: Format, wanted: set[str] | None) -> list[LogFiles]:
    """Open files together: a folder may have thousands; one that cannot be opened is named."""
    try:
        return _open_together(paths, format_, wanted)
    except InvalidLogError:
        if len(paths) > 1:
            for path in paths:
                _open_together([path], format_, wanted)
        raise


def _open_together(paths: Sequence[str], format_: Format, wanted: set[str] | None) -> list[LogFiles]:
    """Ask for the columns and for the number of rows; refuse wanted columns that expand too much."""
    stamps = [stamp_of_log(path) for path in paths]

    def ask(sql: str, some: Sequence[str] = paths) -> list[tuple[Any, ...]]:
        return query(sql, {"files": list(map(glob.escape, some))}, shown=paths[0], format_name=format_.name)

    columns_of: dict[str, tuple[tuple[str, str], ...]] = {}
    stored_names: dict[str, tuple[str, ...]] = {}
    rounded: dict[str, frozenset[str]] = {}
    for same, fields in ask(PARQUET_SCHEMAS):
        columns = ask(PARQUET_COLUMNS, same[:1])
        columns_of |= dict.fromkeys(same, tuple((name, type_) for name, type_, *_ in columns))
        top = top_fields(fields)
        stored_names |= dict.fromkeys(same, tuple(each["name"] for each in top))
        wide = (each["name"] for each in top if (each["precision"] or 0) > MOST_DIGITS)
        rounded |= dict.fromkeys(same, frozenset(wide))
    n_rows = dict(ask("SELECT file_name, num_rows FROM parquet_file_metadata($files)"))
    largest: dict[str, dict[str, int]] = {path: {} for path in paths}
    in_groups: dict[str, set[int]] = {path: set() for path in paths}
    signed: dict[str, set[str]] = {path: set() for path in paths}
    for chunks in column_chunks(ask):
        if chunks.expands is not None and (wanted is None or chunks.column in wanted):
            raise _unreadable(chunks.path, chunks.expands)
        largest[chunks.path][chunks.column] = chunks.largest
        in_groups[chunks.path].add(chunks.n_rows)
        if chunks.has_signed_bounds:
            signed[chunks.path].add(chunks.column)
    opened_files = [
        LogFiles(
            (path,),
            format_,
            columns_of[path],
            n_rows[path],
            (stamp,),
            largest_chunks=largest[path],
            signed_bounds=frozenset(signed[path]),
            rounded=rounded[path],
            stored_names=stored_names[path],
        )
        for path, stamp in zip(paths, stamps, strict=True)
    ]
    for file in opened_files:
        for number in in_groups[file.paths[0]]:
            file.check_count(number)
    return opened_files


_FIELDS = "name, type, type_length, repetition_type, num_children, converted_type, scale, precision, field_id"
PARQUET_SCHEMAS = (
    "SELECT list(file_name), fields FROM ("
    f"SELECT file_name, list(struct_pack({_FIELDS}, logical_type) ORDER BY place) AS fields"
    " FROM (SELECT *, row_number() OVER () AS place FROM parquet_schema($files)) GROUP BY file_name"
    ") GROUP BY fields"
)
"""The columns of the files, nested ones in depth-first order, and which files have them."""
PARQUET_COLUMNS = "DESCRIBE SELECT * FROM read_parquet($files, hive_partitioning = false)"


def top_fields(fields: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The columns of a file among its fields, which are all that is nested in it, after the root.

    >>> nested = [("root", 2), ("place", 2), ("x", None), ("y", None), ("user", None)]
    >>> fields = [{"name": name, "num_children": number} for name, number in nested]
    >>> [each["name"] for each in top_fields(fields)]
    ['place', 'user']
    """
    top, at = [], 1
    while at < len(fields):
        top.append(fields[at])
        at = _after(fields, at)
    return top


def _after(fields: Sequence[Mapping[str, Any]], at: int) -> int:
    """The place after a field and all that is nested in it."""
    after = at + 1
    for _ in range(fields[at]["num_children"] or 0):
        after = _after(fields, after)
    return after


class ColumnChunks(NamedTuple):
    """A column of a Parquet file, which has a chunk of it in each row group."""

    path: str
    column: str
    n_rows: int
    """How many rows the row groups have."""
    largest: int
    """The most bytes of a chunk, uncompressed."""
    expands: str | None
    """Why the column is refused; None if no chunk expands too much."""
    has_signed_bounds: bool
    """Whether a chunk has its lowest and highest values in the old order only; see `LogFiles`."""


def column_chunks(ask: Callable[[str], list[tuple[Any, ...]]]) -> Iterator[ColumnChunks]:
    """Ask DuckDB for the columns of Parquet files: once, because it takes long with many row groups."""
    found = ask(
        "SELECT file_name, path_in_schema, sum(row_group_num_rows), max(total_uncompressed_size),"
        " min_by([row_group_id, total_compressed_size, total_uncompressed_size], row_group_id)"
        f" FILTER (total_uncompressed_size > {LARGEST_EXPANDED}"
        f" AND total_uncompressed_size > {MOST_EXPANSION} * total_compressed_size),"
        " bool_or((stats_min IS NOT NULL AND stats_min_value IS NULL)"
        " OR (stats_max IS NOT NULL AND stats_max_value IS NULL))"
        " FROM parquet_metadata($files) GROUP BY file_name, column_id, path_in_schema"
    )
    for path, column, n_rows, largest, expanding, signed in found:
        reason = None
        if expanding is not None:
            row_group, compressed, size = expanding
            reason = (
                f"column {column!r} of row group {row_group} expands from {compressed:,} to {size:,} bytes;"
                f" more than {LARGEST_EXPANDED:,} bytes are accepted if they are compressed at most"
                f" {MOST_EXPANSION}-fold"
            )
        yield ColumnChunks(path, column, n_rows, largest, reason, bool(signed))


def _open_csv(path: str, format_: Format, *, lenient: bool = False) -> LogFiles:
    """Scan the file and read its header; this reads all of a compressed file and checks its checksum."""
    stamp = stamp_of_log(path)
    try:
        with opened(path, format_) as stream:
            records = scan_csv(stream, format_.delimiter or ",", lenient=lenient)
            stream.seek(0)
            lines = (line.decode("utf-8-sig") for line in stream)
            header = next(csv.reader(lines, delimiter=format_.delimiter or ",", strict=True), [])
    except UnicodeDecodeError:
        raise _unreadable(path, "its header is not UTF-8 text") from None
    except CsvFault as fault:
        raise _unreadable(path, str(fault)) from None
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise _unreadable(path, getattr(error, "strerror", None) or str(error)) from None
    if not header:
        raise _unreadable(path, "it has no header line")
    columns = tuple((name, "VARCHAR") for name in header)
    return LogFiles((path,), format_, columns, records.count, (stamp,), records.mixed_line_ends)


def opened(path: str, format_: Format) -> IO[bytes] | gzip.GzipFile:
    """Open a file for reading, through its compression."""
    return gzip.open(path) if format_.compression == "gzip" else Path(path).open("rb")


def _unreadable(path: str, reason: str) -> InvalidLogError:
    return InvalidLogError(f"source {path!r} cannot be read as {_format(path).name}: {reason}")


def _with_types(file: LogFiles) -> str:
    names = file.stored_names or [name for name, _ in file.columns]
    return listed((f"{name} ({type_})" for name, (_, type_) in zip(names, file.columns, strict=False)), 20)
