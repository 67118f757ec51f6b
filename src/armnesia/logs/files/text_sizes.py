"""The length of the texts in Parquet files, checked before any of them is read.

A text that many rows share is in such a file once, but in every reading once per row.
"""

from collections.abc import Iterable, Mapping

from armnesia.logs import rules
from armnesia.logs.files.duckdb_values import FileColumn
from armnesia.logs.files.formats import LogFiles
from armnesia.logs.limits import CHUNK, LONGEST_TEXT


def check_text_sizes(files: LogFiles, described: Mapping[str, str], *, whole_rows: bool = False) -> None:
    """Refuse Parquet files with long texts in columns, given by their names in files and in messages.

    With `whole_rows`, also those whose rows are too long in all columns together.
    """
    first = 0
    for file in files.parts or (files,):
        names = [name for name, _ in file.own_columns]
        every = [FileColumn(f"c{at}", type_, is_text=False) for at, (_, type_) in enumerate(file.own_columns)]
        for name, what in described.items():
            size = None if has_short_texts(file, name) else every[names.index(name)].size()
            if size is not None:
                row = _first_long(file, size)
                if row is not None:
                    raise rules.long_label(what, first + row)
        size = content_size(every) if whole_rows else None
        row = None if size is None else _first_long(file, size)
        if row is not None:
            raise rules.long_content(first + row)
        first += file.n_rows


def has_short_texts(file: LogFiles, name: str) -> bool:
    """Whether no text of a column can be long, because all of them together are not, in any row group.

    Nor can names of folders.
    """
    return name in file.partition_names or file.largest_chunks.get(name, LONGEST_TEXT + 1) <= LONGEST_TEXT


def content_size(columns: Iterable[FileColumn]) -> str | None:
    """The number of bytes of all columns together, in SQL; None if they are never long.

    >>> content_size([FileColumn("c0", "VARCHAR", False), FileColumn("c1", "BIGINT", False)])
    'list_sum([strlen(c0)])'
    """
    sizes = ", ".join(filter(None, (column.size() for column in columns)))
    return f"list_sum([{sizes}])" if sizes else None  # not a sum, which would be nested too deeply


def _first_long(file: LogFiles, size: str) -> int | None:
    """The first row whose size is too large."""
    # One query each: an expression that two of them share would make DuckDB copy the texts.
    ((most,),) = file.query(f"SELECT max({size}) FROM {file.table}")
    if most is None or most <= LONGEST_TEXT:
        return None
    # Not by numbering rows in DuckDB, which would copy the texts, too.
    chunks = file.stream(f"SELECT {size} FROM {file.table}", CHUNK)
    lengths = enumerate(length for chunk in chunks for (length,) in chunk)
    return next(row for row, length in lengths if length and length > LONGEST_TEXT)
