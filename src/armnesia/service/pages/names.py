"""The names that somebody types, pastes or uploads."""

import csv
import io
from typing import Literal

from armnesia.core.errors import InvalidInputError, InvalidNameError
from armnesia.core.messages import counted, printable

Field = Literal["names", "file", "column"]


class NamesError(InvalidInputError):
    """Names that cannot be taken, and the field of the form that is to be corrected."""

    def __init__(self, sentence: str, field: Field = "names") -> None:
        super().__init__(sentence)
        self.field = field

    @classmethod
    def of(cls, error: InvalidInputError) -> "NamesError":
        """What the page says of a refusal of the vault; names are quoted to whoever has typed them.

        >>> print(NamesError.of(InvalidNameError("", "", "empty")))
        Every name must have at least one character that can be seen.
        """
        if isinstance(error, cls):
            return error
        if isinstance(error, InvalidNameError):
            return cls(_REASONS[error.reason].format(f"“{printable(error.name)[:_MOST_SHOWN]}”"))
        return cls("The vault does not accept one of these names.")


_MOST_SHOWN = 100
_REASONS = {
    "empty": "Every name must have at least one character that can be seen.",
    "long": "A name is longer than any name in a log can be: check how the names were read.",
    "type": (
        "{} is not how this vault names people: it names them by whole numbers, or has no records yet and"
        " does not know how."
    ),
}


def typed_names(text: str) -> list[str]:
    """One name per line; spaces around a name and empty lines do not count.

    >>> typed_names("ann\\r\\n\\n bob \\nc\\x1cd\\u2028e")
    ['ann', 'bob', 'c\\x1cd\\u2028e']
    """
    # Not by splitlines(), which also splits at characters that a name may have.
    return [line.strip() for line in text.split("\n") if line.strip()]


def uploaded_names(content: bytes, column: str) -> list[str]:
    """The names in a file: its lines, or with a column the values below that heading.

    Values are separated by commas, semicolons or tabs, whichever the first line has most of.

    >>> uploaded_names(b"id,who\\n1,ann\\n2,bob\\n", "who")
    ['ann', 'bob']
    >>> uploaded_names(b"id;who\\n1;ann\\n", "")
    Traceback (most recent call last):
    armnesia.service.pages.names.NamesError: The file has 2 columns: id, who; say which of them has the names,
    and choose the file again.
    """
    try:
        text = content.decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True))
    except (UnicodeDecodeError, csv.Error):
        raise NamesError("The file must be text or CSV, in UTF-8; choose another.", "file") from None
    lines = [(number, row) for number, row in enumerate(rows, 1) if len(row) > 1 or "".join(row).strip()]
    if not lines:
        raise NamesError("The file is empty; choose another.", "file")
    headings = [heading.strip() for heading in lines[0][1]]
    place = _place(headings, column)
    for number, row in lines:
        if len(row) != len(headings):
            raise NamesError(
                f"Every line must have as many values as the first; line {number} has not. {_AGAIN}", "file"
            )
        if not row[place].strip():
            raise NamesError(f"Every line must have a name; line {number} has none. {_AGAIN}", "file")
    return [row[place].strip() for _, row in (lines[1:] if column else lines)]


_AGAIN = "Correct the file, and choose it again."
_MOST_HEADINGS = 12


def _delimiter(text: str) -> str:
    """What separates values: a comma, unless the first line has as many semicolons or tabs.

    >>> _delimiter("id;name, first\\n1;ann\\n"), _delimiter("ann\\nbob\\n")
    (';', ',')
    """
    first = next((line for line in text.splitlines() if line.strip()), "")
    unquoted = "".join(first.split('"')[::2])
    return max(";\t,", key=lambda each: (unquoted.count(each), each == "," and "," not in unquoted))


def _place(headings: list[str], column: str) -> int:
    """Which column has the names."""
    shown = ", ".join(headings[:_MOST_HEADINGS]) + (", …" if len(headings) > _MOST_HEADINGS else "")
    columns = f"The file has {counted(len(headings), 'column')}: {shown}"
    if column and headings.count(column) != 1:
        which = "none of them is" if column not in headings else "several of them are"
        raise NamesError(f"{columns}; {which} called “{column}”. Choose the file again.", "column")
    if not column and len(headings) > 1:
        raise NamesError(f"{columns}; say which of them has the names, and choose the file again.", "column")
    return headings.index(column) if column else 0


def checked_names(names: list[str], most: int) -> tuple[str, ...]:
    """Each name once; refuse none at all, and too many.

    >>> checked_names(["ann", "ann", "bob"], 10)
    ('ann', 'bob')
    """
    once = tuple(dict.fromkeys(names))
    if not once:
        raise NamesError("Type or paste at least one name, or choose a file.")
    if len(once) > most:
        raise NamesError(
            f"At most {most:,} names are taken at once, and this list has {counted(len(once), 'name')};"
            " make several requests of it."
        )
    return once
