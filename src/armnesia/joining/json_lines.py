"""Files of JSON lines, one event per line, as PostHog exports them; read by DuckDB as one table."""

import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from os import PathLike

from armnesia.core.errors import InvalidLogError
from armnesia.logs.files.duckdb_engine import unreadable
from armnesia.logs.files.formats import Format, LogFiles, find_paths, opened, stamp_of_log

_NAME = "JSON lines"
_COMPRESSION = {".jsonl": "none", ".ndjson": "none", ".jsonl.gz": "gzip", ".ndjson.gz": "gzip"}
SUFFIXES = tuple(_COMPRESSION)


@dataclass(frozen=True)
class JsonFormat(Format):
    """JSON lines; values are read as their text, objects and lists as JSON."""

    @property
    def name(self) -> str:
        """The format's name in messages."""
        return _NAME


@dataclass(frozen=True)
class JsonLines(LogFiles):
    """Files of JSON lines. The keys of the first line are the columns; a key that a line lacks is missing."""

    def table_of(self, parameter: str) -> str:
        """The files as a table in SQL, with columns c0, c1, … by position."""
        # By their names in the file, so they are quoted; a quote in a name is doubled.
        types = ", ".join(f"'{name.replace(chr(39), chr(39) * 2)}': 'JSON'" for name, _ in self.columns)
        values = ", ".join(f"c{position}" for position in range(len(self.columns)))
        read = (
            f"read_json(${parameter}, format = 'newline_delimited', records = true, auto_detect = false,"
            f" compression = '{self.format.compression}', hive_partitioning = false, columns = {{{types}}})"
            f" AS raw({values})"
        )
        texts = ", ".join(f"c{at} ->> '$' AS c{at}" for at in range(len(self.columns)))
        return f"(SELECT {texts} FROM {read}) AS t"


def is_json_lines(source: str | PathLike[str]) -> bool:
    """Tell whether a path or glob names files of JSON lines.

    >>> is_json_lines("events/*.jsonl.gz"), is_json_lines("events.csv")
    (True, False)
    """
    return str(source).lower().endswith(SUFFIXES)


def open_json_lines(source: str | PathLike[str], wanted: Iterable[str]) -> JsonLines:
    """Find the files, count their lines, and take the wanted columns from the first line of each."""
    paths = find_paths(source)
    needed = dict.fromkeys(wanted)
    n_rows, keys, stamps = 0, None, []
    for path in paths:
        stamps.append(stamp_of_log(path))
        count, found = _scanned(path)
        n_rows += count
        keys = found if keys is None else keys
    compression = {
        _COMPRESSION[suffix] for suffix in SUFFIXES for path in paths if path.lower().endswith(suffix)
    }
    if len(compression) != 1:
        raise InvalidLogError("source must match files of one format; got compressed and plain files")
    columns = tuple((name, "VARCHAR") for name in needed if name in (keys or {}))
    format_ = JsonFormat(compression=compression.pop())
    return JsonLines(tuple(paths), format_, columns, n_rows, tuple(stamps))


def _scanned(path: str) -> tuple[int, dict[str, object]]:
    """The number of lines that are not blank, and the object on the first of them."""
    count, first = 0, b"{}"
    try:
        with opened(path, Format(compression="gzip" if path.lower().endswith(".gz") else "none")) as lines:
            for line in lines:
                if line.strip():
                    first = line if count == 0 else first
                    count += 1
        keys = json.loads(first)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = getattr(error, "strerror", None) or "its first line is not a JSON object"
        raise InvalidLogError(f"{unreadable(path, _NAME)}: {reason}") from None
    if not isinstance(keys, dict):
        raise InvalidLogError(f"{unreadable(path, _NAME)}: its first line is not a JSON object")
    return count, keys
