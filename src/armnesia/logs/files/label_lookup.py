"""Finding the rows of given labels by values of the column's own type, not by the text of every row.

DuckDB compares values of a column with the statistics and bloom filters of Parquet files, and leaves out what
cannot hold them. It cannot do so with texts that it has to make of the values first.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Any, NamedTuple

from armnesia.logs.files.duckdb_values import FLOATS, INTEGERS, FileColumn

_OWN_TYPES = INTEGERS | FLOATS | {"VARCHAR", "DECIMAL", "UUID"}
"""Types whose text reads as the same value. Not BLOB: some versions of DuckDB misread its bloom filters."""


class Lookup(NamedTuple):
    """A condition in SQL that the rows with given labels satisfy and no others, and its parameters."""

    condition: str
    parameters: dict[str, Any]


def look_up(column: FileColumn, texts: Collection[str], parameter: str = "label") -> Lookup:
    """Find labels by their texts; the name of the parameter begins with `parameter`.

    A text that reads as a value of the column, but is not the text of this value, names nobody: 7 is the
    label "7", not "7.0".

    >>> look_up(FileColumn("c0", "VARCHAR", is_text=False), ["ann"])
    Lookup(condition='c0 = $label', parameters={'label': 'ann'})
    >>> print(look_up(FileColumn("c0", "BIGINT", is_text=False), ["7"]).condition)
    c0 = CASE WHEN CAST(TRY_CAST($label AS BIGINT) AS VARCHAR) = $label THEN TRY_CAST($label AS BIGINT) END
    >>> print(look_up(FileColumn("c0", "DATE", is_text=False), ["2026-01-31", "2026-02-01"]).condition)
    CAST(c0 AS VARCHAR) IN (SELECT label FROM (SELECT unnest(CAST($labels AS VARCHAR[])) AS label))
    >>> print(look_up(FileColumn("c0", "VARCHAR", is_text=False, signed_bounds=True), ["ann"]).condition)
    CASE WHEN c0 IS NOT NULL THEN concat(c0, '') END = $label
    """
    wanted = sorted(filter(_is_unicode, texts))
    by_value = finds_by_value(column, wanted)
    compared = column.name if by_value else column.text()

    def value(label: str) -> str:
        """The value whose text is the label; NULL if there is none."""
        if not by_value or column.type == "VARCHAR":
            return label
        read = replace(column, name=f"TRY_CAST({label} AS {column.full_type})")
        return f"CASE WHEN {read.text()} = {label} THEN {read.name} END"

    match wanted:
        case []:
            return Lookup("false", {})
        case [label]:
            return Lookup(f"{compared} = {value(f'${parameter}')}", {parameter: label})
    labels = f"SELECT unnest(CAST(${parameter}s AS VARCHAR[])) AS label"
    return Lookup(f"{compared} IN (SELECT {value('label')} FROM ({labels}))", {f"{parameter}s": wanted})


def finds_by_value(column: FileColumn, texts: Collection[str]) -> bool:
    """Whether `look_up` compares values of the column's own type.

    Not for a float that is 0: it may be stored as -0.0, which bloom filters tell from 0.0. Nor where the
    bounds of a file mislead.

    >>> double = FileColumn("c0", "DOUBLE", is_text=False)
    >>> finds_by_value(double, ["7"]), finds_by_value(double, ["7", "0"])
    (True, False)
    """
    is_zero = column.type in FLOATS and "0" in texts
    return column.type in _OWN_TYPES and not column.misleads and not is_zero


def _is_unicode(text: str) -> bool:
    """Whether a text can be stored at all: half of a surrogate pair cannot, so no row has it."""
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
