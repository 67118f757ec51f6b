"""The files of a path or glob: their format, their columns, and how DuckDB reads them as one table."""

import csv
import glob
import gzip
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from armnesia.core.errors import InvalidLogError
from armnesia.core.messages import listed
from armnesia.logs.duckdb_engine import query, stream
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
}


@dataclass(frozen=True)
class LogFiles:
    """The files of one log, in order, as they were when the log was opened."""

    paths: tuple[str, ...]
    format: Format
    columns: tuple[tuple[str, str], ...]
    """Name and DuckDB type of each column of the first file; everything is text in CSV."""
    stamps: tuple[tuple[int, int], ...]
    """Size and time of change of each file."""

    @property
    def table(self) -> str:
        """The files as a table in SQL, with the parameter $files and columns c0, c1, … by position.

        Numbers instead of names: nothing to quote, and no trouble with names that differ only in case.
        CSV is read by fixed rules, without DuckDB's guessing of delimiters, types and header.
        """
        numbered = [f"c{position}" for position in range(len(self.columns))]
        if self.format.delimiter is None:
            # The statistics in a Parquet file leave NaN out; by default DuckDB concludes from them that there
            # is none, and a NaN reward would pass every comparison.
            options = "can_have_nan = true, union_by_name = true, hive_partitioning = false"
            return f"read_parquet($files, {options}) AS t({', '.join(numbered)})"
        types = ", ".join(f"{name}: 'VARCHAR'" for name in numbered)
        options = f"delim = '{self.format.delimiter}', compression = '{self.format.compression}'"
        rules_of_csv = """auto_detect = false, header = true, quote = '"', escape = '"'"""
        return f"read_csv($files, {rules_of_csv}, {options}, columns = {{{types}}})"

    def query(self, sql: str, **parameters: Any) -> list[tuple[Any, ...]]:
        """Run SQL over the files; refuse files that have changed since the log was read."""
        self._check_unchanged()
        return query(sql, self._parameters(parameters), shown=self.paths[0], format_name=self.format.name)

    def stream(self, sql: str, size: int, **parameters: Any) -> Iterator[list[tuple[Any, ...]]]:
        """Run SQL over the files and yield the rows in chunks; refuse files that change meanwhile."""
        self._check_unchanged()
        yield from stream(
            sql,
            self._parameters(parameters),
            size=size,
            shown=self.paths[0],
            format_name=self.format.name,
        )
        self._check_unchanged()

    def _parameters(self, others: dict[str, Any]) -> dict[str, Any]:
        # Escaped, because DuckDB would take "a[1].csv" for a pattern and read "a1.csv".
        return {"files": [glob.escape(path) for path in self.paths], **others}

    def _check_unchanged(self) -> None:
        changed = [path for path, stamp in zip(self.paths, self.stamps, strict=True) if _stamp(path) != stamp]
        if changed:
            raise InvalidLogError(f"source {changed[0]!r} has changed since the log was read; read it again")


def open_files(source: str | os.PathLike[str], wanted: set[str] | None) -> LogFiles:
    """Find the files of a path or glob, and check that they agree in format and in their columns.

    Parquet files need to agree only in the `wanted` columns; None stands for all.
    """
    paths = _paths(os.path.expanduser(os.fspath(source)))
    formats = {path: _format(path) for path in paths}
    if len(set(formats.values())) > 1:
        raise InvalidLogError(
            f"source must match files of one format; got {listed(map(os.path.basename, paths))}"
        )
    columns = {path: tuple(_columns(path, formats[path])) for path in paths}
    first, *others = paths
    for other in others:
        # CSV columns are read by position, Parquet columns by name.
        left, right = (
            columns[path]
            if formats[path].delimiter
            else {pair for pair in columns[path] if wanted is None or pair[0] in wanted}
            for path in (first, other)
        )
        if left != right:
            raise InvalidLogError(
                f"source must match files with the same columns; {os.path.basename(first)!r} has"
                f" {_with_types(columns[first])}, {os.path.basename(other)!r} has"
                f" {_with_types(columns[other])}"
            )
    return LogFiles(tuple(paths), formats[first], columns[first], tuple(map(_stamp, paths)))


def _paths(path: str) -> list[str]:
    """Expand a glob in sorted order, so that row positions are the same on every machine."""
    found = (
        [path] if os.path.isfile(path) else sorted(filter(os.path.isfile, glob.glob(path, recursive=True)))
    )
    if not found:
        raise InvalidLogError(
            f"source {redacted(path)!r} is not a file and matches none;"
            " give the path of a CSV or Parquet file"
        )
    return [os.path.abspath(name) for name in found]


def _format(path: str) -> Format:
    for suffix, format_ in FORMATS.items():
        if path.lower().endswith(suffix):
            return format_
    raise InvalidLogError(f"source must end in one of {listed(FORMATS)}; got {os.path.basename(path)!r}")


def _stamp(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from None
    return status.st_size, status.st_mtime_ns


def _columns(path: str, format_: Format) -> Iterator[tuple[str, str]]:
    if format_.delimiter is None:
        described = query(
            "DESCRIBE SELECT * FROM read_parquet($file, hive_partitioning = false)",
            {"file": [glob.escape(path)]},
            shown=path,
            format_name=format_.name,
        )
        return ((name, type_) for name, type_, *_ in described)
    return ((name, "VARCHAR") for name in _header(path, format_))


def _header(path: str, format_: Format) -> list[str]:
    """Read the first line of a CSV file, and all of a compressed one: DuckDB does not verify checksums."""
    try:
        with _opened(path, format_) as stream:
            lines = (line.decode("utf-8-sig") for line in stream)
            header = next(csv.reader(lines, delimiter=format_.delimiter or ",", strict=True), [])
            while format_.compression == "gzip" and stream.read(1 << 20):
                pass
    except UnicodeDecodeError:
        raise _unreadable(path, "its header is not UTF-8 text") from None
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise _unreadable(path, getattr(error, "strerror", None) or str(error)) from None
    if not header:
        raise _unreadable(path, "it has no header line")
    return header


def _opened(path: str, format_: Format) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path) if format_.compression == "gzip" else Path(path).open("rb")


def _unreadable(path: str, reason: str) -> InvalidLogError:
    return InvalidLogError(f"source {path!r} cannot be read as {_format(path).name}: {reason}")


def _with_types(columns: tuple[tuple[str, str], ...]) -> str:
    return listed((f"{name} ({type_})" for name, type_ in columns), 20)
