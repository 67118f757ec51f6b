"""Columns of whatever kind as plain Python values, and messages that point at the rows that are wrong."""

from collections.abc import Hashable, Iterable
from itertools import islice
from typing import Any

import numpy as np

from armnesia.core.arrays import IntArray
from armnesia.core.errors import InvalidInputError, InvalidLogError

MISSING = -1
"""The code of a row that has no label."""


def python_values(column: Any, what: str) -> list[Any]:
    """List the values of an array, series or other iterable as Python objects.

    Not through numpy: it would turn the labels of [1, "B"] into text.

    >>> python_values(np.array([1, 2]), "rows"), python_values([1, "B"], "action")
    ([1, 2], [1, 'B'])
    """
    for method in ("to_pylist", "to_list", "tolist"):  # pyarrow; polars and pandas; numpy
        if hasattr(column, method):
            values = getattr(column, method)()
            break
    else:
        values = list(column) if isinstance(column, Iterable) else column
    if not isinstance(values, list):
        raise InvalidInputError(f"{what} must be an array or a list, with one value a row; got {column!r}")
    return values


def is_missing(value: Any) -> bool:
    """Tell whether a value stands for no value: None, NaN, NaT or pandas' NA.

    >>> is_missing(None), is_missing(float("nan")), is_missing(""), is_missing(0)
    (True, True, False, False)
    """
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 (true for NaN and NaT)
    except TypeError:  # NA == NA is NA, which is neither true nor false
        return True


def encode(labels: list[Any], what: str) -> tuple[IntArray, list[Hashable]]:
    """Number the labels in order of first appearance; a missing label gets `MISSING`.

    >>> encode(["b", None, "a", "b"], "user")
    (array([ 0, -1,  1,  0]), ['b', 'a'])
    """
    code_of: dict[Hashable, int] = {}
    codes = []
    for row, label in enumerate(labels):
        try:
            code = code_of.get(label)
        except TypeError:
            raise InvalidLogError(
                f"{what} must hold hashable labels, such as text or numbers; got {at_rows([(row, label)])}"
            ) from None
        if code is None:
            if is_missing(label):
                code = MISSING
            else:
                code = len(code_of)
                code_of[label.item() if isinstance(label, np.generic) else label] = code
        codes.append(code)
    return np.array(codes, dtype=np.int64), list(code_of)


def sorted_if_comparable(labels: list[Hashable]) -> list[Hashable]:
    """Sort labels, or leave them in order of appearance if they cannot be compared.

    >>> sorted_if_comparable([3, 1]), sorted_if_comparable([3, "A"])
    ([1, 3], [3, 'A'])
    """
    try:
        return sorted(labels)  # type: ignore[type-var]
    except TypeError:
        return labels


def at_rows(offences: Iterable[tuple[int, Any]], shown: int = 3) -> str:
    """Say which values are wrong and where: the first few, with rows counted from 0.

    >>> at_rows([(4, "x"), (7, None)])
    "'x' at row 4, a missing value at row 7"
    >>> at_rows(enumerate("abcde"))
    "'a' at row 0, 'b' at row 1, 'c' at row 2, …"
    """
    first = list(islice(offences, shown + 1))
    named = [
        f"{'a missing value' if is_missing(value) else repr(value)} at row {row}"
        for row, value in first[:shown]
    ]
    return ", ".join([*named, "…"] if len(first) > shown else named)
