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
_OF_WRITERS = ("pandas", "iceberg.schema", "parquet.avro.schema", "writer.model.name", "geo")
_BEGIN_OF_WRITERS = ("org.apache.spark", "PARQUET:", "ARROW:extension:")
"""Keys, and beginnings of keys, whose values describe columns or the writer."""
_LISTS = re.compile(r"""[,;|\n\r\t"'=\[\]{}()<>]+""")
_WORDS = re.compile(r"""[\s,;:|"'=\[\]{}()<>]+""")
_SHORTEST_NAME, _SHORTEST_NUMBER = 3, 5
"""Shorter ones stand in metadata by chance."""
_DESCRIBING = ("_metadata", "_common_metadata")


def describing_files(paths: Iterable[str]) -> list[str]:
    """Files that describe all files of a folder, in the folders of some files and above these."""
    waiting = {folder for path in paths for folder in map(os.path.dirname, (path, os.path.realpath(path)))}
    folders: set[str] = set()
    while waiting:
        folders |= waiting
        waiting = {os.path.dirname(folder) for folder in waiting} - folders
    candidates = (os.path.join(folder, name) for folder in sorted(folders) for name in _DESCRIBING)
    return list(filter(os.path.isfile, candidates))


def has_statistics(path: str) -> bool:
    """Whether a file that describes a folder has statistics of the files there, or cannot be read."""
    import pyarrow.parquet  # noqa: PLC0415 (an extra)

    try:
        return bool(pyarrow.parquet.read_metadata(path).num_row_groups)
    except (OSError, ValueError):
        return True


def named_in_metadata(files: LogFiles, people: People, others: Collection[str] = ()) -> Iterator[str]:
    """A sentence if the key-value metadata of files, or of others that describe them, name people."""
    if not files.paths:
        return
    paths = [*files.escaped_paths(), *map(glob.escape, others)]
    files.check_unchanged()
    sql = "SELECT DISTINCT decode(key), value FROM parquet_kv_metadata($files)"
    found = query(sql, {"files": paths}, shown=files.shown, format_name=files.format.name)
    names = {name for key, value in found for name in _names_in(key, value)}
    if people.among(sorted(names)):  # without the key, which may be a name
        yield "key-value metadata of files may name people; write the files again without them"


def _names_in(key: str, value: bytes) -> set[str]:
    """What may be a name in a value of the metadata."""
    if key in _OF_WRITERS or key.startswith(_BEGIN_OF_WRITERS):
        return set()
    if key == _ARROW:
        return {name for inner, text in _metadata_in_schema(value) for name in _names_in(inner, text)}
    texts = (key, value.decode(errors="replace"))
    return {name for text in texts for name in names_in_text(text) if _is_long(name)}


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
    for described in (schema, *schema):
        for key, inner in (described.metadata or {}).items():
            yield key.decode(errors="replace"), inner


def _is_long(name: str) -> bool:
    return len(name) >= (_SHORTEST_NUMBER if name.lstrip("+-").isdigit() else _SHORTEST_NAME)
