"""Decisions in CSV and Parquet files: a path, a folder, a glob, here or in an object store.

DuckDB reads silently what a log must not be read as, so a few things are done here: files are listed, their
headers and types are compared, and CSV is read by fixed rules (`csv_text.py`).
"""

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from armnesia.core.errors import InvalidInputError, InvalidLogError
from armnesia.core.files import stamp_of
from armnesia.core.messages import listed
from armnesia.core.urls import is_remote, redacted
from armnesia.logs import refusals
from armnesia.logs.columns import Columns
from armnesia.logs.csv_text import check_csv
from armnesia.logs.engine import Connection, DuckDBConnection, connected
from armnesia.logs.source import Scan, Source, Version
from armnesia.logs.sql import Column, by_name, literal, qualified

MISSING_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_UNCLEAR = re.compile(r"^(null)?$|[=?\\\r\n]", re.IGNORECASE)
"""In the name of a folder: what DuckDB takes for no value, or for no partition."""
_MOST_DIGITS = 38
"""Of a decimal that DuckDB has; one with more it reads as a float, and several as one."""


class Format(NamedTuple):
    """How files with a certain suffix are read. No delimiter: Parquet."""

    delimiter: str | None = None
    compression: str = "none"


FORMATS = {
    ".csv": Format(","),
    ".csv.gz": Format(",", "gzip"),
    ".tsv": Format("\t"),
    ".tsv.gz": Format("\t", "gzip"),
    ".parquet": Format(),
    ".pq": Format(),
    ".parquet.zst": Format(),  # compressed inside, as every Parquet file; PostHog names them so
}


