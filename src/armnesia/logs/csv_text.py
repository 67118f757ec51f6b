"""What DuckDB misreads in CSV files without a word is looked for here, in one pass over the bytes.

DuckDB trims blanks beside quotes, drops a column that holds null characters only, and loses a last record
whose quote is never closed.
"""

import csv
import gzip
import zlib
from codecs import BOM_UTF8
from pathlib import Path
from typing import IO

import numpy as np

from armnesia.core.errors import InvalidLogError

_BLOCK = 1 << 20
"""The most bytes of a line, and how many are looked at together."""
_OTHER_DELIMITERS = (";", "\t", "|")


def check_csv(path: str, given: str | None, usual: str, compression: str) -> tuple[list[str], str, bool]:
    """The header of a CSV file, its delimiter, and whether it has quotes.

    What readers of CSV understand differently is refused.

    If no delimiter is given, and the usual one is not in the header, it is one of the others that is.
    """
    try:
        with _opened(path, compression) as file:
            delimiter = given or usual
            names = _header(path, file, delimiter)
            if len(names) == 1 and given is None:
                delimiter = next((each for each in _OTHER_DELIMITERS if each in names[0]), usual)
                names = _header(path, file, delimiter)
            file.seek(0)
            if file.read(len(BOM_UTF8)) != BOM_UTF8:
                file.seek(0)
            has_quotes = _scan(path, file, delimiter)
    except UnicodeDecodeError:
        raise _refused(path, "it has text that is not UTF-8") from None
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise _refused(path, getattr(error, "strerror", None) or str(error)) from None
    return names, delimiter, has_quotes


def _header(path: str, file: IO[bytes], delimiter: str) -> list[str]:
    file.seek(0)
    lines = (line.decode("utf-8-sig") for line in file)
    names = next(csv.reader(lines, delimiter=delimiter, strict=True), [])
    if not names:
        raise _refused(path, "its first line must name its columns, and there is none, or it is empty")
    return names


def _scan(path: str, file: IO[bytes], delimiter: str) -> bool:
    """Whether there are quotes; refuse one that is elsewhere than where a field begins or ends, or open."""
    is_edge = np.zeros(256, dtype=bool)
    is_edge[list(b'"\r\n' + delimiter.encode())] = True
    quotes, line, last = 0, 1, b"\n"
    while True:
        block = file.read(_BLOCK)
        if b"\0" in block:
            raise _refused(path, "it has a null character, which is no text")
        if len(block) == _BLOCK and b"\n" not in block:
            raise _refused(path, f"a line has more than {_BLOCK:,} bytes; is a line end missing?")
        # Of two neighbours on both sides: the last byte of a block is looked at with the next one.
        text = last + (block or b"\n")
        if b'"' in text:
            marks = np.frombuffer(text, dtype=np.uint8)
            at = np.flatnonzero(marks[1:-1] == ord('"')) + 1
            outside = np.where((quotes + np.arange(len(at))) % 2 == 0, at - 1, at + 1)
            odd = at[~is_edge[marks[outside]]]
            if len(odd):
                place = line + text[1 : odd[0]].count(b"\n")
                raise _refused(
                    path,
                    f"line {place} has a quote that neither begins nor ends a field, which readers of CSV"
                    " understand differently: put the whole field in quotes, and write quotes in it twice",
                )
            quotes += len(at)
        if not block:
            if quotes % 2:
                raise _refused(path, "it has a quote that is not closed")
            return quotes > 0
        line, last = line + text[1:-1].count(b"\n"), text[-2:]


def _opened(path: str, compression: str) -> IO[bytes]:
    return gzip.open(path) if compression == "gzip" else Path(path).open("rb")  # type: ignore[return-value]


def _refused(path: str, reason: str) -> InvalidLogError:
    return InvalidLogError(f"source {path!r} cannot be read as CSV: {reason}")
