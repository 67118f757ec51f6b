"""Erasing rows of Parquet files: files that hold the people are written again, and take the old ones' places.

Each file is written again beside the old one by pyarrow, row group by row group. DuckDB compares the rows of
others in both; then the new file is renamed. DuckDB does not write it: for other readers that would change
types, and which columns are required. A file of which no row stays has its columns and no rows. Killed at any
point, a file is the old one or the new one, and the next run does the rest.
"""

import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from armnesia.core.errors import UnsupportedError
from armnesia.core.files import atomic_write
from armnesia.logs.erase.eraser import Eraser, contents_of, load_pyarrow, not_erased
from armnesia.logs.files import FORMATS, FileSource, find_files
from armnesia.logs.statements import Chosen

_SUFFIXES = tuple(suffix for suffix, format_ in FORMATS.items() if format_.delimiter is None)


class ParquetEraser(Eraser):
    """Parquet files of a path, folder or glob, on this machine."""

    source: FileSource
    remains = (
        "files of which no row is deleted stay as they are: pages of dictionaries, key-value metadata, and"
        " names of files and folders may name people",
        "hidden files in the folders, and files of other formats, are not looked at",
        *Eraser.remains,
    )

    def now(self) -> FileSource:
        """The files that the path stands for now."""
        return self.source.with_files(find_files(self.source.location, FORMATS))

    def check(self) -> None:
        """Refuse files that could not be replaced."""
        super().check()
        load_pyarrow()
        if self.source.remote or not self.source.paths[0].lower().endswith(_SUFFIXES):
            raise UnsupportedError(
                f"rows of {self.source.location!r} cannot be erased: only Parquet files on this machine can"
                " be written again; give such files, or a table"
            )
        for path in self.now().paths:
            if os.path.islink(path) or os.stat(path).st_nlink > 1:
                raise not_erased(path, "it is a link, or has other names (hard links); give the file itself")
            if os.path.exists(os.path.join(os.path.dirname(path), "_metadata")):
                raise not_erased(path, "the file _metadata beside it describes the rows of all; remove it")

    def delete(self, people: Chosen) -> int:
        """Delete the rows; first remove what a run has left that was killed."""
        for path in self.source.paths:
            for left in glob.glob(f"{glob.escape(path)}.{'[0-9a-f]' * 12}.new"):
                os.unlink(left)
        return super().delete(people)

    def deleted(self, people: Chosen) -> int:
        """Write those files again that hold rows of the people."""
        source = self.now()
        with source.reading({"log_file": "file_index"}) as reading:
            is_chosen, parameters = reading.among(people)
            sql = f"SELECT DISTINCT log_file FROM {reading.table} WHERE {is_chosen}"
            found = reading.connection.rows(sql, parameters)
        return sum(_rewritten(source.with_files([source.paths[place]]), people) for (place,) in sorted(found))


def _rewritten(source: FileSource, people: Chosen) -> int:
    """Replace one file by one without rows of the people; how many these were."""
    (path,) = source.paths
    with source.reading({"log_row": "file_row_number"}) as reading:
        is_chosen, parameters = reading.among(people)
        pieces = reading.connection.stream(
            f"SELECT log_row FROM {reading.table} WHERE {is_chosen}", parameters
        )
        rows = np.array([row for piece in pieces for (row,) in piece], dtype=np.int64)
    with atomic_write(path, mode=0o600, replace=True) as staged:
        _write(path, str(staged), rows)
        status = os.stat(path)
        os.chown(staged, status.st_uid, status.st_gid)
        shutil.copymode(path, staged)
        new = replace(source, paths=(str(staged),), stamps=())
        # Reading the old one again also refuses it if it has changed meanwhile.
        if contents_of(new, people) != (0, contents_of(source, people)[1]):
            raise not_erased(path, "the rows of others would not stay the same; the file was not changed")
        # Hadoop keeps check-sums beside a file, and refuses one that they do not fit.
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.crc"))
    return len(rows)


def _write(path: str, target: str, left_out: Any) -> None:
    """Write a file again without some rows; refuse one whose columns would become others."""
    from pyarrow import parquet  # noqa: PLC0415 (an extra)

    try:
        with parquet.ParquetFile(path) as old:
            schema = _with_texts(old.schema_arrow)
            options = {
                "compression": _codec(old),
                "store_schema": False,  # the old file's is copied with its other metadata
                "use_deprecated_int96_timestamps": any(
                    old.schema.column(place).physical_type == "INT96" for place in range(len(old.schema))
                ),
            }
            with parquet.ParquetWriter(target, schema, **options) as new:
                for rows in _kept(old, left_out):
                    new.write_table(rows.cast(schema), row_group_size=len(rows))
                new.add_key_value_metadata(old.metadata.metadata or {})
            with parquet.ParquetFile(target) as new:
                same = old.schema_arrow.equals(new.schema_arrow, check_metadata=True)
    except (ValueError, TypeError, NotImplementedError, ArithmeticError) as error:
        # Not the library's own words, which may quote a value.
        raise not_erased(path, f"pyarrow cannot write it again ({type(error).__name__})") from None
    if not same:
        raise not_erased(path, "pyarrow would write its columns with other types or metadata")


def _codec(file: Any) -> str:
    """How the first column is compressed."""
    has_chunks = file.num_row_groups and len(file.schema)
    codec = file.metadata.row_group(0).column(0).compression.lower() if has_chunks else "snappy"
    return "none" if codec == "uncompressed" else codec


def _kept(file: Any, left_out: Any) -> Iterator[Any]:
    """The rows of each group that stay."""
    first = 0
    for number in range(file.num_row_groups):
        rows = file.read_row_group(number)
        is_kept = ~np.isin(np.arange(first, first + len(rows)), left_out)
        first += len(rows)
        if is_kept.any():
            yield rows if is_kept.all() else rows.take(np.flatnonzero(is_kept))


def _with_texts(schema: Any) -> Any:
    """A schema with texts where it has codes of a dictionary, which would keep a name without rows."""
    import pyarrow  # noqa: PLC0415 (an extra)

    is_dictionary = pyarrow.types.is_dictionary
    fields = [each.with_type(each.type.value_type) if is_dictionary(each.type) else each for each in schema]
    return pyarrow.schema(fields, metadata=schema.metadata)
