"""The people or records that a command names: by options, or by a file of names."""

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from armnesia.cli import options as opt
from armnesia.core.errors import InvalidInputError

UsersFile = Annotated[
    list[Path] | None,
    typer.Option(
        "--file", help="A file of people: one per line, or CSV with a header and --column (repeatable)."
    ),
]
Column = Annotated[str | None, typer.Option(help="The column of the file that has the names.")]
Records = Annotated[list[str] | None, typer.Option(help="Single records, by their ids: ID,ID (repeatable).")]
RecordsFile = Annotated[
    list[Path] | None,
    typer.Option("--records-file", help="A file of record ids: one per line, or CSV as for --file."),
]
_HEADERS = {"user", "users", "user_id", "userid", "username", "user_name", "customer_id", "account_id"}
_HEADERS |= {"id", "ids", "record", "records", "record_id", "event_id", "name", "names", "email", "who"}
_MOST_NAMES, _MOST_TEXT = 1_000_000, 1 << 26
"""Names, and their characters, in one request."""
_LONGEST_LINE = 1 << 20
_OTHER_SEPARATORS = {";": "semicolon", "\t": "tab"}


def read_names(
    user: opt.Users = None,
    file: UsersFile = None,
    column: Column = None,
    records: Records = None,
    records_file: RecordsFile = None,
) -> dict[str, Any]:
    """Read the named users or records from the options, as `Vault` takes them; names are not changed.

    >>> read_names(records=["r-1,r-2", "r-3"])
    {'records': ['r-1', 'r-2', 'r-3']}
    """
    ways = {"--user": user, "--file": file, "--records": records, "--records-file": records_file}
    given = [option for option, value in ways.items() if value]
    if len(given) != 1:
        raise InvalidInputError(
            "name people or records by one of --user (repeatable), --file, --records and --records-file; got"
            f" {' and '.join(given) or 'none'}"
        )
    if column is not None and not file and not records_file:
        raise InvalidInputError(f"--column belongs to --file or --records-file; got --column {column} alone")
    if user or file:
        names = [name for each in file or () for name in names_in(each, column, "--file", "person")]
        return {"users": user or names}
    files = records_file or ()
    names = [name for each in files for name in names_in(each, column, "--records-file", "record")]
    names += [name for each in records or () for name in each.split(",")]
    _warn_of_spaces(names)
    return {"records": names}


def names_in(file: Path, column: str | None, option: str, what: str) -> list[str]:
    """The names in a file: its lines, or with a column the values below that header.

    Messages do not quote the file, because it may list people.
    """
    where = f"{option} {file}"
    names: list[str] = []
    place, width, size = 0, 0, 0
    for number, row in _rows(file, option):
        if not width:
            width = len(row)
            if column is not None:
                if column not in row:
                    raise InvalidInputError(f"{where} has no column {column!r} in its first line")
                if row.count(column) > 1:
                    raise InvalidInputError(f"{where} has more than one column {column!r} in its first line")
                place = row.index(column)
                continue
            if width > 1:
                raise InvalidInputError(f"{where} has {width} columns; choose one with --column")
        elif len(row) != width:
            raise InvalidInputError(
                f"{where} must have the same number of values in each line; line {number} has not"
            )
        if not row[place].strip():
            raise InvalidInputError(f"{where} must name one {what} per line; line {number} names none")
        names.append(row[place])
        size += len(row[place])
        if len(names) > _MOST_NAMES or size > _MOST_TEXT:
            raise InvalidInputError(
                f"{where} must have at most {_MOST_NAMES:,} names, of {_MOST_TEXT:,} characters together;"
                " make several requests of it"
            )
    if column is not None and not width:
        raise InvalidInputError(f"{where} has no column {column!r} in its first line")
    if not names:
        raise InvalidInputError(f"{where} must name at least one {what}, and one per line")
    if column is None:
        _check_one_column(names, where)
    return names


def _rows(file: Path, option: str) -> Iterator[tuple[int, list[str]]]:
    """The number and the values of every line that is not blank, one line at a time."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.reader(_lines(stream), strict=True)
            for row in reader:
                if len(row) > 1 or "".join(row).strip():
                    yield reader.line_num, row
    except OSError as error:
        raise InvalidInputError(f"{option} {file} cannot be read: {error.strerror}") from None
    except (csv.Error, UnicodeDecodeError):
        raise InvalidInputError(
            f"{option} must be CSV in UTF-8, in lines below {_LONGEST_LINE:,} characters; {file} is not"
        ) from None


def _lines(stream: TextIO) -> Iterator[str]:
    """The lines of a file, none of which may be so long that it needs much memory."""
    while line := stream.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise csv.Error
        yield line


def _check_one_column(names: list[str], where: str) -> None:
    """Refuse what looks like several columns or a header, which would be taken for names."""
    if names[0].strip().casefold().replace("-", "_").replace(" ", "_") in _HEADERS:
        raise InvalidInputError(f"{where} begins with what looks like a header, {names[0]!r}; give --column")
    for separator, called in _OTHER_SEPARATORS.items():
        if all(separator in name for name in names):
            raise InvalidInputError(
                f"{where} has a {called} in every line; columns must be separated by commas, and names with a"
                f" {called} need a header and --column"
            )


def _warn_of_spaces(names: list[str]) -> None:
    spaced = sum(name != name.strip() for name in names)
    if spaced:
        warnings.warn(
            f"ids that begin or end with a space: {spaced} of {len(names)}; spaces are part of an id",
            stacklevel=2,
        )
