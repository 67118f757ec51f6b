"""What Parquet files say besides their rows: key-value metadata, and files that describe a whole folder.

Rows are erased by writing files again with the metadata that they had, so that a name in these would stay.
"""

import base64
import binascii
import glob
import os
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from armnesia.core.memory import import_sparing
from armnesia.logs.erasing.names_in_texts import from_json, named_in, texts_in
from armnesia.logs.erasing.people import People
from armnesia.logs.files.duckdb_engine import query
from armnesia.logs.files.formats import LogFiles

_ARROW = "ARROW:schema"
_SCHEMAS = (
    "pandas",
    "org.apache.spark.sql.parquet.row.metadata",
    "iceberg.schema",
    "parquet.avro.schema",
    "avro.schema",
)
"""Keys under which writers describe columns in JSON, by words that are names by chance only."""
# fmt: off
_TYPES_IN_SCHEMAS = frozenset((
    "type", "pandas_type", "numpy_type", "elementType", "keyType", "valueType", "element", "key",
    "value", "kind", "library", "version", "logicalType",
))
"""What they call parts whose texts are words of the writer, such as types of columns."""
_WORDS_OF_SCHEMAS = _TYPES_IN_SCHEMAS | frozenset((
    "columns", "column_indexes", "index_columns", "pandas_version", "creator", "partition_columns",
    "field_name", "start", "stop", "step", "fields", "name", "nullable", "containsNull",
    "valueContainsNull", "metadata", "attributes", "items", "values", "default", "schema-id",
    "identifier-field-ids", "id", "required", "element-id", "element-required", "key-id", "value-id",
    "value-required",
))
"""What they call parts of a description."""
# fmt: on
_NESTING = frozenset(("schema", "spark_schema", "hive_schema", "arrow_schema", "duckdb_schema", "root"))
_NESTING |= {"list", "element", "item", "array", "bag", "array_element", "map", "key_value", "key", "value"}
"""What writers call the whole of the columns, and what lists and maps consist of."""
_FREE_IN_SCHEMAS = ("metadata", "attributes")
"""Parts in which anything may stand."""
DESCRIBING = ("_metadata", "_common_metadata")


def describing_files(paths: Iterable[str]) -> list[str]:
    """Files that describe all files of a folder, in the folders of some files and above these."""
    waiting = {folder for path in paths for folder in map(os.path.dirname, (path, os.path.realpath(path)))}
    folders: set[str] = set()
    while waiting:
        folders |= waiting
        waiting = {os.path.dirname(folder) for folder in waiting} - folders
    candidates = (os.path.join(folder, name) for folder in sorted(folders) for name in DESCRIBING)
    return list(filter(os.path.isfile, candidates))


def has_statistics(path: str) -> bool:
    """Whether a file that describes a folder has statistics of the files there, or cannot be read."""
    import_sparing("pyarrow")
    import pyarrow.parquet  # noqa: PLC0415 (an extra)

    try:
        return bool(pyarrow.parquet.read_metadata(path).num_row_groups)
    except (OSError, ValueError):
        return True


def named_in_metadata(files: LogFiles, people: People, others: Collection[str] = ()) -> Iterator[str]:
    """A sentence if key-value metadata or columns of files, or of others that describe them, name people."""
    if not files.paths:
        return
    paths = {"files": [*files.escaped_paths(), *map(glob.escape, others)]}
    files.check_unchanged()

    def ask(sql: str) -> list[tuple[Any, ...]]:
        return query(sql, paths, shown=files.shown, format_name=files.format.name)

    pairs = ask("SELECT DISTINCT decode(key), value FROM parquet_kv_metadata($files)")
    columns = {name for (name,) in ask("SELECT DISTINCT name FROM parquet_schema($files)")} - _NESTING
    texts = {text for key, value in pairs for text in _texts_of(key, value)}
    if named_in(columns | texts, people):
        yield (
            "key-value metadata or names of columns of files may name people; write the files again without"
            " them"
        )


def _texts_of(key: str, value: bytes) -> Iterator[str]:
    """The texts in which a key of the metadata and its value may name people."""
    if key == _ARROW:
        for pair in _metadata_in_schema(value):
            yield from _texts_of(*pair)
        return
    text = value.decode(errors="replace")
    schema = from_json(text) if key in _SCHEMAS else None
    if schema is None:
        yield from (key, text)
    else:
        yield from _texts_in_schema(schema)


def _texts_in_schema(value: Any) -> Iterator[str]:
    """The texts in a description of columns, without the words that every description has.

    >>> sorted(_texts_in_schema({"fields": [{"name": "ann", "type": "string", "metadata": {"type": "bob"}}]}))
    ['ann', 'bob', 'type']
    """
    if isinstance(value, list):
        for each in value:
            yield from _texts_in_schema(each)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key not in _WORDS_OF_SCHEMAS:
                yield key
            if key in _FREE_IN_SCHEMAS:
                yield from texts_in(inner)
            elif not (key in _TYPES_IN_SCHEMAS and isinstance(inner, str)):
                yield from _texts_in_schema(inner)
    else:
        yield from texts_in(value)


def _metadata_in_schema(value: bytes) -> Iterator[tuple[str, bytes]]:
    """The metadata of a schema, and of its columns, that Arrow has written into a file."""
    import pyarrow  # noqa: PLC0415 (an extra)

    try:
        schema = pyarrow.ipc.read_schema(pyarrow.py_buffer(base64.b64decode(value)))
    except (OSError, ValueError, binascii.Error):
        return
    waiting = [(schema.metadata, list(schema))]
    while waiting:
        metadata, fields = waiting.pop()
        for key, inner in (metadata or {}).items():
            yield key.decode(errors="replace"), inner
        for each in fields:
            nested = [each.type.field(place) for place in range(each.type.num_fields)]
            waiting.append((each.metadata, nested))
