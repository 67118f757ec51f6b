"""Finding the rows of given labels by values of the column's own type, not by the text of every row.

DuckDB compares values of a column with the statistics and bloom filters of Parquet files, and leaves out what
cannot hold them. It cannot do so with texts that it has to make of the values first.
"""

from collections.abc import Collection
from typing import Any, NamedTuple

from armnesia.logs.files.duckdb_values import FLOATS, INTEGERS, FileColumn

_OWN_TYPES = INTEGERS | FLOATS | {"VARCHAR", "DECIMAL", "UUID"}
"""Types whose text reads as the same value. Not BLOB: some versions of DuckDB misread its bloom filters."""


class Lookup(NamedTuple):
    """A condition in SQL that all rows with given labels satisfy, and the values of its parameters.

    A few other rows may satisfy it as well: 7 is found for the text "7.0", which is not how 7 is written. So
    the text of what was found is compared, too.
    """

    condition: str
    parameters: dict[str, Any]


def look_up(column: FileColumn, texts: Collection[str]) -> Lookup:
    """Find labels by their texts.

    >>> look_up(FileColumn("c0", "BIGINT", is_text=False), ["7"])
    Lookup(condition='c0 = TRY_CAST($label AS BIGINT)', parameters={'label': '7'})
    >>> look_up(FileColumn("c0", "VARCHAR", is_text=False), ["ann", "bob"]).condition
    'c0 IN (SELECT unnest(CAST($labels AS VARCHAR[])))'
    >>> look_up(FileColumn("c0", "DATE", is_text=False), ["2026-01-31"]).condition
    'CAST(c0 AS VARCHAR) = $label'
    """
    wanted = sorted(filter(_is_unicode, texts))
    by_value = finds_by_value(column, wanted)
    compared = column.name if by_value else column.text()

    def of_own_type(text: str) -> str:
        return f"TRY_CAST({text} AS {column.full_type})" if by_value and column.type != "VARCHAR" else text

    match wanted:
        case []:
            return Lookup("false", {})
        case [label]:
            return Lookup(f"{compared} = {of_own_type('$label')}", {"label": label})
    values = of_own_type("unnest(CAST($labels AS VARCHAR[]))")
    return Lookup(f"{compared} IN (SELECT {values})", {"labels": wanted})


def finds_by_value(column: FileColumn, texts: Collection[str]) -> bool:
    """Whether `look_up` compares values of the column's own type.

    Not for a float that is 0: it may be stored as -0.0, which bloom filters tell from 0.0.

    >>> double = FileColumn("c0", "DOUBLE", is_text=False)
    >>> finds_by_value(double, ["7"]), finds_by_value(double, ["7", "0"])
    (True, False)
    """
    return column.type in _OWN_TYPES and not (column.type in FLOATS and "0" in texts)


def _is_unicode(text: str) -> bool:
    """Whether a text can be stored at all: half of a surrogate pair cannot, so no row has it."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
