"""What DuckDB misreads in CSV files without a word is looked for here, in one pass over the bytes.

DuckDB trims blanks beside quotes, drops a column that holds null characters only, and loses a last record
that is longer than its buffer, for instance because a quote was never closed.
"""

import csv
import gzip
import zlib
from pathlib import Path
from typing import IO, NamedTuple

from armnesia.core.errors import InvalidLogError

_BLOCK = 1 << 20
"""The most bytes of a line, and how many are looked at together."""
_OTHER_DELIMITERS = (";", "\t", "|")


class CsvText(NamedTuple):
    """What a CSV file is read by."""

    names: list[str]
    delimiter: str
    has_quotes: bool


def check_csv(path: str, given: str | None, usual: str, compression: str) -> CsvText:
    """Read the header of a CSV file, and refuse what readers of CSV understand differently.

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
            has_quotes, is_odd = _scan(path, file)
        if is_odd:
            _refuse_blanks(path, compression, delimiter)
    except UnicodeDecodeError:
        raise _refused(path, "it has text that is not UTF-8") from None
    except (OSError, EOFError, zlib.error, csv.Error) as error:
        raise _refused(path, getattr(error, "strerror", None) or str(error)) from None
    return CsvText(names, delimiter, has_quotes)


def _header(path: str, file: IO[bytes], delimiter: str) -> list[str]:
    file.seek(0)
    lines = (line.decode("utf-8-sig") for line in file)
    names = next((row for row in csv.reader(lines, delimiter=delimiter, strict=True) if row), [])
    if not names:
        raise _refused(path, "it has no header line")
    return names


def _scan(path: str, file: IO[bytes]) -> tuple[bool, bool]:
    """Whether there are quotes, and blanks beside them."""
    has_quotes = is_odd = False
    last = b""
    while block := file.read(_BLOCK):
        if b"\0" in block:
            raise _refused(path, "it has a null character, which is no text")
        if len(block) == _BLOCK and b"\n" not in block:
            raise _refused(path, f"a line has more than {_BLOCK:,} bytes; is a line end missing?")
        if b'"' in block:
            has_quotes = True
            is_odd = is_odd or b' "' in last + block or b'" ' in last + block
        last = block[-1:]
    return has_quotes, is_odd


def _refuse_blanks(path: str, compression: str, delimiter: str) -> None:
    """Look at each field: a quote may have a blank beside it inside a quoted text."""
    with _opened(path, compression) as file:
        reader = csv.reader((line.decode() for line in file), delimiter=delimiter, strict=True)
        try:
            odd = any(
                field.lstrip(" ").startswith('"') and field.startswith(" ") for row in reader for field in row
            )
        except csv.Error:  # text after a closing quote
            odd = True
    if odd:
        raise _refused(
            path,
            f"line {reader.line_num} has a blank or other text beside a quoted field, which readers of CSV"
            " understand differently; write the quote where the field begins or ends",
        )


def _opened(path: str, compression: str) -> IO[bytes]:
    return gzip.open(path) if compression == "gzip" else Path(path).open("rb")  # type: ignore[return-value]


def _refused(path: str, reason: str) -> InvalidLogError:
    return InvalidLogError(f"source {path!r} cannot be read as CSV: {reason}")
