"""What the vault's commands share: where the vault is, whom a request names, how it is to be answered."""

import csv
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from armnesia.cli.output import emit
from armnesia.errors import InvalidInputError
from armnesia.privacy import Level
from armnesia.vault import DEFAULT_URL, Policy
from armnesia.vault.claims import printable

Url = Annotated[
    str,
    typer.Option(
        "--url", envvar="ARMNESIA_URL", help=f"The vault: {DEFAULT_URL} or postgresql://USER@HOST/DATABASE."
    ),
]
Keys = Annotated[
    Path | None,
    typer.Option("--keys", envvar="ARMNESIA_KEYS", help="The keys' file, if not beside the SQLite vault."),
]
Users = Annotated[list[str] | None, typer.Option("--user", help="A person, by their id (repeatable).")]
UsersFile = Annotated[
    Path | None,
    typer.Option("--file", help="A file of persons: one a line, or CSV with a header and --column."),
]
Column = Annotated[str | None, typer.Option(help="The column of --file that names persons.")]
Records = Annotated[str | None, typer.Option(help="Single records, by their ids: ID,ID.")]
MaxEpsilon = Annotated[float | None, typer.Option(help="Policy: the largest ε of a request.")]
MaxDelta = Annotated[float | None, typer.Option(help="Policy: the largest δ of a request.")]
Levels = Annotated[str | None, typer.Option(help=f"Policy: the levels allowed, of {','.join(Level)}.")]
BeyondPolicy = Annotated[str | None, typer.Option("--beyond", help="Policy: beyond it, refuse or rollback.")]


def tell(result: Mapping[str, Any], as_json: bool, *shown: Any) -> None:
    """Print the result as JSON, or what is shown to people; names may hold anything, so none is markup."""
    lines = [
        escape("\n".join(map(printable, each.split("\n")))) if isinstance(each, str) else each
        for each in shown
    ]
    emit(result, as_json, *lines)


def named(
    users: list[str] | None, file: Path | None = None, column: str | None = None, records: str | None = None
) -> dict[str, Any]:
    """Whom or what a command names, as `Vault` takes it: users or records.

    >>> named(None, records="r-1,r-2")
    {'records': ['r-1', 'r-2']}
    """
    if sum((bool(users), file is not None, records is not None)) != 1:
        raise InvalidInputError(
            "say who or what is meant, by one of --user (repeatable), --file and --records"
        )
    if column is not None and file is None:
        raise InvalidInputError(f"--column belongs to --file; got --column {column} alone")
    if records is not None:
        return {"records": [record.strip() for record in records.split(",")]}
    return {"users": users or users_in(file or Path(), column)}


def users_in(file: Path, column: str | None) -> list[str]:
    """The persons that a file names: its lines; or a column, then its first line is a header.

    Messages do not quote the file, which is a list of people.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            rows = [row for row in csv.reader(stream, strict=True) if row]
    except (csv.Error, UnicodeDecodeError):
        raise InvalidInputError(f"--file must be CSV in UTF-8; {file} is not") from None
    place, first = 0, 0
    if column is not None:
        if not rows or column not in rows[0]:
            raise InvalidInputError(f"--file {file} has no column {column!r} in its first line")
        place, first = rows[0].index(column), 1
    wrong = next(
        (number for number, row in enumerate(rows[first:], first + 1) if len(row) != len(rows[0])), None
    )
    if wrong is not None:
        raise InvalidInputError(f"--file {file} must have as many values in each line; line {wrong} has not")
    if column is None and rows and len(rows[0]) > 1:
        raise InvalidInputError(f"--file {file} has {len(rows[0])} columns; say which by --column")
    names = [row[place].strip() for row in rows[first:]]
    if not names or "" in names:
        raise InvalidInputError(f"--file {file} must name at least one person, and one in every line")
    return names


def changed_policy(
    policy: Policy,
    max_epsilon: float | None,
    max_delta: float | None,
    levels: str | None,
    beyond: str | None,
) -> Policy:
    """The policy with what was given.

    >>> changed_policy(Policy(0.0, 0.0, (Level.RETAINED,)), 1.0, None, None, "rollback").max_epsilon
    1.0
    """
    given = {
        "max_epsilon": max_epsilon,
        "max_delta": max_delta,
        "levels": None if levels is None else tuple(level.strip() for level in levels.split(",")),
        "beyond": beyond,
    }
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return replace(policy, **changes)
