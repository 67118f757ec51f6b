"""The names that somebody types, pastes or uploads."""

import csv
import io

from armnesia.core.errors import InvalidInputError
from armnesia.core.messages import counted


def typed_names(text: str) -> list[str]:
    """One name per line; spaces around a name and empty lines do not count.

    >>> typed_names("ann\\r\\n\\n bob \\nc\\x1cd\\u2028e")
    ['ann', 'bob', 'c\\x1cd\\u2028e']
    """
    return [
        line.strip() for line in text.split("\n") if line.strip()
    ]  # and not at other characters of a name


def uploaded_names(content: bytes, column: str) -> list[str]:
    """The names in a file: its lines, or with a column the values below that heading.

    >>> uploaded_names(b"id,who\\n1,ann\\n2,bob\\n", "who")
    ['ann', 'bob']
    >>> uploaded_names(b"id,who\\n1,ann\\n", "")
    Traceback (most recent call last):
    armnesia.core.errors.InvalidInputError: The file has 2 columns; say which of them has the names.
    """
    try:
        rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise InvalidInputError("The file must be text or CSV, in UTF-8.") from None
    rows = [row for row in rows if len(row) > 1 or "".join(row).strip()]
    place = _place(rows, column)
    for number, row in enumerate(rows, 1):
        if len(row) != len(rows[0]):
            raise InvalidInputError(
                f"Every line must have as many values as the first; line {number} has not."
            )
        if not row[place].strip():
            raise InvalidInputError(f"Every line must have a name; line {number} has none.")
    return [row[place].strip() for row in (rows[1:] if column else rows)]


def _place(rows: list[list[str]], column: str) -> int:
    """Which column has the names."""
    if not rows:
        raise InvalidInputError("The file is empty.")
    headings = [heading.strip() for heading in rows[0]]
    if column:
        if column not in headings:
            raise InvalidInputError("The first line of the file does not have this column.")
        return headings.index(column)
    if len(headings) > 1:
        raise InvalidInputError(f"The file has {len(headings)} columns; say which of them has the names.")
    return 0


def checked_names(names: list[str], most: int) -> tuple[str, ...]:
    """Each name once; refuse none at all, and too many.

    >>> checked_names(["ann", "ann", "bob"], 10)
    ('ann', 'bob')
    """
    once = tuple(dict.fromkeys(names))
    if not once:
        raise InvalidInputError("Type or paste at least one name, or choose a file.")
    if len(once) > most:
        raise InvalidInputError(
            f"At most {most:,} names are taken at once, and this list has {counted(len(once), 'name')};"
            " make several requests of it."
        )
    return once
