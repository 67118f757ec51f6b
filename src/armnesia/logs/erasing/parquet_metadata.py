"""What Parquet files say besides their rows: key-value metadata, and files that describe a whole folder.

Rows are erased by writing files again with the metadata that they had, so that a name in these would stay.
"""

import base64
import binascii
import glob
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from typing import Any

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
_LISTS = re.compile(r"""[,;|\n\r\t"'=\[\]{}()<>]+""")
_WORDS = re.compile(r"""[\s,;:|"'=\[\]{}()<>]+""")
_SHORTEST_NAME, _SHORTEST_NUMBER = 3, 5
"""Shorter ones stand in metadata by chance."""
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
    names = {name for key, value in pairs for name in _names_in(key, value)} | columns
    if people.among(sorted(filter(is_long, names))):
        yield (
            "key-value metadata or names of columns of files may name people; write the files again without"
            " them"
        )


def _names_in(key: str, value: bytes) -> set[str]:
    """What may be a name in a key of the metadata and its value."""
    if key == _ARROW:
        return {name for inner, text in _metadata_in_schema(value) for name in _names_in(inner, text)}
    text = value.decode(errors="replace")
    if key in _SCHEMAS:
        with suppress(ValueError, RecursionError):
            return {name for inner in _texts_in_schema(json.loads(text)) for name in names_in_text(inner)}
    return names_in_text(key) | names_in_text(text)


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
                yield from _texts_in(inner)
            elif not (key in _TYPES_IN_SCHEMAS and isinstance(inner, str)):
                yield from _texts_in_schema(inner)
    else:
        yield from _texts_in(value)


def names_in_text(text: str) -> set[str]:
    """The text, its items, its words, and the texts in it if it is JSON.

    >>> sorted(names_in_text("ann lee, bob"))
    ['ann', 'ann lee', 'ann lee, bob', 'bob', 'lee']
    >>> "lee, ann" in names_in_text('{"most": ["lee, ann", 7]}')
    True
    """
    found = {text.strip(), *map(str.strip, _LISTS.split(text)), *_WORDS.split(text)} - {""}
    with suppress(ValueError, RecursionError):
        found |= set(_texts_in(json.loads(text)))
    return found


def _texts_in(value: Any) -> Iterator[str]:
    """The texts and numbers in a value of JSON."""
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _texts_in(inner)
    if isinstance(value, str | int):
        yield str(value)


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


def is_long(name: str) -> bool:
    """Whether a text is long enough to be a name where it stands among others."""
    return len(name) >= (_SHORTEST_NUMBER if name.lstrip("+-").isdigit() else _SHORTEST_NAME)
