"""Erasing rows of Parquet files: files that hold the people are written again, and take the old ones' places.

One file after another: pyarrow writes it again beside the old one, row group by row group, DuckDB compares
the rows of others in both, and the new one is renamed. A file of which no row stays has its columns and no
rows. Killed at any point, a file is the old one or the new one, and the next run does the rest.
"""

import glob
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import MissingExtraError, UnsupportedError
from armnesia.core.files import may_write, stamp_if_there, sync_folder
from armnesia.core.memory import import_sparing
from armnesia.logs.erase.eraser import Contents, Eraser, contents_of, not_erased
from armnesia.logs.files import FORMATS, SCHEMAS, FileSource, find_files
from armnesia.logs.statements import Chosen

_STAGED = ".armnesia-"
"""How the names of new files begin: readers pass by what begins with a dot."""
_FALSE_POSITIVES = 0.01
"""Of bloom filters: a file does not say how it was chosen."""
_PLAIN_INTEGERS = {
    "INT32": "Int(bitWidth=32, isSigned=true)",
    "INT64": "Int(bitWidth=64, isSigned=true)",
}
"""Types of integers, and what some writers say of them although it goes without saying."""


class ParquetEraser(Eraser):
    """Parquet files of a path, folder or glob, on this machine."""

    remains = (
        "files of which no row is deleted stay as they are: pages of dictionaries, key-value metadata, and"
        " names of files and folders may name people",
        "hidden files in the folders, and files of other formats, are not looked at",
        *Eraser.remains,
    )

    def __init__(self, source: FileSource) -> None:
        super().__init__(source)
        self._files = source

    def now(self) -> FileSource:
        """The files that the path stands for now."""
        return self._files.with_files(sorted(find_files(self.source.location, FORMATS)))

    def check(self) -> None:
        """Refuse files that could not be replaced; try to write one of each schema, without rows."""
        super().check()
        if self._files.remote or not self._files.paths[0].lower().endswith(_SUFFIXES):
            raise UnsupportedError(
                f"rows of {self.source.location!r} cannot be erased: only Parquet files on this machine can"
                " be written again; give such files, or a table"
            )
        in_paths = {name.casefold() for name in self._files.partitions}  # many readers ignore case
        for column in (self.source.columns.user, self.source.columns.id):
            if isinstance(column, str) and column.casefold() in in_paths:
                raise UnsupportedError(
                    f"rows of {self.source.location!r} cannot be erased: the files are partitioned by"
                    f" {column!r}, so that names of folders name people"
                )
        source = self.now()
        for path in source.paths:
            _check_file(path)
        for folder in map(os.path.dirname, source.paths):
            _check_folder(folder)
        with source.connection() as connection:
            alike = connection.rows(SCHEMAS, {"files": [glob.escape(path) for path in source.paths]})
        with tempfile.TemporaryDirectory(prefix="armnesia-") as folder:
            for (path, *_), _fields in alike:
                _write(path, os.path.join(folder, "tried.parquet"), None)

    def delete(self, people: Chosen) -> int:
        """Delete the rows; first remove what a run has left that was killed."""
        for folder in {os.path.dirname(path) for path in self._files.paths}:
            for left in glob.glob(os.path.join(glob.escape(folder), f"{_STAGED}*")):
                os.unlink(left)
        return super().delete(people)

    def deleted(self, people: Chosen) -> int:
        """Write those files again that hold rows of the people."""
        source = self.now()
        with source.connection() as connection:
            relation = source.relation(connection, {"log_file": "file_index"})
            is_chosen, parameters = relation.among(people)
            sql = f"SELECT DISTINCT log_file FROM {relation.table} WHERE {is_chosen}"
            found = connection.rows(sql, {**relation.parameters, **parameters})
        return sum(_rewritten(source.with_files([source.paths[place]]), people) for (place,) in sorted(found))


_SUFFIXES = tuple(suffix for suffix, format_ in FORMATS.items() if format_.delimiter is None)


def _check_file(path: str) -> None:
    """Refuse a file that has other names, which would keep the rows."""
    if os.path.islink(path) or os.stat(path).st_nlink > 1:
        raise not_erased(path, "it is a link, or has other names (hard links); give the file itself")


def _check_folder(folder: str) -> None:
    """Refuse a folder where files cannot be replaced, or another file says what is in them."""
    if not may_write(folder):
        raise not_erased(folder, "this user may not write to the folder")
    if os.path.exists(os.path.join(folder, "_metadata")):
        raise not_erased(
            folder, "the file _metadata there has statistics of all files, which may name people; remove it"
        )


def _rewritten(source: FileSource, people: Chosen) -> int:
    """Replace one file by one without rows of the people; how many these were."""
    (path,), (stamp,) = source.paths, source.stamps
    with source.connection() as connection:
        relation = source.relation(connection, {"log_row": "file_row_number"})
        is_chosen, parameters = relation.among(people)
        sql = f"SELECT log_row FROM {relation.table} WHERE {is_chosen} ORDER BY log_row"
        pieces = list(connection.stream(sql, {**relation.parameters, **parameters}))
    rows = np.array([row for piece in pieces for (row,) in piece], dtype=np.int64)
    staged = os.path.join(os.path.dirname(path), f"{_STAGED}{os.path.basename(path)}")
    with _reserved(staged):
        _write(path, staged, rows)
        _copy_access(path, staged)
        _sync(staged)
        if contents_of(source.with_files([staged]), people) != Contents(
            0, contents_of(source, people).others
        ):
            raise not_erased(path, "the rows of others would not stay the same; the file was not changed")
        # Hadoop keeps check-sums beside a file, and refuses one that they do not fit.
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.crc"))
        if stamp_if_there(path) != stamp:
            raise not_erased(path, "the file has changed meanwhile; erase again")
        os.replace(staged, path)
    sync_folder(os.path.dirname(path))
    return len(rows)