@dataclass(frozen=True, eq=False)
class FileSource(Source):
    """The files that a path stands for, as they were when it was opened; rows follow in sorted order."""

    paths: tuple[str, ...] = ()
    stamps: tuple[tuple[int, int], ...] = ()
    """Size and time of change of each file; none of files that are not on this machine."""
    table_sql: str = ""
    stored: Mapping[str, Column] = field(default_factory=dict)
    remote: bool = False
    delimiter: str | None = None
    """Of CSV files, if it was given; else a header without a comma tells."""
    option: ClassVar[str] = "delimiter"
    erased_by: ClassVar[tuple[str, ...]] = ("parquet", "ParquetEraser")

    @classmethod
    def at(cls, location: Any, columns: Columns, option: str | None = None) -> "FileSource":
        """The files of a path, folder or glob."""
        if option is not None and (not option.isascii() or len(option) != 1 or option in '"\r\n\0'):
            raise InvalidInputError(
                f"delimiter must be one character of ASCII, such as ; or a tab; got {option!r}"
            )
        found = cls(location, columns, delimiter=option)
        if not is_remote(location):
            place = os.path.abspath(os.path.expanduser(location))
            return replace(found, location=place).with_files(find_files(location, FORMATS))
        found, paths = replace(found, remote=True), [location]
        if glob.has_magic(location) and not location.startswith("http"):
            with found.connection() as connection:
                listing = connection.rows("SELECT file FROM glob($p)", {"p": [location]})
                paths = sorted(path for (path,) in listing)
        return found.with_files(paths)

    @contextmanager
    def connection(self) -> Iterator[DuckDBConnection]:
        """A connection that reaches the files, where they are."""
        with connected(self.location) as connection:
            if self.remote:
                connection.reach(self.location)
            yield connection

    def with_files(self, paths: Sequence[str]) -> "FileSource":
        """The same columns of these files."""
        formats = {_format_of(path) for path in paths}
        if len(formats) != 1:
            raise InvalidLogError(
                f"source must match files of one format; got {listed(map(os.path.basename, paths))}"
            )
        (format_,) = formats
        if self.remote and format_.delimiter is not None:
            raise InvalidLogError(f"source {self.location!r} must be Parquet, or on this machine: it is CSV")
        if self.delimiter is not None and format_.delimiter is None:
            raise InvalidInputError(
                f"delimiter is for CSV files, and these are Parquet; got {self.delimiter!r}"
            )
        stamps = () if self.remote else tuple(map(stamp_of_file, paths))
        found = replace(self, paths=tuple(paths), stamps=stamps, stored={})
        return found._as_parquet() if format_.delimiter is None else found._as_csv(format_)

    def scan(self, connection: Connection) -> Scan:
        """The columns of the files, and of the names of their folders."""
        for path, stamp in zip(self.paths, self.stamps, strict=False):
            if stamp_of_file(path) != stamp:
                raise InvalidLogError(f"source {path!r} has changed since the log was read; read it again")
        return Scan(self.table_sql, self.stored, {"files": [glob.escape(path) for path in self.paths]})

    def version(self) -> Version | None:
        """Each file with its size and time of change."""
        if self.remote:
            return None
        return {"files": [[path, *stamp] for path, stamp in zip(self.paths, self.stamps, strict=True)]}

    def new_since(self, version: Version) -> "FileSource | None":
        """The files that were added, if all others are as they were."""
        before = {path: tuple(stamp) for path, *stamp in version["files"]}
        now = dict(zip(self.paths, self.stamps, strict=False))
        if self.remote or any(now.get(path) != stamp for path, stamp in before.items()):
            return None
        added = [path for path in self.paths if path not in before]
        return self.with_files(added) if added else None

    def _as_csv(self, format_: Format) -> "FileSource":
        """Read CSV by its header, which all files must share; every value is text."""
        by = (self.delimiter, format_.delimiter or ",", format_.compression)
        texts = [check_csv(path, *by) for path in self.paths]
        names, delimiter, _ = texts[0]
        for path, (own, *rest) in zip(self.paths, texts, strict=True):
            if (own, rest[0]) != (names, delimiter):
                has = f"{_short(self.paths[0], path)!r} has {listed(names, 20)}"
                other_has = f"{_short(path, self.paths[0])!r} has {listed(own, 20)}"
                raise InvalidLogError(f"source must match files with the same columns; {has}, {other_has}")
        # No folder has a name with a slash: as a partition it would be read instead of the column.
        types = ", ".join(f"'/{at}': 'VARCHAR'" for at in range(len(names)))
        rules = """auto_detect = false, header = true, quote = '"', escape = '"', strict_mode = true"""
        # Read by one thread where a quote could stay open: the last record is lost if it is very long.
        parallel = not any(has_quotes for *_, has_quotes in texts)
        sql = (
            f"read_csv($files, {rules}, delim = {literal(delimiter)},"
            f" compression = '{format_.compression}', parallel = {str(parallel).lower()}, {{hive}},"
            f" columns = {{{types}}})"
        )
        columns = by_name(names, [Column(qualified(f"/{at}"), "VARCHAR") for at in range(len(names))])
        return replace(self, table_sql=sql, stored=columns)._with_partitions()

    def _as_parquet(self) -> "FileSource":
        """Read Parquet by the names of columns, which must have one type in all files, if they are read."""
        files = {"files": [glob.escape(path) for path in self.paths]}
        with self.connection() as connection:
            schemas = connection.rows(_SCHEMAS, files)
            described = [
                connection.rows(
                    "DESCRIBE SELECT * FROM read_parquet($files, hive_partitioning = false)",
                    {"files": [glob.escape(same[0])]},
                )
                for same, _ in schemas
            ]
            misled = {name for (name,) in connection.rows(_SIGNED_BOUNDS, files)}
        columns: dict[str, Column] = {}
        for name, type_, *_ in (row for rows in described for row in rows):
            # A copy of a text has no bounds.
            sql = f"({qualified(name)} || '')" if name in misled and type_ == "VARCHAR" else qualified(name)
            columns.setdefault(name, Column(sql, type_))
        types = [{name: str(type_) for name, type_, *_ in rows} for rows in described]
        for name, fault in _faults(
            [same[0] for same, _ in schemas], [each for _, each in schemas], types
        ).items():
            columns[name] = Column("NULL", "VARCHAR", fault=fault)
        union = "true" if len(schemas) > 1 else "false"  # for alike files it would only copy every text
        # Bounds in a file leave NaN out; DuckDB would conclude that there is none.
        sql = f"read_parquet($files, {{hive}}, can_have_nan = true, union_by_name = {union})"
        return replace(self, table_sql=sql, stored=columns)._with_partitions()

    @property
    def partitions(self) -> frozenset[str]:
        """The columns that are in the names of folders."""
        return frozenset(name for path in self.paths[:1] for name, _ in _folders(path))

    def _with_partitions(self) -> "FileSource":
        """The columns of folders such as `day=2026-01-31`, which all files must lie in alike."""
        folders = {path: _folders(path) for path in self.paths}
        names = {tuple(name for name, _ in each) for each in folders.values()}
        every = {name for each in names for name in each}
        is_clear = len(names) == 1 and len({name.casefold() for name in every}) == len(next(iter(names)))
        columns = dict(self.stored)
        for name in sorted(every):
            alike = [each for each in self.stored if each.casefold() == name.casefold()]
            values = [value for each in folders.values() for at, value in each if at == name]
            fault = None
            if not is_clear or alike or any(map(_UNCLEAR.search, values)):
                fault = InvalidLogError(
                    f"partition {name!r} must be once in the path of each file, in one spelling, must not be"
                    " a column of the files as well, and must not have an empty value, the value null, or one"
                    " with = ? \\ or a line end in it, which engines read in different ways: rename the"
                    f" folders, as {name}={MISSING_PARTITION} if a value is missing"
                )
            for each in (name, *alike):
                columns[each] = Column(qualified(each), "VARCHAR", fault=fault)
        hive = "hive_partitioning = false"
        if every and is_clear:
            hive = "hive_partitioning = true, hive_types_autocast = false"
        return replace(self, table_sql=self.table_sql.replace("{hive}", hive), stored=columns)


