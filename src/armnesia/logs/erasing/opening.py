"""Opening the eraser of a source, by one call."""

import importlib
from collections.abc import Callable

from armnesia.core.errors import UnsupportedError
from armnesia.logs.erasing.eraser import SourceEraser
from armnesia.logs.source import Source

ERASERS = {
    "FileSource": ("armnesia.logs.erasing.parquet_eraser", "ParquetEraser"),
    "DeltaSource": ("armnesia.logs.erasing.delta", "DeltaEraser"),
    "IcebergSource": ("armnesia.logs.erasing.iceberg", "IcebergEraser"),
    "SqliteSource": ("armnesia.logs.erasing.sqlite", "SqliteEraser"),
    "PostgresSource": ("armnesia.logs.erasing.postgres", "PostgresEraser"),
}
"""The module and class of the eraser of each class of sources; the module is imported when it is needed."""


def open_eraser(source: Source) -> SourceEraser:
    """Open what deletes rows at a source; refuse sources of which rows cannot be deleted.

    >>> from armnesia.logs import open_source
    >>> open_eraser(open_source({"arm": ["A"], "won": [1]}, action="arm", reward="won"))
    Traceback (most recent call last):
    armnesia.core.errors.UnsupportedError: rows of a FrameSource cannot be erased; erased are rows of Parquet
    files, of Delta and Iceberg tables, and of tables of SQLite and PostgreSQL
    """
    name = type(source).__name__
    if name not in ERASERS:
        raise UnsupportedError(
            f"rows of a {name} cannot be erased; erased are rows of Parquet files, of Delta and Iceberg"
            " tables, and of tables of SQLite and PostgreSQL"
        )
    if source.where:
        raise UnsupportedError(
            "rows cannot be erased at a source that is read with conditions: rows of the same people that do"
            f" not satisfy {str(source.where[0])!r} would stay; open the source without them"
        )
    if source.decimals_as_written:
        raise UnsupportedError(
            "rows cannot be erased at a source whose decimals are read as they are written: erasers know them"
            " without zeros at the end; open the source without decimals_as_written"
        )
    module, class_name = ERASERS[name]
    make: Callable[[Source], SourceEraser] = getattr(importlib.import_module(module), class_name)
    return make(source)
