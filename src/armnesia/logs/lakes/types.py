"""Types of tables in DuckDB's SQL, and values of a file whose type is another one than the table's."""

import re
from collections.abc import Iterable
from typing import Any

_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INTEGER": 10, "BIGINT": 19}
"""Types of integers, from the narrowest to the widest, and the most digits of each."""
_WIDENED = {
    ("TINYINT", "DOUBLE"),
    ("SMALLINT", "DOUBLE"),
    ("INTEGER", "DOUBLE"),
    ("FLOAT", "DOUBLE"),
    ("DATE", "TIMESTAMP"),
}
"""Changes of type, besides those of integers and decimals, that no value is rounded by."""
_NESTED = ("struct", "list", "map")
_INT96 = ("INT96", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")


def converted(column: str, stored: str, physical: str | None, wanted: str) -> str | None:
    """A column of a file in the type of the table, in SQL; None if a value might change or be misread.

    `stored` and `wanted` are types of DuckDB, and `physical` is the type in the Parquet file.

    >>> converted("f0", "INTEGER", "INT32", "INTEGER"), converted("f0", "INTEGER", "INT32", "BIGINT")
    ('f0', 'CAST(f0 AS BIGINT)')
    >>> converted("f0", "BIGINT", "INT64", "INTEGER"), converted("f0", "DOUBLE", "DOUBLE", "FLOAT")
    (None, None)
    >>> converted("f0", "TIMESTAMP", "INT96", "TIMESTAMP WITH TIME ZONE")
    'make_timestamptz(epoch_us(f0))'
    """
    if stored == wanted:
        return column
    if (physical, stored, wanted) == _INT96:  # a moment, although the file cannot say so
        return f"make_timestamptz(epoch_us({column}))"
    if (stored, wanted) in _WIDENED or _is_wider_number(stored, wanted):
        return f"CAST({column} AS {wanted})"
    return None


def _is_wider_number(stored: str, wanted: str) -> bool:
    """Whether a type of integers or decimals has every value of another one."""
    if stored in _DIGITS and wanted in _DIGITS:
        return _DIGITS[stored] < _DIGITS[wanted]
    narrow, wide = _decimal(stored), _decimal(wanted)
    return narrow is not None and wide is not None and narrow[0] <= wide[0] and narrow[1] <= wide[1]


def _decimal(type_: str) -> tuple[int, int] | None:
    """The digits before and after the decimal point of a type of DuckDB.

    >>> _decimal("DECIMAL(9,2)"), _decimal("INTEGER"), _decimal("DOUBLE")
    ((7, 2), (10, 0), None)
    """
    if type_ in _DIGITS:
        return _DIGITS[type_], 0
    found = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", type_)
    return None if found is None else (int(found[1]) - int(found[2]), int(found[2]))


def list_type(element: str | None) -> str | None:
    """A list in DuckDB's SQL; None if its elements are not supported."""
    return None if element is None else f"{element}[]"


def map_type(key: str | None, value: str | None) -> str | None:
    """A mapping in DuckDB's SQL."""
    return None if key is None or value is None else f"MAP({key}, {value})"


def struct_type(fields: Iterable[tuple[str, str | None]]) -> str | None:
    """A structure in DuckDB's SQL.

    >>> struct_type([("page", "VARCHAR"), ("scores", "INTEGER[]")]), struct_type([("x", None)])
    ('STRUCT("page" VARCHAR, "scores" INTEGER[])', None)
    """
    parts = []
    for name, type_ in fields:
        if type_ is None:
            return None
        quoted = name.replace('"', '""')
        parts.append(f'"{quoted}" {type_}')
    return f"STRUCT({', '.join(parts)})" if parts else None


def has_other_fields(stored: str, wanted: str) -> bool:
    """Whether a nested type of DuckDB has fields, by their names, that another one does not have.

    >>> has_other_fields("STRUCT(a INTEGER)[]", "STRUCT(a BIGINT, b VARCHAR)[]")
    False
    >>> has_other_fields("STRUCT(a INTEGER, c STRUCT(d DATE))", "STRUCT(a INTEGER, c STRUCT(e DATE))")
    True
    """
    import duckdb  # noqa: PLC0415 (an extra)

    return stored != wanted and _has_other_fields(duckdb.sqltype(stored), duckdb.sqltype(wanted))


def _has_other_fields(stored: Any, wanted: Any) -> bool:
    if stored.id not in _NESTED:
        return False
    if stored.id != wanted.id:
        return True
    inner = dict(wanted.children)
    return any(name not in inner or _has_other_fields(each, inner[name]) for name, each in stored.children)