@contextmanager
def _reserved(path: str) -> Iterator[None]:
    """Make an empty file that nobody else can read until it has the old one's access; remove what is left."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(path)


def _copy_access(path: str, staged: str) -> None:
    """Let the same people read the new file as the old one: owner, group, mode, access control list."""
    status = os.stat(path)
    try:
        os.chown(staged, status.st_uid, status.st_gid)
    except OSError:
        raise not_erased(path, "it belongs to another user or group; erase as its owner") from None
    shutil.copystat(path, staged)
    os.utime(staged)  # the time of change is its own
    if stat.S_IMODE(os.stat(staged).st_mode) != stat.S_IMODE(status.st_mode):
        raise not_erased(path, "a new file cannot be given its mode")


def _sync(path: str) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _write(path: str, target: str, left_out: IntArray | None) -> None:
    """Write a file again without some rows, or without any; refuse one whose columns would become others."""
    parquet = _parquet()
    try:
        with parquet.ParquetFile(path) as old:
            schema = _with_texts(old.schema_arrow)
            with parquet.ParquetWriter(target, schema, **_options(old)) as new:
                for rows in () if left_out is None else _kept(old, left_out):
                    new.write_table(rows.cast(schema), row_group_size=len(rows))
                new.add_key_value_metadata(old.metadata.metadata or {})
            with parquet.ParquetFile(target) as new:
                if _described(old) != _described(new):
                    raise not_erased(path, "pyarrow would write its columns with other types or metadata")
    except (OSError, ValueError, TypeError, NotImplementedError, ArithmeticError) as error:
        # Not the library's own words, which may quote a value.
        number = error.errno if isinstance(error, OSError) else None
        cause = type(error).__name__ if number is None else os.strerror(number)
        raise not_erased(path, f"pyarrow cannot write it again ({cause})") from None


def _parquet() -> Any:
    import_sparing("pyarrow")
    try:
        import pyarrow.parquet  # noqa: PLC0415 (an extra)
    except ImportError as error:
        raise MissingExtraError.naming("Erasing rows of Parquet files", "erase") from error
    return pyarrow.parquet


def _kept(file: Any, left_out: IntArray) -> Iterator[Any]:
    """The rows of each group that stay."""
    first = 0
    for number in range(file.num_row_groups):
        rows = file.read_row_group(number)
        start, end = np.searchsorted(left_out, [first, first + len(rows)])
        if end > start:
            rows = rows.take(np.delete(np.arange(len(rows)), left_out[start:end] - first))
        first += file.metadata.row_group(number).num_rows
        if len(rows):
            yield rows


def _with_texts(schema: Any) -> Any:
    """A schema with texts where it has codes of a dictionary, which would keep a name without rows."""
    import pyarrow  # noqa: PLC0415 (an extra)

    is_dictionary = pyarrow.types.is_dictionary
    fields = [each.with_type(each.type.value_type) if is_dictionary(each.type) else each for each in schema]
    return pyarrow.schema(fields, metadata=schema.metadata)


def _options(file: Any) -> dict[str, Any]:
    """The options of `ParquetWriter` for a file like this one, as far as it says so itself."""
    columns = {each.path: each for each in map(file.schema.column, range(len(file.schema)))}
    physical = {path: each.physical_type for path, each in columns.items()}
    logical = {path: json.loads(each.logical_type.to_json()) for path, each in columns.items()}
    decimals = [path for path, each in logical.items() if each["Type"] == "Decimal"]
    options = {
        "store_schema": False,  # the old file's is copied with its other metadata
        "use_deprecated_int96_timestamps": "INT96" in physical.values(),
        "store_decimal_as_integer": any(physical[path] in _PLAIN_INTEGERS for path in decimals),
        "use_compliant_nested_type": not any(".list.item" in path for path in columns),
        "write_time_adjusted_to_utc": any(
            each["Type"] == "Time" and each["isAdjustedToUTC"] for each in logical.values()
        ),
    }
    if not file.num_row_groups:
        return options
    group = file.metadata.row_group(0)
    chunks = {path: group.column(place) for place, path in enumerate(columns)}
    codecs = {path: each.compression.lower() for path, each in chunks.items()}
    bloom = {"ndv": max(group.num_rows, 1), "fpp": _FALSE_POSITIVES}
    with_filters = [path for path, each in chunks.items() if each.bloom_filter_offset is not None]
    return options | {
        "compression": {path: "none" if codec == "uncompressed" else codec for path, codec in codecs.items()},
        "use_dictionary": [path for path, each in chunks.items() if "DICTIONARY" in str(each.encodings)],
        "write_page_index": any(each.has_offset_index for each in chunks.values()),
        "sorting_columns": list(group.sorting_columns or ()) or None,
        "bloom_filter_options": dict.fromkeys(with_filters, bloom) or None,
    }


def _described(file: Any) -> tuple[Any, ...]:
    """What a reader sees of a file besides its rows."""
    found = []
    for place in range(len(file.schema)):
        column = file.schema.column(place)
        logical = str(column.logical_type)
        if logical == _PLAIN_INTEGERS.get(column.physical_type):
            logical = "None"
        # The bytes of a decimal may be more than its digits need.
        sized = column.physical_type == "FIXED_LEN_BYTE_ARRAY" and not logical.startswith("Decimal")
        levels = column.max_definition_level, column.max_repetition_level
        found.append((column.path, column.physical_type, logical, levels, column.length if sized else None))
    return found, dict(file.metadata.metadata or {})