def find_files(location: str, suffixes: Iterable[str]) -> list[str]:
    """The files of a path, a folder or a glob, in order; refuse tables of lakes."""
    path = os.path.expanduser(location)
    if os.path.isfile(path):
        found = [path]
    elif os.path.isdir(path):
        found = [each for each in _below(path) if each.lower().endswith(tuple(suffixes))]
    else:
        found = glob.glob(path, recursive=True)
    found = list(filter(os.path.isfile, found))  # a link may lead nowhere
    _refuse_tables({os.path.dirname(os.path.abspath(each)) for each in found} | {os.path.abspath(path)})
    if not found:
        nothing = f"has no files that end in one of {listed(suffixes)}" if os.path.isdir(path) else ""
        raise InvalidLogError(
            f"source {path!r} {nothing or 'is not a file and matches none'};"
            " give the path of a CSV or Parquet file, or a folder or glob of such files"
        )
    every: dict[tuple[int, int], str] = {}  # each file once, whatever links lead to it
    for each in sorted(found):
        status = os.stat(each)
        every.setdefault((status.st_dev, status.st_ino), os.path.abspath(each))
    return sorted(every.values())


def _below(folder: str) -> Iterator[str]:
    """The files in a folder, without those that engines leave out: the rule is Spark's."""
    seen = set()
    for inner, folders, files in os.walk(folder, followlinks=True):
        status = os.stat(inner)
        if (status.st_dev, status.st_ino) in seen:  # a link that leads back
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        # A folder of a partition may begin with an underscore.
        folders[:] = [name for name in folders if name[0] != "." and (name[0] != "_" or "=" in name)]
        yield from (os.path.join(inner, name) for name in files if name[0] not in "._")


_MARKERS = {
    "a Delta table: give delta:PATH": "_delta_log",
    "a Hudi table: give spark: and its name": ".hoodie/hoodie.properties",
    "an Iceberg table: give iceberg:CATALOG.NAMESPACE.TABLE": "metadata/*.metadata.json*",
}
"""What is in the folder of a table of a lake."""


def _refuse_tables(folders: Iterable[str]) -> None:
    """Refuse the folder of a table of a lake, where files also hold rows that the table no longer has."""
    above = {Path(os.path.realpath(folder)) for folder in folders}
    for folder in sorted(above.union(*(each.parents for each in above))):
        for what, marker in _MARKERS.items():
            if glob.glob(os.path.join(glob.escape(str(folder)), marker)):
                raise InvalidLogError(
                    f"the files in {str(folder)!r} also hold rows that their table no longer has; it is"
                    f" {what}"
                )


def stamp_of_file(path: str) -> tuple[int, int]:
    """Size and time of change of a file; refuse one that is not there."""
    try:
        return stamp_of(path)
    except OSError as error:
        raise InvalidLogError(f"source {path!r} cannot be read: {error.strerror}") from None


def _format_of(path: str) -> Format:
    for suffix, format_ in FORMATS.items():
        if path.lower().endswith(suffix):
            return format_
    name = redacted(path) if "://" in path else os.path.basename(path)
    hint = "; a table of a database is sqlite:///FILE with table (--table)"
    raise InvalidLogError(f"source must end in one of {listed(FORMATS)}; got {name!r}{hint}")


def _folders(path: str) -> list[tuple[str, str]]:
    """The names and values in the folders of a path."""
    parts = os.path.dirname(path).split(os.sep)
    return [
        (name, value) for name, equals, value in (part.partition("=") for part in parts) if equals and name
    ]


def _short(path: str, other: str) -> str:
    """The name of a file, with the folders in which it differs from another."""
    return os.path.relpath(path, os.path.commonpath([os.path.dirname(path), os.path.dirname(other)]))


_SCHEMAS = (
    "SELECT list(file_name ORDER BY file_name), fields FROM (SELECT file_name, list(struct_pack(name, type,"
    " duckdb_type, num_children, converted_type, scale, precision, logical_type) ORDER BY column_id) AS"
    " fields FROM parquet_schema($files) GROUP BY file_name) GROUP BY fields ORDER BY 1"
)
"""The columns of Parquet files, nested ones in depth-first order, and which files have them."""
_SIGNED_BOUNDS = (
    "SELECT DISTINCT path_in_schema FROM parquet_metadata($files) WHERE type = 'BYTE_ARRAY'"
    " AND ((stats_min IS NOT NULL AND stats_min_value IS NULL)"
    " OR (stats_max IS NOT NULL AND stats_max_value IS NULL))"
)
"""Columns with bounds in the order of signed bytes, as parquet-mr before 1.10 wrote them.

DuckDB takes them for another order, and would leave out people whose rows are there.
"""


def _faults(
    paths: Sequence[str], schemas: Sequence[Sequence[Mapping[str, Any]]], types: Sequence[Mapping[str, str]]
) -> dict[str, InvalidLogError]:
    """Why columns of Parquet files cannot be read as they are, by their names.

    Of each kind of files: the path of one, its fields, and the types that DuckDB gives; it renames a column
    whose name is there already, in any case of letters.
    """
    found = {}
    for path, others in zip(paths[1:], types[1:], strict=True):
        for name in types[0].keys() | others.keys():
            has, other = (each.get(name, "no such column") for each in (types[0], others))
            if has != other:
                found[name] = InvalidLogError(
                    f"column {name!r} must be in all files, with one type; {_short(paths[0], path)!r} has"
                    f" {has}, {_short(path, paths[0])!r} has {other}: write them alike"
                )
    for fields, names in zip(schemas, types, strict=True):
        columns = list(_columns(fields))
        for name in (each["name"] for each in columns if (each["precision"] or 0) > _MOST_DIGITS):
            found[name] = InvalidLogError(
                f"column {name!r} must hold decimals of at most {_MOST_DIGITS} digits; it has more, which"
                " would be read as floats, and several values as one: write it as text"
            )
        for own, given in zip((each["name"] for each in columns), names, strict=True):
            if own != given:
                alike = [each["name"] for each in columns if each["name"].casefold() == own.casefold()]
                found |= {name: refusals.repeated_column(name) for name in (given, *alike)}
    return found


def _columns(fields: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Those fields of a schema, which is in depth-first order, that are right below its root."""
    below = 0  # how many fields are still to come below a column
    for each in fields[1:]:
        if not below:
            yield each
        below += (each["num_children"] or 0) - bool(below)
